/* roster_etcd_lost.c -- the keeper was lost: what becomes of this host's part of the round, before the hosts meet again.
 *
 * As with any lost host: the round ends and a restart is used up; without one, or with too few hosts left, the job is over. Nothing
 * ends where nothing is missing: before the first round, or when this host and the keeper were both done. Nor does a host that is
 * done decide alone: a keeper that was only silent misses nothing of it and goes on, so how the job ends is heard from the others.
 */
#include "roster/etcd/etcd_int.h"

#include <stdio.h>

static void describe(net *r, co_failure *f, const char *why)
{
    const finder *find = r->finder;
    const char *host = find->now.host;

    *f = (co_failure){.host_rank = -1, .rank = -1, .local_rank = -1, .status = 1 << 8};
    f->when_ns =
        meet_clock(&r->where) - atomic_load(&r->client.offset_ns) - (int64_t)(r->client.silent_ms * 1e6);
    snprintf(f->host, sizeof f->host, "%s", host);
    if (*find->step_down) {
        snprintf(f->how, sizeof f->how, "no longer keeps the roster: %.200s", why);
        snprintf(f->advice, sizeof f->advice, "Is the network of host %.100s up? Can it reach etcd?", host);
        return;
    }
    snprintf(f->how, sizeof f->how, "was lost, and it kept the roster: %.200s", why);
    snprintf(f->advice, sizeof f->advice,
             "Is host %.60s (%.100s) up, its network too? Was cohort killed there?", host, find->now.endpoint);
}

/* The job cannot go on, as far as this host can know. What to say of it. */
static bool hopeless(const net *r, char *text, size_t size)
{
    const past *p = &r->client.past;

    *text = '\0';
    if (p->restarts > r->terms.max_restarts)
        return true;
    if (p->hosts - 1 >= r->terms.min_hosts)
        return false;
    snprintf(text, size, "%d hosts are left, at least %d are needed", p->hosts - 1, r->terms.min_hosts);
    return true;
}

/* For hosts that are done and would wait for this one. The agent ends its workers meanwhile. */
static void leave_word(const net *r, int status, const char *text)
{
    co_patience soon = co_patience_s(ETCD_FAREWELL_MS / 1000.0);
    char none[CO_HOST_NAME + 100];

    snprintf(none, sizeof none, "no restart was left when host %s, which kept the roster, was lost",
             r->finder->now.host);
    etcd_despair(r->finder->etcd, &r->finder->now, status, *text ? text : none, &soon);
}

void finder_lost(void *roster, const char *why)
{
    net *r = roster;
    past *p = &r->client.past;
    co_roster_event ev = {.kind = CO_ROSTER_STOP};
    co_failure f;

    pthread_mutex_lock(&r->lock);
    atomic_store(&r->seated, false);
    pthread_mutex_unlock(&r->lock);
    if (r->leave) {
        carrier_leave_alone(r);
        return;
    }
    describe(r, &f, why);
    if (!p->has_cause || f.when_ns < p->cause.when_ns)
        p->cause = f;
    p->has_cause = true;
    bool missing = p->number && !p->counted && !(p->done && p->keeper_done);
    p->restarts += p->number && !p->counted;
    p->counted = p->number > 0;
    if (missing && !p->done && hopeless(r, ev.text, sizeof ev.text)) {
        ev.kind = CO_ROSTER_OVER;
        ev.status = co_failure_status(&p->cause);
        r->client.over = true;
    } else if (missing && p->done) {
        snprintf(ev.text, sizeof ev.text, "this host was done; the hosts meet again through etcd");
        r->client.agent = CLIENT_STOPS;
    } else if (missing && r->client.agent == CLIENT_RUNS) {
        snprintf(ev.text, sizeof ev.text,
                 "the hosts meet again through etcd; all workers start again (restart %d of %d)", p->restarts,
                 r->terms.max_restarts);
        r->client.agent = CLIENT_STOPS;
    } else {
        ev.kind = CO_ROSTER_TALK;
        snprintf(ev.text, sizeof ev.text, "host %.200s %.250s; the hosts meet again through etcd", f.host,
                 f.how);
    }
    ev.has_cause = ev.kind != CO_ROSTER_TALK;
    ev.cause = p->cause;
    queue_event(r, &ev);
    if (ev.kind == CO_ROSTER_OVER)
        leave_word(r, ev.status, ev.text);
}
