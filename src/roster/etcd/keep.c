/* roster_etcd_keep.c -- a host that keeps the roster: how long it may.
 *
 * Invariants: two hosts never keep the roster of one run with both believing that they may begin a round. A keeper begins none before
 * etcd has said that the place is its own and noted that its job runs; after a loss, not before it has said so again. When its
 * lease has run out by then, or another has the place, it steps down. A keeper that has all its hosts needs no etcd and goes on
 * without: its place is free after its lease, but only to hosts of its job until etcd has not heard of it for ETCD_RUNS_LEASES
 * times as long. Cut off for longer, it may go on beside a job that was begun anew.
 */
#include "roster/etcd/etcd_int.h"

#include <stdio.h>

#include "base/clock.h"

void finder_let_go(net *r)
{
    server_close(r->server);
    r->server = NULL;
    atomic_store(&r->keeps, false);
    lease_end(r->finder->lease);
    r->finder->lease = NULL;
}

static void step_down(net *r, const char *why)
{
    snprintf(r->finder->step_down, sizeof r->finder->step_down, "%s", why);
    finder_let_go(r);
    client_cut_off(&r->client, why);
}

/* This keeper waits for the hosts of a lost one's round: one that could not go on has left word in etcd, and will not come. */
static void heed_the_end(net *r)
{
    bool waits = r->client.past.counted; /* until a round begins */
    keeping now;

    lease_watch(r->finder->lease, waits);
    if (waits && lease_over(r->finder->lease, &now))
        server_end(r->server, now.status, now.text);
}

/* Whether the place is still ours and, once a round is to begin, to note that the job runs. */
static void ask_etcd(net *r, int losses)
{
    finder *f = r->finder;

    f->losses = losses;
    f->asked = f->asked || server_asks(r->server);
    if (f->asked)
        lease_run(f->lease);
    f->doubt_ns = co_now_ns();
    lease_hurry(f->lease);
}

void finder_turn(net *r)
{
    finder *f = r->finder;
    uint64_t now = co_now_ns(), sure = lease_sure_ns(f->lease);
    int losses = server_losses(r->server);
    char why[300];

    if (losses != f->losses || (server_asks(r->server) && !f->asked))
        ask_etcd(r, losses);
    heed_the_end(r);
    if (f->asked && sure > f->doubt_ns)
        server_clear(r->server, losses);
    if (server_over(r->server)) {
        lease_finish(f->lease, server_status(r->server, why, sizeof why), why);
        return;
    }
    if (lease_lost(f->lease)) {
        step_down(r, "another host keeps it, as etcd has it");
    } else if (sure <= f->doubt_ns && now > sure + (uint64_t)f->ttl_s * 1000000000 &&
               now > f->doubt_ns + ETCD_ANSWER_MS * 1000000ull) { /* it was asked once more */
        snprintf(why, sizeof why, "it has %snot reached etcd for %.0f s: the others may go on without it",
                 losses ? "lost a host and " : "", (double)(now - sure) / 1e9);
        step_down(r, why);
    }
}

void finder_end(net *r)
{
    char text[512];
    int status = server_status(r->server, text, sizeof text);

    lease_finish(r->finder->lease, status, text);
    lease_end(r->finder->lease);
    r->finder->lease = NULL;
}
