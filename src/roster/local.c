/* local.c -- the roster of a job with one host. There is no other host, so every event follows from the
 * agent's last call.
 *
 *     BEGIN --done--> OVER 0
 *       |---failed--> STOP --stopped--> BEGIN (restarts left) | OVER (status of the first failure)
 *       +---leave---> OVER (status of the leaving)
 *
 * Each call prepares one event, and the next turn returns it. Turns never wait: nothing could come from
 * elsewhere.
 */
#include "roster/roster_int.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "net/net.h"

typedef struct local {
    co_roster base;
    co_terms terms;
    co_round round;
    co_roster_event next; /* NOTHING: none */
    co_failure first;     /* the earliest failure of this round */
    bool failed;
} local;

static co_err begin(local *l)
{
    l->round.number++;
    co_err err = co_net_free_port(&l->round.master_port);
    if (err)
        return co_fail_in(err, "a free TCP port for MASTER_PORT");
    l->failed = false;
    l->next = (co_roster_event){.kind = CO_ROSTER_BEGIN, .round = l->round};
    return CO_OK;
}

static co_err local_turn(co_roster *r, int timeout_ms, co_roster_event *ev)
{
    local *l = (local *)r;

    (void)timeout_ms;
    *ev = l->next;
    l->next = (co_roster_event){.kind = CO_ROSTER_NOTHING};
    return CO_OK;
}

static void local_done(co_roster *r)
{
    local *l = (local *)r;

    l->next = (co_roster_event){.kind = CO_ROSTER_OVER, .round = l->round};
}

static void local_failed(co_roster *r, const co_failure *f)
{
    local *l = (local *)r;

    if (l->failed && l->first.when_ns <= f->when_ns)
        return;
    l->first = *f;
    l->failed = true;
    l->next =
        (co_roster_event){.kind = CO_ROSTER_STOP, .round = l->round, .has_cause = true, .cause = l->first};
    if (l->round.restarts < l->terms.max_restarts)
        snprintf(l->next.text, sizeof l->next.text, "all workers start again (restart %d of %d)",
                 l->round.restarts + 1, l->terms.max_restarts);
}

static void local_stopped(co_roster *r)
{
    local *l = (local *)r;

    if (l->failed && l->round.restarts < l->terms.max_restarts) {
        l->round.restarts++;
        if (begin(l) == CO_OK)
            return;
    }
    l->next = (co_roster_event){.kind = CO_ROSTER_OVER,
                                .round = l->round,
                                .has_cause = l->failed,
                                .cause = l->first,
                                .status = co_failure_status(&l->first)};
}

static void local_leave(co_roster *r, const co_leave *how)
{
    local *l = (local *)r;

    l->next = leave_event(how);
    l->next.round = l->round;
    if (l->failed && l->round.restarts >= l->terms.max_restarts) /* the failure has already ended the job */
        l->next.status = co_failure_status(&l->first);
}

static void local_close(co_roster *r)
{
    co_free(r);
}

co_err co_roster_local(co_roster **out, const co_terms *terms)
{
    static const struct roster_ops ops = {.turn = local_turn,
                                          .done = local_done,
                                          .failed = local_failed,
                                          .stopped = local_stopped,
                                          .leave = local_leave,
                                          .close = local_close};
    if (terms->views)
        return co_fail(CO_EINPUT, "a job of views needs a roster over the network, also for one host");
    local *l = co_zalloc(sizeof *l);

    if (!l)
        return CO_ENOMEM;
    l->base.ops = &ops;
    l->terms = *terms;
    l->round = (co_round){.hosts = 1, .world = terms->nproc, .master_addr = "localhost"};
    co_err err = begin(l);
    if (err) {
        co_free(l);
        return err;
    }
    *out = &l->base;
    return CO_OK;
}
