/* wandb.h -- a run for Weights & Biases: its folder of files, which `wandb sync` and `wandb leet` read, and
 * the upload to the service while the run goes on.
 *
 * The caller hands over what happened, in order; lines of earlier starts of the run first. So a file is
 * always the whole run, and what is sent is a function of the record alone: the uploader asks the service
 * how many lines it has and goes on from there. Sending is done by a thread, from files; it holds nobody
 * up.
 *
 *     CO_TRY(co_wandb_open(&run, &cfg, &facts));
 *     CO_TRY(co_wandb_begin(run, config, t));
 *     CO_TRY(co_wandb_scalar(run, step, "train/loss", 0.25, t));
 *     CO_TRY(co_wandb_flush(run));                        // every few seconds
 *     CO_TRY(co_wandb_end(run, 0, t, 25));                // the run is over: wait for the upload
 *     co_wandb_close(run);
 */
#ifndef CO_WANDB_WANDB_H
#define CO_WANDB_WANDB_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/option.h"

typedef enum { CO_WANDB_UNSET, CO_WANDB_ONLINE, CO_WANDB_OFFLINE, CO_WANDB_DISABLED } co_wandb_mode;
typedef enum {
    CO_WANDB_RESUME_UNSET,
    CO_WANDB_ALLOW,
    CO_WANDB_MUST,
    CO_WANDB_NEVER,
    CO_WANDB_AUTO
} co_wandb_resume;

/* The keys logger.wandb.*. A string that is NULL, and UNSET: the environment decides. */
typedef struct co_wandb_cfg {
    char *project, *entity, *group, *name, *tags, *notes, *id, *job_type, *save_dir;
    int mode, resume;
    bool offline, per_rank;
} co_wandb_cfg;
extern const co_option co_wandb_options[];

typedef struct co_wandb co_wandb;
typedef struct co_wandb_facts {
    const char *run_dir, *task, *host;
    /* With per_rank: which rank the run is of ("rank3", "node2-rank1"), and the open run of rank 0, from
     * which it takes id, group and name. NULL: this is the run of rank 0, or of all ranks. */
    const char *rank;
    const co_wandb *of;
    const char *output; /* what the run printed, below run_dir; NULL: train.log */
} co_wandb_facts;

/* CO_EINPUT: a WANDB_ variable or an id that cannot be. Strings are borrowed until return. */
co_err co_wandb_open(co_wandb **out, const co_wandb_cfg *cfg, const co_wandb_facts *facts);
/* A start of the run. `config` is flat ({"optim.lr": 0.1}) and borrowed. */
co_err co_wandb_begin(co_wandb *w, const json_t *config, double t);
co_err co_wandb_scalar(co_wandb *w, int64_t step, const char *name, double value, double t);
/* A figure of the machine; the name is wandb's (cpu, gpu.0.gpu). */
co_err co_wandb_stat(co_wandb *w, const char *name, double value, double t);
/* Any value as JSON, with files below the folder `files` that it names (media). */
co_err co_wandb_value(co_wandb *w, int64_t step, const char *name, const json_t *value, double t);
co_err co_wandb_media(co_wandb *w, const char *path); /* "media/images/x.png", already written */
const char *co_wandb_files(const co_wandb *w);        /* the folder of the run's files */
/* CO_EIO: the disk refuses; call it again later. */
co_err co_wandb_flush(co_wandb *w);
/* A start ended. The present one: everything is written, and sent within `secs`. An old one: secs is 0. */
co_err co_wandb_end(co_wandb *w, int exit_code, double t, double secs);
/* The same for several runs, which have `secs` together. Returns the first error; the others still end. */
co_err co_wandb_end_all(co_wandb *const *runs, int n, int exit_code, double t, double secs);
void co_wandb_close(co_wandb *w);
/* The next thing that the user should hear; false: nothing. */
bool co_wandb_notice(co_wandb *w, char *out, size_t size);

/* Somebody has pressed Stop on the run's page since this start began. */
bool co_wandb_stop_asked(const co_wandb *w);

/* `cohort wandb login`: stores a key for the service at `base_url` (NULL: the environment's or the public
 * one) in netrc, readable by its owner alone. CO_EINPUT: this is no key. */
co_err co_wandb_login(const char *key, const char *base_url, char *machine, size_t size);
/* Asks the service whose key it is. */
co_err co_wandb_whoami(char *out, size_t size);

#endif
