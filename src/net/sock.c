/* sock.c -- non-blocking sockets: listening, connecting within a deadline, the addresses of both ends. */
#include "net/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/net_int.h"

co_addr co_net_local(int fd)
{
    co_addr a = {0};
    socklen_t len = sizeof a;

    getsockname(fd, &a.sa, &len);
    return a;
}

co_addr co_net_peer(int fd)
{
    co_addr a = {0};
    socklen_t len = sizeof a;

    getpeername(fd, &a.sa, &len);
    return a;
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

static void be_quick(int fd)
{
    int one = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static int bound(const co_addr *a, bool both)
{
    int one = 1, zero = 0;
    int fd = socket(a->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (a->sa.sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, both ? &zero : &one, sizeof one);
    if (bind(fd, &a->sa, co_addr_len(a)) == 0 && listen(fd, 1024) == 0)
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

static co_err cannot_listen(const char *address, int port)
{
    char where[CO_NAME_MOST + 8];
    co_holder who;
    int why = errno;

    co_endpoint_text(where, sizeof where, *address ? address : "*", port);
    errno = why;
    if (why == EADDRNOTAVAIL)
        return co_fail(CO_EINPUT, "cannot listen on %s: this host does not have that address", where);
    if (why != EADDRINUSE)
        return co_fail(CO_EIO, "cannot listen on %s: %m", where);
    if (!co_net_holder(&who, port))
        return co_fail(
            CO_EIO,
            "cannot listen on %s: the port is taken, but not by a listener (a connection that just ended?)",
            where);
    if (!who.pid)
        return co_fail(
            CO_EIO, "cannot listen on %s: the port is taken by a process of another user or container", where);
    return co_fail(CO_EIO, "cannot listen on %s: the port is taken by process %d (%s)", where, who.pid,
                   who.command);
}

co_err co_net_listen(int *fd, const char *address, int port)
{
    co_addr a = {.v6 = {.sin6_family = AF_INET6}};

    if (*address && inet_pton(AF_INET6, address, &a.v6.sin6_addr) != 1) {
        a = (co_addr){.v4 = {.sin_family = AF_INET}};
        if (inet_pton(AF_INET, address, &a.v4.sin_addr) != 1)
            return co_fail(CO_EINPUT, "cannot listen on %s: not a numeric address", address);
    }
    co_addr_set_port(&a, port);
    int got = bound(&a, !*address);
    if (got < 0 && !*address && errno != EADDRINUSE) { /* this host has no IPv6 */
        a = (co_addr){.v4 = {.sin_family = AF_INET}};
        co_addr_set_port(&a, port);
        got = bound(&a, false);
    }
    if (got < 0)
        return cannot_listen(address, port);
    *fd = got;
    return CO_OK;
}

static co_err cannot_connect(const co_addr *to, int why)
{
    char host[CO_NAME_MOST], where[CO_NAME_MOST + 8];

    co_addr_text(host, sizeof host, to);
    co_endpoint_text(where, sizeof where, host, co_addr_port(to));
    errno = why;
    if (why == ECONNREFUSED || why == ECONNRESET)
        return co_fail(CO_EPEER, "%s refuses: nothing listens there", where);
    if (why == ETIMEDOUT)
        return co_fail(CO_ETIMEOUT, "%s does not answer", where);
    return co_fail(CO_EIO, "cannot reach %s: %m", where);
}

co_err co_net_connect_start(int *fd, const co_addr *to)
{
    int got = socket(to->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (got < 0)
        return co_fail(CO_EIO, "socket: %m");
    be_quick(got);
    if (connect(got, &to->sa, co_addr_len(to)) != 0 && errno != EINPROGRESS) {
        int why = errno;
        close(got);
        return cannot_connect(to, why);
    }
    *fd = got;
    return CO_OK;
}

co_err co_net_connect_end(int fd, const co_addr *to, bool in_time)
{
    int why = ETIMEDOUT;
    socklen_t len = sizeof why;

    if (in_time && getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &len) != 0)
        why = errno;
    return why ? cannot_connect(to, why) : CO_OK;
}

co_err co_net_connect(int *fd, const co_addr *to, const co_patience *p)
{
    int got = -1;

    CO_TRY(co_net_connect_start(&got, to));
    co_err err = patience_poll(got, POLLOUT, p);
    if (err != CO_ESTOP)
        err = co_net_connect_end(got, to, !err);
    if (err) {
        int why = errno;
        close(got);
        errno = why;
        return err;
    }
    *fd = got;
    return CO_OK;
}

co_err co_net_pair(int fd[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd) != 0)
        return co_fail(CO_EIO, "socketpair: %m");
    return CO_OK;
}

/* The lowest port that the kernel uses for outgoing connections. */
static int first_outgoing(void)
{
    int low = 0;
    FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");

    if (f && fscanf(f, "%d", &low) != 1)
        low = 0;
    if (f)
        fclose(f);
    return low > 0 && low < 65536 ? low : 32768;
}

co_err co_net_free_port(int *port)
{
    int fd = -1, from = 20000, to = first_outgoing();

    for (int i = 0; i < 200 && to - from >= 1000; i++) {
        uint16_t r;
        if (getrandom(&r, sizeof r, 0) != (ssize_t)sizeof r)
            break;
        int at = from + r % (to - from);
        co_addr any = {.v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)at)}};
        fd = bound(&any, true);
        if (fd < 0 && errno == EADDRINUSE)
            continue;
        if (fd >= 0)
            close(fd);
        else
            break; /* this host has no IPv6: take the kernel's choice below */
        *port = at;
        return CO_OK;
    }
    CO_TRY(co_net_listen(&fd, "", 0));
    co_addr a = co_net_local(fd);
    close(fd);
    *port = co_addr_port(&a);
    return CO_OK;
}
