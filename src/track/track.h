/* track.h -- the run's written record: folder, lease, events, summary; and what a person sees while it runs.
 *
 * events.jsonl is the one source: every scalar, checkpoint, recovery as a line
 * {"step":..,"name":..,"value":..,"t":..}; other trackers are its readers. Only the supervisor writes here.
 */
#ifndef CO_TRACK_TRACK_H
#define CO_TRACK_TRACK_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/log.h"

typedef struct co_folder co_folder;

/* Opens (makes, with parents) the run folder `dir`, or logs/<task>/runs/<date_time>/ when dir is NULL, and
 * takes its lease (lease.json: host, pid, process start time, run id). Held by a live process: CO_EINPUT
 * naming it. Not writable: CO_EINPUT with the path. A lease whose holder is dead is taken over. */
co_err co_folder_open(co_folder **out, const char *dir, const char *task);
const char *co_folder_path(const co_folder *f);
const char *co_folder_run_id(const co_folder *f);
void co_folder_close(co_folder *f); /* gives the lease back; NULL is fine */
/* Removes a folder that we made and in which nothing has happened (bad input found late). Closes f. */
void co_folder_discard(co_folder *f);
co_err co_folder_write(co_folder *f, const char *name, const void *bytes, size_t len); /* atomic */
co_err co_folder_write_json(co_folder *f, const char *name, const json_t *v);

/* Appends one event; buffered, flushed by co_events_flush (about once a second, and at the end). A failed
 * write (disk full) is kept in memory up to 1 MiB, reported once through the log, and tried again at the next
 * flush. */
void co_event_scalar(co_folder *f, int64_t step, const char *name, double value);
void co_event_json(co_folder *f, json_t *take); /* takes the reference; "t" is added */
co_err co_events_flush(co_folder *f);
/* csv/metrics.csv: made from the run's events at the end. */
co_err co_events_to_csv(co_folder *f);

/* --- console -----------------------------------------------------------------------------------------------
 */
typedef struct co_console co_console;
typedef enum { CO_CONSOLE_AUTO, CO_CONSOLE_PLAIN, CO_CONSOLE_BAR, CO_CONSOLE_QUIET } co_console_style;

typedef struct co_progress {
    int64_t step, steps, epoch, epochs;
    double loss, metric, samples_per_s, eta_s;
    const char *metric_name; /* NULL: none */
    int ranks;
    bool evaluating;
} co_progress;

co_err co_console_open(co_console **out, int fd,
                       co_console_style style); /* AUTO: a bar if fd is a terminal */
void co_console_close(co_console *c);
bool co_console_is_bar(const co_console *c);
/* Called often; draws at most 10 times a second (bar), or one line per second (plain); `now`: in any case. */
void co_console_progress(co_console *c, const co_progress *p, bool now);
void co_console_line(co_console *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3))); /* above the bar */

/* --- runs of this machine, for ps and stop
 * ------------------------------------------------------------------- */
typedef struct co_live_run {
    int pid;
    char run_id[64], dir[1024], task[64];
    double started; /* wall clock */
} co_live_run;
co_err co_live_register(const co_folder *f,
                        const char *task); /* a file in $XDG_RUNTIME_DIR/cohort or /tmp/cohort-UID */
void co_live_unregister(void);
/* Live runs of this user, oldest first; files of dead ones are removed. Caller's, co_free. */
co_err co_live_list(co_live_run **out, int *n);

#endif
