/* run_int.h -- the run, seen by run.c, open.c and output.c only. */
#ifndef CO_WANDB_RUN_INT_H
#define CO_WANDB_RUN_INT_H

#include "wandb/wandb_int.h"

struct co_wandb {
    wandb_settings set;
    saved_run saved;
    machine_facts machine;
    char *run_dir, *folder, *files; /* folder: .../wandb/run-DATE-ID */
    record_log log;
    spool channel[N_CHANNELS], output_file;
    uploader *up; /* NULL: offline */
    /* what was taken */
    json_t *config; /* nested; NULL: nothing was taken yet */
    double start, last_t;
    row_maker rows;
    item_list stats, summary;
    double stats_t;
    bool summary_changed, ended, key_missing;
    /* what it printed: train.log, or the log of a rank */
    char *output_path;
    int output_fd;
    double output_t;
    co_str output_rest; /* the beginning of a line */
    char notice[600];
};

/* open.c; of: the run of rank 0, if this is that of another rank */
co_err run_open_folder(co_wandb *w, const co_wandb *of);
/* output.c: takes what train.log has by now */
co_err output_take(co_wandb *w);

#endif
