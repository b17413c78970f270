/* tracker.h -- trackers: readers of the run's record that write it in another form.
 *
 * events.jsonl is the record, and it is not itself a tracker. Every line of it is handed to every open
 * tracker, in order, by a process of that tracker's own. The process reads the file, so the file is the
 * queue: a slow tracker falls behind and costs nobody a step, and one that fails or crashes is dropped with
 * one warning. A tracker is a row of co_trackers:
 *
 *     open   the run folder, at the start of the run
 *     take   one line of the record
 *     flush  what was taken so far becomes visible: every few seconds, and before close
 *     close  the end; nothing is taken after it
 *
 * A run that continues finds lines in its record. They are handed over first, from the first one on, marked
 * `replayed`: a tracker that builds its output anew (csv) takes them all, one that kept its output may skip
 * them.
 *
 *     co_tracking *tracking;
 *     CO_TRY(co_tracking_open(&tracking, folder, chosen, n));
 *     co_tracking_more(tracking);                          // after each co_events_flush
 *     co_tracking_troubles(tracking, tell, ctx);           // about once a second
 *     co_tracking_close(tracking, CO_TRACKING_END_S, tell, ctx);
 */
#ifndef CO_TRACK_TRACKER_H
#define CO_TRACK_TRACKER_H

#include "track/track.h"

typedef struct co_record_line {
    const char *text; /* without the newline */
    size_t len;
    const json_t *json; /* the same, parsed: an object */
    bool replayed;      /* it was in the record before this start */
} co_record_line;

/* All four are called by one process, which has no other work. An error from open, take or flush drops the
 * tracker; close follows in any case, unless open failed. `dir` lives until close. */
typedef struct co_tracker_def {
    const char *name, *help;
    co_err (*open)(void **out, const char *dir);
    co_err (*take)(void *self, const co_record_line *line);
    co_err (*flush)(void *self);
    void (*close)(void *self);
} co_tracker_def;
enum { CO_TRACKERS_MOST = 16 };
extern const co_tracker_def *const co_trackers[]; /* ends with NULL */

typedef struct co_tracking co_tracking;
enum { CO_TRACKING_END_S = 30 }; /* how long the end of a run waits for its trackers */

/* Starts the n trackers on the folder's record. One that cannot start is reported by co_tracking_troubles; the others
 * go on. The defs must outlive *out. */
co_err co_tracking_open(co_tracking **out, const co_folder *f, const co_tracker_def *const *defs, int n);
void co_tracking_more(co_tracking *t); /* the record has more lines; NULL is fine, as in the two below */
typedef void (*co_tracking_tell)(void *ctx, const char *text);
/* A sentence for each tracker that was dropped, once. */
void co_tracking_troubles(co_tracking *t, co_tracking_tell tell, void *ctx);
/* The most private memory that the trackers' processes have had, in bytes. */
size_t co_tracking_memory(const co_tracking *t);
/* Lets every tracker read to the end of the record, flush and close. One that has not finished after `secs`, or when
 * SIGINT, SIGTERM or SIGUSR1 comes, is killed and reported like one that failed. Returns what co_tracking_memory says
 * at the end. */
size_t co_tracking_close(co_tracking *t, double secs, co_tracking_tell tell, void *ctx);

#endif
