/* campaign.c -- this host takes the keeper's place in etcd and serves. */
#include "roster/etcd/etcd_int.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"

static void new_job(char out[33])
{
    unsigned char bytes[16];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        memset(bytes, getpid() & 255, sizeof bytes);
    for (int i = 0; i < 16; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

/* Where others find this host once it has the place. */
static void describe(const network *net, keeper *me, const co_meet *here)
{
    co_endpoint at;
    char first[CO_NAME_MOST];

    co_addr_mine(me->also, sizeof me->also);
    snprintf(first, sizeof first, "%.*s", (int)strcspn(me->also, ","), me->also);
    if (co_endpoint_parse(&at, here->endpoint))
        at = (co_endpoint){.port = 0};
    co_endpoint_text(me->endpoint, sizeof me->endpoint,
                     *here->advertise ? here->advertise
                     : *first         ? first
                                      : "127.0.0.1",
                     at.port);
    host_own_name(me->host, sizeof me->host, here);
    if (net->client.past.number)
        memcpy(me->job, net->finder->now.job, sizeof me->job);
    else
        new_job(me->job);
}

static void invite(network *net, bool made)
{
    char line[1200], token[120] = "";

    if (net->terms.max_hosts == 1)
        return;
    if (made)
        snprintf(token, sizeof token, ", with COHORT_TOKEN=%s before it", net->where.token);
    if (net->client.past.number)
        snprintf(line, sizeof line,
                 "this host keeps the roster now, at port %d; waiting for the others to come back",
                 net->role.at.port);
    else
        snprintf(line, sizeof line,
                 "waiting for %d hosts, which find this one (port %d) through etcd at %.500s%s; run the same "
                 "line on the others%s",
                 net->terms.min_hosts, net->role.at.port, etcd_members(net->finder->etcd),
                 net->role.tls ? "" : " (without TLS and token)", token);
    queue_talk(&net->queue, line);
}

/* The place is ours, but we cannot serve: it is given back. */
static void undo(network *net, int64_t id)
{
    join_seated(net, false);
    keep_let_go(net);
    co_conn_free(net->client.conn);
    net->client.conn = NULL;
    etcd_owe(net->finder->etcd, id);
}

/* The place is ours. Takes here->listener. */
static co_err serve(network *net, const co_meet *here, const lease_spec *spec)
{
    finder *find = net->finder;
    bool made = !*net->where.token && !net->where.insecure;
    co_err err = role_decide(&net->role, &net->terms, here);

    if (err)
        return err;
    snprintf(net->where.token, sizeof net->where.token, "%s", here->token);
    find->now = spec->me;
    find->losses = 0;
    find->may_begin = false;
    find->doubt_ns = 0;
    find->step_down[0] = '\0';
    net->client.server[0] = '\0';
    net->client.silent_ms = 0;
    if (net->role.tls && !net->tls && (err = co_tls_new(&net->tls, &net->role.token, net->terms.run_id)))
        close(net->role.listener);
    if (!err)
        err = join_own(net);
    if (!err)
        server_clear(net->server, -1); /* no round before keep_turn has asked etcd */
    if (!err && net->client.past.number)
        server_resume(net->server, &net->client.past);
    if (!err)
        err = lease_start(&find->lease, spec);
    if (!err)
        invite(net, made);
    return err;
}

co_err campaign(network *net, bool *won, keeping *other, const co_patience *patience)
{
    finder *find = net->finder;
    co_meet here = net->where;
    lease_spec spec = {
        .etcd = find->etcd, .ttl_s = find->ttl_s, .sure_ns = co_now_ns(), .talk = queue_talk, .ctx = &net->queue};

    if (!*here.endpoint)
        snprintf(here.endpoint, sizeof here.endpoint, ":0");
    CO_TRY(co_meet_listen(&here));
    describe(net, &spec.me, &here);
    co_err err = etcd_campaign(find->etcd, other, &spec.id, &spec.me, find->ttl_s, patience);
    *won = !err && spec.id;
    if (!*won) {
        close(here.listener);
        return err;
    }
    err = serve(net, &here, &spec);
    if (err)
        undo(net, spec.id);
    return err;
}
