/* carrier.c -- the thread that owns every socket of a roster: it connects, answers pings while the agent
 * is busy with its workers, and runs the server on the host that keeps the roster.
 */
#include "roster/net/network_int.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "roster/times_int.h"

/* Log lines go first: a host that hears of DONE or STOPPED has all lines before it. */
static void carry_orders(network *net)
{
    logs_carry(net);
    order *one = queue_take_orders(&net->queue);
    for (order *next; one; one = next) {
        next = one->next;
        if (one->type == FRAME_LEAVE && net->find->lost && !net->leave) {
            net->leave = json_incref(one->body); /* the keeper may be lost before it answers */
            if (!net->client.conn && !net->client.over)
                join_leave_alone(net);
        }
        client_say(&net->client, one->type, one->body); /* the client's turn finds a broken connection */
        co_free(one);
    }
}

static void talk_of_trouble(network *net)
{
    char line[1000];

    snprintf(line, sizeof line, "not yet, trying on: %s", co_errmsg());
    queue_talk(&net->queue, line);
}

static bool enter(network *net)
{
    co_patience patience = co_patience_s(net->where.join_timeout_s > 0 ? net->where.join_timeout_s : 600);
    uint64_t talk_ns = co_now_ns() + FIRST_TALK_MS * UINT64_C(1000000);
    co_err err;

    patience.give_up = &net->closing;
    do { /* the other side closes without reading: many hosts come at once, or the server just ended */
        err = net->find->enter(net, &patience);
        if ((err == CO_EPEER || err == CO_ETIMEOUT) && co_now_ns() >= talk_ns) {
            talk_of_trouble(net);
            talk_ns = co_now_ns() + RETALK_MS * UINT64_C(1000000);
        }
    } while ((err == CO_EPEER || err == CO_ETIMEOUT) && co_now_ns() < patience.until_ns);
    if (err && err != CO_ESTOP && net->find->failed && net->client.past.number)
        net->find->failed(net);
    else if (err && err != CO_ESTOP)
        queue_broke(&net->queue, err == CO_EINPUT ? err : CO_EFAIL, co_errmsg());
    pthread_mutex_lock(&net->queue.lock);
    atomic_store(&net->seated, !err && !atomic_load(&net->closing));
    pthread_mutex_unlock(&net->queue.lock);
    return !err;
}

/* After the agent has closed: the server's last frames go out before it ends. */
static bool finished(network *net, uint64_t *until_ns)
{
    static const co_leave ended = {.status = CO_EXIT_PREEMPTED, .text = "the host that keeps the roster ended"};
    client *cl = &net->client;
    bool first = !*until_ns;

    if (first)
        *until_ns = co_now_ns() + (cl->logs ? LAST_LOGS_MS : LAST_FRAMES_MS) * 1000000ull;
    logs_end(net);
    if (!net->server)
        return !cl->conn || (co_conn_settled(cl->conn) && !queue_has_log(&net->queue)) ||
               co_now_ns() > *until_ns;
    if (first)
        server_end(net->server, &ended);
    return server_idle(net->server) || co_now_ns() > *until_ns;
}

/* The keeper was lost and another can be found: true once the agent has ended its workers. */
static bool enters_again(network *net)
{
    struct pollfd p = {.fd = net->queue.order_fd, .events = POLLIN};

    if (!net->find->lost || net->client.conn || net->client.over)
        return false;
    net->find->let_go(net);
    carry_orders(net); /* which the agent gave before it heard of the loss */
    while (net->client.agent == CLIENT_STOPS && !net->client.over && !atomic_load(&net->closing)) {
        poll(&p, 1, TURN_MS);
        queue_calm(net->queue.order_fd);
        carry_orders(net);
    }
    return !net->client.over && !atomic_load(&net->closing);
}

static void sleep_until_something(network *net, int timeout_ms)
{
    struct pollfd fds[SERVER_FDS + 2];
    int n = net->server ? server_fds(net->server, fds, SERVER_FDS) : 0;

    fds[n++] = (struct pollfd){.fd = net->queue.order_fd, .events = POLLIN};
    if (net->client.conn)
        fds[n++] = (struct pollfd){.fd = co_conn_fd(net->client.conn),
                                   .events = (short)co_conn_events(net->client.conn)};
    poll(fds, (nfds_t)n, timeout_ms);
    queue_calm(net->queue.order_fd);
}

/* One turn of orders, client and server. False: the connection is gone, or nobody needs it any more. */
static bool turn(network *net, double elapsed_ms)
{
    client *cl = &net->client;

    carry_orders(net);
    client_turn(cl, elapsed_ms);
    if (net->server)
        server_turn(net->server, elapsed_ms);
    atomic_store(&net->settled,
                 net->server ? server_idle(net->server) : !cl->conn || co_conn_unsent(cl->conn) == 0);
    if (net->server && net->find->turn && (cl->conn || cl->over))
        net->find->turn(net);
    bool over = cl->over && !cl->conn && !net->server;
    bool lost = net->find->lost && !cl->conn && !cl->over;
    return !over && !lost;
}

static void carry(network *net)
{
    uint64_t last_ns = co_now_ns(), until_ns = 0;
    bool first = true; /* frames may have come together with WELCOME: the first turn does not sleep */

    for (bool closing = false, on = true; on && (!closing || !finished(net, &until_ns));) {
        closing = atomic_load(&net->closing); /* what was ordered before still goes out in this turn */
        sleep_until_something(net, first ? 0 : closing ? 1 : TURN_MS);
        first = false;
        uint64_t now = co_now_ns();
        double elapsed_ms = (double)(now - last_ns) / 1e6;
        last_ns = now;
        on = turn(net, elapsed_ms > LATE_TURN_MS ? LATE_TURN_MS : elapsed_ms);
    }
}

void *carrier_main(void *arg)
{
    network *net = arg;

    do {
        if (!net->server && !enter(net))
            return NULL;
        carry(net);
    } while (enters_again(net));
    if (net->server)
        server_logs_end(net->server);
    if (net->server && net->find->end)
        net->find->end(net);
    return NULL;
}
