/* how_many.c -- how many hosts a job has, how many workers each of them runs, and where they meet. `cohort
 * launch` and `cohort train` read it from the same flags and the same environment.
 */
#include "job/launch/launch_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "proc/crew.h"

static int count_gpus(void)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    char **names;
    size_t n = 0;

    if (visible) {
        int count = *visible && strcmp(visible, "-1") != 0;
        for (; *visible; visible++)
            count += *visible == ',';
        return count;
    }
    if (!co_fs_is_dir("/proc/driver/nvidia/gpus") || co_fs_list(&names, &n, "/proc/driver/nvidia/gpus") != CO_OK)
        return 0;
    co_fs_list_free(names, n);
    return (int)n;
}

static co_err set_nproc(co_terms *t, const char *text)
{
    int gpus = count_gpus();

    if (t->views && (!text || strcmp(text, "auto") == 0)) {
        t->nproc = 0; /* trainer.devices decides */
        return CO_OK;
    }
    if (!text || strcmp(text, "cpu") == 0 || (strcmp(text, "auto") == 0 && gpus == 0)) {
        t->nproc = text ? co_cpus_usable() : 1;
        return CO_OK;
    }
    if (strcmp(text, "auto") == 0 || strcmp(text, "gpu") == 0) {
        t->nproc = gpus;
        return gpus ? CO_OK
                    : co_fail(CO_EINPUT,
                              "launch: --nproc-per-node=gpu: no GPU was found here (CUDA_VISIBLE_DEVICES, "
                              "nvidia-smi); --nproc-per-node=cpu starts one worker for each CPU");
    }
    if (strcmp(text, "xpu") == 0)
        return co_fail(CO_EINPUT,
                       "launch: --nproc-per-node=xpu: these are not counted here; give their number");
    co_err err = flag_whole(&t->nproc, "--nproc-per-node", text, 1, CO_MAX_WORKERS);
    return err ? co_fail(err, "launch: --nproc-per-node=%s: a number from 1 to %d, auto, cpu or gpu is needed",
                         text, CO_MAX_WORKERS)
               : CO_OK;
}

static co_err set_nnodes(co_terms *t, const char *text)
{
    char min[16] = "";
    const char *colon = text ? strchr(text, ':') : NULL;
    size_t n = colon ? (size_t)(colon - text) : 0;

    t->min_hosts = t->max_hosts = 1;
    t->least_hosts = 1;
    if (!text)
        return CO_OK;
    if (!colon) {
        CO_TRY(flag_whole(&t->max_hosts, "--nnodes", text, 1, CO_MAX_HOSTS));
        t->min_hosts = t->max_hosts;
        return CO_OK;
    }
    snprintf(min, sizeof min, "%.*s", (int)(n < sizeof min ? n : 0), text);
    long long a, b;
    if (!co_str_to_i64(min, &a) || !co_str_to_i64(colon + 1, &b) || a < 1 || a > b || b > CO_MAX_HOSTS)
        return co_fail(CO_EINPUT, "launch: --nnodes=%s: N or MIN:MAX is needed, 1 <= MIN <= MAX <= %d", text,
                       CO_MAX_HOSTS);
    t->min_hosts = t->least_hosts = (int)a;
    t->max_hosts = (int)b;
    return CO_OK;
}

co_err plan_hosts(launch_plan *p, const launch_args *a)
{
    co_terms *t = &p->spec.terms;

    snprintf(t->version, sizeof t->version, "%s", COHORT_VERSION);
    t->views = a->train;
    if (a->train)
        snprintf(t->program, sizeof t->program, "train");
    p->line = a->line;
    CO_TRY(set_nproc(t, a->nproc));
    CO_TRY(set_nnodes(t, a->nnodes));
    CO_TRY(plan_where(p, a));
    if (a->train && t->max_hosts > CO_MAX_MEMBERS)
        return co_fail(CO_EINPUT, "launch: %d hosts: a training has at most %d", t->max_hosts, CO_MAX_MEMBERS);
    return CO_OK;
}
