/* slurm.c -- inside Slurm. In a step there is a launcher for each task. A batch script or an interactive
 * shell is not in a step: there the launcher runs itself again under srun.
 *
 * SLURM_STEP_ID does not prove that we are in a step: newer versions set it to numbers near 2^32 in batch
 * scripts and interactive shells. The first name in SLURM_STEP_NODELIST is the first host. If that name
 * does not resolve, scontrol gives the address.
 */
#include "place/place_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "proc/command.h"
#include "place/times_int.h"

static bool in_step(void)
{
    const char *step = env_text("SLURM_STEP_ID");

    return step && env_text("SLURM_PROCID") && env_text("SLURM_STEP_NUM_TASKS") &&
           strtoull(step, NULL, 10) < 0xfffffff0u;
}

bool slurm_is_step(int rank, int size)
{
    int procid, tasks;

    return in_step() && env_whole(&procid, "SLURM_PROCID", 0, HOSTS_MOST, -1) == CO_OK && procid == rank &&
           env_whole(&tasks, "SLURM_STEP_NUM_TASKS", 1, HOSTS_MOST, -1) == CO_OK && (!size || tasks == size);
}

static void name_host(co_place *p)
{
    const char *name = env_text("SLURMD_NODENAME");

    if (name)
        snprintf(p->host, sizeof p->host, "%s", name);
}

/* With --cpu-bind=none the launcher may use every CPU of its host, and divides them among its workers. */
static void starting_line(co_place *p, int nodes)
{
    snprintf(p->start, sizeof p->start, "srun --nodes=%d --ntasks=%d --ntasks-per-node=1 --cpu-bind=none",
             nodes, nodes);
}

static co_err find_step(co_place *p, const char *job)
{
    const char *list = env_text("SLURM_STEP_NODELIST"), *per_node = env_text("SLURM_STEP_TASKS_PER_NODE");
    const char *step = env_text("SLURM_STEP_ID"), *again = env_text("SLURM_RESTART_COUNT");
    int listed, counted;

    CO_TRY(env_whole(&p->seats, "SLURM_STEP_NUM_TASKS", 1, HOSTS_MOST, 1));
    CO_TRY(env_whole(&p->nodes, "SLURM_STEP_NUM_NODES", 1, HOSTS_MOST, 1));
    CO_TRY(env_whole(&p->seat, "SLURM_PROCID", 0, p->seats - 1, 0));
    CO_TRY(env_whole(&p->node, "SLURM_NODEID", 0, p->nodes - 1, 0));
    CO_TRY(tasks_parse(&p->tasks, &p->tasks_most, &counted, per_node ? per_node : "1", per_node ? p->node : 0));
    CO_TRY(env_whole(&p->task, "SLURM_LOCALID", 0, p->tasks - 1, 0));
    if (list)
        CO_TRY(hostlist_get(p->first, sizeof p->first, &listed, list, 0));
    if ((list && listed != p->nodes) || (per_node && counted != p->nodes))
        return co_fail(
            CO_EINPUT,
            "Slurm's variables contradict each other: SLURM_STEP_NUM_NODES=%d, SLURM_STEP_NODELIST=%.60s,"
            " SLURM_STEP_TASKS_PER_NODE=%.40s; were they set by hand? (env -u removes one)",
            p->nodes, list ? list : "", per_node ? per_node : "");
    snprintf(p->name, sizeof p->name, "Slurm job %.40s step %.40s", job, step);
    snprintf(p->run_id, sizeof p->run_id, "slurm-%.40s.%.40s%s%.20s", job, step, again ? "-" : "",
             again ? again : "");
    starting_line(p, p->nodes);
    name_host(p);
    return CO_OK;
}

/* In a batch script or a shell: takes all nodes of the job, or as many as --nnodes says. */
static co_err find_job(co_place *p, const co_place_ask *ask, const char *job)
{
    int have;

    CO_TRY(env_whole(&have, "SLURM_JOB_NUM_NODES", 1, HOSTS_MOST, 1));
    snprintf(p->name, sizeof p->name, "Slurm job %.40s", job);
    if (ask->min_hosts > have)
        return co_fail(CO_EINPUT,
                       "%s has %d node%s, --nnodes asks for %d: sbatch --nodes=%d, or leave --nnodes out",
                       p->name, have, have == 1 ? "" : "s", ask->min_hosts, ask->min_hosts);
    p->nodes = ask->max_hosts && ask->max_hosts < have ? ask->max_hosts : have;
    p->node = 0;
    p->outside = p->nodes > 1;
    starting_line(p, p->nodes);
    name_host(p);
    return CO_OK;
}

static co_err find(co_place *p, const co_place_ask *ask)
{
    const char *job = env_text("SLURM_JOB_ID");

    return !job ? CO_OK : in_step() ? find_step(p, job) : find_job(p, ask, job);
}

/* An address of the first host that this one can reach: its name if that resolves, else Slurm's address. */
static co_err first_host(char *out, size_t size, const co_place *p)
{
    char text[8192];
    const char *argv[] = {"scontrol", "show", "node", p->first, NULL};
    co_patience patience = co_patience_s(5);
    co_addr a;
    int n;

    snprintf(out, size, "%s", p->nodes == 1 ? "127.0.0.1" : p->first);
    if (p->nodes == 1 || co_net_resolve(&a, 1, &n, p->first, 0, &patience) == CO_OK)
        return CO_OK;
    if (*p->first && co_command_read(text, sizeof text, argv, SCONTROL_S) == CO_OK &&
        scontrol_value(out, size, text, "NodeAddr"))
        return CO_OK;
    return co_fail(
        CO_EINPUT,
        "%s: the first node is %s, whose name does not resolve here, and scontrol gives no address for"
        " it; --nnodes=%d --rdzv-endpoint=ADDRESS:29400 says where to meet",
        p->name, *p->first ? p->first : "not named", p->nodes);
}

static co_err share(co_place *p, card *c, const co_patience *patience, void (*talk)(const char *))
{
    char host[CO_HOST_NAME];
    co_err err;

    if (p->seat == 0)
        err = lobby_open(&p->lobby, strncmp(c->endpoint, "127.", 4) == 0 ? "127.0.0.1" : "", p->run_id,
                         p->seats, c);
    else if (!(err = first_host(host, sizeof host, p)))
        err = lobby_ask(c, host, p->run_id, p->seat, patience, talk);
    if (err != CO_EIO)
        return err;
    char why[300];
    snprintf(why, sizeof why, "%s", co_errmsg());
    return co_fail(
        CO_EINPUT,
        "%s: the token cannot be passed on by itself: %s. Put COHORT_TOKEN into the job's environment"
        " (`cohort token` makes one), or use --insecure",
        p->name, why);
}

static void leave(co_place *p)
{
    lobby_close(p->lobby);
    p->lobby = NULL;
}

const place_row place_slurm = {.find = find,
                               .address = first_host,
                               .share = share,
                               .close = leave,
                               .one_each = "srun --nodes=%1$d --ntasks=%1$d --ntasks-per-node=1",
                               .one_terminal = true};
