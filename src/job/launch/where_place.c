/* where_place.c -- takes the hosts and the meeting point from Slurm, mpirun, Kubernetes, or RANK and
 * WORLD_SIZE of a script, so that they need no flags. If the user gives --standalone, --rdzv-endpoint,
 * --master-addr or etcd, the scheduler's variables are ignored.
 */
#include "job/launch/launch_int.h"

#include <signal.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

static void tell(const char *text)
{
    co_notice("%s", text);
}

/* In a batch script or an interactive shell of Slurm, srun starts the same command line on each node. */
co_err plan_into_step(launch_plan *p)
{
    const co_place *place = p->place;
    co_pool *pool = &p->pool;
    co_str typed = {0};
    int n = 0, words = 0;
    char exe[4096];
    char *start = co_pool_str(pool, place->start), *more = NULL;

    ssize_t len = readlink("/proc/self/exe", exe, sizeof exe - 1);
    exe[len > 0 ? len : 0] = '\0';
    while (p->line[words])
        words++;
    const char **argv = co_pool_alloc(pool, ((size_t)words + 16) * sizeof *argv);
    if (!argv || !start)
        return CO_ENOMEM;
    for (char *w = strtok_r(start, " ", &more); w && n < 12; w = strtok_r(NULL, " ", &more))
        argv[n++] = w;
    argv[n++] = exe;
    for (int i = 0; i < words; i++)
        argv[n++] = p->line[i];
    for (int i = 0; i < n; i++)
        co_str_addf(&typed, " %s", argv[i]);
    co_notice("%s has %d nodes and this is not a step of it; starting one:%s", place->name, place->nodes,
              co_str_text(&typed));
    signal(SIGPIPE, SIG_DFL); /* srun is to have the defaults */
    signal(SIGXFSZ, SIG_DFL);
    execvp(argv[0], (char *const *)argv);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    co_err err = co_fail(CO_EINPUT, "launch: srun cannot be started here (%s). This line starts the job:%s",
                         strerror(errno), co_str_text(&typed));
    co_str_fini(&typed);
    return err;
}

co_err plan_find_place(launch_plan *p, const launch_args *a)
{
    co_terms *t = &p->spec.terms;
    co_place_ask ask = {.min_hosts = a->nnodes ? t->min_hosts : 0,
                        .max_hosts = a->nnodes ? t->max_hosts : 0,
                        .hosts_key = a->nnodes_key,
                        .nproc = t->nproc,
                        .node_rank = -1,
                        .training = a->train};

    if (!a->line || a->standalone || a->endpoint || a->master_addr || wants_etcd(a))
        return CO_OK;
    if (a->node_rank)
        CO_TRY(flag_whole(&ask.node_rank, "--node-rank", a->node_rank, 0, CO_MAX_HOSTS - 1));
    co_place *place = co_pool_alloc(&p->pool, sizeof *place);
    if (!place)
        return CO_ENOMEM;
    CO_TRY(co_place_find(place, &ask));
    if (!*place->name) {
        if (*place->reading)
            tell(place->reading);
        return CO_OK;
    }
    p->place = place;
    if (place->outside) {
        t->min_hosts = t->max_hosts = place->nodes;
        t->host_rank = -1; /* srun numbers them */
        return CO_OK;
    }
    if (*place->host)
        p->spec.host = place->host;
    p->spec.hushed = place->quiet;
    if (ask.max_hosts && (place->tasks_most == 1 || a->train)) /* keep MIN:MAX */
        return CO_OK;
    t->min_hosts = t->max_hosts = place->seats;
    return CO_OK;
}

co_err plan_where_place(launch_plan *p)
{
    char text[1200];

    if (!p->place)
        return CO_OK;
    if (!p->local) {
        CO_TRY(co_place_share(p->place, &p->meet, tell));
        if (*p->place->run_id && strcmp(p->spec.terms.run_id, "none") == 0) /* PMI knows it only now */
            snprintf(p->spec.terms.run_id, sizeof p->spec.terms.run_id, "%s", p->place->run_id);
        co_place_say(text, sizeof text, p->place, &p->meet);
        if (*text)
            tell(text);
    }
    if (p->place->tasks_most > 1) {
        p->spec.local_first = p->place->task;
        p->spec.local_world = p->place->tasks;
        p->spec.group = p->place->node;
        p->spec.groups = p->place->node >= 0 ? p->place->nodes : 0;
    }
    return CO_OK;
}
