/* lines.c -- the state of `cohort top` as lines of text: the head, one of the views, the keys. No terminal
 * is needed, so tests read them. lines_runs.c has the list of runs, lines_run.c the view of one run. */
#include "top/top_int.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

/* --- head and foot -------------------------------------------------------------------------------------- */
static void add_title(const top_state *state, int cols, top_screen *out)
{
    char date[32], cpu[16], memory[16];
    int launches = 0;
    co_str text = {0};

    for (int i = 0; i < state->n; i++)
        launches += state->run[i].live.launch[0] != '\0';
    co_date(date, sizeof date, "%H:%M:%S", state->now);
    co_str_addf(&text, "cohort top  %s  %d run%s", state->host, state->n - launches,
                state->n - launches == 1 ? "" : "s");
    if (launches)
        co_str_addf(&text, ", %d launch%s", launches, launches == 1 ? "" : "es");
    if (state->has_machine)
        co_str_addf(&text, "  cpu %s  memory %s  load %.1f", top_percent(cpu, state->machine.cpu_percent),
                    top_percent(memory, state->machine.host_memory_percent), state->machine.load);
    int pad = cols - top_width(co_str_text(&text)) - (int)strlen(date);
    for (int i = 0; i < pad; i++)
        co_str_add(&text, " ");
    co_str_addf(&text, "%s%s", pad > 0 ? "" : "  ", date);
    top_add(out, LOOK_TITLE, co_str_text(&text));
    co_str_fini(&text);
}

static void add_foot(const top_state *state, top_screen *out)
{
    const top_run *run = top_chosen(state);
    const top_order *order = state->view == TOP_RUN ? &state->ranks : &state->runs;
    const char *by = state->view == TOP_RUN ? top_rank_order(order->by) : top_run_order(order->by);

    if (state->types)
        top_addf(out, LOOK_TITLE, "filter: %s_   (Enter: done, Esc: none)", order->filter);
    else if (state->asks && run)
        top_addf(out, LOOK_WARN, "stop %s %d (%s)? It %s. y: yes, any other key: no",
                 run->live.launch[0] ? "launch" : "run", run->live.pid, run->live.task,
                 run->live.launch[0] ? "ends its workers" : "saves and ends");
    else if (state->message[0])
        top_add(out, LOOK_WARN, state->message);
    else if (state->view == TOP_HELP)
        top_add(out, LOOK_TITLE, "any key: back");
    else
        top_addf(out, LOOK_TITLE, "q quit  %ss sort (%s%s)  r turn  / filter%s%s%s  k stop  h help",
                 state->view == TOP_RUNS ? "Enter open  "
                 : state->only           ? ""
                                         : "Esc runs  ",
                 by, order->reverse ? ", turned" : "", order->filter[0] ? " (" : "", order->filter,
                 order->filter[0] ? ")" : "");
}

static void add_help(top_screen *out)
{
    static const char *const lines[] = {
        "Up, Down       choose a run; move the ranks of a run",
        "Enter          the hosts and ranks of the chosen run",
        "Esc, Left      back to the runs",
        "PgUp, PgDn     move by a screen; Home, End: to the first, to the last",
        "s, r           sort by the next column; turn the order round",
        "/              show only runs (or ranks) that contain a text",
        "k              stop the run: it saves and ends. Asks first",
        "n, p           the next run, the one before",
        "space          look again now",
        "q, Ctrl-C      quit; runs go on",
        "",
        "cpu            100 %: one CPU. In the first line: of all CPUs of this machine",
        "input          share of a rank's time spent waiting for data, or loading it",
        "compute        computing gradients",
        "exchange       waiting for other hosts",
        "wait           waiting for other ranks of the same host",
        "rest           summing, applying, evaluation",
        "time           the same as a bar: # compute, i input, x exchange, w wait, . rest",
        "loss so far    the heights are logarithmic if it fell to less than a 50th",
        "stalled        a rank has made no progress for 2 s, though it waits for nobody"};

    for (size_t i = 0; i < CO_COUNT(lines); i++)
        top_add(out, LOOK_PLAIN, lines[i]);
}

/* The chosen run in three lines, below the list. */
static void add_brief(const top_state *state, int cols, top_screen *out)
{
    const top_run *run = top_chosen(state);
    co_str text = {0};

    top_add(out, LOOK_PLAIN, "");
    top_addf(out, LOOK_DIM, "%s%s", run && run->live.guest ? "record on " : "", run ? top_where(run) : "");
    top_spark(&text, run ? run->loss : NULL, run ? run->losses : 0, cols - 6, state->utf8);
    top_addf(out, LOOK_PLAIN, "loss  %s", run && run->losses ? co_str_text(&text) : "-");
    top_addf(out, LOOK_PLAIN, "log   %s", run && run->log[0] ? run->log : "-");
    co_str_fini(&text);
}

/* --- together ------------------------------------------------------------------------------------------- */
enum { TITLE_AND_FOOT = 2, BRIEF_LINES = 4, LIST_LEAST = 6, RUN_LEAST = 14 };

/* Below the list as much of the chosen run as there is room for. */
static void add_list(const top_state *state, int rows, int cols, top_screen *out)
{
    const top_run *run = top_chosen(state);
    int room = rows - TITLE_AND_FOOT - 1, below = room - state->n - 1;

    if (run && below >= RUN_LEAST) {
        top_runs_lines(state, state->n, cols, out);
        top_add(out, LOOK_PLAIN, "");
        top_run_lines(state, run, below, cols, out);
        return;
    }
    bool brief = run && room - BRIEF_LINES >= LIST_LEAST;
    top_runs_lines(state, room - (brief ? BRIEF_LINES : 0), cols, out);
    while (brief && out->n < rows - 1 - BRIEF_LINES)
        top_add(out, LOOK_PLAIN, "");
    if (brief)
        add_brief(state, cols, out);
}

static void add_all(const top_state *state, int cols, top_screen *out)
{
    top_runs_lines(state, 0, cols, out);
    for (int i = 0; i < state->n; i++) {
        top_add(out, LOOK_PLAIN, "");
        top_run_lines(state, &state->run[i], 0, cols, out);
    }
}

static void add_view(const top_state *state, int rows, int cols, top_screen *out)
{
    bool there = state->chosen >= 0 && state->chosen < state->n;

    if (state->view == TOP_HELP)
        add_help(out);
    else if (state->view == TOP_RUN && there)
        top_run_lines(state, &state->run[state->chosen], rows ? rows - TITLE_AND_FOOT : 0, cols, out);
    else if (rows)
        add_list(state, rows, cols, out);
    else
        add_all(state, cols, out);
}

/* Cuts every line to the width; as many lines as there are rows, the last of them for the keys. */
static void trim(top_screen *out, int rows, int cols, bool utf8)
{
    while (rows && out->n > rows - 1)
        co_free(out->line[--out->n].text);
    while (rows && out->n < rows - 1)
        top_add(out, LOOK_PLAIN, "");
    for (int i = 0; i < out->n; i++) {
        co_str text = {0};
        top_cut(&text, out->line[i].text, cols, false, utf8);
        while (text.len && text.p[text.len - 1] == ' ')
            text.p[--text.len] = '\0';
        char *cut = co_str_err(&text) ? NULL : co_strdup(co_str_text(&text));
        if (cut) {
            co_free(out->line[i].text);
            out->line[i].text = cut;
        }
        co_str_fini(&text);
    }
}

void top_lines(const top_state *state, int rows, int cols, top_screen *out)
{
    top_screen foot = {0};
    rows = rows == 1 || rows == 2 ? 3 : rows; /* the drawing shows what fits */

    add_title(state, cols, out);
    add_view(state, rows, cols, out);
    trim(out, rows, cols, state->utf8);
    if (!rows)
        return;
    add_foot(state, &foot);
    trim(&foot, 0, cols, state->utf8);
    for (int i = 0; i < foot.n; i++)
        top_add(out, foot.line[i].look, foot.line[i].text);
    top_screen_fini(&foot);
}
