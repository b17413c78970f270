/* keeper.c -- calls to the server from the carrier and from etcd/: how it ends, where logs go, whether a
 * round or view may begin. */
#include "roster/net/seat_int.h"

#include <string.h>

void server_end(server *srv, const co_leave *how)
{
    stage_end(srv, how);
}

void server_logs_to(server *srv, void (*log)(void *ctx, const char *lines, size_t n), void *ctx)
{
    srv->log = log;
    srv->log_ctx = ctx;
}

void server_resume(server *srv, const past *before)
{
    srv->handover.past = *before;
    srv->handover.least_restarts =
        before->restarts < srv->terms.max_restarts ? before->restarts : srv->terms.max_restarts;
    memcpy(srv->views.born, before->born, sizeof srv->views.born);
    srv->job.has_cause = before->has_cause;
    srv->job.cause = before->cause;
}

int server_losses(const server *srv)
{
    return srv->handover.losses;
}

bool server_wants_clearance(const server *srv)
{
    return srv->handover.wants_clearance;
}

void server_clear(server *srv, int losses)
{
    srv->handover.cleared = losses;
}

bool server_over(const server *srv)
{
    return srv->job.stage == OVER;
}

const co_leave *server_ending(const server *srv)
{
    return &srv->job.ending;
}

bool server_idle(const server *srv)
{
    if (srv->job.stage != OVER)
        return false;
    for (int i = 0; i < srv->seats.n; i++) /* other hosts close their connection once they have heard OVER */
        if (!srv->seats.at[i]->local && seat_stays(srv->seats.at[i]))
            return false;
    return true;
}
