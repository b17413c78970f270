/* keep.c -- the host that keeps the roster: how long it may go on.
 *
 * Invariant: two hosts never both begin a round or a view of one job.
 *   - A keeper begins its first round only after etcd has confirmed that the place is its own and noted
 *     that its job runs.
 *   - After it lost a host, it begins the next round only after etcd has confirmed this again. If its lease
 *     has run out by then, or another host has the place, it steps down.
 *   - A keeper that has all its hosts goes on without etcd. Its place becomes free when its lease ends, but
 *     for ETCD_RUNS_LEASES lease periods only hosts of its own job may take it. If the keeper is cut off for
 *     longer, somebody may start the job again, and both run.
 *   - In a job of views, a keeper that has ever lost a host does not go on without etcd: the lost hosts may
 *     be alive, hold a state, and take its place. It steps down a little before its lease ends, so that its
 *     own host is frozen when another keeper's first view begins.
 */
#include "roster/etcd/etcd_int.h"

#include <stdio.h>

#include "base/clock.h"

void keep_let_go(network *net)
{
    server_close(net->server);
    net->server = NULL;
    atomic_store(&net->keeps, false);
    lease_end(net->finder->lease);
    net->finder->lease = NULL;
}

static void step_down(network *net, const char *why)
{
    snprintf(net->finder->step_down, sizeof net->finder->step_down, "%s", why);
    keep_let_go(net);
    client_cut_off(&net->client, why);
}

/* This keeper waits for the hosts of a lost round. One that could not go on has noted the end in etcd and
 * will not come. */
static void check_for_end(network *net)
{
    bool waits = net->client.past.counted; /* until a round begins */
    keeping now;

    lease_watch(net->finder->lease, waits);
    if (waits && lease_over(net->finder->lease, &now))
        server_end(net->server, &now.end);
}

/* Has etcd confirm that the place is still ours and, once a round is to begin, note that the job runs. */
static void ask_etcd(network *net, int losses)
{
    finder *find = net->finder;

    find->losses = losses;
    find->may_begin = find->may_begin || server_wants_clearance(net->server);
    if (find->may_begin)
        lease_run(find->lease);
    find->doubt_ns = co_now_ns();
    lease_hurry(find->lease);
}

/* Whether another host may keep the roster by now, as far as this one knows. `sure`: when etcd last confirmed
 * that it does not. */
static bool may_be_replaced(const network *net, uint64_t sure, int losses)
{
    const finder *find = net->finder;
    uint64_t now = co_now_ns(), lease_ns = (uint64_t)find->ttl_s * 1000000000;

    if (net->terms.views && losses > 0 && now > sure + lease_ns / 5 * 4)
        return true;
    return sure <= find->doubt_ns && now > sure + lease_ns &&
           now > find->doubt_ns + ETCD_ANSWER_MS * 1000000ull; /* etcd had time to answer */
}

void keep_turn(network *net)
{
    finder *find = net->finder;
    uint64_t sure = lease_sure_ns(find->lease);
    int losses = server_losses(net->server);
    char why[300];

    if (losses != find->losses || (server_wants_clearance(net->server) && !find->may_begin))
        ask_etcd(net, losses);
    check_for_end(net);
    if (find->may_begin && sure > find->doubt_ns)
        server_clear(net->server, losses);
    if (server_over(net->server)) {
        lease_finish(find->lease, server_ending(net->server));
        return;
    }
    if (lease_lost(find->lease)) {
        step_down(net, "etcd says that another host keeps it");
    } else if (may_be_replaced(net, sure, losses)) {
        snprintf(why, sizeof why, "it has %snot reached etcd for %.0f s: the others may go on without it",
                 losses ? "lost a host and " : "", (double)(co_now_ns() - sure) / 1e9);
        step_down(net, why);
    }
}

void keep_end(network *net)
{
    lease_finish(net->finder->lease, server_ending(net->server));
    lease_end(net->finder->lease);
    net->finder->lease = NULL;
}
