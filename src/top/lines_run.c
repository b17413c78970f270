/* lines_run.c -- everything about one run: how far it is, its loss, its hosts, GPUs and ranks. */
#include "top/top_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

enum { BRIEF_BELOW = 100 }; /* columns; a narrower line says less */
#define STALE_S 10.0        /* figures older than this are said to be old */
#define STILL_S 2.0         /* a rank without progress for this long is marked */

/* --- ranks, in order ------------------------------------------------------------------------------------ */
typedef struct place {
    const co_use *use;
    int rank;
    double key;
} place;

static const struct {
    const char *name;
    int figure; /* -1: by host and rank; -2: the longest without progress first */
} rank_orders[] = {{"rank", -1},
                   {"cpu", CO_RANK_CPU},
                   {"memory", CO_RANK_MEMORY},
                   {"input", CO_RANK_INPUT},
                   {"compute", CO_RANK_COMPUTE},
                   {"exchange", CO_RANK_EXCHANGE},
                   {"wait", CO_RANK_WAIT},
                   {"still", -2}};

const char *top_rank_order(int by)
{
    return by >= 0 && by < (int)CO_COUNT(rank_orders) ? rank_orders[by].name : NULL;
}

/* The smallest comes first. */
static double key_of(const co_use *use, int rank, int by, int number)
{
    int figure = rank_orders[by].figure;

    if (figure == -1)
        return number;
    double x = figure == -2 ? use->rank[rank].still_s : use->rank[rank].figure[figure];
    return isnan(x) ? 1e18 : -x;
}

static bool matches(const top_state *state, const top_run *run, const co_use *use, int rank)
{
    const char *filter = state->ranks.filter;
    char number[32];

    snprintf(number, sizeof number, "rank %d", rank);
    return !filter[0] || strcasestr(top_host_name(state, run, use), filter) ||
           strcasestr(use->rank[rank].doing, filter) || strcasestr(number, filter);
}

static int by_key(const void *a, const void *b)
{
    const place *x = a, *y = b;

    return x->key < y->key ? -1 : x->key > y->key;
}

/* The caller's; NULL: no memory. */
static place *sorted(const top_state *state, const top_run *run, int *n)
{
    place *at = co_array((size_t)run->hosts * CO_USE_RANKS + 1, sizeof *at);

    *n = 0;
    for (int h = 0; h < run->hosts && at; h++)
        for (int r = 0; r < run->host[h].ranks; r++)
            if (matches(state, run, &run->host[h], r)) {
                double key = key_of(&run->host[h], r, state->ranks.by, h * CO_USE_RANKS + r);
                at[(*n)++] = (place){&run->host[h], r, state->ranks.reverse ? -key : key};
            }
    if (at)
        qsort(at, (size_t)*n, sizeof *at, by_key);
    return at;
}

int top_ranks_shown(const top_state *state, const top_run *run)
{
    int n;

    co_free(sorted(state, run, &n));
    return n;
}

enum { HOST, RANK, PID, CPU, MEMORY, INPUT, COMPUTE, EXCHANGE, WAIT, REST, TIME, DOING, RANK_COLUMNS };
static const top_column rank_columns[RANK_COLUMNS] = {
    [HOST] = {"host", 14, 5, true}, [RANK] = {"rank", 4, 0},         [PID] = {"pid", 8, 7},
    [CPU] = {"cpu", 5, 0},          [MEMORY] = {"memory", 6, 4},     [INPUT] = {"input", 5, 0},
    [COMPUTE] = {"compute", 7, 0},  [EXCHANGE] = {"exchange", 8, 0}, [WAIT] = {"wait", 5, 0},
    [REST] = {"rest", 5, 6},        [TIME] = {"time", 20, 8, true},  [DOING] = {"doing", 0, 3, true}};

/* The shares of a rank's time as letters. */
static void add_time(char *out, size_t size, const co_use_rank *rank)
{
    static const struct {
        co_rank_figure figure;
        char letter;
    } parts[] = {{CO_RANK_COMPUTE, '#'}, {CO_RANK_INPUT, 'i'}, {CO_RANK_EXCHANGE, 'x'}, {CO_RANK_WAIT, 'w'}};
    size_t at = 0, cols = (size_t)rank_columns[TIME].width;
    double sum = 0;

    for (size_t i = 0; i < CO_COUNT(parts); i++) {
        double share = rank->figure[parts[i].figure];
        sum += isnan(share) ? 0 : share;
        while (at < (size_t)(sum / 100 * (double)cols + 0.5) && at < cols && at + 1 < size)
            out[at++] = parts[i].letter;
    }
    while (at < cols && at + 1 < size)
        out[at++] = '.';
    out[at] = '\0';
}

static double rest_of(const co_use_rank *rank)
{
    double rest = 100;

    for (int f = CO_RANK_INPUT; f <= CO_RANK_WAIT; f++)
        rest -= rank->figure[f];
    return rest < 0 ? 0 : rest;
}

static void fill_rank(const top_state *state, const top_run *run, const place *at, int cols, top_cells cell)
{
    const co_use_rank *rank = &at->use->rank[at->rank];
    char text[16];

    snprintf(cell[HOST], TOP_CELL, "%s", top_host_name(state, run, at->use));
    snprintf(cell[RANK], TOP_CELL, "%d", at->rank);
    snprintf(cell[PID], TOP_CELL, rank->pid ? "%d" : "-", rank->pid);
    snprintf(cell[CPU], TOP_CELL, "%s", top_percent(text, rank->figure[CO_RANK_CPU]));
    snprintf(cell[MEMORY], TOP_CELL, "%s", top_bytes(text, rank->figure[CO_RANK_MEMORY]));
    for (int f = CO_RANK_INPUT; f <= CO_RANK_WAIT; f++)
        snprintf(cell[INPUT + f - CO_RANK_INPUT], TOP_CELL, "%s", top_percent(text, rank->figure[f]));
    snprintf(cell[REST], TOP_CELL, "%s", top_percent(text, rest_of(rank)));
    add_time(cell[TIME], TOP_CELL, rank);
    if (run->is_live && rank->still_s >= STILL_S)
        snprintf(cell[DOING], TOP_CELL, "%s%s%.0f s without progress", cols < BRIEF_BELOW ? "" : rank->doing,
                 cols < BRIEF_BELOW ? "" : ", ", rank->still_s);
    else
        snprintf(cell[DOING], TOP_CELL, "%s", rank->doing);
    char *more = cols < BRIEF_BELOW ? strstr(cell[DOING], " for ") : NULL;
    if (more)
        *more = '\0'; /* "waiting for other ranks" */
}

static void add_ranks(const top_state *state, const top_run *run, int rows, int cols, top_screen *out)
{
    bool shown[TOP_COLUMNS];
    co_str text = {0};
    int n;
    place *at = sorted(state, run, &n);
    static top_cells cell;

    top_fit(rank_columns, RANK_COLUMNS, cols, shown);
    shown[HOST] = shown[HOST] && run->hosts > 1;
    top_head(&text, rank_columns, RANK_COLUMNS, shown);
    top_add(out, LOOK_HEAD, co_str_text(&text));
    int first = rows > 0 && state->scroll > n - rows ? n - rows : state->scroll;
    first = rows > 0 && first > 0 ? first : 0;
    for (int i = first; i < n && at && (rows <= 0 || i < first + rows); i++) {
        fill_rank(state, run, &at[i], cols, cell);
        co_str_clear(&text);
        top_row(&text, rank_columns, RANK_COLUMNS, shown, cols, cell);
        bool still = run->is_live && at[i].use->rank[at[i].rank].still_s >= STILL_S;
        top_add(out, still ? LOOK_WARN : LOOK_PLAIN, co_str_text(&text));
    }
    if (n == 0)
        top_add(out, LOOK_PLAIN,
                state->ranks.filter[0] ? "no rank matches the filter" : "nothing is known of ranks yet");
    co_str_fini(&text);
    co_free(at);
}

/* --- hosts ---------------------------------------------------------------------------------------------- */
enum {
    H_NAME,
    H_CPU,
    H_RUN,
    H_MEMORY,
    H_ALL,
    H_LOAD,
    H_READ,
    H_WRITE,
    H_IN,
    H_OUT,
    H_FREE,
    H_NOTE,
    HOST_COLUMNS
};
static const top_column host_columns[HOST_COLUMNS] = {
    [H_NAME] = {"host", 20, 0, true}, [H_CPU] = {"cpu", 4, 0},           [H_RUN] = {"run", 6, 0},
    [H_MEMORY] = {"memory", 6, 0},    [H_ALL] = {"in use", 6, 1},        [H_LOAD] = {"load", 5, 4},
    [H_READ] = {"read MB/s", 9, 6},   [H_WRITE] = {"write MB/s", 10, 6}, [H_IN] = {"in MB/s", 7, 3},
    [H_OUT] = {"out MB/s", 8, 3},     [H_FREE] = {"disk free", 9, 2},    [H_NOTE] = {"", 0, 5, true}};

static void fill_host(const top_state *state, const top_run *run, const co_use *use, top_cells cell)
{
    char text[16];

    snprintf(cell[H_NAME], TOP_CELL, "%s", top_host_name(state, run, use));
    snprintf(cell[H_CPU], TOP_CELL, "%s", top_percent(text, use->figure[CO_HOST_CPU]));
    snprintf(cell[H_RUN], TOP_CELL, "%s", top_percent(text, use->figure[CO_HOST_RUN_CPU]));
    snprintf(cell[H_MEMORY], TOP_CELL, "%s", top_bytes(text, use->figure[CO_HOST_RUN_MEMORY]));
    snprintf(cell[H_ALL], TOP_CELL, "%s", top_percent(text, use->figure[CO_HOST_MEMORY]));
    snprintf(cell[H_LOAD], TOP_CELL, "%s", top_tenths(text, use->figure[CO_HOST_LOAD]));
    snprintf(cell[H_READ], TOP_CELL, "%s", top_tenths(text, use->figure[CO_HOST_DISK_READ]));
    snprintf(cell[H_WRITE], TOP_CELL, "%s", top_tenths(text, use->figure[CO_HOST_DISK_WRITE]));
    snprintf(cell[H_IN], TOP_CELL, "%s", top_tenths(text, use->figure[CO_HOST_NET_IN]));
    snprintf(cell[H_OUT], TOP_CELL, "%s", top_tenths(text, use->figure[CO_HOST_NET_OUT]));
    snprintf(cell[H_FREE], TOP_CELL, "%s", top_bytes(text, use->figure[CO_HOST_DISK_FREE]));
    cell[H_NOTE][0] = '\0';
    if (run->is_live && state->now - use->t > STALE_S)
        snprintf(cell[H_NOTE], TOP_CELL, "not heard of for %.0f s", state->now - use->t);
}

static void add_hosts(const top_state *state, const top_run *run, int cols, top_screen *out)
{
    bool shown[TOP_COLUMNS];
    co_str text = {0};
    static top_cells cell;

    top_fit(host_columns, HOST_COLUMNS, cols, shown);
    top_head(&text, host_columns, HOST_COLUMNS, shown);
    top_add(out, LOOK_HEAD, co_str_text(&text));
    for (int h = 0; h < run->hosts; h++) {
        const co_use *use = &run->host[h];
        fill_host(state, run, use, cell);
        co_str_clear(&text);
        top_row(&text, host_columns, HOST_COLUMNS, shown, cols, cell);
        top_add(out, cell[H_NOTE][0] ? LOOK_WARN : LOOK_PLAIN, co_str_text(&text));
        for (int g = 0; g < use->gpus; g++) {
            char busy[16], memory[16], power[16], temperature[16];
            top_addf(out, LOOK_PLAIN, "  GPU %-3d  busy %5s  memory %6s  %s W  %s C", g,
                     top_percent(busy, use->gpu[g][CO_GPU_PERCENT]),
                     top_bytes(memory, use->gpu[g][CO_GPU_MEMORY]),
                     top_number(power, use->gpu[g][CO_GPU_POWER]),
                     top_number(temperature, use->gpu[g][CO_GPU_TEMPERATURE]));
        }
    }
    co_str_fini(&text);
}

/* --- the head of a run ---------------------------------------------------------------------------------- */
static void add_progress(const top_state *state, const top_run *run, int cols, top_screen *out)
{
    const co_progress *p = &run->progress;
    char left[32];
    co_str text = {0};

    if (!run->has_progress) {
        top_add(out, LOOK_PLAIN, "step  none yet");
        return;
    }
    co_str_addf(&text, "step  %lld", (long long)p->step);
    if (p->steps > 0 && p->steps < INT32_MAX) {
        double share = (double)p->step / (double)p->steps;
        co_str_addf(&text, "/%lld ", (long long)p->steps);
        top_bar(&text, share, cols >= BRIEF_BELOW ? 20 : 0, state->utf8);
        co_str_addf(&text, "%s%.0f %%", cols >= BRIEF_BELOW ? " " : "", 100 * share);
    }
    if (p->epoch > 0)
        co_str_addf(&text, "  epoch %lld", (long long)p->epoch);
    if (p->epochs > 0 && p->epochs < INT32_MAX)
        co_str_addf(&text, "/%lld", (long long)p->epochs);
    if (p->samples_per_s > 0)
        co_str_addf(&text, "  %.0f samples/s", p->samples_per_s);
    if (isfinite(p->eta_s))
        co_str_addf(&text, "  %s left", co_time_text(left, p->eta_s));
    top_add(out, LOOK_PLAIN, co_str_text(&text));
    co_str_fini(&text);
}

static void add_loss(const top_state *state, const top_run *run, int cols, top_screen *out)
{
    char number[16];
    co_str text = {0};

    if (run->live.guest || run->live.launch[0])
        return; /* another host has it, or nobody */
    co_str_addf(&text, "loss  %s", top_number(number, run->has_progress ? run->progress.loss : NAN));
    if (run->metric[0] && isfinite(run->progress.metric))
        co_str_addf(&text, "  %s %s", run->metric, top_number(number, run->progress.metric));
    co_str_add(&text, "  ");
    int room = cols - top_width(co_str_text(&text));
    top_spark(&text, run->loss, run->losses, room < 100 ? room : 100, state->utf8);
    top_add(out, LOOK_PLAIN, co_str_text(&text));
    co_str_fini(&text);
}

static void add_name(const top_state *state, const top_run *run, top_screen *out)
{
    char date[32], since[32];
    co_str text = {0};

    co_date(date, sizeof date, "%Y-%m-%d %H:%M", run->live.started);
    if (run->live.pid)
        co_str_addf(&text, "pid %d  ", run->live.pid);
    co_str_addf(&text, "%s  %s", run->live.task, top_state_text(run));
    if (run->live.started > 0)
        co_str_addf(&text, "  since %s", date);
    if (run->is_live && state->now > run->live.started)
        co_str_addf(&text, " (%s)", co_time_text(since, state->now - run->live.started));
    if (run->recoveries)
        co_str_addf(&text, "  %d rank%s replaced", run->recoveries, run->recoveries == 1 ? "" : "s");
    top_add(out, LOOK_PLAIN, co_str_text(&text));
    co_str_fini(&text);
    if (run->live.guest)
        top_addf(out, LOOK_DIM, "guest; the record is on %s",
                 run->live.record_host[0] ? run->live.record_host : "?");
    else
        top_add(out, LOOK_DIM, run->live.launch[0] ? run->live.launch : run->live.dir);
}

void top_run_lines(const top_state *state, const top_run *run, int rows, int cols, top_screen *out)
{
    int before = out->n;
    char cpu[16], memory[16];

    add_name(state, run, out);
    if (run->live.launch[0]) {
        top_addf(out, LOOK_PLAIN, "all its processes on this host: cpu %s, memory %s",
                 top_percent(cpu, run->cpu_percent), top_bytes(memory, run->memory_mb));
        return;
    }
    add_progress(state, run, cols, out);
    add_loss(state, run, cols, out);
    if (run->log[0])
        top_addf(out, LOOK_PLAIN, "log   %s", run->log);
    top_add(out, LOOK_PLAIN, "");
    if (run->hosts == 0) {
        top_add(out, LOOK_PLAIN, "no figures of hosts and ranks yet");
        return;
    }
    add_hosts(state, run, cols, out);
    top_add(out, LOOK_PLAIN, "");
    int left = rows - (out->n - before) - 1;
    add_ranks(state, run, rows ? left > 1 ? left : 1 : 0, cols, out);
}
