/* top.c -- `cohort top`: a terminal monitor of runs, or its contents as text. */
#include "cli/cli_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "top/top.h"

enum { COLS_WITHOUT_A_TERMINAL = 120 };

static co_err stop(const co_live_run *run)
{
    return live_stop(run, NULL);
}

static int columns(void)
{
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return COLS_WITHOUT_A_TERMINAL;
}

static co_err read_line(co_top_ask *ask, const line *l, bool once, const char *every)
{
    ask->word = l->n ? l->words[0] : NULL;
    if (l->n > 1)
        return co_fail(CO_EINPUT, "top takes one run: a pid or a run folder; without one it shows all");
    if (l->json && !once)
        return co_fail(CO_EINPUT, "top --json prints once: add --once");
    if (every && (!co_str_to_f64(every, &ask->every_s) || !(ask->every_s >= 0.1 && ask->every_s <= 3600)))
        return co_fail(CO_EINPUT, "--every %s: give seconds, 0.1 to 3600", every);
    return CO_OK;
}

int cmd_top(int argc, char **argv)
{
    co_top_ask ask = {.every_s = 2, .cols = columns(), .stop = stop, .find = live_find};
    bool once = false;
    const char *every = NULL;
    line l;

    if (line_parse(&l, argc, argv, false,
                   (const co_flag[]){{"--once", .on = &once}, {"--every", "S", .value = &every}, {0}}) != CO_OK)
        return co_say_error(CO_EINPUT);
    if (l.help) {
        line_free(&l);
        return show_usage("top");
    }
    co_err err = read_line(&ask, &l, once, every);
    if (!err)
        err = once ? co_top_once(&ask, stdout, l.json) : co_top_show(&ask);
    line_free(&l);
    return err ? co_say_error(err) : CO_EXIT_DONE;
}
