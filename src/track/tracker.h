/* tracker.h -- trackers: readers of the run's record that write it in another form.
 *
 * events.jsonl is the record, and it is not itself a tracker. Every line of it is handed to every open
 * tracker, in order, by a process of that tracker's own. The process reads the file, so the file is the
 * queue: a slow tracker falls behind and costs nobody a step, and one that fails or crashes is dropped with
 * one warning. A tracker is a row of co_trackers:
 *
 *     options, cfg_size   its keys logger.NAME.*, as data sets and models have them
 *     check  its settings, before anything is started
 *     open   the facts of the run and its settings, at the start of the run
 *     take   one line of the record: a scalar, a histogram, a text ... (docs/formats/run-folder.md)
 *     flush  what was taken so far becomes visible: every few seconds, and before close
 *     close  the end; nothing is taken after it
 *
 * A run that continues finds lines in its record. They are handed over first, from the first one on, marked
 * `replayed`: a tracker that builds its output anew (csv) takes them all, one that kept its output may skip
 * them. Scalars are named as logger.names says (names.c): their `name` in `json` is the one to write, their
 * name in `text` that of the record.
 *
 *     co_tracking *tracking;
 *     CO_TRY(co_tracking_open(&tracking, folder, &facts, chosen, n));
 *     co_tracking_more(tracking);                          // after each co_events_flush
 *     co_tracking_troubles(tracking, tell, ctx);           // about once a second
 *     co_tracking_close(tracking, CO_TRACKING_END_S, tell, ctx);
 */
#ifndef CO_TRACK_TRACKER_H
#define CO_TRACK_TRACKER_H

#include "base/option.h"
#include "track/track.h"

typedef struct co_record_line {
    const char *text; /* without the newline */
    size_t len;
    const json_t *json; /* the same, parsed: an object */
    bool replayed;      /* it was in the record before this start */
    int64_t end;        /* bytes of the record up to the end of this line */
} co_record_line;

/* The families of metric names: train/loss_step, val/acc | Loss/train, acc1/val | train_loss, val_acc1 */
typedef enum { CO_NAMES_LIGHTNING, CO_NAMES_SLASH, CO_NAMES_UNDERSCORE } co_names;
#define CO_NAMES_CHOICES "lightning|slash|underscore"
enum { CO_METRIC_NAME = 256 };
/* The name of a scalar of the record in that family; a name that the family does not know stays as it is. */
void co_scalar_name(char out[CO_METRIC_NAME], co_names family, const char *name);

/* What a tracker is told about the run, besides the record. The line `run_start` of the record has the
 * configuration, lines `view` the other hosts. */
typedef struct co_run_facts {
    const char *dir;    /* the run folder */
    const char *run_id; /* of this start */
    const char *task;   /* task_name */
    const char *config; /* config.yaml, its path */
    const char *host;   /* this one */
    int64_t first_step; /* steps that were done when this start began */
    co_names names;     /* logger.names: already applied to the lines */
} co_run_facts;

/* open, take, flush and close are called by one process, which has no other work. An error from open,
 * take or flush drops the tracker; close follows in any case, unless open failed. `run` and `cfg` live
 * until close. */
typedef struct co_tracker_def {
    const char *name, *help;
    co_err (*open)(void **out, const co_run_facts *run, const void *cfg);
    co_err (*take)(void *self, const co_record_line *line);
    co_err (*flush)(void *self);
    void (*close)(void *self);
    const co_option *options; /* keys logger.NAME.*; NULL: none but `enabled`, which every tracker has */
    size_t cfg_size;          /* of the struct that they fill */
    co_err (*check)(const void *cfg); /* CO_EINPUT: the settings do not fit together; NULL: they always do */
    size_t memory; /* private memory that it needs beyond that of any process: planned, not a limit */
    /* The memory that it needs besides with these settings, if the run has so many ranks on all hosts
     * together; NULL: none. */
    size_t (*more_memory)(const void *cfg, int ranks);
    /* Something that the user should hear (where the run can be seen, that a server does not answer),
     * into `out`; called after open and after each flush until it returns false. NULL: never anything. */
    bool (*notice)(void *self, char *out, size_t size);
    /* Has somebody asked, where the tracker reports to, that the run stop? Called about once a second. NULL:
     * nobody can. */
    bool (*wants_stop)(void *self);
} co_tracker_def;
enum { CO_TRACKERS_MOST = 16 };
extern const co_tracker_def *const co_trackers[]; /* ends with NULL */

/* A tracker that was chosen, and its settings. */
typedef struct co_tracker_pick {
    const co_tracker_def *def;
    const void *cfg;
} co_tracker_pick;

typedef struct co_tracking co_tracking;
enum { CO_TRACKING_END_S = 30 }; /* how long the end of a run waits for its trackers */

/* Starts the n trackers on the folder's record. One that cannot start is reported by
 * co_tracking_troubles; the others go on. The defs must outlive *out; facts and settings are borrowed
 * until return (each process has its copy). */
co_err co_tracking_open(co_tracking **out, const co_folder *f, const co_run_facts *facts,
                        const co_tracker_pick *picks, int n);
void co_tracking_more(co_tracking *t); /* the record has more lines; NULL is fine, as in the two below */
typedef void (*co_tracking_tell)(void *ctx, const char *text);
/* Where the notices of trackers go; without it nowhere. */
void co_tracking_on_notice(co_tracking *t, co_tracking_tell tell, void *ctx);
/* Who is told, once for each tracker that can (wants_stop), that the run is to stop; from co_tracking_close
 * on nobody. */
void co_tracking_on_stop(co_tracking *t, co_tracking_tell tell, void *ctx);
/* A sentence for each tracker that was dropped, once. */
void co_tracking_troubles(co_tracking *t, co_tracking_tell tell, void *ctx);
/* Hands the whole record of the run folder `dir`, which no run may be using, to the tracker, with the
 * settings of the run's last start; `mode`, unless NULL, replaces its key `mode`. Notices go to `tell`. */
co_err co_tracker_replay(const char *dir, const char *tracker, const char *mode, co_tracking_tell tell,
                         void *ctx);
/* The most private memory that the trackers' processes have had, in bytes. */
size_t co_tracking_memory(const co_tracking *t);
/* Lets every tracker read to the end of the record, flush and close. One that has not finished after
 * `secs`, or when SIGINT, SIGTERM or SIGUSR1 comes, is killed and reported like one that failed. Returns
 * what co_tracking_memory says at the end. */
size_t co_tracking_close(co_tracking *t, double secs, co_tracking_tell tell, void *ctx);

#endif
