/* network.c -- the roster over the network, as its agent sees it: orders go in, events come out.
 *
 * One thread, the carrier (carrier.c), owns every socket. The agent and the carrier share the queue alone.
 */
#include "roster/net/network_int.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

const finder_ops *const finders[2] = {&finder_etcd, &finder_given};

const finder_ops *finder_for(const co_meet *where)
{
    size_t i = 0;

    while (!finders[i]->wanted(where))
        i++;
    return finders[i];
}

bool co_meet_needs_token(const co_terms *terms, const co_meet *where)
{
    return finder_for(where)->needs_token(terms, where);
}

/* --- the agent's calls ---------------------------------------------------------------------------------- */
static co_err network_turn(co_roster *base, int timeout_ms, co_roster_event *ev)
{
    network *net = (network *)base;

    if (net->broken)
        return co_fail(net->broken, "%s", net->why);
    co_err err = queue_next(&net->queue, timeout_ms, ev);
    if (err && err != CO_ENOMEM) {
        net->broken = err;
        snprintf(net->why, sizeof net->why, "%s", co_errmsg());
    }
    return err;
}

static int network_fd(const co_roster *base)
{
    return ((const network *)base)->queue.event_fd;
}

static int64_t network_clock_offset(const co_roster *base)
{
    const network *net = (const network *)base;

    return atomic_load(&net->client.offset_ns) -
           net->where.skew_ns; /* a test's clock is wrong for the roster only */
}

static void network_done(co_roster *base)
{
    queue_order(&((network *)base)->queue, FRAME_DONE, NULL);
}

static void network_failed(co_roster *base, const co_failure *failure)
{
    queue_order(&((network *)base)->queue, FRAME_FAILED, failure_pack(failure));
}

static void network_stopped(co_roster *base)
{
    queue_order(&((network *)base)->queue, FRAME_STOPPED, NULL);
}

static void network_position(co_roster *base, uint32_t view, const co_position *at, int weight)
{
    int w = weight < 0 ? 0 : weight > WEIGHT_MOST ? WEIGHT_MOST : weight;

    queue_order(&((network *)base)->queue, FRAME_POSITION, position_pack(view, at, w));
}

static void network_whole(co_roster *base, uint32_t view)
{
    queue_order(&((network *)base)->queue, FRAME_WHOLE, json_pack("{sI}", "number", (json_int_t)view));
}

static void network_cut(co_roster *base, uint32_t view, int id, const char *why)
{
    queue_order(&((network *)base)->queue, FRAME_CUT,
                json_pack("{sI si so}", "number", (json_int_t)view, "place", id, "text", co_json_string(why)));
}

static void network_ended(co_roster *base, uint32_t view)
{
    queue_order(&((network *)base)->queue, FRAME_ENDED, json_pack("{sI}", "number", (json_int_t)view));
}

static void network_unreadable(co_roster *base, uint32_t view, uint32_t unit)
{
    queue_order(&((network *)base)->queue, FRAME_UNREADABLE,
                json_pack("{sI sI}", "number", (json_int_t)view, "unit", (json_int_t)unit));
}

static void network_weigh(co_roster *base, uint32_t view, const co_host_speed *speed)
{
    queue_order(&((network *)base)->queue, FRAME_WEIGH, speed_pack(view, speed));
}

static void network_leave(co_roster *base, const co_leave *how)
{
    network *net = (network *)base;
    co_leave mine = *how;

    if (!*mine.host)
        host_own_name(mine.host, sizeof mine.host, &net->where);

    pthread_mutex_lock(&net->queue.lock);
    bool seated = atomic_load(&net->seated);
    if (!seated)
        atomic_store(&net->closing, true); /* the carrier will not sit down any more */
    pthread_mutex_unlock(&net->queue.lock);
    if (!seated) {
        co_roster_event ev = leave_event(&mine);
        queue_event(&net->queue, &ev);
        return;
    }
    queue_order(&net->queue, FRAME_LEAVE, leave_pack(&mine));
}

static co_tls *network_tls(const co_roster *base)
{
    return ((const network *)base)->tls;
}

static bool network_keeps(const co_roster *base)
{
    return atomic_load(&((const network *)base)->keeps);
}

static bool network_log(co_roster *base, const char *lines, size_t n)
{
    network *net = (network *)base;

    return !atomic_load(&net->log_wanted) || n == 0 || queue_log_out(&net->queue, lines, n);
}

static long long network_logged(co_roster *base, co_str *out)
{
    return queue_logged(&((network *)base)->queue, out);
}

static bool network_settled(co_roster *base)
{
    network *net = (network *)base;

    return !queue_has_log(&net->queue) && atomic_load(&net->settled);
}

/* --- opening and closing -------------------------------------------------------------------------------- */
static void network_finish(co_roster *base)
{
    network *net = (network *)base;

    atomic_store(&net->closing, true);
    queue_wake_carrier(&net->queue);
    if (net->started)
        pthread_join(net->thread, NULL);
    net->started = false;
}

static void network_close(co_roster *base)
{
    network *net = (network *)base;

    network_finish(base);
    json_decref(net->leave);
    co_conn_free(net->client.conn);
    server_close(net->server);
    if (net->find->close)
        net->find->close(net);
    co_tls_free(net->tls);
    queue_fini(&net->queue);
    explicit_bzero(net, sizeof *net); /* the token is in it */
    co_free(net);
}

static const struct roster_ops ops = {.turn = network_turn,
                                      .fd = network_fd,
                                      .done = network_done,
                                      .failed = network_failed,
                                      .stopped = network_stopped,
                                      .position = network_position,
                                      .whole = network_whole,
                                      .cut = network_cut,
                                      .ended = network_ended,
                                      .unreadable = network_unreadable,
                                      .weigh = network_weigh,
                                      .leave = network_leave,
                                      .close = network_close,
                                      .clock_offset = network_clock_offset,
                                      .log = network_log,
                                      .keeps = network_keeps,
                                      .logged = network_logged,
                                      .settled = network_settled,

                                      .tls = network_tls,
                                      .finish = network_finish};

static void pass_event(void *net, const co_roster_event *ev)
{
    queue_event(&((network *)net)->queue, ev);
}

/* What a job of views needs besides. */
static co_err check_views(const co_terms *terms)
{
    json_t *facts;

    if (!terms->views)
        return CO_OK;
    if (terms->max_hosts > CO_MAX_MEMBERS)
        return co_fail(CO_EINPUT, "--nnodes=%d: a training runs on %d hosts at most", terms->max_hosts,
                       CO_MAX_MEMBERS);
    CO_TRY(facts_parse(&facts, terms->facts));
    json_decref(facts);
    return CO_OK;
}

co_err co_roster_open(co_roster **out, const co_terms *terms, const co_meet *where)
{
    co_err bad = check_views(terms);
    network *net = bad ? NULL : co_zalloc(sizeof *net);

    if (!net) {
        if (where->listener > 0)
            close(where->listener);
        return bad ? bad : CO_ENOMEM;
    }
    *net = (network){.base.ops = &ops, .terms = *terms, .where = *where, .role.listener = -1};
    net->find = finder_for(where);
    net->report = (client_events){.event = pass_event, .refused = net->find->refused, .lost = net->find->lost};
    net->client.terms = &net->terms;
    net->client.where = &net->where;
    net->client.report = &net->report;
    net->client.ctx = net;
    net->client.run = run_number(terms->run_id);
    net->client.place = -1;
    co_err err = queue_init(&net->queue);
    if (err && where->listener > 0)
        close(where->listener);
    if (!err)
        err = net->find->open(net);
    if (!err && co_thread_start(&net->thread, carrier_main, net))
        err = co_fail(CO_EIO, "no thread for the roster: %m");
    net->started = !err;
    if (err) {
        network_close(&net->base);
        return err;
    }
    *out = &net->base;
    return CO_OK;
}
