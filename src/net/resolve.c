/* resolve.c -- host names to addresses, with a deadline.
 *
 * getaddrinfo has no deadline and can hang for half a minute on a dead name server. We run it in a thread and
 * leave that thread behind when our deadline passes. Both threads own the question; the last one to let go
 * frees it.
 */
#include "net/net.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "net/net_int.h"
#include "net/times_int.h"

struct question {
    pthread_mutex_t lock;
    pthread_cond_t answered;
    int holders;
    bool done;
    int status;
    char host[CO_NAME_MOST], port[8];
    struct addrinfo *list;
};

static void let_go(struct question *q)
{
    bool last = --q->holders == 0;

    pthread_mutex_unlock(&q->lock);
    if (!last)
        return;
    if (q->list)
        freeaddrinfo(q->list);
    pthread_mutex_destroy(&q->lock);
    pthread_cond_destroy(&q->answered);
    co_free(q);
}

static void *ask(void *arg)
{
    struct question *q = arg;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *list = NULL;
    int status = getaddrinfo(q->host, q->port, &hints, &list);

    pthread_mutex_lock(&q->lock);
    q->status = status;
    q->list = status ? NULL : list;
    q->done = true;
    pthread_cond_broadcast(&q->answered);
    let_go(q);
    return NULL;
}

static co_err start_asking(struct question **out, const char *host, int port)
{
    struct question *question = co_zalloc(sizeof *question);
    pthread_condattr_t how;
    pthread_t thread;

    if (!question)
        return CO_ENOMEM;
    pthread_mutex_init(&question->lock, NULL);
    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    pthread_cond_init(&question->answered, &how);
    pthread_condattr_destroy(&how);
    question->holders = 2;
    snprintf(question->host, sizeof question->host, "%s", host);
    snprintf(question->port, sizeof question->port, "%d", port);
    if (co_thread_start(&thread, ask, question) != 0) {
        question->holders = 1;
        pthread_mutex_lock(&question->lock);
        let_go(question);
        return co_fail(CO_EIO, "cannot start a thread to resolve %s", host);
    }
    pthread_detach(thread);
    *out = question;
    return CO_OK;
}

static int take_answers(co_addr *out, int most, const struct addrinfo *list)
{
    int n = 0;

    for (const struct addrinfo *i = list; i && n < most; i = i->ai_next)
        if (i->ai_family == AF_INET || i->ai_family == AF_INET6) {
            out[n] = (co_addr){0};
            memcpy(&out[n++], i->ai_addr, i->ai_addrlen < sizeof *out ? i->ai_addrlen : sizeof *out);
        }
    return n;
}

/* A numeric address needs no name server. */
static bool is_number(co_addr *out, const char *host, int port)
{
    co_addr a = {.v4 = {.sin_family = AF_INET}};

    if (inet_pton(AF_INET, host, &a.v4.sin_addr) != 1) {
        a = (co_addr){.v6 = {.sin6_family = AF_INET6}};
        if (inet_pton(AF_INET6, host, &a.v6.sin6_addr) != 1)
            return false;
    }
    co_addr_set_port(&a, port);
    *out = a;
    return true;
}

co_err co_net_resolve(co_addr *out, int most, int *n, const char *host, int port, const co_patience *patience)
{
    struct question *question = NULL;
    co_err err = CO_OK;

    if (is_number(out, host, port)) {
        *n = 1;
        return CO_OK;
    }
    CO_TRY(start_asking(&question, host, port));
    pthread_mutex_lock(&question->lock);
    while (!question->done && !err) {
        int slice = patience_slice(patience, SLICE_MS, &err);
        uint64_t at = co_now_ns() + (uint64_t)slice * 1000000;
        struct timespec ts = {(time_t)(at / 1000000000), (long)(at % 1000000000)};
        if (!err)
            pthread_cond_timedwait(&question->answered, &question->lock, &ts);
    }
    if (err == CO_ETIMEOUT)
        co_fail(err, "the name %s was not resolved in time (name servers do not answer)", host);
    else if (!err && question->status)
        err = co_fail(CO_EIO, "the name %s cannot be resolved: %s", host, gai_strerror(question->status));
    else if (!err && (*n = take_answers(out, most, question->list)) == 0)
        err = co_fail(CO_EIO, "the name %s has no IPv4 or IPv6 address", host);
    let_go(question);
    return err;
}
