/* queue.c -- orders and events between the agent and the carrier thread, and the log lines that go both
 * ways.
 *
 * The queues of log lines are limited. If the network or the disk is slow, lines are left out of the common
 * log, which says how many. Workers never wait for it, and the roster's own frames are not delayed. Every
 * host also keeps all of its own lines in a file.
 */
#include "roster/net/queue_int.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"

enum {
    LOG_OUT_MOST = 1 << 20, /* bytes of this host that wait for the carrier */
    LOG_IN_MOST = 8 << 20   /* bytes of other hosts that wait for the agent */
};

struct event_item { /* an event; with an error: the reason why no event will follow */
    struct event_item *next;
    co_err err;
    co_roster_event ev;
};

co_err queue_init(queue *q)
{
    *q = (queue){.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                 .order_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    pthread_mutex_init(&q->lock, NULL);
    q->events_end = &q->events;
    q->orders_end = &q->orders;
    return q->event_fd < 0 || q->order_fd < 0 ? co_fail(CO_EIO, "eventfd: %m") : CO_OK;
}

void queue_fini(queue *q)
{
    for (struct event_item *next, *it = q->events; it; it = next) {
        next = it->next;
        co_free(it->ev.view);
        co_free(it);
    }
    for (order *next, *one = q->orders; one; one = next) {
        next = one->next;
        json_decref(one->body);
        co_free(one);
    }
    if (q->event_fd >= 0)
        close(q->event_fd);
    if (q->order_fd >= 0)
        close(q->order_fd);
    co_str_fini(&q->log_out);
    co_str_fini(&q->log_in);
    pthread_mutex_destroy(&q->lock);
}

static void wake(int fd)
{
    uint64_t one = 1;

    if (write(fd, &one, sizeof one) < 0)
        errno = 0; /* it is awake already */
}

void queue_calm(int fd)
{
    uint64_t n;

    if (read(fd, &n, sizeof n) < 0)
        errno = 0;
}

void queue_wake_carrier(queue *q)
{
    wake(q->order_fd);
}

static void starve(queue *q)
{
    atomic_store(&q->starved, true);
    wake(q->event_fd);
}

/* --- events --------------------------------------------------------------------------------------------- */
static void put(queue *q, co_err err, const co_roster_event *ev)
{
    struct event_item *it = co_zalloc(sizeof *it);

    if (!it) {
        co_free(ev->view);
        starve(q);
        return;
    }
    it->err = err;
    it->ev = *ev;
    pthread_mutex_lock(&q->lock);
    *q->events_end = it;
    q->events_end = &it->next;
    pthread_mutex_unlock(&q->lock);
    wake(q->event_fd);
}

void queue_event(queue *q, const co_roster_event *ev)
{
    put(q, CO_OK, ev);
}

void queue_broke(queue *q, co_err err, const char *text)
{
    co_roster_event ev = {.kind = CO_ROSTER_OVER};

    snprintf(ev.text, sizeof ev.text, "%s", text);
    put(q, err, &ev);
}

void queue_talk(void *ctx, const char *text)
{
    co_roster_event ev = {.kind = CO_ROSTER_TALK};

    snprintf(ev.text, sizeof ev.text, "%s", text);
    put(ctx, CO_OK, &ev);
}

co_err queue_next(queue *q, int timeout_ms, co_roster_event *ev)
{
    struct pollfd p = {.fd = q->event_fd, .events = POLLIN};

    poll(&p, 1, timeout_ms);
    if (atomic_load(&q->starved))
        return co_fail(CO_ENOMEM, "out of memory: what the roster says is lost");
    pthread_mutex_lock(&q->lock);
    struct event_item *it = q->events;
    if (it) {
        q->events = it->next;
        if (!q->events)
            q->events_end = &q->events;
    }
    if (!q->events)
        queue_calm(q->event_fd);
    pthread_mutex_unlock(&q->lock);
    *ev = it ? it->ev : (co_roster_event){.kind = CO_ROSTER_NOTHING};
    co_err err = it ? it->err : CO_OK;
    co_free(it);
    return err ? co_fail(err, "%s", ev->text) : CO_OK;
}

/* --- orders --------------------------------------------------------------------------------------------- */
void queue_order(queue *q, frame_type type, json_t *body)
{
    order *one = co_zalloc(sizeof *one);

    if (!one) {
        json_decref(body);
        starve(q);
        return;
    }
    one->type = type;
    one->body = body;
    pthread_mutex_lock(&q->lock);
    *q->orders_end = one;
    q->orders_end = &one->next;
    pthread_mutex_unlock(&q->lock);
    wake(q->order_fd);
}

order *queue_take_orders(queue *q)
{
    pthread_mutex_lock(&q->lock);
    order *all = q->orders;
    q->orders = NULL;
    q->orders_end = &q->orders;
    pthread_mutex_unlock(&q->lock);
    return all;
}

/* --- log lines ------------------------------------------------------------------------------------------ */
bool queue_log_out(queue *q, const char *lines, size_t n)
{
    pthread_mutex_lock(&q->lock);
    bool fits = q->log_out.len + n <= LOG_OUT_MOST;
    if (fits)
        co_str_addn(&q->log_out, lines, n);
    pthread_mutex_unlock(&q->lock);
    if (fits)
        wake(q->order_fd);
    return fits;
}

bool queue_has_log(queue *q)
{
    pthread_mutex_lock(&q->lock);
    bool some = q->log_out.len > 0;
    pthread_mutex_unlock(&q->lock);
    return some;
}

co_str queue_take_log(queue *q)
{
    pthread_mutex_lock(&q->lock);
    co_str lines = q->log_out;
    q->log_out = (co_str){0};
    pthread_mutex_unlock(&q->lock);
    return lines;
}

static long long count_lines(const char *lines, size_t n)
{
    long long count = 0;

    for (size_t i = 0; i < n; i++)
        count += lines[i] == '\n';
    return count;
}

void queue_log_in(queue *q, const char *lines, size_t n)
{
    pthread_mutex_lock(&q->lock);
    if (q->log_in.len + n <= LOG_IN_MOST)
        co_str_addn(&q->log_in, lines, n);
    else
        q->log_lost += count_lines(lines, n);
    pthread_mutex_unlock(&q->lock);
    wake(q->event_fd);
}

long long queue_logged(queue *q, co_str *out)
{
    pthread_mutex_lock(&q->lock);
    long long lost = q->log_lost;
    if (q->log_in.len)
        co_str_addn(out, q->log_in.p, q->log_in.len);
    co_str_clear(&q->log_in);
    q->log_lost = 0;
    pthread_mutex_unlock(&q->lock);
    return lost;
}
