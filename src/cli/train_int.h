/* train_int.h -- one `cohort train` and its record. */
#ifndef CO_CLI_TRAIN_INT_H
#define CO_CLI_TRAIN_INT_H

#include <stdio.h>

#include "cli/cli_int.h"

typedef struct training {
    app app;
    co_plan *plan;
    co_folder *folder;
    co_console *console;
    char *ckpt_root, *log_dir;
    co_train_summary summary;
    uint64_t began_ns;
    co_step_result last; /* of the last step, for the progress line */
    int64_t first_step, epoch_samples, epochs_closed;
    double epoch_loss, epoch_metric; /* sums over the epoch so far */
    double mean_loss, mean_metric;   /* of the last whole epoch */
    double rate;
    FILE *log; /* train.log */
    uint64_t rate_ns, flush_ns;
    int64_t rate_samples;
} training;

/* record.c: what goes into the run folder and onto the screen while it runs. */
co_err record_open(training *s); /* config.yaml, overrides.yaml, config_tree.log, header.json */
void record_first_screen(training *s);
void tell(training *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3))); /* console and train.log */
co_train_hooks record_hooks(training *s);
void record_end_progress(training *s); /* the bar is done; what follows are plain lines */
/* summary.c: summary.json, blame.json, csv, exec_time.log */
co_err record_close(training *s);
json_t *summary_of(const training *s);

/* sweep.c: `cohort train -m`. The exit status. */
int sweep_run(const line *l);

#endif
