/* ompi.c -- Open MPI's mpirun, and other launchers that speak PMIx, such as prterun. Ranks come from the
 * environment, the card through PMIx (pmix.c).
 *
 * PMIx protects the card, token included, no better than mpirun's own connections are protected. Most
 * installations do not encrypt them.
 */
#include "place/place_int.h"

#include <stdio.h>
#include <string.h>

static void leave(co_place *p)
{
    pmix_close(p->channel);
    p->channel = NULL;
}

static co_err enter(co_place *p)
{
    pmix *x;

    if (p->channel)
        return CO_OK;
    if (pmix_open(&x)) {
        char why[200];
        snprintf(why, sizeof why, "%s", co_errmsg());
        return co_fail(
            CO_EINPUT,
            "%s: the processes cannot find each other through PMIx: %s. COHORT_TOKEN in the environment of "
            "all (mpirun -x COHORT_TOKEN; `cohort token` makes one) with --nnodes=N "
            "--rdzv-endpoint=HOST:29400, where HOST is the first host, works without it",
            p->name, why);
    }
    p->channel = x;
    return CO_OK;
}

/* Identifies hosts by name: Open MPI's server gives the number of a host only for processes on that host. */
static bool learn_hosts(co_place *p)
{
    int host[CO_MAX_HOSTS];

    if (p->seats > CO_MAX_HOSTS || !pmix_hosts(p->channel, host, p->seats))
        return false;
    layout_take(p, host);
    return true;
}

static co_err share(co_place *p, card *c, const co_patience *patience, void (*talk)(const char *))
{
    waiting w = waiting_begin(p, patience, talk);
    char text[CARD_TEXT] = "";

    CO_TRY(enter(p));
    if (p->seat == 0)
        CO_TRY(card_text(text, c));
    co_err err = pmix_pass(p->channel, text, &w);
    leave(p);
    if (!err && p->seat > 0)
        err = card_parse(c, text);
    explicit_bzero(text, sizeof text);
    return err ? co_fail_in(err, "%s", p->name) : CO_OK;
}

/* For prterun, which puts the number of processes into PMIx alone and not into the environment. */
static co_err ask_all(co_place *p)
{
    CO_TRY(enter(p));
    int size = pmix_size(p->channel);
    if (size < 1 || p->seat >= size)
        return co_fail(CO_EINPUT, "%s: PMIx does not say how many processes there are", p->name);
    p->seats = size;
    if (size <= CO_MAX_HOSTS && !learn_hosts(p))
        return co_fail(CO_EINPUT, "%s: PMIx does not say on which hosts the processes are", p->name);
    return CO_OK;
}

static co_err find(co_place *p, const co_place_ask *ask)
{
    bool ompi = env_text("OMPI_COMM_WORLD_RANK") && env_text("OMPI_COMM_WORLD_SIZE");
    const char *space = env_text("PMIX_NAMESPACE");

    if (!ompi && (!env_text("PMIX_RANK") || !space || strncmp(space, "slurm.", 6) == 0))
        return CO_OK;
    snprintf(p->name, sizeof p->name, ompi ? "mpirun (Open MPI)" : "PMIx");
    place_name_run(p, space);
    if (ompi) {
        CO_TRY(env_whole(&p->seats, "OMPI_COMM_WORLD_SIZE", 1, 1 << 20, 1));
        CO_TRY(env_whole(&p->seat, "OMPI_COMM_WORLD_RANK", 0, p->seats - 1, 0));
        CO_TRY(env_whole(&p->tasks, "OMPI_COMM_WORLD_LOCAL_SIZE", 1, p->seats, 1));
        CO_TRY(env_whole(&p->task, "OMPI_COMM_WORLD_LOCAL_RANK", 0, p->tasks - 1, 0));
        if (layout_alone(p) || p->seats > CO_MAX_HOSTS)
            return CO_OK;
        CO_TRY(enter(p));
        learn_hosts(p);
        return CO_OK;
    }
    CO_TRY(env_whole(&p->seat, "PMIX_RANK", 0, 1 << 20, 0));
    return ask_all(p);
}

const place_row place_ompi = {.find = find,
                              .share = share,
                              .close = leave,
                              .one_each = "mpirun -n %d --map-by ppr:1:node",
                              .one_terminal = true};
