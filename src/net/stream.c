/* stream.c -- a bulk stream over a non-blocking socket, plain or TLS: the socket's side.
 *
 *     plain   socket <----------------------------> the caller's memory
 *     TLS     socket <--in, out--> OpenSSL <------> the caller's memory      (stream_tls.c)
 *
 * Each side first sends a hello of CO_STREAM_HELLO bytes. Until the other side's hello has come, the other
 * side is a stranger, and we read at most CO_STRANGER_BYTES from it. The content of a hello is the
 * caller's matter.
 *
 * Unlike a connection (conn.c) a stream never queues what the caller sends, except for the encrypted bytes
 * of at most a few records. It never gives up a slow reader.
 */
#include "net/stream_int.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

co_err co_stream_new(co_stream **out, int fd, co_tls *tls, co_conn_side side)
{
    co_stream *stream = co_zalloc(sizeof *stream);
    int one = 1;

    if (!stream) {
        close(fd);
        return CO_ENOMEM;
    }
    stream->fd = fd;
    stream->side = side;
    stream->shaken = !tls;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    co_err err = tls ? stream_tls_open(stream, tls) : CO_OK;
    if (err) {
        co_stream_free(stream);
        return err;
    }
    *out = stream;
    return CO_OK;
}

void co_stream_free(co_stream *stream)
{
    if (!stream)
        return;
    stream_tls_close(stream);
    close(stream->fd);
    co_free(stream->in.bytes);
    co_free(stream->out.bytes);
    co_free(stream);
}

int co_stream_fd(const co_stream *stream)
{
    return stream->fd;
}

uint64_t co_stream_raw_got(const co_stream *stream)
{
    return stream->raw_got;
}

uint64_t co_stream_raw_sent(const co_stream *stream)
{
    return stream->raw_sent;
}

bool co_stream_trusts(const co_stream *stream)
{
    return stream->shaken;
}

const uint8_t *co_stream_heard(const co_stream *stream)
{
    return stream->theirs_at == CO_STREAM_HELLO ? stream->theirs : NULL;
}

void co_stream_say(co_stream *stream, const uint8_t hello[CO_STREAM_HELLO])
{
    memcpy(stream->mine, hello, CO_STREAM_HELLO);
    stream->speaks = true;
}

/* --- the socket ----------------------------------------------------------------------------------------- */
/* One side uses TLS and the other does not. The server answers once in the client's protocol, so that the
 * client can explain the failure. The answer contains no application data. */
static co_err wrong_dialect(co_stream *stream, uint8_t first)
{
    static const uint8_t alert[7] = {0x15, 3, 3, 0, 2, 2, 70}; /* fatal, protocol version */
    static const uint8_t plain[8] = "COHB";
    bool tls = first >= 0x14 && first <= 0x17; /* the types of TLS records */

    if (tls == (stream->ssl != NULL))
        return CO_OK;
    if (stream->side == CO_CONN_SERVER && send(stream->fd, tls ? plain : alert, 7, MSG_NOSIGNAL) < 0)
        errno = 0; /* the peer will notice that we close */
    return tls ? co_fail(CO_EFORMAT,
                         "the other side uses TLS: it has a token, this one was started with --insecure")
               : co_fail(CO_EFORMAT,
                         "the other side does not use TLS: it was started with --insecure, this one was not");
}

/* A stranger may send little. */
static co_err allowance(const co_stream *stream, size_t *len)
{
    if (co_stream_heard(stream))
        return CO_OK;
    if (stream->raw_got >= CO_STRANGER_BYTES)
        return co_fail(CO_EFORMAT, "the other side sent %d bytes and no greeting", CO_STRANGER_BYTES);
    size_t left = CO_STRANGER_BYTES - (size_t)stream->raw_got;
    *len = *len < left ? *len : left;
    return CO_OK;
}

/* What recv or recvmsg returned. */
static co_err received(co_stream *stream, ssize_t n, size_t *got)
{
    *got = n > 0 ? (size_t)n : 0;
    stream->raw_got += *got;
    if (n > 0 || (n < 0 && errno == EAGAIN))
        return CO_OK;
    return n < 0 ? co_fail(CO_EPEER, "the connection broke: %m")
                 : co_fail(CO_EPEER, "the other side closed the connection");
}

co_err stream_receive(co_stream *stream, void *to, size_t len, size_t *got)
{
    bool first = stream->raw_got == 0;

    *got = 0;
    CO_TRY(allowance(stream, &len));
    ssize_t some;
    do
        some = recv(stream->fd, to, len, 0);
    while (some < 0 && errno == EINTR);
    CO_TRY(received(stream, some, got));
    return first && *got ? wrong_dialect(stream, *(const uint8_t *)to) : CO_OK;
}

co_err co_stream_flush(co_stream *stream, size_t *left)
{
    struct stream_buffer *out = &stream->out;

    while (out->at < out->len) {
        ssize_t n = send(stream->fd, out->bytes + out->at, out->len - out->at, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0)
            return co_fail(CO_EPEER, "the connection broke: %m");
        out->at += (size_t)n;
        stream->raw_sent += (uint64_t)n;
    }
    if (out->at == out->len)
        out->at = out->len = 0;
    *left = out->len - out->at;
    return CO_OK;
}

/* --- reading and writing -------------------------------------------------------------------------------- */
static co_err read_tls(co_stream *stream, const struct iovec *to, int n, size_t *got)
{
    for (int i = 0; i < n; i++)
        for (size_t at = 0, some; at < to[i].iov_len; at += some) {
            CO_TRY(stream_tls_read(stream, (uint8_t *)to[i].iov_base + at, to[i].iov_len - at, &some));
            *got += some;
            if (!some)
                return CO_OK;
        }
    return CO_OK;
}

co_err co_stream_read(co_stream *stream, const struct iovec *to, int n, size_t *got)
{
    struct msghdr msg = {.msg_iov = (struct iovec *)to, .msg_iovlen = (size_t)n};

    *got = 0;
    if (stream->ssl)
        return read_tls(stream, to, n, got);
    ssize_t some;
    do
        some = recvmsg(stream->fd, &msg, 0);
    while (some < 0 && errno == EINTR);
    return received(stream, some, got);
}

static co_err write_tls(co_stream *stream, const struct iovec *from, int n, size_t *took)
{
    for (int i = 0; i < n; i++)
        for (size_t at = 0, some; at < from[i].iov_len; at += some) {
            CO_TRY(stream_tls_write(stream, (const uint8_t *)from[i].iov_base + at, from[i].iov_len - at,
                                    &some));
            *took += some;
            if (!some)
                return CO_OK;
        }
    return CO_OK;
}

co_err co_stream_write(co_stream *stream, const struct iovec *from, int n, size_t *took)
{
    struct msghdr msg = {.msg_iov = (struct iovec *)from, .msg_iovlen = (size_t)n};

    *took = 0;
    if (stream->ssl)
        return write_tls(stream, from, n, took);
    ssize_t sent;
    do
        sent = sendmsg(stream->fd, &msg, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno != EAGAIN)
        return co_fail(CO_EPEER, "the connection broke: %m");
    *took = sent > 0 ? (size_t)sent : 0;
    stream->raw_sent += *took;
    return CO_OK;
}

/* --- the hellos ----------------------------------------------------------------------------------------- */
static co_err say(co_stream *stream)
{
    struct iovec rest = {stream->mine + stream->mine_at, CO_STREAM_HELLO - stream->mine_at};
    size_t took = 0;

    if (stream->speaks && rest.iov_len)
        CO_TRY(co_stream_write(stream, &rest, 1, &took));
    stream->mine_at += took;
    return CO_OK;
}

static co_err hear(co_stream *stream)
{
    size_t got = 1;

    while (stream->theirs_at < CO_STREAM_HELLO && got) {
        void *to = stream->theirs + stream->theirs_at;
        size_t rest = CO_STREAM_HELLO - stream->theirs_at;
        CO_TRY(stream->ssl ? stream_tls_read(stream, to, rest, &got) : stream_receive(stream, to, rest, &got));
        stream->theirs_at += got;
    }
    return CO_OK;
}

co_err co_stream_work(co_stream *stream)
{
    size_t left;
    co_err err = stream->shaken ? CO_OK : stream_tls_shake(stream);

    if (!err && stream->shaken) {
        err = say(stream);
        if (!err)
            err = hear(stream);
    }
    if (err == CO_EPEER)
        return err;
    co_err sent = co_stream_flush(stream, &left); /* this includes the alert that says why we refuse */
    return err ? err : sent;
}
