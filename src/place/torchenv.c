/* torchenv.c -- RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in the environment of each launcher, as some
 * platforms and many scripts set them. NODE_RANK may replace RANK, and a tcp:// URL may replace the address.
 *
 * WORLD_SIZE has two meanings: processes (PyTorch) and hosts (Lightning, and scripts that start one launcher
 * for each RANK). All hosts must read it in the same way without asking each other. We read it as the number
 * of hosts, unless it equals --nnodes times --nproc-per-node. A line on the terminal says which.
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

static co_err read_world(co_place *p, const co_place_ask *ask, int world)
{
    bool several = ask->nproc > 1 && !env_text("NODE_RANK");

    if (ask->max_hosts && world != ask->max_hosts) {
        if (world != ask->max_hosts * ask->nproc)
            return co_fail(
                CO_EINPUT,
                "WORLD_SIZE=%d in the environment is neither --nnodes=%d nor that times --nproc-per-node=%d:"
                " leave one of them out (env -u WORLD_SIZE)",
                world, ask->max_hosts, ask->nproc);
        p->seats = ask->max_hosts;
        snprintf(p->reading, sizeof p->reading, "WORLD_SIZE=%d was taken as workers: %d hosts x %d", world,
                 ask->max_hosts, ask->nproc);
        return CO_OK;
    }
    p->seats = world;
    snprintf(p->reading, sizeof p->reading, "WORLD_SIZE=%d was taken as hosts%s", world,
             several && !ask->max_hosts && world % ask->nproc == 0 ? "; if it counts workers, give --nnodes"
                                                                   : "");
    return CO_OK;
}

static co_err find(co_place *p, const co_place_ask *ask)
{
    const char *addr = master(), *which = env_text("NODE_RANK") ? "NODE_RANK" : "RANK";
    int world, port;

    if (!addr || !env_text("WORLD_SIZE") || !env_text(which))
        return CO_OK;
    CO_TRY(env_whole(&world, "WORLD_SIZE", 1, 1 << 20, 1));
    CO_TRY(env_whole(&port, "MASTER_PORT", 1, 65535, MASTER_PORT));
    CO_TRY(read_world(p, ask, world));
    if (ask->node_rank >= 0) { /* Kubeflow sets both */
        p->seat = ask->node_rank;
        which = "--node-rank";
    } else {
        CO_TRY(env_whole(&p->seat, which, 0, 1 << 20, 0));
    }
    if (p->seat >= p->seats)
        return co_fail(CO_EINPUT, "%s=%d, but there are %d hosts. %s", which, p->seat, p->seats, p->reading);
    if (env_text("LOCAL_RANK") && env_text("LOCAL_WORLD_SIZE")) {
        CO_TRY(env_whole(&p->tasks, "LOCAL_WORLD_SIZE", 1, CO_MAX_HOSTS, 1));
        CO_TRY(env_whole(&p->task, "LOCAL_RANK", 0, p->tasks - 1, 0));
        p->tasks_most = p->tasks;
    }
    if (p->tasks == 1) {
        p->nodes = p->seats;
        p->node = p->seat;
    }
    co_err err = host_port(p->endpoint, sizeof p->endpoint, addr, port);
    if (err)
        return co_fail_in(err, "MASTER_ADDR in the environment");
    snprintf(p->name, sizeof p->name, "%s and WORLD_SIZE of the environment", which);
    return CO_OK;
}

const place_row place_torchenv = {.find = find, .one_each = "(WORLD_SIZE=%d)"};
