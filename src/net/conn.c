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

static co_err room_for(struct bytes *buf, size_t more)
{
    if (buf->at == buf->len)
        buf->at = buf->len = 0;
    if (buf->room - buf->len >= more)
        return CO_OK;
    if (buf->at) {
        memmove(buf->p, buf->p + buf->at, buf->len - buf->at);
        buf->len -= buf->at;
        buf->at = 0;
    }
    if (buf->room - buf->len >= more)
        return CO_OK;
    size_t room = buf->len + more + buf->room / 2;
    uint8_t *p = co_realloc(buf->p, room);
    if (!p)
        return CO_ENOMEM;
    buf->p = p;
    buf->room = room;
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
    co_conn *conn = co_zalloc(sizeof *conn);
    BIO *rd = NULL, *wr = NULL;

    if (!conn)
        goto fail;
    conn->side = side;
    conn->known = !tls && side == CO_CONN_CLIENT;
    if (tls) {
        conn->ssl = tls_session(tls, side);
        if (!conn->ssl)
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
        SSL_set_bio(conn->ssl, rd, wr);
    }
    conn->fd = fd;
    *out = conn;
    return CO_OK;
fail:
    close(fd);
    if (conn)
        SSL_free(conn->ssl);
    co_free(conn);
    return CO_ENOMEM;
}

void co_conn_free(co_conn *conn)
{
    if (!conn)
        return;
    SSL_free(conn->ssl);
    close(conn->fd);
    co_free(conn->in.p);
    co_free(conn->out.p);
    co_free(conn);
}

int co_conn_fd(const co_conn *conn)
{
    return conn->fd;
}

static bool reader_is_behind(const co_conn *conn)
{
    return conn->in.len - conn->in.at >= CO_FRAME_HEAD + CO_FRAME_MOST;
}

int co_conn_events(const co_conn *conn)
{
    return (reader_is_behind(conn) || conn->ended ? 0 : POLLIN) | (co_conn_unsent(conn) ? POLLOUT : 0);
}

bool co_conn_known(const co_conn *conn)
{
    return conn->known;
}

size_t co_conn_unsent(const co_conn *conn)
{
    return conn->out.len - conn->out.at;
}

bool co_conn_settled(const co_conn *conn)
{
    int there = 0;

    return co_conn_unsent(conn) == 0 && (ioctl(conn->fd, SIOCOUTQ, &there) != 0 || there == 0);
}

size_t co_conn_unread(const co_conn *conn)
{
    return conn->in.len - conn->in.at;
}

static co_err flush(co_conn *conn)
{
    while (conn->out.at < conn->out.len) {
        ssize_t n = send(conn->fd, conn->out.p + conn->out.at, conn->out.len - conn->out.at, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return CO_OK;
        if (n < 0)
            return co_fail(CO_EPEER, "the connection broke: %m");
        conn->out.at += (size_t)n;
    }
    return CO_OK;
}

/* Moves what TLS wants to send into `out`. */
static co_err drain(co_conn *conn)
{
    char *p;
    long n = BIO_get_mem_data(SSL_get_wbio(conn->ssl), &p);

    if (n > 0) {
        CO_TRY(append(&conn->out, p, (size_t)n));
        (void)BIO_reset(SSL_get_wbio(conn->ssl));
    }
    return CO_OK;
}

/* One side speaks TLS and the other does not. The server answers once in the client's protocol, so that the
 * client can explain the failure. The answer contains no application data. */
static co_err wrong_dialect(co_conn *conn, const uint8_t *first)
{
    static const uint8_t alert[7] = {0x15, 3, 3, 0, 2, 2, 70}; /* fatal, protocol version */
    uint8_t head[CO_FRAME_HEAD];
    bool answer = conn->side == CO_CONN_SERVER && !conn->raw_in;

    if (conn->ssl && first[0] == 'C') {
        if (answer && send(conn->fd, alert, sizeof alert, MSG_NOSIGNAL) < 0)
            errno = 0; /* the peer will notice that we close */
        return co_fail(CO_EFORMAT,
                       "the other side does not use TLS: it was started with --insecure, this one was not");
    }
    if (!conn->ssl && (first[0] == 0x15 || first[0] == 0x16)) {
        co_frame_head(head, &(co_frame){0});
        if (answer && send(conn->fd, head, sizeof head, MSG_NOSIGNAL) < 0)
            errno = 0;
        return co_fail(CO_EFORMAT,
                       "the other side uses TLS: it has a token, this one was started with --insecure");
    }
    return CO_OK;
}

static co_err decrypt(co_conn *conn)
{
    for (;;) {
        CO_TRY(room_for(&conn->in, PIECE));
        ERR_clear_error();
        int n = SSL_read(conn->ssl, conn->in.p + conn->in.len, PIECE);
        if (n > 0)
            conn->in.len += (size_t)n;
        else if (SSL_get_error(conn->ssl, n) == SSL_ERROR_WANT_READ)
            return CO_OK;
        else
            return tls_failure(conn->ssl, n);
    }
}

static co_err shake_hands(co_conn *conn)
{
    ERR_clear_error();
    int n = SSL_do_handshake(conn->ssl);

    if (n == 1 && !SSL_session_reused(conn->ssl))
        return co_fail(CO_EINPUT, "the other side does not have the token");
    if (n == 1)
        conn->known = true;
    else if (SSL_get_error(conn->ssl, n) != SSL_ERROR_WANT_READ)
        return tls_failure(conn->ssl, n);
    return CO_OK;
}

static co_err take_in(co_conn *conn, const uint8_t *piece, size_t n)
{
    co_err err = CO_OK;

    if (!conn->raw_in && n)
        CO_TRY(wrong_dialect(conn, piece));
    if (!conn->known || !conn->raw_in)
        conn->raw_in += n;
    if (conn->ssl) {
        if (BIO_write(SSL_get_rbio(conn->ssl), piece, (int)n) != (int)n)
            return co_fail(CO_ENOMEM, "out of memory for a TLS connection");
        if (!conn->known)
            err = shake_hands(conn);
        if (!err && conn->known)
            err = decrypt(conn);
        co_err more = drain(conn); /* this includes the alert that says why we refuse */
        return err ? err : more;
    }
    CO_TRY(append(&conn->in, piece, n));
    if (!conn->known) {
        co_frame head;
        size_t used;
        CO_TRY(co_frame_parse(&head, &used, conn->in.p + conn->in.at, conn->in.len - conn->in.at));
        conn->known = conn->in.len - conn->in.at >= CO_FRAME_HEAD;
    }
    return CO_OK;
}

static co_err receive(co_conn *conn)
{
    uint8_t piece[PIECE];

    for (int i = 0; i < PIECES && !reader_is_behind(conn); i++) {
        size_t want = conn->known ? PIECE : CO_STRANGER_BYTES - conn->raw_in;
        if (!want)
            return co_fail(CO_EFORMAT, "the other side sent %d bytes and did not prove that it knows the token",
                           CO_STRANGER_BYTES);
        ssize_t n = recv(conn->fd, piece, want, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return CO_OK;
        if (n <= 0) {
            conn->ended = true;
            return n < 0 ? co_fail(CO_EPEER, "the connection broke: %m")
                         : co_fail(CO_EPEER, "the other side closed the connection");
        }
        CO_TRY(take_in(conn, piece, (size_t)n));
        if ((size_t)n < want)
            return CO_OK;
    }
    return CO_OK;
}

co_err co_conn_work(co_conn *conn)
{
    co_err err = CO_OK;

    if (conn->ssl && !conn->known && !conn->raw_in && conn->side == CO_CONN_CLIENT) {
        CO_TRY(shake_hands(conn)); /* the client sends the first message */
        CO_TRY(drain(conn));
    }
    err = receive(conn);
    if (err == CO_EPEER)
        return err;
    co_err sent = flush(conn);
    return err ? err : sent;
}

co_err co_conn_next(co_conn *conn, co_frame *out, bool *got)
{
    size_t used = 0;

    *got = false;
    if (conn->in.len == conn->in.at)
        return CO_OK;
    CO_TRY(co_frame_parse(out, &used, conn->in.p + conn->in.at, conn->in.len - conn->in.at));
    conn->in.at += used;
    *got = used > 0;
    return CO_OK;
}

static co_err encrypt(co_conn *conn, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;

    for (size_t n = 0; len; at += n, len -= n) {
        ERR_clear_error();
        int status = SSL_write_ex(conn->ssl, at, len, &n);
        if (status != 1)
            return tls_failure(conn->ssl, status);
        CO_TRY(drain(conn));
    }
    return CO_OK;
}

co_err co_conn_send(co_conn *conn, const co_frame *f)
{
    uint8_t head[CO_FRAME_HEAD];

    CO_ASSERT(conn->known, "a frame was sent before the peer was known");
    CO_ASSERT(f->len <= CO_FRAME_MOST, "a frame is longer than CO_FRAME_MOST");
    if (co_conn_unsent(conn) + f->len > CO_CONN_QUEUE)
        return co_fail(CO_EPEER, "the other side does not read: %zu bytes wait for it", co_conn_unsent(conn));
    co_frame_head(head, f);
    CO_TRY(conn->ssl ? encrypt(conn, head, sizeof head) : append(&conn->out, head, sizeof head));
    if (f->len)
        CO_TRY(conn->ssl ? encrypt(conn, f->body, f->len) : append(&conn->out, f->body, f->len));
    return flush(conn);
}

co_err co_conn_meet(co_conn *conn, const co_patience *p)
{
    for (;;) {
        CO_TRY(co_conn_work(conn));
        if (conn->known)
            return CO_OK;
        CO_TRY(patience_poll(conn->fd, co_conn_events(conn), p));
    }
}

co_err co_conn_wait(co_conn *conn, co_frame *out, const co_patience *p)
{
    for (bool got = false;;) {
        CO_TRY(co_conn_next(conn, out, &got));
        if (got)
            return CO_OK;
        CO_TRY(patience_poll(conn->fd, co_conn_events(conn), p));
        co_err err = co_conn_work(conn);
        co_err more = co_conn_next(conn, out, &got);
        if (got)
            return CO_OK;
        CO_TRY(more);
        CO_TRY(err);
    }
}
