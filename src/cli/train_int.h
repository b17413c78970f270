/* train_int.h -- one `cohort train` and its record. */
#ifndef CO_CLI_TRAIN_INT_H
#define CO_CLI_TRAIN_INT_H

#include <stdio.h>

#include "cli/cli_int.h"

struct search; /* for a learning rate */

/* What was seen of one figure of the machine. */
typedef struct figure {
    double last, sum, most;
    int64_t n;
} figure;

enum { FIGURES = 5 };
typedef struct machine {
    co_util util;
    double began_s, next_s;
    int64_t looks;
    figure figure[FIGURES];
    figure gpu[CO_MAX_GPUS][2]; /* utilisation, memory */
    int gpus;
} machine;

typedef struct training {
    app app;
    co_plan *plan;
    co_folder *folder;
    co_tracking *tracking; /* the trackers of logger=, while the run goes on */
    co_console *console;
    char *ckpt_root, *log_dir;
    co_train_summary summary;
    uint64_t began_ns;
    co_step_result last;    /* of the last step, for the progress line */
    const char *evaluating; /* "validating" or "testing" while that goes on */
    double evaluated;       /* share of it that is done */
    int64_t first_step, epoch_samples, epochs_closed;
    double epoch_loss, epoch_metric; /* sums over the epoch so far */
    double mean_loss, mean_metric;   /* of the last whole epoch */
    double rate;
    FILE *log; /* train.log */
    uint64_t rate_mark_ns, rate_spent_ns, flush_ns;
    int64_t rate_samples;
    struct search *search;        /* NULL: none was asked for */
    const struct co_cli_job *job; /* of the library's; NULL: the command itself, which has a screen */
    bool stop_asked;              /* by that job */
    co_train_hooks record;        /* with a job: what goes into the run folder, before the job hears of it */
    /* what is worth a line */
    co_spikes spikes;
    co_meters meters;   /* of this epoch, for console=imagenet */
    double data_wait;   /* share of the time, of the recent steps */
    double eval_s;      /* what the last validation took */
    uint64_t first_ns;  /* when this start's first step was done */
    uint64_t last_ns;   /* when the last step or evaluation was */
    uint64_t shared_ns; /* when the progress was last left for who attaches */
    bool wait_told;
    machine machine;
    char *reproduce; /* the line that does it again */
    bool changed;    /* on resume: configuration or data */
    /* --detach */
    bool detached; /* and somebody waits at `ready` to hear that the ranks run */
    int ready;
} training;

/* train.c: the three parts of a run, for the command and for the library. After open without a folder: the
 * run folder that was given has all its steps already. *wrote: of the record's files. */
co_err training_open(training *s, line *l);
co_err training_run(training *s, co_err *wrote);
void training_close(training *s);
const char *limit_key(const training *s); /* the key whose limit is the run's last step */
co_train_hooks job_hooks(training *s);    /* embed.c */
/* Everything but to start: for `cohort plan`. */
co_err training_plan(training *s, line *l);

/* record.c: what goes into the run folder and onto the screen while it runs. */
co_err record_open(training *s); /* config.yaml, overrides.yaml, config_tree.log, header.json */
void record_first_screen(training *s);
void record_track(training *s); /* starts the trackers; what cannot be started is a warning */
void record_warn(void *training, const char *text);
void tell(training *s, const char *fmt, ...) __attribute__((format(printf, 2, 3))); /* console and train.log */
void shout(training *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3))); /* the same, with console=quiet too */
co_train_hooks record_hooks(training *s);
void profile_tell(training *s);        /* profile.c: trainer.profiler */
void record_end_progress(training *s); /* the bar is done; what follows are plain lines */
/* summary.c: summary.json, blame.json, exec_time.log; the trackers read to the end and close */
co_err record_close(training *s);
json_t *summary_of(const training *s);

/* memory.c: what a checkpoint keeps of the record in progress, and a continued run takes up again */
json_t *memory_json(void *training);
void memory_recall(training *s);

/* follow.c: hooks, and what a person sees between them; `now`: in any case. */
void follow_start(void *ctx, double ms);
void follow_step(void *ctx, const co_step_result *r);
void follow_eval(void *ctx, const co_eval_result *r);
void follow_evaluating(void *ctx, co_split split, int64_t done, int64_t of);
void follow_progress(training *s, bool now);
int tops_of(const training *s); /* accuracies to show: 2 with the best five classes, 1 without, 0 none */

/* notice.c */
void notice_step(training *s, const co_step_result *r);

/* machine.c: utilisation of cores, memory, GPUs */
void machine_look(training *s); /* often; looks about once a second */
json_t *machine_json(const training *s);

/* ending.c */
void ending_tell(training *s, const line *l);
char *ending_reproduce(const training *s, const line *l); /* the caller's; NULL if memory is out */

/* detach.c: --detach. True in the process that is to run; false in the one that waited, which has a status.
 */
bool detach(training *s, const line *l, int *status);
void detach_ready(training *s); /* lets go of the one who waits, if there is one */

/* tune.c. Both do nothing without tune.lr. The first changes the line's words and opens the app again. */
co_err tune_search(training *s, line *l);
co_err tune_record(training *s); /* curve and rate: lr_find.svg, lr_find.csv, and the screen */
void tune_free(training *s);

/* sweep.c: `cohort train -m`. The exit status. */
int sweep_run(const line *l);

#endif
