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
#include "net/times_int.h"

enum { TURN = 32 };

/* What a gate does with a connection of its kind. */
struct kind {
    co_err (*open)(void **out, int fd, co_tls *tls); /* takes fd */
    co_err (*work)(void *conn);
    bool (*known)(const void *conn);
    int (*fd)(const void *conn);
    void (*free)(void *conn);
};

struct stranger {
    void *conn; /* NULL: the place is free */
    co_addr from;
    uint64_t host; /* `from` as a number: a full gate compares all pairs */
    uint64_t since_ns;
};

struct co_gate {
    const struct kind *kind;
    int listener, epoll;
    co_tls *tls;
    bool deaf; /* out of descriptors: we pause accepting for DEAF_MS */
    uint64_t deaf_since_ns;
    int n_known;
    void *known[CO_STRANGERS];
    struct stranger at[CO_STRANGERS];
    co_gate_counts counts;
};

/* --- the kinds ------------------------------------------------------------------------------------------ */
static co_err conn_open(void **out, int fd, co_tls *tls)
{
    co_conn *conn = NULL;
    co_err err = co_conn_new(&conn, fd, tls, CO_CONN_SERVER);

    *out = conn;
    return err;
}

static co_err conn_work(void *conn)
{
    return co_conn_work(conn);
}

static bool conn_known(const void *conn)
{
    return co_conn_known(conn);
}

static int conn_fd(const void *conn)
{
    return co_conn_fd(conn);
}

static void conn_free(void *conn)
{
    co_conn_free(conn);
}

static co_err stream_open(void **out, int fd, co_tls *tls)
{
    co_stream *stream = NULL;
    co_err err = co_stream_new(&stream, fd, tls, CO_CONN_SERVER);

    *out = stream;
    return err;
}

static co_err stream_work(void *stream)
{
    return co_stream_work(stream);
}

static bool stream_known(const void *stream)
{
    return co_stream_heard(stream) != NULL;
}

static int stream_fd(const void *stream)
{
    return co_stream_fd(stream);
}

static void stream_free(void *stream)
{
    co_stream_free(stream);
}

static const struct kind conns = {conn_open, conn_work, conn_known, conn_fd, conn_free};
static const struct kind streams = {stream_open, stream_work, stream_known, stream_fd, stream_free};

/* --- the gate ------------------------------------------------------------------------------------------- */
enum { LISTENER = CO_STRANGERS }; /* epoll's id of the listener; strangers use their index */

static void listen_again(co_gate *gate, bool yes)
{
    struct epoll_event ev = {.events = yes ? EPOLLIN : 0, .data.u32 = LISTENER};

    epoll_ctl(gate->epoll, EPOLL_CTL_MOD, gate->listener, &ev);
    gate->deaf = !yes;
    gate->deaf_since_ns = co_now_ns();
}

static co_err open_kind(co_gate **out, int listen_fd, co_tls *tls, const struct kind *kind)
{
    co_gate *gate = co_zalloc(sizeof *gate);
    struct epoll_event ev = {.events = EPOLLIN, .data.u32 = LISTENER};
    int epoll = gate ? epoll_create1(EPOLL_CLOEXEC) : -1;

    if (!gate || epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listen_fd, &ev) != 0) {
        co_err err = gate ? co_fail(CO_EIO, "epoll: %m") : CO_ENOMEM;
        close(listen_fd);
        if (epoll >= 0)
            close(epoll);
        co_free(gate);
        return err;
    }
    gate->kind = kind;
    gate->listener = listen_fd;
    gate->epoll = epoll;
    gate->tls = tls;
    *out = gate;
    return CO_OK;
}

co_err co_gate_open(co_gate **out, int listen_fd, co_tls *tls)
{
    return open_kind(out, listen_fd, tls, &conns);
}

co_err co_gate_open_streams(co_gate **out, int listen_fd, co_tls *tls)
{
    return open_kind(out, listen_fd, tls, &streams);
}

int co_gate_fd(const co_gate *gate)
{
    return gate->epoll;
}

co_gate_counts co_gate_count(const co_gate *gate)
{
    return gate->counts;
}

static void send_away(co_gate *gate, struct stranger *stranger)
{
    gate->kind->free(stranger->conn); /* close removes it from epoll */
    stranger->conn = NULL;
    gate->counts.sent_away++;
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

static int from_same(const co_gate *gate, const struct stranger *s)
{
    int n = 0;

    for (int i = 0; i < CO_STRANGERS; i++)
        n += gate->at[i].conn && gate->at[i].host == s->host;
    return n;
}

/* Returns a free place. If there is none, sends a stranger away to make one. */
static struct stranger *place(co_gate *gate)
{
    struct stranger *worst = NULL;
    int most = 0;

    for (int i = 0; i < CO_STRANGERS; i++)
        if (!gate->at[i].conn)
            return &gate->at[i];
    for (int i = 0; i < CO_STRANGERS; i++) {
        int n = from_same(gate, &gate->at[i]);
        if (n > most || (n == most && gate->at[i].since_ns < worst->since_ns)) {
            most = n;
            worst = &gate->at[i];
        }
    }
    send_away(gate, worst);
    return worst;
}

/* False: no connection is waiting, or none can be accepted now. */
static bool accept_one(co_gate *gate)
{
    co_addr from = {0};
    socklen_t len = sizeof from;
    int one = 1, fd = accept4(gate->listener, &from.sa, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            listen_again(gate, false);
        return errno == EINTR || errno == ECONNABORTED;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    gate->counts.accepted++;
    struct stranger *stranger = place(gate);
    struct epoll_event ev = {.events = EPOLLIN, .data.u32 = (uint32_t)(stranger - gate->at)};
    *stranger = (struct stranger){.from = from, .host = number_of(&from), .since_ns = co_now_ns()};
    if (gate->kind->open(&stranger->conn, fd, gate->tls))
        stranger->conn = NULL;
    else if (epoll_ctl(gate->epoll, EPOLL_CTL_ADD, fd, &ev) != 0)
        send_away(gate, stranger);
    return true;
}

static void serve(co_gate *gate, struct stranger *stranger)
{
    if (!stranger->conn)
        return;
    co_err err = gate->kind->work(stranger->conn);
    if (err) {
        if (err == CO_EINPUT) {
            gate->counts.wrong_token++;
            gate->counts.wrong_from = stranger->from;
        }
        send_away(gate, stranger);
    } else if (gate->kind->known(stranger->conn)) {
        epoll_ctl(gate->epoll, EPOLL_CTL_DEL, gate->kind->fd(stranger->conn), NULL);
        gate->known[gate->n_known++] = stranger->conn;
        gate->counts.let_in++;
        stranger->conn = NULL;
    }
}

static void *turn(co_gate *gate)
{
    struct epoll_event ev[TURN];
    uint64_t now = co_now_ns();

    if (gate->n_known) /* hand these out first: known[] has no room to let them pile up */
        return gate->known[--gate->n_known];
    for (int i = 0; i < CO_STRANGERS; i++)
        if (gate->at[i].conn && now - gate->at[i].since_ns > CO_STRANGER_MS * 1000000ull)
            send_away(gate, &gate->at[i]);
    if (gate->deaf && now - gate->deaf_since_ns > DEAF_MS * 1000000ull)
        listen_again(gate, true);
    int n = epoll_wait(gate->epoll, ev, TURN, 0);
    bool more = false;
    for (int i = 0; i < n; i++)
        if (ev[i].data.u32 == LISTENER)
            more = true;
        else
            serve(gate, &gate->at[ev[i].data.u32]);
    for (int i = 0; more && i < TURN; i++)
        more = accept_one(gate);
    return gate->n_known ? gate->known[--gate->n_known] : NULL;
}

co_conn *co_gate_turn(co_gate *gate)
{
    CO_ASSERT(gate->kind == &conns, "a gate for connections");
    return turn(gate);
}

co_stream *co_gate_turn_stream(co_gate *gate)
{
    CO_ASSERT(gate->kind == &streams, "a gate for streams");
    return turn(gate);
}

void co_gate_close(co_gate *gate)
{
    if (!gate)
        return;
    for (int i = 0; i < CO_STRANGERS; i++)
        if (gate->at[i].conn)
            gate->kind->free(gate->at[i].conn);
    while (gate->n_known)
        gate->kind->free(gate->known[--gate->n_known]);
    close(gate->listener);
    close(gate->epoll);
    co_free(gate);
}
