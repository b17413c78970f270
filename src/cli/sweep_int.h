/* sweep_int.h -- one `cohort train -m`: what sweep_check.c finds out and sweep.c runs. */
#ifndef CO_CLI_SWEEP_INT_H
#define CO_CLI_SWEEP_INT_H

#include "cli/train_int.h"

typedef struct sweep {
    line *line;
    co_conf_jobs *jobs;
    char *root;
    bool given;     /* root is run.dir */
    json_t *opened; /* the keys of this object: data and models that a check has tried together */
    json_t *rows;   /* an object per job that ran */
} sweep;

/* Checks every job and names the folder. CO_EINPUT has the mistakes of all jobs; nothing was started. */
co_err sweep_check(sweep *s);

/* sweep_folder.c: refuses a job whose folder holds a run that this job must not continue. `dir`: of the job;
 * `one`: its configuration. */
co_err sweep_check_folder(const sweep *s, int job, const char *dir, const app *one);

#endif
