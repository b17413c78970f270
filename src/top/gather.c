/* gather.c -- what there is to show: the runs and launches that are listed on this machine, or one run
 * folder.
 *
 * A look costs a few small files a run: its entry, PID.progress and PID.use in the folder of live runs,
 * the end of train.log, and what was added to events.jsonl. Records stay open between two looks. */
#include "top/top_int.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"

enum { RECORDS = 32, LOG_TAIL = 4096 };

struct top_source {
    const co_top_ask *ask;
    co_run *record[RECORDS]; /* those opened last; NULL: none */
    int next;
    top_tree tree[RECORDS];
    co_util util;
    char dir[PATH_MAX]; /* of the one run that was asked for, once it is known; "": all */
};

top_source *top_source_new(const co_top_ask *ask)
{
    top_source *source = co_zalloc(sizeof *source);

    if (source)
        source->ask = ask;
    return source;
}

void top_source_free(top_source *source)
{
    if (!source)
        return;
    for (int i = 0; i < RECORDS; i++)
        co_run_close(source->record[i]);
    co_free(source);
}

static void free_runs(top_run *run, int n)
{
    for (int i = 0; i < n; i++)
        co_free(run[i].host);
    co_free(run);
}

void top_state_fini(top_state *state)
{
    free_runs(state->run, state->n);
    state->run = NULL;
    state->n = 0;
}

/* The record of a run folder, read up to now; NULL: there is none yet. The error is kept. */
static co_run *record_of(top_source *source, const char *dir)
{
    for (int i = 0; i < RECORDS; i++)
        if (source->record[i] && strcmp(co_run_dir(source->record[i]), dir) == 0)
            return co_run_more(source->record[i]) == CO_OK ? source->record[i] : NULL;
    co_run *run = NULL;
    if (co_run_open(&run, dir, &(co_run_limits){.points = 16 * TOP_LOSSES}) != CO_OK)
        return NULL;
    co_run_close(source->record[source->next]);
    source->record[source->next] = run;
    source->next = (source->next + 1) % RECORDS;
    return run;
}

/* The last whole line of train.log, without its date. */
static void read_log(char out[TOP_LOG], const char *dir)
{
    char path[PATH_MAX], tail[LOG_TAIL + 1];

    out[0] = '\0';
    if (snprintf(path, sizeof path, "%s/train.log", dir) >= (int)sizeof path)
        return;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0)
        return;
    off_t end = lseek(fd, 0, SEEK_END);
    ssize_t n = end > 0 ? pread(fd, tail, LOG_TAIL, end > LOG_TAIL ? end - LOG_TAIL : 0) : 0;
    close(fd);
    while (n > 0 && tail[n - 1] == '\n')
        n--;
    tail[n > 0 ? n : 0] = '\0';
    const char *line = strrchr(tail, '\n');
    line = line ? line + 1 : tail;
    const char *date = line[0] == '[' ? strstr(line, "] ") : NULL;
    co_utf8_clean(out, TOP_LOG, date && date - line == 20 ? date + 2 : line);
}

/* What the hosts of a live run take. Objects that are not right are left out. */
static void read_use(top_run *run)
{
    json_t *all = co_live_use_of(run->live.pid), *one;
    size_t i;

    run->host = json_array_size(all) ? co_array(json_array_size(all), sizeof *run->host) : NULL;
    json_array_foreach(all, i, one)
    {
        if (run->host && co_use_read(&run->host[run->hosts], one) == CO_OK)
            run->hosts++;
    }
    json_decref(all);
    co_errclear();
}

static void add_up(top_run *run)
{
    run->cpu_percent = run->memory_mb = NAN;
    for (int h = 0; h < run->hosts; h++) {
        double cpu = run->host[h].figure[CO_HOST_RUN_CPU], memory = run->host[h].figure[CO_HOST_RUN_MEMORY];
        if (!isnan(cpu))
            run->cpu_percent = (isnan(run->cpu_percent) ? 0 : run->cpu_percent) + cpu;
        if (!isnan(memory))
            run->memory_mb = (isnan(run->memory_mb) ? 0 : run->memory_mb) + memory;
    }
}

static void fill_live(top_source *source, top_run *run, const co_live_run *live, int place)
{
    run->live = *live;
    run->is_live = true;
    run->has_progress = co_live_see(live->pid, &run->progress, run->metric);
    run->progress.metric_name = NULL; /* it points into a copy: `metric` has it */
    read_use(run);
    add_up(run);
    if (live->launch[0])
        top_look_at_tree(&source->tree[place % RECORDS], live->pid, co_now_s(), &run->cpu_percent,
                         &run->memory_mb);
    if (!live->dir[0])
        return;
    co_run *record = place < RECORDS ? record_of(source, live->dir) : NULL;
    if (record)
        top_read_folder(run, record);
    co_errclear();
    read_log(run->log, live->dir);
}

/* A run that is not listed here: it has ended, or it runs on another host that shares this folder. */
static co_err fill_folder(top_source *source, top_run *run, const char *dir)
{
    co_run *record = record_of(source, dir);

    if (!record)
        return CO_EINPUT;
    snprintf(run->live.dir, sizeof run->live.dir, "%.*s", (int)sizeof run->live.dir - 1, dir);
    top_read_folder(run, record);
    add_up(run);
    read_log(run->log, dir);
    return CO_OK;
}

/* One run: listed, or a folder. */
static co_err gather_one(top_source *source, top_run *run, const co_live_run *live, int n)
{
    const char *word = source->dir[0] ? source->dir : source->ask->word;
    const co_live_run *found = source->ask->find(live, n, word);
    char dir[PATH_MAX];

    if (found) {
        if (found->dir[0])
            snprintf(source->dir, sizeof source->dir, "%s", found->dir);
        fill_live(source, run, found, 0);
        return CO_OK;
    }
    if (word[strspn(word, "0123456789")] == '\0' && access(word, F_OK) != 0)
        return co_fail(CO_EINPUT, "no live run has pid %s; `cohort ps` lists them", word);
    snprintf(dir, sizeof dir, "%s", word);
    if (realpath(word, dir))
        snprintf(source->dir, sizeof source->dir, "%s", dir);
    return fill_folder(source, run, dir);
}

static bool is_same(const top_run *a, const top_run *b)
{
    return a->live.dir[0] ? strcmp(a->live.dir, b->live.dir) == 0
                          : a->live.pid == b->live.pid && strcmp(a->live.run_id, b->live.run_id) == 0;
}

static int place_of(const top_run *which, const top_run *run, int n)
{
    for (int i = 0; i < n; i++)
        if (is_same(which, &run[i]))
            return i;
    return -1;
}

/* A run that was shown and has ended stays, as its folder has it. The chosen one stays chosen. */
static void keep_ended(top_source *source, top_state *state, top_run *run, int *n)
{
    const top_run *chosen = top_chosen(state);

    for (int i = 0; i < state->n && !source->ask->word; i++) {
        const top_run *was = &state->run[i];
        if (!was->live.dir[0] || place_of(was, run, *n) >= 0 ||
            fill_folder(source, &run[*n], was->live.dir) != CO_OK)
            continue;
        snprintf(run[*n].live.task, sizeof run[*n].live.task, "%s", was->live.task);
        ++*n;
    }
    co_errclear();
    int at = chosen ? place_of(chosen, run, *n) : -1;
    if (chosen && at < 0 && state->view == TOP_RUN && !state->only)
        state->view = TOP_RUNS;
    state->chosen = at >= 0 ? at : *n ? 0 : -1;
}

co_err top_gather(top_source *source, top_state *state)
{
    co_live_run *live = NULL;
    int n_live = 0, n = 0;

    state->has_machine = co_util_look(&source->util, co_now_s(), &state->machine);
    CO_TRY(co_live_list(&live, &n_live));
    top_run *run = co_array((size_t)n_live + (size_t)state->n + 1, sizeof *run);
    co_err err = run ? CO_OK : CO_ENOMEM;
    if (!err && source->ask->word) {
        err = gather_one(source, run, live, n_live);
        n = 1;
    }
    for (int i = 0; i < n_live && !err && !source->ask->word; i++)
        fill_live(source, &run[n++], &live[i], i);
    co_free(live);
    if (err) {
        free_runs(run, run ? n : 0);
        return err;
    }
    keep_ended(source, state, run, &n);
    top_state_fini(state);
    state->run = run;
    state->n = n;
    state->now = co_wall_s();
    return CO_OK;
}
