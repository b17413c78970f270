/* conn.c -- a stream of frames over a non-blocking socket, plain or TLS.
 *
 *     socket --raw--> [TLS through memory] --> in: bytes of frames --> co_conn_next
 *     socket <--raw-- out <-- [TLS through memory] <-- co_conn_send
 *
 * TLS works on memory instead of the socket, so that we control how many bytes are read before the peer is
 * known. Each call decrypts everything that it read: no data stays inside TLS, where poll cannot see it. We
 * stop reading while the caller has a whole frame to take. We give up a peer that leaves CO_CONN_QUEUE bytes
 * unread.
 */
#include "net/net_int.h"

#include <errno.h>
#include <linux/sockios.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/alloc.h"

enum { PIECE = 16384, PIECES = 16 }; /* one call reads at most PIECES pieces of PIECE bytes */

struct bytes {
    uint8_t *p;
    size_t at, len, room; /* p[at..len) is still unused */
};

struct co_conn {
    int fd;
    co_conn_side side;
    SSL *ssl; /* NULL: plain */
    bool known, ended;
    size_t raw_in; /* bytes read from the socket while the peer was unknown */
    struct bytes in, out;
};

static co_err room_for(struct bytes *b, size_t more)
{
    if (b->at == b->len)
        b->at = b->len = 0;
    if (b->room - b->len >= more)
        return CO_OK;
    if (b->at) {
        memmove(b->p, b->p + b->at, b->len - b->at);
        b->len -= b->at;
        b->at = 0;
    }
    if (b->room - b->len >= more)
        return CO_OK;
    size_t room = b->len + more + b->room / 2;
    uint8_t *p = co_realloc(b->p, room);
    if (!p)
        return CO_ENOMEM;
    b->p = p;
    b->room = room;
    return CO_OK;
}

static co_err append(struct bytes *b, const void *bytes, size_t len)
{
    CO_TRY(room_for(b, len));
    memcpy(b->p + b->len, bytes, len);
    b->len += len;
    return CO_OK;
}

co_err co_conn_new(co_conn **out, int fd, co_tls *tls, co_conn_side side)
{
    co_conn *c = co_zalloc(sizeof *c);
    BIO *rd = NULL, *wr = NULL;

    if (!c)
        goto fail;
    c->side = side;
    c->known = !tls && side == CO_CONN_CLIENT;
    if (tls) {
        c->ssl = tls_session(tls, side);
        if (!c->ssl)
            goto fail;
        rd = BIO_new(BIO_s_mem());
        wr = BIO_new(BIO_s_mem());
        if (!rd || !wr) {
            BIO_free(rd);
            BIO_free(wr);
            co_fail(CO_ENOMEM, "out of memory for a TLS connection");
            goto fail;
        }
        BIO_set_mem_eof_return(rd, -1);
        SSL_set_bio(c->ssl, rd, wr);
    }
    c->fd = fd;
    *out = c;
    return CO_OK;
fail:
    close(fd);
    if (c)
        SSL_free(c->ssl);
    co_free(c);
    return CO_ENOMEM;
}

void co_conn_free(co_conn *c)
{
    if (!c)
        return;
    SSL_free(c->ssl);
    close(c->fd);
    co_free(c->in.p);
    co_free(c->out.p);
    co_free(c);
}

int co_conn_fd(const co_conn *c)
{
    return c->fd;
}

static bool reader_is_behind(const co_conn *c)
{
    return c->in.len - c->in.at >= CO_FRAME_HEAD + CO_FRAME_MOST;
}

int co_conn_events(const co_conn *c)
{
    return (reader_is_behind(c) || c->ended ? 0 : POLLIN) | (co_conn_unsent(c) ? POLLOUT : 0);
}

bool co_conn_known(const co_conn *c)
{
    return c->known;
}

size_t co_conn_unsent(const co_conn *c)
{
    return c->out.len - c->out.at;
}

bool co_conn_settled(const co_conn *c)
{
    int there = 0;

    return co_conn_unsent(c) == 0 && (ioctl(c->fd, SIOCOUTQ, &there) != 0 || there == 0);
}

size_t co_conn_unread(const co_conn *c)
{
    return c->in.len - c->in.at;
}

static co_err flush(co_conn *c)
{
    while (c->out.at < c->out.len) {
        ssize_t n = send(c->fd, c->out.p + c->out.at, c->out.len - c->out.at, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return CO_OK;
        if (n < 0)
            return co_fail(CO_EPEER, "the connection broke: %m");
        c->out.at += (size_t)n;
    }
    return CO_OK;
}

/* Moves what TLS wants to send into `out`. */
static co_err drain(co_conn *c)
{
    char *p;
    long n = BIO_get_mem_data(SSL_get_wbio(c->ssl), &p);

    if (n > 0) {
        CO_TRY(append(&c->out, p, (size_t)n));
        (void)BIO_reset(SSL_get_wbio(c->ssl));
    }
    return CO_OK;
}

/* One side speaks TLS and the other does not. The server answers once in the client's protocol, so that the
 * client can explain the failure. The answer contains no application data. */
static co_err wrong_dialect(co_conn *c, const uint8_t *first)
{
    static const uint8_t alert[7] = {0x15, 3, 3, 0, 2, 2, 70}; /* fatal, protocol version */
    uint8_t head[CO_FRAME_HEAD];
    bool answer = c->side == CO_CONN_SERVER && !c->raw_in;

    if (c->ssl && first[0] == 'C') {
        if (answer && send(c->fd, alert, sizeof alert, MSG_NOSIGNAL) < 0)
            errno = 0; /* the peer will notice that we close */
        return co_fail(CO_EFORMAT,
                       "the other side does not use TLS: it was started with --insecure, this one was not");
    }
    if (!c->ssl && (first[0] == 0x15 || first[0] == 0x16)) {
        co_frame_head(head, &(co_frame){0});
        if (answer && send(c->fd, head, sizeof head, MSG_NOSIGNAL) < 0)
            errno = 0;
        return co_fail(CO_EFORMAT,
                       "the other side uses TLS: it has a token, this one was started with --insecure");
    }
    return CO_OK;
}

static co_err decrypt(co_conn *c)
{
    for (;;) {
        CO_TRY(room_for(&c->in, PIECE));
        ERR_clear_error();
        int n = SSL_read(c->ssl, c->in.p + c->in.len, PIECE);
        if (n > 0)
            c->in.len += (size_t)n;
        else if (SSL_get_error(c->ssl, n) == SSL_ERROR_WANT_READ)
            return CO_OK;
        else
            return tls_failure(c->ssl, n);
    }
}

static co_err shake_hands(co_conn *c)
{
    ERR_clear_error();
    int n = SSL_do_handshake(c->ssl);

    if (n == 1 && !SSL_session_reused(c->ssl))
        return co_fail(CO_EINPUT, "the other side does not have the token");
    if (n == 1)
        c->known = true;
    else if (SSL_get_error(c->ssl, n) != SSL_ERROR_WANT_READ)
        return tls_failure(c->ssl, n);
    return CO_OK;
}

static co_err take_in(co_conn *c, const uint8_t *piece, size_t n)
{
    co_err err = CO_OK;

    if (!c->raw_in && n)
        CO_TRY(wrong_dialect(c, piece));
    if (!c->known || !c->raw_in)
        c->raw_in += n;
    if (c->ssl) {
        if (BIO_write(SSL_get_rbio(c->ssl), piece, (int)n) != (int)n)
            return co_fail(CO_ENOMEM, "out of memory for a TLS connection");
        if (!c->known)
            err = shake_hands(c);
        if (!err && c->known)
            err = decrypt(c);
        co_err more = drain(c); /* this includes the alert that says why we refuse */
        return err ? err : more;
    }
    CO_TRY(append(&c->in, piece, n));
    if (!c->known) {
        co_frame head;
        size_t used;
        CO_TRY(co_frame_parse(&head, &used, c->in.p + c->in.at, c->in.len - c->in.at));
        c->known = c->in.len - c->in.at >= CO_FRAME_HEAD;
    }
    return CO_OK;
}

static co_err receive(co_conn *c)
{
    uint8_t piece[PIECE];

    for (int i = 0; i < PIECES && !reader_is_behind(c); i++) {
        size_t want = c->known ? PIECE : CO_STRANGER_BYTES - c->raw_in;
        if (!want)
            return co_fail(CO_EFORMAT, "the other side sent %d bytes and did not prove that it knows the token",
                           CO_STRANGER_BYTES);
        ssize_t n = recv(c->fd, piece, want, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return CO_OK;
        if (n <= 0) {
            c->ended = true;
            return n < 0 ? co_fail(CO_EPEER, "the connection broke: %m")
                         : co_fail(CO_EPEER, "the other side closed the connection");
        }
        CO_TRY(take_in(c, piece, (size_t)n));
        if ((size_t)n < want)
            return CO_OK;
    }
    return CO_OK;
}

co_err co_conn_work(co_conn *c)
{
    co_err err = CO_OK;

    if (c->ssl && !c->known && !c->raw_in && c->side == CO_CONN_CLIENT) {
        CO_TRY(shake_hands(c)); /* the client sends the first message */
        CO_TRY(drain(c));
    }
    err = receive(c);
    if (err == CO_EPEER)
        return err;
    co_err sent = flush(c);
    return err ? err : sent;
}

co_err co_conn_next(co_conn *c, co_frame *out, bool *got)
{
    size_t used = 0;

    *got = false;
    if (c->in.len == c->in.at)
        return CO_OK;
    CO_TRY(co_frame_parse(out, &used, c->in.p + c->in.at, c->in.len - c->in.at));
    c->in.at += used;
    *got = used > 0;
    return CO_OK;
}

static co_err encrypt(co_conn *c, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;

    for (size_t n = 0; len; at += n, len -= n) {
        ERR_clear_error();
        int status = SSL_write_ex(c->ssl, at, len, &n);
        if (status != 1)
            return tls_failure(c->ssl, status);
        CO_TRY(drain(c));
    }
    return CO_OK;
}

co_err co_conn_send(co_conn *c, const co_frame *f)
{
    uint8_t head[CO_FRAME_HEAD];

    CO_ASSERT(c->known, "a frame was sent before the peer was known");
    CO_ASSERT(f->len <= CO_FRAME_MOST, "a frame is longer than CO_FRAME_MOST");
    if (co_conn_unsent(c) + f->len > CO_CONN_QUEUE)
        return co_fail(CO_EPEER, "the other side does not read: %zu bytes wait for it", co_conn_unsent(c));
    co_frame_head(head, f);
    CO_TRY(c->ssl ? encrypt(c, head, sizeof head) : append(&c->out, head, sizeof head));
    if (f->len)
        CO_TRY(c->ssl ? encrypt(c, f->body, f->len) : append(&c->out, f->body, f->len));
    return flush(c);
}

co_err co_conn_meet(co_conn *c, const co_patience *p)
{
    for (;;) {
        CO_TRY(co_conn_work(c));
        if (c->known)
            return CO_OK;
        CO_TRY(patience_poll(c->fd, co_conn_events(c), p));
    }
}

co_err co_conn_wait(co_conn *c, co_frame *out, const co_patience *p)
{
    for (bool got = false;;) {
        CO_TRY(co_conn_next(c, out, &got));
        if (got)
            return CO_OK;
        CO_TRY(patience_poll(c->fd, co_conn_events(c), p));
        co_err err = co_conn_work(c);
        co_err more = co_conn_next(c, out, &got);
        if (got)
            return CO_OK;
        CO_TRY(more);
        CO_TRY(err);
    }
}
