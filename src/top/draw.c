/* draw.c -- `cohort top` on a terminal, with ncurses: lines from lines.c, keys to keys.c.
 *
 * The loop sleeps until a key comes or it is time to look again. ncurses writes only what has changed, so
 * an idle screen costs a few bytes over ssh. The terminal is put back however we end: by a key, Ctrl-C,
 * SIGTERM, or when it is closed. */
#include "top/top_int.h"

#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <unistd.h>

#include "base/clock.h"

static volatile sig_atomic_t told_to_end;

static void on_signal(int sig)
{
    (void)sig;
    told_to_end = 1;
}

bool top_is_utf8(void)
{
    return setlocale(LC_CTYPE, "") && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* --- the terminal --------------------------------------------------------------------------------------- */
static co_err check_terminal(void)
{
    const char *term = getenv("TERM");
    int found = 0;

    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return co_fail(CO_EINPUT,
                       "top draws on a terminal, and this is none; `cohort top --once` prints it as text");
    if (!term || setupterm(term, STDOUT_FILENO, &found) != OK)
        return co_fail(
            CO_EINPUT,
            "TERM=%s: nothing is known of this terminal (Debian's package ncurses-term knows many); "
            "`cohort top --once` prints the same as text",
            term ? term : "");
    const char *move = tigetstr("cup"); /* NULL: it cannot; -1: ncurses does not know */
    bool moves = move && move != (char *)-1;
    del_curterm(cur_term);
    if (!moves)
        return co_fail(
            CO_EINPUT,
            "TERM=%s: this terminal cannot be drawn on; `cohort top --once` prints the same as text", term);
    return CO_OK;
}

enum { COLOUR_WARN = 1, COLOUR_TITLE };

static co_err open_terminal(SCREEN **screen)
{
    struct sigaction end = {.sa_handler = on_signal};

    sigaction(SIGINT, &end, NULL);
    sigaction(SIGTERM, &end, NULL);
    sigaction(SIGHUP, &end, NULL);
    *screen = newterm(NULL, stdout, stdin);
    if (!*screen)
        return co_fail(CO_EINPUT,
                       "this terminal cannot be opened; `cohort top --once` prints the same as text");
    cbreak();
    noecho();
    keypad(stdscr, TRUE);
    set_escdelay(50);
    curs_set(0);
    timeout(0);
    const char *plain = getenv("NO_COLOR");
    if (has_colors() && !(plain && *plain) && start_color() == OK) {
        use_default_colors();
        init_pair(COLOUR_WARN, COLOR_RED, -1);
        init_pair(COLOUR_TITLE, COLOR_CYAN, -1);
    }
    return CO_OK;
}

static void close_terminal(SCREEN *screen)
{
    if (!screen)
        return;
    endwin();
    delscreen(screen);
}

/* --- drawing -------------------------------------------------------------------------------------------- */
static chtype attributes(top_look look)
{
    switch (look) {
    case LOOK_TITLE:
        return A_BOLD | COLOR_PAIR(COLOUR_TITLE);
    case LOOK_HEAD:
        return A_BOLD | A_UNDERLINE;
    case LOOK_CHOSEN:
        return A_REVERSE;
    case LOOK_WARN:
        return A_BOLD | COLOR_PAIR(COLOUR_WARN);
    case LOOK_DIM:
        return A_DIM;
    case LOOK_PLAIN:
        break;
    }
    return A_NORMAL;
}

static void draw(const top_state *state)
{
    top_screen screen = {0};

    top_lines(state, LINES, COLS, &screen);
    erase();
    for (int i = 0; i < screen.n && i < LINES; i++) {
        attrset((attr_t)attributes(screen.line[i].look));
        mvaddstr(i, 0, screen.line[i].text);
        if (screen.line[i].look == LOOK_CHOSEN || screen.line[i].look == LOOK_HEAD)
            for (int x = getcurx(stdscr); x > 0 && x < COLS && getcury(stdscr) == i; x++)
                addch(' ');
    }
    attrset(A_NORMAL);
    refresh();
    top_screen_fini(&screen);
}

static int key_of(int from)
{
    static const struct {
        int from, to;
    } table[] = {{KEY_UP, TOP_KEY_UP},           {KEY_DOWN, TOP_KEY_DOWN},   {KEY_PPAGE, TOP_KEY_PAGE_UP},
                 {KEY_NPAGE, TOP_KEY_PAGE_DOWN}, {KEY_HOME, TOP_KEY_HOME},   {KEY_END, TOP_KEY_END},
                 {KEY_ENTER, TOP_KEY_ENTER},     {'\n', TOP_KEY_ENTER},      {'\r', TOP_KEY_ENTER},
                 {KEY_BACKSPACE, TOP_KEY_BACK},  {127, TOP_KEY_BACK},        {8, TOP_KEY_BACK},
                 {KEY_LEFT, TOP_KEY_LEFT},       {KEY_RIGHT, TOP_KEY_ENTER}, {27, TOP_KEY_ESCAPE}};

    for (size_t i = 0; i < CO_COUNT(table); i++)
        if (table[i].from == from)
            return table[i].to;
    return from;
}

/* --- the loop ------------------------------------------------------------------------------------------- */
static void stop_chosen(const co_top_ask *ask, top_state *state)
{
    const top_run *run = &state->run[state->chosen];

    if (ask->stop(&run->live) == CO_OK)
        snprintf(state->message, sizeof state->message, "pid %d was asked to %s", run->live.pid,
                 run->live.launch[0] ? "stop" : "save and stop");
    else
        snprintf(state->message, sizeof state->message, "%s", co_errmsg());
    co_errclear();
}

/* All keys that wait. False: the user leaves. */
static bool take_keys(const co_top_ask *ask, top_state *state, double *next_s)
{
    int key;

    while ((key = getch()) != ERR) {
        if (key == KEY_RESIZE)
            continue; /* LINES and COLS have changed */
        switch (top_key(state, key_of(key), LINES)) {
        case TOP_QUIT:
            return false;
        case TOP_STOP_RUN:
            stop_chosen(ask, state);
            break;
        case TOP_LOOK_AGAIN:
            *next_s = 0;
            break;
        case TOP_GO_ON:
            break;
        }
    }
    return true;
}

static co_err loop(const co_top_ask *ask, top_source *source, top_state *state)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    double next_s = co_now_s() + 0.5; /* the first look had nothing to compare with */

    while (!told_to_end) {
        draw(state);
        double wait_s = next_s - co_now_s();
        int ready = wait_s > 0 ? poll(&in, 1, (int)(1000 * wait_s) + 1) : 0;
        if (ready > 0 && (in.revents & (POLLHUP | POLLERR | POLLNVAL)))
            return CO_OK; /* the terminal is gone */
        if (!take_keys(ask, state, &next_s))
            return CO_OK;
        if (co_now_s() < next_s)
            continue;
        CO_TRY(top_gather(source, state));
        next_s = co_now_s() + ask->every_s;
    }
    return CO_OK;
}

co_err co_top_show(const co_top_ask *ask)
{
    top_state state = {.chosen = -1, .only = ask->word != NULL, .view = ask->word ? TOP_RUN : TOP_RUNS};
    top_source *source = top_source_new(ask);
    SCREEN *screen = NULL;
    co_err err = source ? check_terminal() : CO_ENOMEM;

    state.utf8 = top_is_utf8();
    gethostname(state.host, sizeof state.host - 1);
    if (!err)
        err = top_gather(source, &state);
    if (!err && state.n == 1)
        state.view = TOP_RUN;
    if (!err)
        err = open_terminal(&screen);
    if (!err)
        err = loop(ask, source, &state);
    close_terminal(screen);
    top_state_fini(&state);
    top_source_free(source);
    return err;
}
