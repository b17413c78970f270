/* stream_tls.c -- the encryption of a bulk stream.
 *
 * OpenSSL reads from `in` and writes to `out`; we move these from and to the socket in large pieces. A
 * write into `out` always fits, because we flush first and encrypt only as much as there is room for. So
 * OpenSSL never holds half a record of the caller's bytes, and the caller may change its mind about what
 * it sends next.
 *
 * Keys: AES-GCM may encrypt 2^24.5 records with one key (RFC 8446, 5.5), some 388 GB. We take new keys
 * after every REKEY_BYTES sent.
 */
#include "net/stream_int.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <string.h>

#include "base/alloc.h"

#define REKEY_BYTES ((uint64_t)1 << 34)
enum {
    PIECE = 128 << 10,       /* plain bytes that are encrypted before `out` is flushed */
    OUT_ROOM = PIECE + 8192, /* their records, and a key update */
    IN_ROOM = 256 << 10,
    SMALL = 2048 /* both buffers, as long as the other side is a stranger */
};

/* Room for at least `want` bytes after `len`. */
static co_err make_room(struct stream_buffer *buffer, size_t want)
{
    if (buffer->at == buffer->len)
        buffer->at = buffer->len = 0;
    if (buffer->room - buffer->len >= want)
        return CO_OK;
    uint8_t *bytes = co_realloc(buffer->bytes, buffer->len + want);
    if (!bytes)
        return CO_ENOMEM;
    buffer->bytes = bytes;
    buffer->room = buffer->len + want;
    return CO_OK;
}

/* --- what OpenSSL sees ---------------------------------------------------------------------------------- */
static int wire_read(BIO *bio, char *to, int len)
{
    co_stream *stream = BIO_get_data(bio);
    struct stream_buffer *in = &stream->in;
    size_t got = 0, room = co_stream_heard(stream) ? IN_ROOM : SMALL;

    BIO_clear_retry_flags(bio);
    if (in->at == in->len) {
        stream->err = make_room(in, room);
        if (!stream->err)
            stream->err = stream_receive(stream, in->bytes, in->room, &got);
        if (stream->err)
            return -1;
        in->at = 0;
        in->len = got;
    }
    size_t n = in->len - in->at < (size_t)len ? in->len - in->at : (size_t)len;
    if (!n) {
        BIO_set_retry_read(bio);
        return -1;
    }
    memcpy(to, in->bytes + in->at, n);
    in->at += n;
    return (int)n;
}

static int wire_write(BIO *bio, const char *bytes, int len)
{
    co_stream *stream = BIO_get_data(bio);
    struct stream_buffer *out = &stream->out;

    BIO_clear_retry_flags(bio);
    if (out->room - out->len < (size_t)len) {
        stream->err = make_room(out, (size_t)len > SMALL ? OUT_ROOM : SMALL);
        if (stream->err || out->room - out->len < (size_t)len)
            return -1;
    }
    memcpy(out->bytes + out->len, bytes, (size_t)len);
    out->len += (size_t)len;
    return len;
}

static long wire_control(BIO *bio, int command, long a, void *b)
{
    return command == BIO_CTRL_FLUSH;
}

co_err stream_tls_open(co_stream *stream, co_tls *tls)
{
    BIO *bio = NULL;

    stream->rekey_every = REKEY_BYTES;
    stream->ssl = tls_session(tls, stream->side);
    stream->wires = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "cohort stream");
    if (stream->ssl && stream->wires && BIO_meth_set_read(stream->wires, wire_read) &&
        BIO_meth_set_write(stream->wires, wire_write) && BIO_meth_set_ctrl(stream->wires, wire_control))
        bio = BIO_new(stream->wires);
    if (!bio)
        return co_fail(CO_ENOMEM, "out of memory for a TLS connection");
    BIO_set_data(bio, stream);
    BIO_set_init(bio, 1);
    SSL_set_bio(stream->ssl, bio, bio);
    SSL_clear_mode(stream->ssl, SSL_MODE_RELEASE_BUFFERS); /* it costs an allocation per record */
    return CO_OK;
}

void stream_tls_close(co_stream *stream)
{
    SSL_free(stream->ssl);
    BIO_meth_free(stream->wires);
}

/* --- the caller's side ---------------------------------------------------------------------------------- */
/* OpenSSL returned `status` <= 0. CO_OK: nothing can be done now. */
static co_err stopped(co_stream *stream, int status)
{
    co_err err = stream->err;

    stream->err = CO_OK;
    if (err) {
        ERR_clear_error();
        return err;
    }
    return SSL_get_error(stream->ssl, status) == SSL_ERROR_WANT_READ ? CO_OK : tls_failure(stream->ssl, status);
}

co_err stream_tls_shake(co_stream *stream)
{
    ERR_clear_error();
    int n = SSL_do_handshake(stream->ssl);

    if (n != 1)
        return stopped(stream, n);
    if (!SSL_session_reused(stream->ssl))
        return co_fail(CO_EINPUT, "the other side does not have the token");
    stream->shaken = true;
    return CO_OK;
}

co_err stream_tls_read(co_stream *stream, void *to, size_t len, size_t *got)
{
    *got = 0;
    ERR_clear_error();
    int status = SSL_read_ex(stream->ssl, to, len, got);
    return status == 1 ? CO_OK : stopped(stream, status);
}

/* New keys for what this side sends. */
static co_err rekey(co_stream *stream)
{
    if (stream->since_rekey < stream->rekey_every)
        return CO_OK;
    ERR_clear_error();
    if (!SSL_key_update(stream->ssl, SSL_KEY_UPDATE_NOT_REQUESTED))
        return co_fail(CO_EIO, "TLS: the keys cannot be renewed");
    stream->since_rekey = 0;
    stream->rekeys++;
    return CO_OK;
}

co_err stream_tls_write(co_stream *stream, const void *bytes, size_t len, size_t *took)
{
    size_t left = stream->out.len - stream->out.at;

    *took = 0;
    if (stream->out.len >= PIECE / 2)
        CO_TRY(co_stream_flush(stream, &left));
    if (stream->out.len >= PIECE / 2)
        return CO_OK; /* the socket takes nothing now */
    CO_TRY(rekey(stream));
    CO_TRY(make_room(&stream->out, 0));
    ERR_clear_error();
    int status = SSL_write_ex(stream->ssl, bytes, len < PIECE / 2 ? len : PIECE / 2, took);
    if (status != 1)
        return stopped(stream, status);
    stream->since_rekey += *took;
    return CO_OK;
}
