/* lost.c -- the keeper was lost: decides what happens to this host's part of the job before the hosts meet
 * again.
 *
 * In a job of views this host freezes: it goes on only in a view of the next keeper, so two halves of a run
 * never both go on. Its position and its place are as good there as they were here.
 *
 * In a job of rounds, as with any lost host, the round ends and a restart is used up; if none is left, or too
 * few hosts are, the job is over. Nothing ends if no work is missing: before the first round, or when this
 * host and the keeper were both done. A host that is done does not decide alone: a keeper that was only
 * silent needs nothing more from it and goes on, so this host waits to hear from the others how the job ends.
 */
#include "roster/etcd/etcd_int.h"

#include <stdio.h>

static void describe(const network *net, co_failure *loss, const char *why)
{
    const keeper *was = &net->finder->now;

    *loss = (co_failure){.host_rank = -1, .rank = -1, .local_rank = -1, .status = 1 << 8};
    loss->when_ns = host_clock_ns(&net->where) - atomic_load(&net->client.offset_ns) -
                    (int64_t)(net->client.silent_ms * 1e6);
    snprintf(loss->host, sizeof loss->host, "%s", was->host);
    if (*net->finder->step_down) {
        snprintf(loss->how, sizeof loss->how, "no longer keeps the roster: %.200s", why);
        snprintf(loss->advice, sizeof loss->advice, "Is the network of host %.100s up? Can it reach etcd?",
                 was->host);
        return;
    }
    snprintf(loss->how, sizeof loss->how, "was lost, and it kept the roster: %.200s", why);
    snprintf(loss->advice, sizeof loss->advice,
             "Is host %.60s (%.100s) up, its network too? Was cohort killed there?", was->host, was->endpoint);
}

/* Whether the job cannot go on, as far as this host knows; `text` says why. */
static bool hopeless(const network *net, char *text, size_t size)
{
    const past *mine = &net->client.past;

    *text = '\0';
    if (mine->restarts > net->terms.max_restarts)
        return true;
    if (mine->hosts - 1 >= net->terms.min_hosts)
        return false;
    snprintf(text, size, "%d hosts are left, at least %d are needed", mine->hosts - 1, net->terms.min_hosts);
    return true;
}

/* Notes the end in etcd, because hosts that are done would wait for this one. The agent ends its workers in
 * the meantime. */
static void note_end(const network *net, int status, const char *text)
{
    co_patience soon = co_patience_s(ETCD_FAREWELL_MS / 1000.0);
    co_leave how = {.status = status};

    snprintf(how.text, sizeof how.text, "%s", text);
    if (!*text)
        snprintf(how.text, sizeof how.text,
                 "no restart was left when host %s, which kept the roster, was lost", net->finder->now.host);
    etcd_give_up(net->finder->etcd, &net->finder->now, &how, &soon);
}

/* What the loss means for this host's part of the round: it stops, the job ends, or nothing was missing and
 * this host waits. */
static co_roster_event lose_round(network *net, const co_failure *loss)
{
    past *mine = &net->client.past;
    co_roster_event ev = {.kind = CO_ROSTER_STOP};

    if (!mine->has_cause || loss->when_ns < mine->cause.when_ns)
        mine->cause = *loss;
    mine->has_cause = true;
    bool missing = mine->number && !mine->counted && !(mine->done && mine->keeper_done);
    mine->restarts += mine->number && !mine->counted;
    mine->counted = mine->number > 0;
    if (missing && !mine->done && hopeless(net, ev.text, sizeof ev.text)) {
        ev.kind = CO_ROSTER_OVER;
        ev.status = co_failure_status(&mine->cause);
        net->client.over = true;
    } else if (missing && mine->done) {
        snprintf(ev.text, sizeof ev.text, "this host was done; the hosts meet again through etcd");
        net->client.agent = CLIENT_STOPS;
    } else if (missing && net->client.agent == CLIENT_RUNS) {
        snprintf(ev.text, sizeof ev.text,
                 "the hosts meet again through etcd; all workers start again (restart %d of %d)",
                 mine->restarts, net->terms.max_restarts);
        net->client.agent = CLIENT_STOPS;
    } else {
        ev.kind = CO_ROSTER_TALK;
        snprintf(ev.text, sizeof ev.text, "host %.200s %.250s; the hosts meet again through etcd", loss->host,
                 loss->how);
    }
    ev.has_cause = ev.kind != CO_ROSTER_TALK;
    ev.cause = mine->cause;
    return ev;
}

/* The number of this change is this host's own. The next keeper's numbers are higher than any that a host
 * brings. */
static co_roster_event lose_view(network *net, const co_failure *loss)
{
    past *mine = &net->client.past;
    co_roster_event ev = {.kind = mine->number ? CO_ROSTER_FREEZE : CO_ROSTER_TALK, .id = net->client.place};

    mine->counted = mine->number > 0;
    mine->number += mine->number > 0;
    net->client.view = mine->number;
    ev.number = (uint32_t)mine->number;
    snprintf(ev.text, sizeof ev.text, "host %.200s %.250s; the hosts meet again through etcd", loss->host,
             loss->how);
    return ev;
}

void keep_lost(void *ctx, const char *why)
{
    network *net = ctx;
    co_failure loss;

    join_seated(net, false);
    if (net->leave) {
        join_leave_alone(net);
        return;
    }
    describe(net, &loss, why);
    co_roster_event ev = net->terms.views ? lose_view(net, &loss) : lose_round(net, &loss);
    queue_event(&net->queue, &ev);
    if (ev.kind == CO_ROSTER_OVER)
        note_end(net, ev.status, ev.text);
}
