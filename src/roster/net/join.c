/* join.c -- takes this host's seat at the roster: at a server that runs here, or at another host's. */
#include "roster/net/network_int.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "roster/times_int.h"

void join_seated(network *net, bool seated)
{
    pthread_mutex_lock(&net->queue.lock);
    atomic_store(&net->seated, seated);
    pthread_mutex_unlock(&net->queue.lock);
}

static void take_log(void *net, const char *lines, size_t n)
{
    queue_log_in(&((network *)net)->queue, lines, n);
}

co_err join_own(network *net)
{
    int pair[2];
    co_err err = co_net_pair(pair);

    if (err) {
        close(net->role.listener);
        return err;
    }
    err = co_conn_new(&net->client.conn, pair[0], NULL, CO_CONN_CLIENT);
    if (err) {
        close(pair[1]);
        close(net->role.listener);
        return err;
    }
    CO_TRY(server_open(&net->server, &net->terms, &net->where, &net->role, net->tls, pair[1]));
    if (net->where.logs)
        server_logs_to(net->server, take_log, net);
    atomic_store(&net->keeps, true);
    atomic_store(&net->seated, true);
    return client_hello(&net->client, "");
}

static co_err hear_answer(network *net, const char *via, const co_patience *patience)
{
    co_patience soon = co_patience_s(ANSWER_MS / 1000.0);
    co_frame first;

    soon.give_up = &net->closing;
    soon.until_ns = soon.until_ns < patience->until_ns ? soon.until_ns : patience->until_ns;
    CO_TRY(client_hello(&net->client, via));
    CO_TRY(co_conn_wait(net->client.conn, &first, &soon));
    return client_hear(&net->client, &first);
}

co_err join_other(network *net, const co_patience *patience)
{
    client *cl = &net->client;
    reached to = {0};

    CO_TRY(reach_roster(&to, &net->role, net->tls, patience, queue_talk, &net->queue)); /* may take minutes */
    cl->conn = to.conn;
    co_endpoint_text(cl->server, sizeof cl->server, to.via, net->role.at.port);
    co_err err = hear_answer(net, to.via, patience);
    if (!err)
        return CO_OK;
    co_conn_free(cl->conn);
    cl->conn = NULL;
    if (err == CO_EPEER || err == CO_ETIMEOUT)
        co_fail(err,
                "cannot join the job at %s: step terms: it accepts connections but %s: another program, or a "
                "busy host",
                cl->server, err == CO_EPEER ? "closes them" : "says nothing");
    else
        co_fail_in(err, "cannot join the job at %s: step terms", cl->server);
    poll(NULL, 0, TURN_MS); /* before another attempt */
    return err;
}

void join_leave_alone(network *net)
{
    co_leave how;

    leave_unpack(&how, net->leave);
    co_roster_event ev = leave_event(&how);
    net->client.over = true;
    queue_event(&net->queue, &ev);
}
