/* run_read.h -- reads a run folder, whether the run has ended or still goes on.
 *
 *     co_run *run;
 *     CO_TRY(co_run_open(&run, dir, NULL));
 *     const co_series *loss = co_run_series(run, "train/loss_step");
 *     if (loss)
 *         printf("%lld %g\n", (long long)loss->point[loss->n - 1].step, loss->point[loss->n - 1].value);
 *     CO_TRY(co_run_more(run));        // later: what the run has written since
 *     co_run_close(run);
 *
 * The folder may hold anything: a line that is no JSON object, or that was cut, is counted and skipped; a
 * file that cannot be read counts as absent. Memory is bounded whatever the record's length: a long series is
 * thinned, and the least and the greatest value of every stretch stay. All that the functions return belongs
 * to the run and is valid until the next co_run_more or co_run_close. One thread per co_run.
 */
#ifndef CO_TRACK_RUN_READ_H
#define CO_TRACK_RUN_READ_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct co_run co_run;

/* A part of one series. */
typedef struct co_window {
    const char *name;
    double from, to; /* both count: steps, or seconds since 1970 */
    bool by_time;
} co_window;

/* All 0: as usual. */
typedef struct co_run_limits {
    size_t points;  /* of a series; usually 4,000. At least 64 */
    size_t events;  /* see co_run_event; usually 4,000. The newest stay */
    bool no_record; /* events.jsonl is not read: state, header, summary and configuration only */
    int most_ms; /* co_run_open and co_run_more stop reading the record after so long; the next call goes on.
                     * Usually without end */
    const co_window *window; /* other scalars are read over. Lives as long as the run; usually NULL */
} co_run_limits;

/* CO_EINPUT if `dir` is not a run folder: neither header.json nor events.jsonl is there. limits may be NULL.
 */
co_err co_run_open(co_run **out, const char *dir, const co_run_limits *limits);
/* Reads what was added since. A record that was replaced by another is read from its beginning. */
co_err co_run_more(co_run *run);
void co_run_close(co_run *run); /* NULL is fine */

const char *co_run_dir(const co_run *run);

typedef enum {
    CO_RUN_RUNNING,
    CO_RUN_DONE,
    CO_RUN_STOPPED,
    CO_RUN_FAILED,
    CO_RUN_KILLED, /* it ended without a summary */
    CO_RUN_STATES
} co_run_state;
/* As of the last co_run_more. A run of another host counts as running while it renews its lease. */
co_run_state co_run_state_of(const co_run *run);
const char *co_run_state_name(co_run_state state); /* "running", "done", ... */

/* The files, parsed. header, summary and blame are objects; NULL if the file is absent or unreadable. */
const json_t *co_run_header(const co_run *run);
const json_t *co_run_summary(const co_run *run);
const json_t *co_run_blame(const co_run *run);
const char *co_run_config(const co_run *run); /* the text of config.yaml; NULL if absent */

typedef struct co_point {
    int64_t step;
    double t; /* seconds since 1970; nan: the line has none */
    double value;
} co_point;

/* Scalars of one name. In the order of the steps, where the last line of a step counts. Names that begin with
 * "system/" are measured by the clock: in the order of time, several to a step. */
typedef struct co_series {
    const char *name;
    const co_point *point; /* [n]; n is at least 1 */
    size_t n;
    int64_t lines; /* how many the record has */
    bool by_time;
    bool thinned;
} co_series;

size_t co_run_series_count(const co_run *run);
const co_series *co_run_series_at(const co_run *run, size_t i);      /* in the order of first appearance */
const co_series *co_run_series(const co_run *run, const char *name); /* NULL if there is none */
/* The point with the least value (or the greatest); NULL if no value is finite. */
const co_point *co_series_least(const co_series *s);
const co_point *co_series_greatest(const co_series *s);

/* Lines that are no scalars, in the order of the record: recoveries, checkpoints, views... Pictures,
 * histograms and tables are left out. A line above 64 KiB keeps its name, step and t only, with its length
 * as left_out_bytes. */
size_t co_run_event_count(const co_run *run);
const json_t *co_run_event(const co_run *run, size_t i);
int64_t co_run_events_dropped(const co_run *run); /* older ones, beyond the limit */

int64_t co_run_bad_lines(const co_run *run); /* lines of the record that were skipped */
/* How much of the record was read, of its length at the last call: 1 unless limits.most_ms ended the
 * reading. */
double co_run_share_read(const co_run *run);
double co_run_first_t(const co_run *run); /* of the record's lines; nan if none has a time */
double co_run_last_t(const co_run *run);

/* Hosts, in the order in which they appear: those of summary.json, before it those of the record. */
size_t co_run_host_count(const co_run *run);
const char *co_run_host(const co_run *run, size_t i); /* "" beyond the last */

/* Run folders below `dir`, itself included, in the order of their names. */
enum { CO_RUNS_MOST = 2000 };
typedef struct co_run_list {
    char **dir;
    size_t n;
    bool more; /* there are more than CO_RUNS_MOST */
} co_run_list;
co_err co_runs_find(co_run_list *out, const char *dir); /* CO_EINPUT: dir is no folder */
void co_run_list_fini(co_run_list *list);

#endif
