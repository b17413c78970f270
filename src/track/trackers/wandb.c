/* wandb.c -- Weights & Biases: hands the lines of the record to a run of the room wandb.
 *
 * Figures of the machine (system/...) become wandb's own where it has the like; those of another host carry
 * its name as wandb's label (cpu/l:node2). With logger.wandb.per_rank the figures of each rank go to a run of that
 * rank (wandb_ranks.c). Lines of other kinds that are not known here are passed over.
 */
#include "track/track_int.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json.h"
#include "track/use.h"
#include "track/wandb_media_int.h"
#include "track/wandb_ranks_int.h"
#include "wandb/wandb.h"

#define END_S 25 /* how long the end of a run waits for the upload; less than CO_TRACKING_END_S */

struct tracker {
    co_wandb *run;
    wandb_media media;
    wandb_ranks ranks;
    bool per_rank;
    char *dir;
    double cpus;
};

static const struct {
    const char *ours, *theirs; /* a `*` is the GPU's number */
    double scale;              /* 0: divided by the number of CPUs */
} figures[] = {{"run_cpu_percent", "cpu", 0},
               {"memory_mb", "proc.memory.rssMB", 1e6 / 1048576},
               {"host_memory_percent", "memory_percent", 1},
               {"gpu.*.percent", "gpu.*.gpu", 1},
               {"gpu.*.memory_mb", "gpu.*.memoryAllocatedBytes", 1e6},
               {"gpu.*.temperature_c", "gpu.*.temp", 1},
               {"gpu.*.power_w", "gpu.*.powerWatts", 1}};

static void their_name(char *out, size_t size, const char *ours, const char *theirs)
{
    const char *star = strchr(theirs, '*');

    if (star)
        snprintf(out, size, "%.*s%.*s%s", (int)(star - theirs), theirs, (int)strcspn(ours + 4, "."), ours + 4,
                 star + 1);
    else
        snprintf(out, size, "%s", theirs);
}

/* "rank.3.cpu_percent": 3 and "cpu_percent". False: the figure is of no rank. */
static bool split_rank(const char *own, long *number, const char **name)
{
    char *end;

    if (strncmp(own, "rank.", 5) != 0)
        return false;
    *number = strtol(own + 5, &end, 10);
    *name = end + 1;
    return end > own + 5 && *end == '.' && *number >= 0;
}

/* `name` is system/NAME or system/HOST/NAME */
static co_err take_figure(struct tracker *t, const char *name, double value, double at)
{
    char key[256], host[CO_USE_HOST], label[CO_USE_HOST + 8] = "", full[400];
    const char *own, *of_rank;
    long number;

    if (!co_use_split(name, host, &own))
        return CO_OK;
    if (t->per_rank && split_rank(own, &number, &of_rank)) {
        if (*host || number > 0)
            return wandb_ranks_take(&t->ranks, host, number, of_rank, value, at);
        snprintf(key, sizeof key, "rank.%s", of_rank);
        return co_wandb_stat(t->run, key, value, at);
    }
    if (*host)
        snprintf(label, sizeof label, "/l:%s", host);
    snprintf(key, sizeof key, "%s", own);
    for (size_t i = 0; i < CO_COUNT(figures); i++)
        if (fnmatch(figures[i].ours, own, 0) == 0) {
            their_name(key, sizeof key, own, figures[i].theirs);
            value = figures[i].scale == 0 ? value / t->cpus : value * figures[i].scale;
            break;
        }
    snprintf(full, sizeof full, "%s%s", key, label);
    return co_wandb_stat(t->run, full, value, at);
}

static co_err take_start(struct tracker *t, const json_t *line, double at)
{
    CO_TRY(co_wandb_begin(t->run, json_object_get(line, "config"), at));
    return t->per_rank ? wandb_ranks_begin(&t->ranks, line, at) : CO_OK;
}

static co_err take_end(struct tracker *t, const co_record_line *line, double at)
{
    const char *status = co_json_str(line->json, "status");
    int code = !status || strcmp(status, "done") == 0 ? 0 : strcmp(status, "stopped") == 0 ? 75 : 1;
    co_wandb *all[WANDB_RANKS_MOST + 1] = {t->run};

    memcpy(all + 1, t->ranks.run, sizeof t->ranks.run);
    co_err err = co_wandb_end_all(all, 1 + t->ranks.n, code, at, line->replayed ? 0 : END_S);

    if (err == CO_ETIMEOUT)
        co_fail_in(err, "`cohort wandb sync %s` uploads the rest", t->dir);
    return err;
}

static co_err wandb_take(void *self, const co_record_line *line)
{
    struct tracker *t = self;
    const char *name = co_json_str(line->json, "name");
    long long step = 0;
    double value, at = 0;
    bool has_step = co_json_i64(line->json, "step", &step);

    if (!name)
        return CO_OK;
    co_json_f64(line->json, "t", &at);
    if (!json_object_get(line->json, "image"))
        CO_TRY(wandb_media_settle(&t->media));
    if (has_step && co_json_f64(line->json, "value", &value))
        return strncmp(name, "system/", 7) == 0 ? take_figure(t, name, value, at)
                                                : co_wandb_scalar(t->run, step, name, value, at);
    if (strcmp(name, "run_start") == 0 && json_is_object(json_object_get(line->json, "config")))
        return take_start(t, line->json, at);
    if (strcmp(name, "run_end") == 0)
        return take_end(t, line, at);
    return has_step ? wandb_media_take(&t->media, line->json, step, name, at) : CO_OK;
}

static co_err wandb_flush(void *self)
{
    struct tracker *t = self;

    CO_TRY(co_wandb_flush(t->run));
    return wandb_ranks_flush(&t->ranks);
}

static bool wandb_notice(void *self, char *out, size_t size)
{
    struct tracker *t = self;

    return co_wandb_notice(t->run, out, size) || wandb_ranks_notice(&t->ranks, out, size);
}

static bool wandb_wants_stop(void *self)
{
    return co_wandb_stop_asked(((struct tracker *)self)->run);
}

static void wandb_close(void *self)
{
    struct tracker *t = self;

    wandb_media_fini(&t->media);
    wandb_ranks_close(&t->ranks);
    co_wandb_close(t->run);
    co_free(t->dir);
    co_free(t);
}

static size_t wandb_memory(const void *cfg, int ranks)
{
    return ((const co_wandb_cfg *)cfg)->per_rank ? wandb_ranks_memory(ranks) : 0;
}

static co_err wandb_open(void **out, const co_run_facts *run, const void *cfg)
{
    struct tracker *t = co_zalloc(sizeof *t);

    if (!t)
        return CO_ENOMEM;
    t->dir = co_strdup(run->dir);
    t->cpus = (double)sysconf(_SC_NPROCESSORS_ONLN);
    co_err err =
        t->dir ? co_wandb_open(&t->run, cfg, &(co_wandb_facts){run->dir, run->task, run->host}) : CO_ENOMEM;
    t->media = (wandb_media){.run = t->run, .dir = t->dir};
    t->per_rank = ((const co_wandb_cfg *)cfg)->per_rank;
    t->ranks = (wandb_ranks){.cfg = cfg, .facts = run, .first = t->run};
    if (err)
        wandb_close(t);
    else
        *out = t;
    return err;
}

const co_tracker_def wandb_def = {
    "wandb",
    "Weights & Biases: uploads the run while it goes on, or writes it for `wandb sync`",
    wandb_open,
    wandb_take,
    wandb_flush,
    wandb_close,
    .options = co_wandb_options,
    .cfg_size = sizeof(co_wandb_cfg),
    .memory = 2 << 20, /* libcurl's, when it uploads */
    .more_memory = wandb_memory,
    .notice = wandb_notice,
    .wants_stop = wandb_wants_stop,
};
