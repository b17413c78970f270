/* net.h -- sockets with deadlines, TLS by a shared token, frames. Nothing here blocks past its deadline.
 *
 * A connection carries frames, plain or inside TLS 1.3 with the token as pre-shared key (no certificates). A
 * peer that does not know the token is closed before the first application byte. Callers own the event loop:
 * poll co_conn_fd for co_conn_events, then call co_conn_work, then take the frames.
 *
 *     co_tls *tls;
 *     CO_TRY(co_tls_new(&tls, &token, "run7"));
 *     CO_TRY(co_net_connect(&fd, &addr, &patience));
 *     CO_TRY(co_conn_new(&c, fd, tls, CO_CONN_CLIENT));
 *     CO_TRY(co_conn_meet(c, &patience));                       // handshake done
 *     CO_TRY(co_conn_send(c, &(co_frame){.type = 1, .body = "hi", .len = 2}));
 *     CO_TRY(co_conn_wait(c, &frame, &patience));
 */
#ifndef CO_NET_NET_H
#define CO_NET_NET_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/err.h"

/* All limits of this room. A "stranger" is a connection that has not yet proved that it knows the token. */
enum {
    CO_STRANGER_BYTES = 1024, /* a stranger may send this many bytes, */
    CO_STRANGER_MS = 2000,    /* and may take this long */
    CO_STRANGERS = 64,        /* strangers at once */
    CO_FRAME_HEAD = 32,
    CO_FRAME_MOST = 1 << 20, /* longest body of a frame */
    CO_CONN_QUEUE = 4 << 20, /* unsent bytes at which we give up a slow reader */
    CO_NAME_MOST = 256       /* a host name or a numeric address, with its NUL */
};

/* ---- patience: how long a blocking call may take, and how another thread can end it ---- */
typedef struct co_patience {
    uint64_t until_ns; /* deadline on CLOCK_MONOTONIC */
    /* checked ten times a second; when true: CO_ESTOP. NULL: only the deadline counts */
    const atomic_bool *give_up;
} co_patience;
co_patience co_patience_s(double seconds);

/* Starts a thread that blocks every signal: signals are for the main thread. Returns 0 or an errno value. */
int co_thread_start(pthread_t *out, void *(*main)(void *), void *arg);

/* ---- addresses ---- */
typedef struct co_endpoint {
    char host[CO_NAME_MOST];
    int port; /* -1: no port was given */
} co_endpoint;
/* Accepts "host", "host:port", "[::1]:port", "::1", ":port" (host ""). CO_EINPUT says what is wrong. */
co_err co_endpoint_parse(co_endpoint *out, const char *text);
void co_endpoint_text(char *out, size_t size, const char *host, int port); /* puts brackets around IPv6 */

typedef union co_addr {
    struct sockaddr sa;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage any;
} co_addr;
socklen_t co_addr_len(const co_addr *a);
int co_addr_port(const co_addr *a);
void co_addr_set_port(co_addr *a, int port);
/* The numeric address without its port. IPv4 inside IPv6 is shown as IPv4. */
void co_addr_text(char *out, size_t size, const co_addr *a);
bool co_addr_same_host(const co_addr *a, const co_addr *b); /* ignores ports */
bool co_addr_is_loopback(const co_addr *a);
/* Judges the text alone: false for a name that merely resolves to 127.0.1.1 on this host. */
bool co_host_is_loopback(const char *name);
bool co_addr_is_mine(const co_addr *a); /* an interface of this host has the address */
/* The name of the interface that has this numeric address. False: none has it, or it is loopback. */
bool co_net_interface(char *out, size_t size, const char *addr);
/* Lists the addresses at which others might reach this host (interfaces that are up; no loopback, no
 * link-local), separated by commas. Addresses of container bridges come last. "" if there are none. */
void co_addr_mine(char *out, size_t size);

/* Resolves a name or numeric address to at most `most` addresses; waits only as long as patience lasts.
 * CO_EIO: no such name (a name server may know it later); CO_ETIMEOUT. */
co_err co_net_resolve(co_addr *out, int most, int *n, const char *host, int port, const co_patience *p);
/* The local address from which packets to `peer` leave. CO_EIO: there is no route. Sends nothing. */
co_err co_net_route(co_addr *mine, const co_addr *peer);

/* ---- sockets: always non-blocking and close-on-exec ---- */
/* `address` is numeric, or "" for all addresses of IPv6 and IPv4. Port 0 takes any free port; co_net_local
 * tells which. CO_EINPUT: this host does not have the address. CO_EIO: the port is taken; the message names
 * the process that holds it. */
co_err co_net_listen(int *fd, const char *address, int port);
/* CO_EPEER: refused (nothing listens); CO_ETIMEOUT: no answer; CO_EIO: no route. errno says which. */
co_err co_net_connect(int *fd, const co_addr *to, const co_patience *p);
/* The two halves of co_net_connect, for several connections at once. Call the second when *fd becomes
 * writable or the deadline has passed. The caller closes fd. */
co_err co_net_connect_start(int *fd, const co_addr *to);
co_err co_net_connect_end(int fd, const co_addr *to, bool in_time);
co_err co_net_pair(int fd[2]);
co_addr co_net_local(int fd);
co_addr co_net_peer(int fd);
/* Finds a port that is free on every address and outside the range of outgoing connections. */
co_err co_net_free_port(int *port);

typedef struct co_holder {
    int pid; /* 0: not found (another user's process, or another namespace) */
    char command[CO_NAME_MOST];
    bool same_program; /* it runs the executable that we run */
} co_holder;
bool co_net_holder(co_holder *out, int port); /* who listens on this TCP port; false: nobody does */

/* ---- bytes as text: Crockford's base32 with two check digits ---- */
enum { CO_BASE32_CHECK = 2 };
#define CO_BASE32_DIGITS(bytes) ((8 * (bytes) + 4) / 5 + CO_BASE32_CHECK)
char co_base32_letter(unsigned digit);
int co_base32_digit(char c); /* accepts any case, O as 0, I and L as 1; -1: not a digit */
/* digits: CO_BASE32_DIGITS(len) numbers below 32. co_base32_read returns false if the check digits are wrong;
 * `bytes` may have been written by then. */
void co_base32_write(uint8_t *digits, const uint8_t *bytes, size_t len);
bool co_base32_read(uint8_t *bytes, size_t len, const uint8_t *digits);

/* ---- the token: 128 bits; as text seven groups of four characters, the last two characters a check ---- */
typedef struct co_token {
    uint8_t bits[16];
} co_token;
enum { CO_TOKEN_TEXT = 40 };
co_err co_token_make(co_token *out);
void co_token_text(char out[CO_TOKEN_TEXT], const co_token *t);
/* Ignores case and dashes; reads O as 0, I and L as 1. CO_EINPUT if the check fails; never quotes the
 * token. */
co_err co_token_parse(co_token *out, const char *text);
/* Takes the value of an environment variable: unsets it and overwrites the original. The caller owns the copy
 * and wipes it. NULL: not set. */
char *co_secret_take(const char *name);
/* Takes the token from COHORT_TOKEN (see co_secret_take). *given: the variable was set. */
co_err co_token_take(char out[CO_TOKEN_TEXT], bool *given);

/* ---- TLS: both roles from one token ---- */
typedef struct co_tls co_tls;
/* The identity (a run id) is sent unencrypted. TLS does not check it; the terms do, after the handshake. */
co_err co_tls_new(co_tls **out, const co_token *token, const char *identity);
void co_tls_free(co_tls *tls); /* free its connections first; NULL is fine */

/* ---- frames: docs/formats/wire.md ---- */
typedef struct co_frame {
    uint8_t type;
    uint16_t flags;
    uint32_t view;
    uint64_t run, step;
    uint32_t len;
    const void *body;
} co_frame;
void co_frame_head(uint8_t out[CO_FRAME_HEAD], const co_frame *f);
/* *used = 0: the frame is not complete yet. CO_EFORMAT: not a frame, so no later byte can be trusted. */
co_err co_frame_parse(co_frame *out, size_t *used, const void *bytes, size_t len);

/* ---- connections ---- */
typedef struct co_conn co_conn;
typedef enum { CO_CONN_CLIENT, CO_CONN_SERVER } co_conn_side;
/* Takes ownership of fd, even on failure. A client begins the handshake in its first co_conn_work. tls NULL:
 * plain; a plain server treats its peer as a stranger until the head of a frame has arrived. */
co_err co_conn_new(co_conn **out, int fd, co_tls *tls, co_conn_side side);
void co_conn_free(co_conn *c); /* NULL is fine */
int co_conn_fd(const co_conn *c);
int co_conn_events(const co_conn *c); /* POLLIN, POLLOUT */
bool co_conn_known(const co_conn *c); /* the peer knows the token (plain: it has sent a frame's head) */
size_t co_conn_unsent(const co_conn *c);
bool co_conn_settled(const co_conn *c);  /* the peer's kernel has acknowledged all bytes */
size_t co_conn_unread(const co_conn *c); /* received bytes that no co_conn_next has returned */
/* Does all work that is possible without waiting. CO_EPEER: closed or broken. CO_EFORMAT: not our protocol.
 * CO_EINPUT: the peer has another token. Frames that arrived earlier can still be taken. */
co_err co_conn_work(co_conn *c);
/* The next complete frame, valid until the next call for c. *got false: none yet. CO_EFORMAT: not a frame. */
co_err co_conn_next(co_conn *c, co_frame *out, bool *got);
/* queues the frame and sends as much as the socket takes */
co_err co_conn_send(co_conn *c, const co_frame *f);
/* These two block. */
co_err co_conn_meet(co_conn *c, const co_patience *p);                /* until the peer is known */
co_err co_conn_wait(co_conn *c, co_frame *out, const co_patience *p); /* until a frame has arrived */

/* ---- streams: bulk data ---- A stream carries bytes of the caller's own format between two hosts, plain
 * or inside TLS 1.3, without a queue: it reads into the caller's memory and writes from it. First each
 * side sends a hello of CO_STREAM_HELLO bytes. Until the other side's hello has come, the other side is a
 * stranger. */
enum { CO_STREAM_HELLO = 64 };
typedef struct co_stream co_stream;
/* Takes ownership of fd, even on failure. */
co_err co_stream_new(co_stream **out, int fd, co_tls *tls, co_conn_side side);
void co_stream_free(co_stream *s); /* NULL is fine */
int co_stream_fd(const co_stream *s);
void co_stream_say(co_stream *s, const uint8_t hello[CO_STREAM_HELLO]); /* copied; co_stream_work sends it */
/* Handshake and hellos, as far as possible without waiting. The codes are those of co_conn_work. */
co_err co_stream_work(co_stream *s);
bool co_stream_trusts(const co_stream *s);          /* the other side knows the token, or there is none */
const uint8_t *co_stream_heard(const co_stream *s); /* the other side's hello; NULL: it has not come */
/* After both hellos. *got or *took 0: nothing can be moved now. A read or write may move less than could
 * be moved, so repeat it until it moves nothing. CO_EPEER: closed or broken; CO_EFORMAT: not the protocol. */
co_err co_stream_read(co_stream *s, const struct iovec *to, int n, size_t *got);
/* The memory of the bytes that it took is the caller's again. They may wait in a small buffer until
 * co_stream_flush. */
co_err co_stream_write(co_stream *s, const struct iovec *from, int n, size_t *took);
co_err co_stream_flush(co_stream *s, size_t *left); /* *left: bytes that the socket does not take now */
uint64_t co_stream_raw_got(const co_stream *s);     /* bytes through the socket */
uint64_t co_stream_raw_sent(const co_stream *s);

/* ---- the gate: a listening socket and its strangers ---- Holds at most CO_STRANGERS strangers. When it
 * is full, the address that has the most loses its oldest one. One turn does a bounded amount of work. */
typedef struct co_gate co_gate;
co_err co_gate_open(co_gate **out, int listen_fd, co_tls *tls); /* takes listen_fd */
/* A gate for streams; its connections come from co_gate_turn_stream, with their hello. */
co_err co_gate_open_streams(co_gate **out, int listen_fd, co_tls *tls);
int co_gate_fd(const co_gate *g); /* readable: call co_gate_turn */
/* One turn. Returns a connection whose peer is known, now the caller's, or NULL. After a connection call it
 * again at once. Also call it twice a second, so that it closes strangers who are late. */
co_conn *co_gate_turn(co_gate *g);
co_stream *co_gate_turn_stream(co_gate *g);
typedef struct co_gate_counts {
    uint64_t accepted, let_in, sent_away;
    uint64_t wrong_token; /* strangers with another token; the last came from wrong_from */
    co_addr wrong_from;
} co_gate_counts;
co_gate_counts co_gate_count(const co_gate *g);
void co_gate_close(co_gate *g); /* NULL is fine */

#endif
