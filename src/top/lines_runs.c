/* lines_runs.c -- the list of runs and launches: a row each, in an order, filtered. */
#include "top/top_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

/* --- the order of runs ---------------------------------------------------------------------------------- */
static double by_start(const top_run *r)
{
    return r->live.started;
}
static double by_cpu(const top_run *r)
{
    return isnan(r->cpu_percent) ? -1 : -r->cpu_percent;
}
static double by_memory(const top_run *r)
{
    return isnan(r->memory_mb) ? 0 : -r->memory_mb;
}
static double by_left(const top_run *r)
{
    return r->has_progress && isfinite(r->progress.eta_s) ? r->progress.eta_s : INFINITY;
}
static double by_speed(const top_run *r)
{
    return r->has_progress && isfinite(r->progress.samples_per_s) ? -r->progress.samples_per_s : 0;
}
static const struct {
    const char *name;
    double (*key)(const top_run *r);
} run_orders[] = {
    {"start", by_start}, {"cpu", by_cpu}, {"memory", by_memory}, {"left", by_left}, {"speed", by_speed}};

const char *top_run_order(int by)
{
    return by >= 0 && by < (int)CO_COUNT(run_orders) ? run_orders[by].name : NULL;
}

static bool matches(const top_run *run, const char *filter)
{
    char pid[16];

    snprintf(pid, sizeof pid, "%d", run->live.pid);
    return !filter[0] || strcasestr(run->live.task, filter) || strcasestr(run->live.dir, filter) ||
           strcasestr(run->live.launch, filter) || strcasestr(top_state_text(run), filter) ||
           strstr(pid, filter);
}

int *top_runs_sorted(const top_state *state, int *n)
{
    int *at = co_array((size_t)state->n + 1, sizeof *at);

    *n = 0;
    for (int i = 0; i < state->n && at; i++) {
        if (!matches(&state->run[i], state->runs.filter))
            continue;
        double key = run_orders[state->runs.by].key(&state->run[i]);
        int to = (*n)++;
        for (; to > 0; to--) { /* insertion: there are few, and equal ones keep their order */
            double other = run_orders[state->runs.by].key(&state->run[at[to - 1]]);
            if (state->runs.reverse ? key <= other : key >= other)
                break;
            at[to] = at[to - 1];
        }
        at[to] = i;
    }
    return at;
}

/* --- the list of runs ----------------------------------------------------------------------------------- */
enum { PID, TASK, STATE, EPOCH, STEP, LEFT, SPEED, LOSS, CPU, MEMORY, SPARK, WHERE, RUN_COLUMNS };
static const top_column run_columns[RUN_COLUMNS] = {[PID] = {"pid", 7, 0},
                                                    [TASK] = {"task", 10, 0, true},
                                                    [STATE] = {"state", 8, 0, true},
                                                    [EPOCH] = {"epoch", 11, 5},
                                                    [STEP] = {"step", 13, 1},
                                                    [LEFT] = {"left", 11, 2},
                                                    [SPEED] = {"samples/s", 9, 3},
                                                    [LOSS] = {"loss", 9, 4},
                                                    [CPU] = {"cpu", 5, 0},
                                                    [MEMORY] = {"memory", 6, 6},
                                                    [SPARK] = {"loss so far", 24, 8, true},
                                                    [WHERE] = {"folder or program", 0, 7, true}};

const char *top_where(const top_run *run)
{
    return run->live.launch[0] ? run->live.launch
           : run->live.guest   ? run->live.record_host[0] ? run->live.record_host : "?"
                               : run->live.dir;
}

static void fill_run(const top_state *state, const top_run *run, top_cells cell)
{
    const co_progress *p = &run->progress;
    char text[48], small[16];
    co_str spark = {0};

    snprintf(cell[PID], TOP_CELL, run->live.pid ? "%d" : "-", run->live.pid);
    snprintf(cell[TASK], TOP_CELL, "%s", run->live.task);
    snprintf(cell[STATE], TOP_CELL, "%s", top_state_text(run));
    snprintf(cell[EPOCH], TOP_CELL, "%s", top_part(text, run, p->epoch, p->epochs, run_columns[EPOCH].width));
    snprintf(cell[STEP], TOP_CELL, "%s", top_part(text, run, p->step, p->steps, run_columns[STEP].width));
    snprintf(cell[LEFT], TOP_CELL, "%s",
             run->has_progress && isfinite(p->eta_s) ? co_time_text(text, p->eta_s) : "-");
    snprintf(cell[SPEED], TOP_CELL, "%s", top_whole(small, run->has_progress ? p->samples_per_s : NAN));
    snprintf(cell[LOSS], TOP_CELL, "%s", top_number(small, run->has_progress ? p->loss : NAN));
    snprintf(cell[CPU], TOP_CELL, "%s", top_percent(small, run->cpu_percent));
    snprintf(cell[MEMORY], TOP_CELL, "%s", top_bytes(small, run->memory_mb));
    top_spark(&spark, run->loss, run->losses, run_columns[SPARK].width, state->utf8);
    snprintf(cell[SPARK], TOP_CELL, "%s", co_str_text(&spark));
    snprintf(cell[WHERE], TOP_CELL, "%.*s", TOP_CELL - 1, top_where(run));
    co_str_fini(&spark);
}

void top_runs_lines(const top_state *state, int rows, int cols, top_screen *out)
{
    bool shown[TOP_COLUMNS];
    co_str text = {0};
    int n, *at = top_runs_sorted(state, &n), first = 0, here = 0;
    static top_cells cell; /* too large for some stacks; one thread draws */

    top_fit(run_columns, RUN_COLUMNS, cols, shown);
    top_head(&text, run_columns, RUN_COLUMNS, shown);
    top_add(out, LOOK_HEAD, co_str_text(&text));
    for (int i = 0; i < n && at; i++)
        here = at[i] == state->chosen ? i : here;
    if (rows > 0 && here >= rows)
        first = here - rows + 1;
    for (int i = first; i < n && at && (rows <= 0 || i < first + rows); i++) {
        const top_run *run = &state->run[at[i]];
        fill_run(state, run, cell);
        co_str_clear(&text);
        top_row(&text, run_columns, RUN_COLUMNS, shown, cols, cell);
        top_add(out,
                rows > 0 && at[i] == state->chosen            ? LOOK_CHOSEN
                : strcmp(top_state_text(run), "stalled") == 0 ? LOOK_WARN
                                                              : LOOK_PLAIN,
                co_str_text(&text));
    }
    if (n == 0)
        top_add(out, LOOK_PLAIN,
                state->n ? "no run matches the filter"
                         : "no runs on this machine; `cohort train ...` starts one");
    co_str_fini(&text);
    co_free(at);
}
