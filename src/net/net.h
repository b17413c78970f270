/* net.h -- sockets with deadlines, TLS by a shared token, frames. Nothing here blocks past its deadline.
 *
 * A connection carries frames, plain or inside TLS 1.3 with the token as pre-shared key (no certificates). Whoever does not
 * know the token is closed before the first application byte. Callers own the loop: poll co_conn_fd for co_conn_events, then
 * call co_conn_work, then take the frames.
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

#include "base/err.h"

/* All limits of this room. */
enum {
    CO_STRANGER_BYTES = 1024, /* a connection may send so much before it has shown that it knows the token */
    CO_STRANGER_MS = 2000,    /* and take so long */
    CO_STRANGERS = 64,        /* and there may be so many of them at once */
    CO_FRAME_HEAD = 32,
    CO_FRAME_MOST = 1 << 20, /* body of a frame */
    CO_CONN_QUEUE = 4 << 20, /* bytes that wait for a slow reader; more: it is given up */
    CO_NAME_MOST = 256       /* a host name or an address as text, with its NUL */
};

/* ---- patience: how long a blocking call may take, and how to end it from another thread ---- */
typedef struct co_patience {
    uint64_t until_ns;          /* CLOCK_MONOTONIC */
    const atomic_bool *give_up; /* looked at ten times a second; NULL: only the time counts. Then: CO_ESTOP */
} co_patience;
co_patience co_patience_s(double seconds);

/* A thread with every signal blocked: those are the main thread's. 0, or errno's number. */
int co_thread_start(pthread_t *out, void *(*main)(void *), void *arg);

/* ---- addresses ---- */
typedef struct co_endpoint {
    char host[CO_NAME_MOST];
    int port; /* -1: none was given */
} co_endpoint;
/* "host", "host:port", "[::1]:port", "::1", ":port" (host ""); CO_EINPUT with the reason otherwise. */
co_err co_endpoint_parse(co_endpoint *out, const char *text);
void co_endpoint_text(char *out, size_t size, const char *host, int port); /* brackets around IPv6 */

typedef union co_addr {
    struct sockaddr sa;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage any;
} co_addr;
socklen_t co_addr_len(const co_addr *a);
int co_addr_port(const co_addr *a);
void co_addr_set_port(co_addr *a, int port);
/* Numeric, without port; IPv4 inside IPv6 is shown as IPv4. */
void co_addr_text(char *out, size_t size, const co_addr *a);
bool co_addr_same_host(const co_addr *a, const co_addr *b); /* ports aside */
bool co_addr_is_loopback(const co_addr *a);
/* By what was written: a name that only this host maps to 127.0.1.1 is not. */
bool co_host_is_loopback(const char *name);
bool co_addr_is_mine(const co_addr *a); /* one of this host's interfaces has it */
/* The name of the interface that has this numeric address; false: none has, or it is loopback. */
bool co_net_interface(char *out, size_t size, const char *addr);
/* This host's addresses that others might reach (interfaces up; no loopback, no link-local), comma between, those of bridges for
 * containers last; "" if there are none. */
void co_addr_mine(char *out, size_t size);

/* Name or number to at most `most` addresses; waits for the resolver only as long as patience lasts. CO_EIO: no such name
 * (a name server may know it later); CO_ETIMEOUT. */
co_err co_net_resolve(co_addr *out, int most, int *n, const char *host, int port, const co_patience *p);
/* Which of our addresses packets to `peer` leave from; CO_EIO when there is no route. Sends nothing. */
co_err co_net_route(co_addr *mine, const co_addr *peer);

/* ---- sockets: always non-blocking and close-on-exec ---- */
/* `address`: number, or "" for every address, IPv6 and IPv4 both. Port 0: any; co_net_local tells. CO_EINPUT: not ours to bind;
 * CO_EIO with the holder's pid and command: taken. */
co_err co_net_listen(int *fd, const char *address, int port);
/* CO_EPEER: refused (nothing listens); CO_ETIMEOUT: no answer; CO_EIO: no route. errno says which. */
co_err co_net_connect(int *fd, const co_addr *to, const co_patience *p);
/* The same in two parts, for several at once: the end is due when *fd can be written to, or late. The caller closes fd. */
co_err co_net_connect_start(int *fd, const co_addr *to);
co_err co_net_connect_end(int fd, const co_addr *to, bool in_time);
co_err co_net_pair(int fd[2]);
co_addr co_net_local(int fd);
co_addr co_net_peer(int fd);
/* Free on every address just now, and not of those that outgoing connections take. */
co_err co_net_free_port(int *port);

typedef struct co_holder {
    int pid; /* 0: not found (another user's, or in another namespace) */
    char command[CO_NAME_MOST];
} co_holder;
bool co_net_holder(co_holder *out, int port); /* who listens on this TCP port; false: nobody does */

/* ---- bytes as text: Crockford's base32 with two check digits ---- */
enum { CO_BASE32_CHECK = 2 };
#define CO_BASE32_DIGITS(bytes) ((8 * (bytes) + 4) / 5 + CO_BASE32_CHECK)
char co_base32_letter(unsigned digit);
int co_base32_digit(char c); /* any case, O is 0, I and L are 1; -1: none */
/* digits: CO_BASE32_DIGITS(len) numbers below 32. Reading: false if they do not fit each other; bytes may be written then. */
void co_base32_write(uint8_t *digits, const uint8_t *bytes, size_t len);
bool co_base32_read(uint8_t *bytes, size_t len, const uint8_t *digits);

/* ---- the token: 128 bits, as text seven groups of four letters and digits, the last two a check ---- */
typedef struct co_token {
    uint8_t bits[16];
} co_token;
enum { CO_TOKEN_TEXT = 40 };
co_err co_token_make(co_token *out);
void co_token_text(char out[CO_TOKEN_TEXT], const co_token *t);
/* Case and dashes are free; O and I, L read as 0 and 1. CO_EINPUT, without quoting it, if the check fails. */
co_err co_token_parse(co_token *out, const char *text);
/* What this variable of the environment says, the caller's (wipe it); it is unset and overwritten where it stood. NULL: nothing. */
char *co_secret_take(const char *name);
/* From COHORT_TOKEN, which is then unset and overwritten where it stood. *given: there was one. */
co_err co_token_take(char out[CO_TOKEN_TEXT], bool *given);

/* ---- TLS: both roles from one token ---- */
typedef struct co_tls co_tls;
/* The identity (a run id) is sent in the clear and not judged here: that is for the terms, after the handshake. */
co_err co_tls_new(co_tls **out, const co_token *token, const char *identity);
void co_tls_free(co_tls *tls); /* after every connection made with it; NULL is fine */

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
/* *used = 0: not whole yet. CO_EFORMAT: these bytes are no frame, and nothing after them can be trusted. */
co_err co_frame_parse(co_frame *out, size_t *used, const void *bytes, size_t len);

/* ---- connections ---- */
typedef struct co_conn co_conn;
typedef enum { CO_CONN_CLIENT, CO_CONN_SERVER } co_conn_side;
/* Takes fd, also when it fails. A client begins the handshake with its first co_conn_work. tls NULL: plain; a plain server counts its peer as a stranger until a frame's head came. */
co_err co_conn_new(co_conn **out, int fd, co_tls *tls, co_conn_side side);
void co_conn_free(co_conn *c); /* NULL is fine */
int co_conn_fd(const co_conn *c);
int co_conn_events(const co_conn *c); /* POLLIN, POLLOUT */
bool co_conn_known(const co_conn *c); /* the peer knows the token (plain: spoke our frames) */
size_t co_conn_unsent(const co_conn *c);
bool co_conn_settled(const co_conn *c);  /* all that was sent has arrived there */
size_t co_conn_unread(const co_conn *c); /* bytes that came and are no whole frame yet, or not taken */
/* Does what can be done without waiting. CO_EPEER: closed or broken; CO_EFORMAT: not our protocol; CO_EINPUT: another
 * token. Frames that came before the end can still be taken. */
co_err co_conn_work(co_conn *c);
/* The next whole frame, valid until the next call for c. CO_EFORMAT: not a frame. *got false: none yet. */
co_err co_conn_next(co_conn *c, co_frame *out, bool *got);
co_err co_conn_send(co_conn *c, const co_frame *f); /* queued, sent as far as it goes */
/* The blocking forms. */
co_err co_conn_meet(co_conn *c, const co_patience *p);                /* until known */
co_err co_conn_wait(co_conn *c, co_frame *out, const co_patience *p); /* until a frame came */

/* ---- the gate: a listening socket and the strangers before it ----
 * At most CO_STRANGERS at once: of the address that has most of them the oldest is closed first. A turn's work is bounded. */
typedef struct co_gate co_gate;
co_err co_gate_open(co_gate **out, int listen_fd, co_tls *tls); /* takes listen_fd */
int co_gate_fd(const co_gate *g);                               /* readable: a turn has something to do */
/* One turn; call it also twice a second for the late ones. Returns a connection whose peer is known, now the caller's, or
 * NULL; call again at once after one. */
co_conn *co_gate_turn(co_gate *g);
typedef struct co_gate_counts {
    uint64_t accepted, let_in, sent_away;
    uint64_t wrong_token; /* of those sent away; the last one came from wrong_from */
    co_addr wrong_from;
} co_gate_counts;
co_gate_counts co_gate_count(const co_gate *g);
void co_gate_close(co_gate *g); /* NULL is fine */

#endif
