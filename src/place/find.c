/* find.c -- the table of places, in the order in which they are tried, and the checks of the command line
 * against the place.
 *
 * The order matters: mpirun inside a Slurm job inherits SLURM_PROCID, and anything may run inside a pod.
 * The innermost scheduler comes first. Inside a worker of another launcher no place is tried, because the
 * worker has inherited all variables of the outer job.
 */
#include "place/place_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static const place_row *const rows[] = {&place_torchenv, &place_ompi, &place_pmi, &place_slurm, &place_kube};

const char *env_text(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

co_err env_whole(int *out, const char *name, int least, int most, int otherwise)
{
    const char *text = env_text(name);
    long long n = otherwise;

    if (text && (!co_str_to_i64(text, &n) || n < least || n > most))
        return co_fail(CO_EINPUT, "%s=%.40s in the environment: a whole number from %d to %d is needed", name,
                       text, least, most);
    *out = (int)n;
    return CO_OK;
}

co_err host_port(char *out, size_t size, const char *host, int port)
{
    co_endpoint at;

    if (strncmp(host, "tcp://", 6) == 0)
        host += 6;
    CO_TRY(co_endpoint_parse(&at, host));
    co_endpoint_text(out, size, at.host, at.port >= 0 ? at.port : port);
    return CO_OK;
}

void place_name_run(co_place *p, const char *text)
{
    if (!text || *p->run_id)
        return;
    snprintf(p->run_id, sizeof p->run_id, "mpi-%.100s", text);
    for (char *c = p->run_id; *c; c++)
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-", *c))
            *c = '-'; /* the run id becomes the name of a folder */
}

static void one_each(char *out, size_t size, const co_place *p, int hosts)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(out, size, p->row->one_each ? p->row->one_each : "", hosts);
#pragma GCC diagnostic pop
}

const char *hosts_key(const co_place_ask *ask)
{
    return ask->hosts_key ? ask->hosts_key : "--nnodes";
}

/* A training: tasks that are all on this machine are hosts of their own. On several machines, one process
 * on each of them starts its ranks, which share memory. */
static co_err fits_training(const co_place *p, const co_place_ask *ask, const char *wish, const char *start)
{
    if (p->tasks_most == 1)
        return CO_OK;
    if (p->nodes != 1 && p->tasks < p->seats)
        return co_fail(
            CO_EINPUT,
            "%s starts %d tasks on a host. A training has one process on each host, and that process starts "
            "its ranks: `%s cohort train --nproc-per-node=%d ...`",
            p->name, p->tasks_most, start, ask->nproc > 0 ? ask->nproc : p->tasks_most);
    if (ask->max_hosts && (p->seats < ask->min_hosts || p->seats > ask->max_hosts))
        return co_fail(
            CO_EINPUT,
            "%s has %d tasks on this machine, and each is a host of the training, but %s=%s: leave "
            "it out, or start %d",
            p->name, p->seats, hosts_key(ask), wish, ask->max_hosts);
    return CO_OK;
}

static co_err fits_launch(const co_place *p, const co_place_ask *ask, const char *wish, const char *start)
{
    if (p->tasks_most > 1 && ask->nproc > 1)
        return co_fail(
            CO_EINPUT,
            "%s starts %d tasks on a host, and each would start %d workers. One launcher on each host: `%s"
            " cohort launch --nproc-per-node=%d ...`; or one worker for each task: leave --nproc-per-node "
            "out",
            p->name, p->tasks_most, ask->nproc, start, ask->nproc);
    if (ask->min_hosts < ask->max_hosts && p->tasks_most > 1)
        return co_fail(CO_EINPUT,
                       "%s: --nnodes=%s needs one launcher on each host: `%s cohort launch --nnodes=%s ...`",
                       p->name, wish, start, wish);
    return CO_OK;
}

/* Checks the command line against what the place has. */
static co_err fits(const co_place *p, const co_place_ask *ask)
{
    char start[200], wish[40];
    const char *command = ask->training ? "train" : "launch";
    bool crowd = ask->training && p->tasks_most > 1; /* tasks are counted, not machines */

    one_each(start, sizeof start, p, p->nodes ? p->nodes : p->seats / p->tasks_most);
    snprintf(wish, sizeof wish, ask->min_hosts < ask->max_hosts ? "%d:%d" : "%d", ask->min_hosts,
             ask->max_hosts);
    if (p->seats > CO_MAX_HOSTS)
        return co_fail(CO_EINPUT,
                       "%s has %d tasks; at most %d launchers meet. One for each host will do: `%s ...`",
                       p->name, p->seats, CO_MAX_HOSTS, start);
    CO_TRY(ask->training ? fits_training(p, ask, wish, start) : fits_launch(p, ask, wish, start));
    if (!crowd && ask->max_hosts && p->nodes && (p->nodes < ask->min_hosts || p->nodes > ask->max_hosts)) {
        one_each(start, sizeof start, p, ask->max_hosts);
        return co_fail(CO_EINPUT, "%s has %d host%s, but %s=%s. Leave %s out, or: `%s cohort %s %s=%s ...`",
                       p->name, p->nodes, p->nodes == 1 ? "" : "s", hosts_key(ask), wish, hosts_key(ask),
                       start, command, hosts_key(ask), wish);
    }
    if (!crowd && ask->node_rank >= 0 && p->node >= 0 && ask->node_rank != p->node)
        return co_fail(CO_EINPUT, "%s: this is host %d, but --node-rank=%d: leave --node-rank out", p->name,
                       p->node, ask->node_rank);
    return CO_OK;
}

/* On one terminal the first launcher's message is enough, unless we had to query mpirun about the hosts
 * (p->channel). Then every task prints its own: mpirun ends all tasks as soon as one ends, so task 0 may not
 * get to print anything. And if mpirun did not answer, the refusal follows from this host's variables, and
 * task 0 on another host may have nothing to refuse. */
static co_err refuse(const co_place *p)
{
    if (p->quiet && !p->channel)
        return co_fail(CO_EINPUT, "launch: refused; task 0 says why");
    return co_fail_in(CO_EINPUT, "launch");
}

/* Keeps the message of `err`, which an error while closing would overwrite. */
static co_err close_failed(co_place *p, co_err err)
{
    char why[1024];

    snprintf(why, sizeof why, "%s", co_errmsg());
    co_place_close(p);
    return co_fail(err, "%s", why);
}

/* Variables that begin to say where to meet, and do not say it: better no job than several that never
 * meet. */
static co_err refuse_half(const co_place_ask *ask)
{
    const char *world = env_text("WORLD_SIZE");
    const char *which = env_text("RANK") || !ask->training ? "RANK" : "NODE_RANK", *rank = env_text(which);

    if (!rank || !world || strcmp(world, "1") == 0)
        return CO_OK;
    return co_fail(
        CO_EINPUT,
        "launch: %s=%.20s and WORLD_SIZE=%.20s are in the environment, but not MASTER_ADDR, where to meet; "
        "--standalone %s on this host alone",
        which, rank, world, ask->training ? "trains" : "starts workers");
}

co_err co_place_find(co_place *out, const co_place_ask *ask)
{
    static const co_place none = {.seats = 1, .node = -1, .tasks = 1, .tasks_most = 1};
    co_place p = none;
    const char *rank = env_text("RANK");

    *out = none;
    if (env_text("TORCHELASTIC_RUN_ID") && env_text("LOCAL_RANK") && !ask->training) {
        snprintf(out->reading, sizeof out->reading,
                 "inside worker %.20s of another launch: its variables are not taken for ours",
                 rank ? rank : "?");
        return CO_OK;
    }
    for (size_t i = 0; i < CO_COUNT(rows) && !*p.name; i++) {
        p = none;
        p.row = rows[i];
        co_err err = rows[i]->find(&p, ask);
        if (err)
            return close_failed(&p, co_fail_in(err, "launch"));
    }
    if (!*p.name)
        return refuse_half(ask);
    p.training = ask->training;
    p.quiet = p.row->one_terminal && p.seat > 0;
    if (!p.outside && fits(&p, ask))
        return close_failed(&p, refuse(&p));
    *out = p;
    return CO_OK;
}

void co_place_close(co_place *p)
{
    if (p->row && p->row->close)
        p->row->close(p);
}
