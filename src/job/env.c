/* env.c -- makes a worker's environment: ours, plus the variables that torchrun sets.
 *
 * One row per name. TORCHELASTIC_USE_AGENT_STORE is "False": nothing listens at MASTER_PORT before the
 * workers do, so rank 0 opens the store there itself, as it does without a launcher.
 */
#include "job/job_int.h"

#include <stdlib.h>
#include <string.h>

#include "net/net.h"

extern char **environ;

/* Names that are removed from a worker's environment. Whoever can read the token or the join code there could
 * join the job. PMI_FD is a descriptor that the worker does not have; without it an MPI program starts as a
 * single process. */
static const char *const secret[] = {"COHORT_TOKEN", "COHORT_JOIN", "PMI_FD"};

typedef struct var {
    const char *name, *value; /* value NULL: unchanged */
} var;

enum { MOST_VARS = 32 };

static const char *number(co_pool *pool, long long n)
{
    return co_pool_printf(pool, "%lld", n);
}

/* The n-th device of a list, or NULL. */
static const char *device_at(const char *list, int n)
{
    const char *at = list;

    for (int i = 0; at && *at && i < n; i++) {
        at = strchr(at, ',');
        at = at ? at + 1 : NULL;
    }
    return at && *at ? at : NULL;
}

/* This worker's device: an entry of CUDA_VISIBLE_DEVICES, or a number if that is unset. If several launchers
 * share this host and a scheduler gave each its own shorter list, the rank within this launcher chooses the
 * entry. */
static const char *own_device(co_pool *pool, int first, int local_rank)
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES"), *at = device_at(list, first + local_rank);

    if (!at)
        at = device_at(list, local_rank);
    return at ? co_pool_strn(pool, at, strcspn(at, ",")) : number(pool, first + local_rank);
}

/* By default gloo uses the address of this host's own name. On many hosts that is loopback (127.0.1.1 in
 * /etc/hosts), and then hosts cannot connect. So workers get the interface by which the hosts met. NULL: the
 * variable is already set, or there is only one host. */
static const char *gloo_interface(co_pool *pool, const co_round *r)
{
    char name[64];

    if (r->hosts < 2 || getenv("GLOO_SOCKET_IFNAME") || !co_net_interface(name, sizeof name, r->my_addr))
        return NULL;
    return co_pool_str(pool, name);
}

static int list_vars(var *v, const co_job_spec *s, const co_round *r, const files *f, const worker *w,
                     co_pool *pool)
{
    bool virtual = s->virtual_local_rank;
    char *error_file = files_path(f, w->local_rank, "error.json");
    const var rows[] = {
        {"RANK", number(pool, w->rank)},
        {"LOCAL_RANK", number(pool, virtual ? 0 : s->local_first + w->local_rank)},
        {"WORLD_SIZE", number(pool, r->world)},
        {"LOCAL_WORLD_SIZE", number(pool, s->local_world ? s->local_world : s->terms.nproc)},
        {"GROUP_RANK", number(pool, s->groups ? s->group : r->my_host)},
        {"GROUP_WORLD_SIZE", number(pool, s->groups ? s->groups : r->hosts)},
        {"ROLE_RANK", number(pool, w->rank)},
        {"ROLE_WORLD_SIZE", number(pool, r->world)},
        {"ROLE_NAME", s->role ? s->role : "default"},
        {"MASTER_ADDR", s->master_addr ? s->master_addr : r->master_addr},
        {"MASTER_PORT", number(pool, s->master_port ? s->master_port : r->master_port)},
        {"TORCHELASTIC_RESTART_COUNT", number(pool, r->restarts)},
        {"TORCHELASTIC_MAX_RESTARTS", number(pool, s->terms.max_restarts)},
        {"TORCHELASTIC_RUN_ID", s->terms.run_id},
        {"TORCHELASTIC_USE_AGENT_STORE", "False"},
        {"TORCHELASTIC_ERROR_FILE", error_file ? co_pool_str(pool, error_file) : ""},
        {"TORCHELASTIC_SIGNALS_TO_HANDLE", s->signal_names},
        {"TORCH_NCCL_ASYNC_ERROR_HANDLING", getenv("TORCH_NCCL_ASYNC_ERROR_HANDLING") ? NULL : "1"},
        {"GLOO_SOCKET_IFNAME", gloo_interface(pool, r)},
        {"OMP_NUM_THREADS", s->omp_one ? "1" : NULL},
        {"CUDA_VISIBLE_DEVICES", virtual ? own_device(pool, s->local_first, w->local_rank) : NULL},
    };

    int n = 0;
    for (size_t i = 0; i < CO_COUNT(rows); i++)
        if (rows[i].value)
            v[n++] = rows[i];
    co_free(error_file);
    return n;
}

static bool named(const char *entry, const char *name)
{
    size_t n = strlen(name);

    return strncmp(entry, name, n) == 0 && entry[n] == '=';
}

static bool dropped(const char *entry, const var *v, int n)
{
    for (int i = 0; i < n; i++)
        if (named(entry, v[i].name))
            return true;
    for (size_t i = 0; i < CO_COUNT(secret); i++)
        if (named(entry, secret[i]))
            return true;
    return false;
}

char **worker_env(const co_job_spec *spec, const co_round *r, const files *f, const worker *w,
                  const char *mark, co_pool *pool)
{
    var v[MOST_VARS];
    int n = list_vars(v, spec, r, f, w, pool), have = 0, k = 0;

    v[n++] = (var){co_pool_strn(pool, mark, strcspn(mark, "=")), strchr(mark, '=') + 1};
    while (environ && environ[have])
        have++;
    char **env = co_pool_alloc(pool, (size_t)(have + n + 1) * sizeof *env);
    if (!env || !v[n - 1].name)
        return NULL;
    for (int i = 0; i < have; i++)
        if (!dropped(environ[i], v, n))
            env[k++] = environ[i];
    for (int i = 0; i < n; i++)
        if (!(env[k++] = co_pool_printf(pool, "%s=%s", v[i].name, v[i].value)))
            return NULL;
    return env;
}
