/* gate.c -- the listening socket and the connections that have not yet proved themselves ("strangers").
 *
 * Invariants. There are at most CO_STRANGERS strangers. Each is closed after CO_STRANGER_MS or
 * CO_STRANGER_BYTES. One turn accepts and serves at most TURN of them, so a flood cannot starve other work of
 * the same event loop. When all places are taken, the address with the most strangers loses its oldest one: a
 * flood from one address displaces only itself.
 */
#include "net/net.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"

enum { TURN = 32, DEAF_MS = 100 };

struct stranger {
    co_conn *conn; /* NULL: the place is free */
    co_addr from;
    uint64_t host; /* `from` as a number: a full gate compares all pairs */
    uint64_t since_ns;
};

struct co_gate {
    int listener, epoll;
    co_tls *tls;
    bool deaf; /* out of descriptors: we pause accepting for DEAF_MS */
    uint64_t deaf_since_ns;
    int n_known;
    co_conn *known[CO_STRANGERS];
    struct stranger at[CO_STRANGERS];
    co_gate_counts counts;
};

enum { LISTENER = CO_STRANGERS }; /* epoll's id of the listener; strangers use their index */

static void listen_again(co_gate *g, bool yes)
{
    struct epoll_event ev = {.events = yes ? EPOLLIN : 0, .data.u32 = LISTENER};

    epoll_ctl(g->epoll, EPOLL_CTL_MOD, g->listener, &ev);
    g->deaf = !yes;
    g->deaf_since_ns = co_now_ns();
}

co_err co_gate_open(co_gate **out, int listen_fd, co_tls *tls)
{
    co_gate *g = co_zalloc(sizeof *g);
    struct epoll_event ev = {.events = EPOLLIN, .data.u32 = LISTENER};
    int epoll = g ? epoll_create1(EPOLL_CLOEXEC) : -1;

    if (!g || epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listen_fd, &ev) != 0) {
        co_err err = g ? co_fail(CO_EIO, "epoll: %m") : CO_ENOMEM;
        close(listen_fd);
        if (epoll >= 0)
            close(epoll);
        co_free(g);
        return err;
    }
    g->listener = listen_fd;
    g->epoll = epoll;
    g->tls = tls;
    *out = g;
    return CO_OK;
}

int co_gate_fd(const co_gate *g)
{
    return g->epoll;
}

co_gate_counts co_gate_count(const co_gate *g)
{
    return g->counts;
}

static void send_away(co_gate *g, struct stranger *s)
{
    co_conn_free(s->conn); /* close removes it from epoll */
    s->conn = NULL;
    g->counts.sent_away++;
}

/* One number for all addresses that a single machine can choose from: all of loopback, or an IPv6 /64
 * network. */
static uint64_t number_of(const co_addr *a)
{
    char text[CO_NAME_MOST];

    if (co_addr_is_loopback(a))
        return 0;
    if (a->sa.sa_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr))
        return co_fnv1a64(&a->v6.sin6_addr, 8);
    co_addr_text(text, sizeof text, a);
    return co_fnv1a64(text, strlen(text));
}

static int from_same(const co_gate *g, const struct stranger *s)
{
    int n = 0;

    for (int i = 0; i < CO_STRANGERS; i++)
        n += g->at[i].conn && g->at[i].host == s->host;
    return n;
}

/* Returns a free place. If there is none, sends a stranger away to make one. */
static struct stranger *place(co_gate *g)
{
    struct stranger *worst = NULL;
    int most = 0;

    for (int i = 0; i < CO_STRANGERS; i++)
        if (!g->at[i].conn)
            return &g->at[i];
    for (int i = 0; i < CO_STRANGERS; i++) {
        int n = from_same(g, &g->at[i]);
        if (n > most || (n == most && g->at[i].since_ns < worst->since_ns)) {
            most = n;
            worst = &g->at[i];
        }
    }
    send_away(g, worst);
    return worst;
}

/* False: no connection is waiting, or none can be accepted now. */
static bool accept_one(co_gate *g)
{
    co_addr from = {0};
    socklen_t len = sizeof from;
    int one = 1, fd = accept4(g->listener, &from.sa, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            listen_again(g, false);
        return errno == EINTR || errno == ECONNABORTED;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    g->counts.accepted++;
    struct stranger *s = place(g);
    struct epoll_event ev = {.events = EPOLLIN, .data.u32 = (uint32_t)(s - g->at)};
    *s = (struct stranger){.from = from, .host = number_of(&from), .since_ns = co_now_ns()};
    if (co_conn_new(&s->conn, fd, g->tls, CO_CONN_SERVER))
        s->conn = NULL;
    else if (epoll_ctl(g->epoll, EPOLL_CTL_ADD, fd, &ev) != 0)
        send_away(g, s);
    return true;
}

static void serve(co_gate *g, struct stranger *s)
{
    if (!s->conn)
        return;
    co_err err = co_conn_work(s->conn);
    if (err) {
        if (err == CO_EINPUT) {
            g->counts.wrong_token++;
            g->counts.wrong_from = s->from;
        }
        send_away(g, s);
    } else if (co_conn_known(s->conn)) {
        epoll_ctl(g->epoll, EPOLL_CTL_DEL, co_conn_fd(s->conn), NULL);
        g->known[g->n_known++] = s->conn;
        g->counts.let_in++;
        s->conn = NULL;
    }
}

co_conn *co_gate_turn(co_gate *g)
{
    struct epoll_event ev[TURN];
    uint64_t now = co_now_ns();

    if (g->n_known) /* hand these out first: known[] has no room to let them pile up */
        return g->known[--g->n_known];
    for (int i = 0; i < CO_STRANGERS; i++)
        if (g->at[i].conn && now - g->at[i].since_ns > CO_STRANGER_MS * 1000000ull)
            send_away(g, &g->at[i]);
    if (g->deaf && now - g->deaf_since_ns > DEAF_MS * 1000000ull)
        listen_again(g, true);
    int n = epoll_wait(g->epoll, ev, TURN, 0);
    bool more = false;
    for (int i = 0; i < n; i++)
        if (ev[i].data.u32 == LISTENER)
            more = true;
        else
            serve(g, &g->at[ev[i].data.u32]);
    for (int i = 0; more && i < TURN; i++)
        more = accept_one(g);
    return g->n_known ? g->known[--g->n_known] : NULL;
}

void co_gate_close(co_gate *g)
{
    if (!g)
        return;
    for (int i = 0; i < CO_STRANGERS; i++)
        co_conn_free(g->at[i].conn);
    while (g->n_known)
        co_conn_free(g->known[--g->n_known]);
    close(g->listener);
    close(g->epoll);
    co_free(g);
}
