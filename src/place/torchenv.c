/* torchenv.c -- RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in the environment of each launcher, as some
 * platforms and many scripts set them. NODE_RANK may replace RANK, and a tcp:// URL may replace the address.
 *
 * WORLD_SIZE has two meanings: processes (PyTorch) and hosts (Lightning, and scripts that start one launcher
 * for each RANK). All hosts must read it in the same way without asking each other. We read it as the number
 * of hosts, unless it equals --nnodes times --nproc-per-node. A line on the terminal says which.
 *
 * A training starts its own ranks. WORLD_SIZE beside NODE_RANK counts its hosts. Beside RANK, LOCAL_RANK and
 * LOCAL_WORLD_SIZE it counts processes that torchrun or `cohort launch` has started.
 */
#include "place/place_int.h"

#include <stdio.h>
#include <string.h>

static const char *master(void)
{
    static const char *const urls[] = {"MASTER_ADDR", "DIST_URL", "INIT_METHOD"};

    for (size_t i = 0; i < CO_COUNT(urls); i++) {
        const char *text = env_text(urls[i]);
        if (text && (i == 0 || strncmp(text, "tcp://", 6) == 0))
            return text;
    }
    return NULL;
}

/* WORLD_SIZE beside a rank that is known to be a host's, or beside one that may be either. */
static co_err read_world(co_place *p, const co_place_ask *ask, int world)
{
    bool several = ask->nproc > 1 && !env_text("NODE_RANK");

    if (ask->max_hosts && world != ask->max_hosts) {
        if (ask->training && (world < ask->min_hosts || world > ask->max_hosts))
            return co_fail(
                CO_EINPUT,
                "WORLD_SIZE=%d in the environment counts hosts here, but %s=%d: leave one of them out "
                "(env -u WORLD_SIZE)",
                world, hosts_key(ask), ask->max_hosts);
        if (!ask->training && world != ask->max_hosts * ask->nproc)
            return co_fail(
                CO_EINPUT,
                "WORLD_SIZE=%d in the environment is neither --nnodes=%d nor that times --nproc-per-node=%d:"
                " leave one of them out (env -u WORLD_SIZE)",
                world, ask->max_hosts, ask->nproc);
        p->seats = ask->max_hosts;
        if (!ask->training)
            snprintf(p->reading, sizeof p->reading, "WORLD_SIZE=%d was taken as workers: %d hosts x %d",
                     world, ask->max_hosts, ask->nproc);
        return CO_OK;
    }
    p->seats = world;
    snprintf(p->reading, sizeof p->reading, "WORLD_SIZE=%d was taken as hosts%s", world,
             several && !ask->max_hosts && world % ask->nproc == 0 ? "; if it counts workers, give --nnodes"
                                                                   : "");
    return CO_OK;
}

/* Started by torchrun or the like, once for each RANK: WORLD_SIZE counts processes, LOCAL_WORLD_SIZE those
 * of this host. */
static bool is_worker(void)
{
    return env_text("RANK") && env_text("LOCAL_RANK") && env_text("LOCAL_WORLD_SIZE");
}

static co_err read_worker(co_place *p, int world)
{
    CO_TRY(env_whole(&p->tasks, "LOCAL_WORLD_SIZE", 1, CO_MAX_HOSTS, 1));
    CO_TRY(env_whole(&p->task, "LOCAL_RANK", 0, p->tasks - 1, 0));
    p->seats = world;
    p->tasks_most = p->tasks;
    if (p->tasks > 1 && world % p->tasks == 0)
        CO_TRY(env_whole(&p->nodes, "GROUP_WORLD_SIZE", 1, CO_MAX_HOSTS, world / p->tasks));
    if (p->nodes)
        CO_TRY(env_whole(&p->node, "GROUP_RANK", 0, p->nodes - 1, -1));
    return CO_OK;
}

/* The endpoint. torchrun keeps its own store at MASTER_PORT; the next port is free for us. The first of
 * Lightning's hosts needs no MASTER_ADDR: it is there itself. */
static co_err read_master(co_place *p, const char *addr)
{
    const char *store = env_text("TORCHELASTIC_USE_AGENT_STORE");
    int port;

    CO_TRY(env_whole(&port, "MASTER_PORT", 1, 65535, MASTER_PORT));
    if (store && strcmp(store, "True") == 0)
        port = port < 65535 ? port + 1 : port - 1;
    if (!addr) {
        snprintf(p->endpoint, sizeof p->endpoint, ":%d", port);
        return CO_OK;
    }
    co_err err = host_port(p->endpoint, sizeof p->endpoint, addr, port);
    return err ? co_fail_in(err, "MASTER_ADDR in the environment") : CO_OK;
}

static co_err find(co_place *p, const co_place_ask *ask)
{
    bool worker = ask->training && is_worker();
    const char *addr = master(), *which = env_text("NODE_RANK") && !worker ? "NODE_RANK" : "RANK";
    bool first = ask->training && strcmp(which, "NODE_RANK") == 0 && strcmp(env_text(which), "0") == 0;
    int world;

    if ((!addr && !(first && env_text("MASTER_PORT"))) || !env_text(which))
        return CO_OK;
    if (!env_text("WORLD_SIZE") && !(ask->training && ask->max_hosts))
        return CO_OK;
    CO_TRY(env_whole(&world, "WORLD_SIZE", 1, 1 << 20, ask->max_hosts));
    CO_TRY(worker ? read_worker(p, world) : read_world(p, ask, world));
    if (ask->node_rank >= 0 && !worker) { /* Kubeflow sets both */
        p->seat = ask->node_rank;
        which = "--node-rank";
    } else {
        CO_TRY(env_whole(&p->seat, which, 0, 1 << 20, 0));
    }
    if (p->seat >= p->seats)
        return co_fail(CO_EINPUT, "%s=%d, but there are %d hosts. %s", which, p->seat, p->seats, p->reading);
    if (!ask->training && env_text("LOCAL_RANK") && env_text("LOCAL_WORLD_SIZE")) {
        CO_TRY(env_whole(&p->tasks, "LOCAL_WORLD_SIZE", 1, CO_MAX_HOSTS, 1));
        CO_TRY(env_whole(&p->task, "LOCAL_RANK", 0, p->tasks - 1, 0));
        p->tasks_most = p->tasks;
    }
    if (p->tasks == 1) {
        p->nodes = p->seats;
        p->node = p->seat;
    }
    CO_TRY(read_master(p, addr));
    snprintf(p->name, sizeof p->name, "%s and WORLD_SIZE of the environment", which);
    return CO_OK;
}

const place_row place_torchenv = {.find = find, .one_each = "(WORLD_SIZE=%d)"};
