/* roster_net_logs.c -- lines that hosts log, on their way to the host that keeps the roster.
 *
 *     agent --log_out--> carrier --frames--> server --log_in--> the keeper's agent
 *
 * Both buffers have a limit: a slow network or a slow disk costs lines in the common log, which then says how many, and
 * never a worker's time or the roster's own words. Every host has its own lines in a file of its own.
 */
#include <string.h>

#include "roster/net/carrier_int.h"

enum {
    LOG_OUT_MOST = 1 << 20, /* of this host, waiting for the carrier */
    LOG_UNSENT = 1 << 18,   /* the carrier takes no more while so much waits in the connection */
    LOG_IN_MOST = 8 << 20,  /* of other hosts, waiting for the agent */
    LOG_FRAME = 1 << 16     /* about as long is a frame: between them go other words */
};

bool logs_put(co_roster *base, const char *lines, size_t n)
{
    net *r = (net *)base;
    bool fits = true;

    if (!atomic_load(&r->log_wanted) || n == 0)
        return true;
    pthread_mutex_lock(&r->lock);
    fits = r->log_out.len + n <= LOG_OUT_MOST;
    if (fits)
        co_str_addn(&r->log_out, lines, n);
    pthread_mutex_unlock(&r->lock);
    if (fits)
        queue_wake(r->order_fd);
    return fits;
}

bool logs_wait(net *r)
{
    pthread_mutex_lock(&r->lock);
    bool some = r->log_out.len > 0;
    pthread_mutex_unlock(&r->lock);
    return some;
}

/* How much of them fits into a frame: whole lines, or what is there of one that is longer. */
static size_t cut(const char *lines, size_t n)
{
    if (n <= LOG_FRAME)
        return n;
    const char *end = memrchr(lines, '\n', LOG_FRAME);
    if (!end)
        end = memchr(lines + LOG_FRAME, '\n', n - LOG_FRAME);
    size_t whole = end ? (size_t)(end - lines) + 1 : n;
    return whole < CO_FRAME_MOST ? whole : CO_FRAME_MOST;
}

bool logs_settled(co_roster *base)
{
    net *r = (net *)base;

    return !logs_wait(r) && atomic_load(&r->settled);
}

void logs_end(net *r)
{
    client *c = &r->client;

    if (c->conn && c->logs && !c->logged && !logs_wait(r))
        c->logged = client_say(c, WORD_LOGGED, NULL) == CO_OK;
}

void logs_carry(net *r)
{
    client *c = &r->client;
    co_str lines;

    atomic_store(&r->log_wanted, c->conn && c->logs);
    if (!c->conn || !c->logs || co_conn_unsent(c->conn) > LOG_UNSENT)
        return;
    pthread_mutex_lock(&r->lock);
    lines = r->log_out;
    r->log_out = (co_str){0};
    pthread_mutex_unlock(&r->lock);
    for (size_t at = 0, n; at < lines.len; at += n) {
        n = cut(lines.p + at, lines.len - at);
        if (co_conn_send(c->conn, &(co_frame){.type = WORD_LOG,
                                              .run = c->run,
                                              .view = (uint32_t)c->view,
                                              .len = (uint32_t)n,
                                              .body = lines.p + at}))
            break; /* the client's turn sees why */
    }
    co_str_fini(&lines);
}

static long long count_lines(const char *lines, size_t n)
{
    long long count = 0;

    for (size_t i = 0; i < n; i++)
        count += lines[i] == '\n';
    return count;
}

void logs_heard(void *roster, const char *lines, size_t n)
{
    net *r = roster;

    pthread_mutex_lock(&r->lock);
    if (r->log_in.len + n <= LOG_IN_MOST)
        co_str_addn(&r->log_in, lines, n);
    else
        r->log_lost += count_lines(lines, n);
    pthread_mutex_unlock(&r->lock);
    queue_wake(r->event_fd);
}

long long logs_take(co_roster *base, co_str *out)
{
    net *r = (net *)base;

    pthread_mutex_lock(&r->lock);
    long long lost = r->log_lost;
    if (r->log_in.len)
        co_str_addn(out, r->log_in.p, r->log_in.len);
    co_str_clear(&r->log_in);
    r->log_lost = 0;
    pthread_mutex_unlock(&r->lock);
    return lost;
}
