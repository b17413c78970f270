/* stream_int.h -- the inside of a bulk stream: stream.c has the socket, stream_tls.c the encryption. Seen
 * by net only. */
#ifndef CO_NET_STREAM_INT_H
#define CO_NET_STREAM_INT_H

#include <sys/uio.h>

#include "net/net_int.h"

/* Encrypted bytes between OpenSSL and the socket: several records go through one system call. */
struct stream_buffer {
    uint8_t *bytes;
    size_t at, len, room; /* bytes[at..len) wait */
};

struct co_stream {
    int fd;
    co_conn_side side;
    SSL *ssl;          /* NULL: plain */
    BIO_METHOD *wires; /* how OpenSSL reads from `in` and writes to `out` */
    struct stream_buffer in, out;
    bool shaken; /* the handshake is done, or there is none */
    bool speaks; /* `mine` is to be sent */
    uint8_t mine[CO_STREAM_HELLO], theirs[CO_STREAM_HELLO];
    size_t mine_at, theirs_at;
    uint64_t raw_got, raw_sent; /* bytes through the socket */
    co_err err;                 /* why a read or write failed inside OpenSSL */
    uint64_t rekey_every, since_rekey, rekeys;
};

/* stream.c: reads what the socket has, at most len bytes. *got 0: nothing now. */
co_err stream_receive(co_stream *stream, void *to, size_t len, size_t *got);

/* stream_tls.c */
co_err stream_tls_open(co_stream *stream, co_tls *tls);
co_err stream_tls_shake(co_stream *stream); /* sets `shaken` when it is done */
co_err stream_tls_read(co_stream *stream, void *to, size_t len, size_t *got);
co_err stream_tls_write(co_stream *stream, const void *bytes, size_t len, size_t *took);
void stream_tls_close(co_stream *stream);

#endif
