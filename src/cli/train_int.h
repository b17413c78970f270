/* train_int.h -- one `cohort train` and its record. */
#ifndef CO_CLI_TRAIN_INT_H
#define CO_CLI_TRAIN_INT_H

#include <stdio.h>
#include <sys/types.h>

#include "cli/cli_int.h"
#include "cli/scribe_int.h"
#include "track/use.h"
#include "train/recommend.h"
#include "train/translate.h"

struct search; /* for a learning rate */

/* machine.c: the figures of one host, and what is recorded of each. */
typedef struct figure {
    double sum, most; /* of the run */
    int64_t n;
    double since_sum; /* since the last event */
    int64_t since_n;
} figure;
typedef struct host_figures {
    co_use use; /* as measured last */
    figure figure[CO_USE_MOST];
} host_figures;
enum { MACHINE_HOSTS = 64 };
typedef struct machine {
    co_util util;
    double began_s, next_s, sent_s;
    int64_t looks;
    host_figures *host[MACHINE_HOSTS]; /* this one first; NULL: not measured yet */
    int hosts;
    struct rank_mark { /* where the counters of a rank stood when its shares were computed last */
        co_rank_times now, then;
        uint64_t beat;
        double then_s, beat_s;
    } rank[CO_USE_RANKS];
    int ranks;
    co_str gpus_first, gpus_last; /* tables of GPUs */
} machine;

struct over; /* several hosts: over_int.h */
struct spot; /* spot.c */

typedef struct training {
    app app;
    struct over *over; /* NULL: this host alone */
    struct spot *spot; /* NULL: no trainer.spot_url */
    co_plan *plan;
    co_folder *folder;
    co_tracking *tracking; /* the trackers of logger=, while the run goes on */
    co_console *console;
    char *ckpt_root, *log_dir;
    co_train_summary summary;
    co_hits hits;                                 /* ratings, after the training; cases 0: not judged */
    co_translation_scores scores[CO_SPLIT_COUNT]; /* pairs: of the last evaluation; sentences 0: none */
    uint64_t began_ns;
    co_step_result last;    /* of the last step, for the progress line */
    const char *evaluating; /* "validating" or "testing" while that goes on */
    double evaluated;       /* share of it that is done */
    bool tested;            /* the last line of results is printed: no progress after it */
    int64_t first_step, epoch_samples, epochs_closed;
    double epoch_loss, epoch_metric; /* sums over the epoch so far */
    double mean_loss, mean_metric;   /* of the last whole epoch */
    double rate;
    FILE *log; /* train.log */
    uint64_t rate_mark_ns, rate_spent_ns, flush_ns;
    int64_t rate_samples;
    struct search *search;        /* NULL: no search */
    const struct co_cli_job *job; /* the library's job; NULL: the command itself, which has a screen */
    bool stop_asked;              /* that job, or a tracker, wants the run to stop: hooks.wants_stop */
    co_train_hooks record; /* with a job: hooks that write the run folder before the job's own are called */
    /* notice.c */
    co_spikes spikes;
    co_meters meters;   /* of this epoch, for console=imagenet */
    double data_wait;   /* share of the time of recent steps that went into waiting */
    double eval_s;      /* what the last validation took */
    uint64_t first_ns;  /* when this start's first step was done */
    uint64_t last_ns;   /* when the last step or evaluation was */
    uint64_t shared_ns; /* when the progress was last written for `cohort attach` */
    bool wait_told;
    machine machine;
    struct { /* histograms.c */
        scribe by;
        int64_t step, last;
        char path[1024];
    } histogram;
    struct val_pictures *val_pictures; /* samples_val.c; NULL: none */
    const line *line;                  /* the caller's, from open to close */
    char *reproduce;   /* the command line that repeats the run, once it has ended; NULL: there is none */
    char *differences; /* from the configuration of the run that is continued; NULL: none */
    bool changed;      /* on resume: configuration or data */
    /* keep_book.c */
    struct {
        pid_t pid; /* of the process that makes the log book; 0: none is at it */
        int pidfd;
        double began_s, next_s;
        bool last, written; /* last: the run has ended. written: the book is there */
    } book;
    /* --detach */
    bool detached; /* a parent waits at `ready` until the ranks run */
    int ready;
} training;

/* train.c: the three parts of a run, for the command and for the library. If open leaves no folder, the given
 * run folder already has all its steps. *wrote: the error of writing the record's files. */
co_err training_open(training *s, line *l);
co_err training_run(training *s, co_err *wrote);
void training_close(training *s);
co_err training_folder(training *s); /* opens the run folder and its record */
/* A folder that holds a run may only be continued: two runs in one folder would spoil each other. */
co_err refuse_to_mix(const training *s, const char *path);
/* Refuses a callbacks.model_checkpoint.dirpath that has another run's checkpoints: ours would replace
 * checkpoints of the same name and prune others. */
co_err refuse_foreign(const training *s);
const char *limit_key(const training *s); /* the key whose limit is the run's last step */
co_train_hooks job_hooks(training *s);    /* embed.c */
/* Prepares everything without starting: for `cohort plan`. */
co_err training_plan(training *s, line *l);

/* `cohort train` with hosts that somebody else has found, borrowed; NULL: it finds them itself. The exit status. */
int train_with(int argc, char **argv, struct co_hosts_line *hosts);

/* record.c: what goes into the run folder and onto the screen while it runs. */
co_err record_open(training *s); /* config.yaml, overrides.yaml, config_tree.log, header.json */
void record_end(training *s, const json_t *summary); /* the line run_end */
void record_first_screen(training *s);
void record_track(training *s); /* starts the trackers; one that cannot start is a warning */
void record_warn(void *training, const char *text);
void tell(training *s, const char *fmt, ...) __attribute__((format(printf, 2, 3))); /* console and train.log */
/* The first text to train.log, the second to the console. */
void tell_both(training *s, const char *logged, const char *shown);
void shout(training *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3))); /* the same, with console=quiet too */
co_train_hooks record_hooks(training *s);
void profile_tell(training *s);        /* profile.c: trainer.profiler */
void record_end_progress(training *s); /* ends the progress bar; plain lines follow */
/* summary.c: writes summary.json, blame.json, exec_time.log; the trackers read all events and close */
co_err record_close(training *s);
json_t *summary_of(const training *s);
json_t *figures_of_host(const training *s); /* of this one */

/* provenance.c: adds to header.json where the run comes from */
void provenance_put(const training *s, json_t *header);

/* keep_book.c: the log book while the run goes on (call it about once a second), and at its end */
void book_turn(training *s);
void book_end(training *s);

/* memory.c: the part of the record that a checkpoint keeps and a continued run restores */
json_t *memory_json(void *training);
void memory_recall(training *s);

/* follow.c: hooks, and the progress line between them; `now`: print it without waiting. */
void follow_start(void *ctx, double ms);
void follow_step(void *ctx, const co_step_result *r);
void follow_eval(void *ctx, const co_eval_result *r);
void follow_evaluating(void *ctx, co_split split, int64_t done, int64_t of);
void follow_progress(training *s, bool now);
void follow_quietly(training *s); /* a guest: for `cohort ps` alone */
int tops_of(const training *s);   /* accuracies to show: 2 with the best five classes, 1 without, 0 none */

/* translations.c: pairs of sentences: what an evaluation translated */
void translations_record(training *s, const co_eval_result *r);
void translations_put(const training *s, json_t *metrics); /* for summary.json */

/* samples.c: pictures of test samples with prediction and truth, after the test */
void samples_record(training *s);
/* samples_val.c: the same of the first samples of the validation, after each one */
void samples_eval(training *s, const co_eval_result *r);
void samples_turn(training *s); /* records what waited for its pictures */
void samples_end(training *s);  /* waits a little for them */

/* histograms.c: of gradients; of the weights of a checkpoint that was saved, by a process of its own */
void histograms_gradient(void *training, int64_t step, const co_histogram *h); /* the hook `gradients` */
void histograms_begin(training *s, int64_t step, const char *checkpoint);
void histograms_turn(training *s); /* records what is done */
void histograms_end(training *s);  /* waits a little for the last one */

/* notice.c */
void notice_step(training *s, const co_step_result *r);

/* machine.c: what the run takes of its hosts: CPUs, memory, disks, network, GPUs, and the time of the ranks */
void machine_look(training *s); /* call it often; it measures about once a second */
void machine_ranks(void *training, const co_rank_times *ranks, int n); /* the hook `ranks` */
void machine_take(training *s, const json_t *use);                     /* what another host has measured */
json_t *machine_json(const training *s);                               /* for summary.json */
void machine_gpus(training *s, bool last);                             /* gpus.txt */
void machine_close(training *s);

/* ending.c */
void ending_tell(training *s, const line *l);
/* The line that repeats the run which has ended; the caller's. NULL: no line does, or memory is out. */
char *ending_reproduce(const training *s, const line *l);

/* detach.c: --detach. True in the child, which runs; false in the parent, which then has an exit status.
 */
bool detach(training *s, const line *l, int *status);
void detach_ready(training *s); /* releases the waiting parent, if there is one */

/* spot.c: trainer.spot_url. Opened after signals are held. */
co_err spot_open(training *s);
void spot_close(training *s);

/* tune.c. Both do nothing without tune.lr. The first changes the line's words and opens the app again. */
co_err tune_search(training *s, line *l);
co_err tune_record(training *s); /* curve and rate: lr_find.svg, lr_find.csv, and the screen */
void tune_free(training *s);

/* sweep.c: `cohort train -m`. The exit status. */
int sweep_run(line *l);
#define SWEEP_JOB "COHORT_SWEEP_JOB" /* in the environment of each of its jobs */

#endif
