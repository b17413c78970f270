/* addr.c -- endpoints as people write them, addresses as the kernel has them, names with a deadline.
 *
 * getaddrinfo has no deadline of its own and may hang for half a minute on a dead name server: it runs in a thread that is
 * left behind when the time is over. Whoever lets go of the question last frees it.
 */
#include "net/net.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "net/net_int.h"

co_patience co_patience_s(double seconds)
{
    return (co_patience){.until_ns = co_now_ns() + (uint64_t)(seconds * 1e9)};
}

co_err co_endpoint_parse(co_endpoint *out, const char *text)
{
    const char *colon = strrchr(text, ':'), *port = NULL, *host = text;
    size_t len = strlen(text);
    long long number = -1;

    if (*text == '[') {
        const char *end = strchr(text, ']');
        if (!end || (end[1] && end[1] != ':'))
            return co_fail(CO_EINPUT, "endpoint %s: '[' without ']', or something else than :PORT after it",
                           text);
        host = text + 1;
        len = (size_t)(end - host);
        port = end[1] ? end + 2 : NULL;
    } else if (colon && strchr(text, ':') == colon) { /* several colons: an IPv6 address without port */
        len = (size_t)(colon - text);
        port = colon + 1;
    }
    if (port && (!co_str_to_i64(port, &number) || number < 0 || number > 65535))
        return co_fail(CO_EINPUT, "endpoint %s: the port is \"%s\", not a number from 0 to 65535", text, port);
    if (len >= sizeof out->host)
        return co_fail(CO_EINPUT, "endpoint: the host name has %zu letters, more than %d", len,
                       CO_NAME_MOST - 1);
    for (size_t i = 0; i < len; i++)
        if (host[i] <= ' ' || host[i] == '/' || host[i] == 0x7f)
            return co_fail(CO_EINPUT, "endpoint: a blank or '/' in the host name; HOST:PORT is wanted");
    memcpy(out->host, host, len);
    out->host[len] = '\0';
    out->port = (int)number;
    return CO_OK;
}

void co_endpoint_text(char *out, size_t size, const char *host, int port)
{
    snprintf(out, size, strchr(host, ':') ? "[%s]:%d" : "%s:%d", host, port);
}

socklen_t co_addr_len(const co_addr *a)
{
    return a->sa.sa_family == AF_INET6 ? sizeof a->v6 : sizeof a->v4;
}

int co_addr_port(const co_addr *a)
{
    return ntohs(a->sa.sa_family == AF_INET6 ? a->v6.sin6_port : a->v4.sin_port);
}

void co_addr_set_port(co_addr *a, int port)
{
    if (a->sa.sa_family == AF_INET6)
        a->v6.sin6_port = htons((uint16_t)port);
    else
        a->v4.sin_port = htons((uint16_t)port);
}

/* IPv4 that came through an IPv6 socket, as what it is. */
static co_addr plain(const co_addr *a)
{
    co_addr b = *a;

    if (a->sa.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr)) {
        b = (co_addr){.v4 = {.sin_family = AF_INET, .sin_port = a->v6.sin6_port}};
        memcpy(&b.v4.sin_addr, a->v6.sin6_addr.s6_addr + 12, 4);
    }
    return b;
}

void co_addr_text(char *out, size_t size, const co_addr *a)
{
    co_addr b = plain(a);

    if (getnameinfo(&b.sa, co_addr_len(&b), out, (socklen_t)size, NULL, 0, NI_NUMERICHOST) != 0)
        snprintf(out, size, "?");
}

bool co_addr_same_host(const co_addr *a, const co_addr *b)
{
    co_addr x = plain(a), y = plain(b);

    if (x.sa.sa_family != y.sa.sa_family)
        return false;
    if (x.sa.sa_family == AF_INET)
        return x.v4.sin_addr.s_addr == y.v4.sin_addr.s_addr;
    return x.sa.sa_family == AF_INET6 && memcmp(&x.v6.sin6_addr, &y.v6.sin6_addr, 16) == 0;
}

bool co_addr_is_loopback(const co_addr *a)
{
    co_addr b = plain(a);

    if (b.sa.sa_family == AF_INET)
        return ntohl(b.v4.sin_addr.s_addr) >> 24 == 127;
    return b.sa.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&b.v6.sin6_addr);
}

bool co_host_is_loopback(const char *name)
{
    return strcasecmp(name, "localhost") == 0 || strncmp(name, "127.", 4) == 0 || strcmp(name, "::1") == 0;
}

/* False: it has none of IP. */
static bool address_of(co_addr *out, const struct ifaddrs *i)
{
    int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;

    if (family != AF_INET && family != AF_INET6)
        return false;
    *out = (co_addr){0};
    memcpy(out, i->ifa_addr, family == AF_INET ? sizeof out->v4 : sizeof out->v6);
    return true;
}

bool co_addr_is_mine(const co_addr *a)
{
    struct ifaddrs *all = NULL;
    bool mine = co_addr_is_loopback(a);

    if (mine || getifaddrs(&all) != 0)
        return mine;
    for (struct ifaddrs *i = all; i && !mine; i = i->ifa_next) {
        co_addr b;
        mine = address_of(&b, i) && co_addr_same_host(a, &b);
    }
    freeifaddrs(all);
    return mine;
}

bool co_net_interface(char *out, size_t size, const char *addr)
{
    struct ifaddrs *all = NULL;
    bool found = false;

    if (getifaddrs(&all) != 0)
        return false;
    for (struct ifaddrs *i = all; i && !found; i = i->ifa_next) {
        char text[CO_NAME_MOST];
        co_addr a;
        if (!address_of(&a, i) || co_addr_is_loopback(&a))
            continue;
        co_addr_text(text, sizeof text, &a);
        found = strcmp(text, addr) == 0;
        if (found)
            snprintf(out, size, "%s", i->ifa_name);
    }
    freeifaddrs(all);
    return found;
}

/* Bridges and cables that lead to containers of this host, not to other hosts. */
static bool is_inward(const char *interface)
{
    static const char *const names[] = {"docker", "br-", "veth", "virbr", "lxc", "lxd", "cni", "podman"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(interface, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static void add_mine(char *out, size_t size, const struct ifaddrs *i)
{
    size_t n = strlen(out);
    char text[CO_NAME_MOST];
    co_addr a;

    if (!address_of(&a, i) || !(i->ifa_flags & IFF_UP))
        return;
    if (co_addr_is_loopback(&a) || (a.sa.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&a.v6.sin6_addr)))
        return;
    co_addr_text(text, sizeof text, &a);
    if (n + strlen(text) + 2 <= size)
        snprintf(out + n, size - n, "%s%s", n ? "," : "", text);
}

void co_addr_mine(char *out, size_t size)
{
    struct ifaddrs *all = NULL;

    *out = '\0';
    if (getifaddrs(&all) != 0)
        return;
    for (int inward = 0; inward < 2; inward++)
        for (struct ifaddrs *i = all; i; i = i->ifa_next)
            if (is_inward(i->ifa_name) == (inward == 1))
                add_mine(out, size, i);
    freeifaddrs(all);
}

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
    struct question *q = co_zalloc(sizeof *q);
    pthread_condattr_t how;
    pthread_t thread;

    if (!q)
        return CO_ENOMEM;
    pthread_mutex_init(&q->lock, NULL);
    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    pthread_cond_init(&q->answered, &how);
    pthread_condattr_destroy(&how);
    q->holders = 2;
    snprintf(q->host, sizeof q->host, "%s", host);
    snprintf(q->port, sizeof q->port, "%d", port);
    if (co_thread_start(&thread, ask, q) != 0) {
        q->holders = 1;
        pthread_mutex_lock(&q->lock);
        let_go(q);
        return co_fail(CO_EIO, "no thread to look up %s in", host);
    }
    pthread_detach(thread);
    *out = q;
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

/* Numbers need nobody to ask. */
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

co_err co_net_resolve(co_addr *out, int most, int *n, const char *host, int port, const co_patience *p)
{
    struct question *q = NULL;
    co_err err = CO_OK;

    if (is_number(out, host, port)) {
        *n = 1;
        return CO_OK;
    }
    CO_TRY(start_asking(&q, host, port));
    pthread_mutex_lock(&q->lock);
    while (!q->done && !err) {
        int slice = patience_slice(p, 100, &err);
        uint64_t at = co_now_ns() + (uint64_t)slice * 1000000;
        struct timespec ts = {(time_t)(at / 1000000000), (long)(at % 1000000000)};
        if (!err)
            pthread_cond_timedwait(&q->answered, &q->lock, &ts);
    }
    if (err == CO_ETIMEOUT)
        co_fail(err, "the name %s was not resolved in time (name servers do not answer)", host);
    else if (!err && q->status)
        err = co_fail(CO_EIO, "the name %s cannot be resolved: %s", host, gai_strerror(q->status));
    else if (!err && (*n = take_answers(out, most, q->list)) == 0)
        err = co_fail(CO_EIO, "the name %s has no IPv4 or IPv6 address", host);
    let_go(q);
    return err;
}

co_err co_net_route(co_addr *mine, const co_addr *peer)
{
    char text[CO_NAME_MOST];
    int fd = socket(peer->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && connect(fd, &peer->sa, co_addr_len(peer)) == 0;

    co_addr_text(text, sizeof text, peer);
    if (ok)
        *mine = co_net_local(fd);
    co_err err = ok ? CO_OK : co_fail(CO_EIO, "no route to %s: %m", text);
    if (fd >= 0)
        close(fd);
    return err;
}
