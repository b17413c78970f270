/* sends.c -- the messages that wait to be sent to one peer, in a ring that grows and stays.
 *
 * A message is a head and a payload, written from the caller's memory. When its last byte is handed to the
 * stream, the send is reported. A message that is cut when a part of it is on the wire must still be sent
 * to its end, with the right bytes, because the other side may have its receive posted: the rest is
 * copied, and nothing is reported.
 */
#include "link/tcp_int.h"

#include <string.h>

#include "base/alloc.h"

static struct sending *nth(const struct sends *sends, size_t i)
{
    return &sends->ring[(sends->first + i) & (sends->room - 1)];
}

static co_err grow(struct sends *sends)
{
    size_t room = sends->room ? 2 * sends->room : 64;
    struct sending *ring = co_array(room, sizeof *ring);

    if (!ring)
        return CO_ENOMEM;
    for (size_t i = 0; i < sends->n; i++)
        ring[i] = *nth(sends, i);
    co_free(sends->ring);
    sends->ring = ring;
    sends->room = room;
    sends->first = 0;
    return CO_OK;
}

co_err sends_add(struct sends *sends, const co_tag *tag, const void *bytes, uint32_t len)
{
    if (sends->n == sends->room)
        CO_TRY(grow(sends));
    *nth(sends, sends->n++) = (struct sending){*tag, len, bytes, len, NULL};
    return CO_OK;
}

/* --- cutting -------------------------------------------------------------------------------------------- */
static co_err keep_rest(struct sending *message)
{
    if (message->own)
        return CO_OK;
    message->own = co_alloc(message->left + 1);
    if (!message->own)
        return CO_ENOMEM;
    memcpy(message->own, message->bytes, message->left);
    message->bytes = message->own;
    return CO_OK;
}

co_err sends_cut(struct sends *sends, uint32_t view)
{
    size_t left = 0;

    for (size_t i = 0; i < sends->n; i++) {
        struct sending *message = nth(sends, i);
        bool begun = i == 0 && sends->head_at > 0;
        if (begun && message->tag.view < view)
            CO_TRY(keep_rest(message));
        if (begun || message->tag.view >= view)
            *nth(sends, left++) = *message;
    }
    sends->n = left;
    return CO_OK;
}

void sends_clear(struct sends *sends)
{
    if (sends->n)
        co_free(nth(sends, 0)->own); /* only the first can have one */
    sends->n = sends->first = sends->head_at = 0;
}

void sends_fini(struct sends *sends)
{
    sends_clear(sends);
    co_free(sends->ring);
}

/* --- writing -------------------------------------------------------------------------------------------- */
/* The next messages as pieces of memory, at most LINK_BATCH of them and about LINK_ROUND bytes. */
static int gather(const struct sends *sends, struct iovec *piece, uint8_t head[LINK_BATCH][LINK_HEAD])
{
    int n = 0;
    size_t total = 0;

    for (size_t i = 0; i < sends->n && i < LINK_BATCH && total < LINK_ROUND; i++) {
        const struct sending *message = nth(sends, i);
        size_t skip = i == 0 ? sends->head_at : 0;
        size_t most = LINK_ROUND - total, some = message->left < most ? message->left : most;
        if (skip < LINK_HEAD) {
            head_write(head[i], &message->tag, message->len);
            piece[n++] = (struct iovec){head[i] + skip, LINK_HEAD - skip};
        }
        if (some)
            piece[n++] = (struct iovec){(void *)message->bytes, some};
        total += LINK_HEAD + some;
    }
    return n;
}

/* So many bytes of the first messages were taken. */
static void advance(struct tcp *tcp, struct peer *peer, size_t took)
{
    struct sends *sends = &peer->sends;

    while (sends->n) {
        struct sending *message = nth(sends, 0);
        size_t head = LINK_HEAD - sends->head_at < took ? LINK_HEAD - sends->head_at : took;
        sends->head_at += head;
        took -= head;
        size_t body = message->left < took ? message->left : took;
        message->bytes += body;
        message->left -= body;
        took -= body;
        tcp->counts.payload_sent += body;
        if (sends->head_at < LINK_HEAD || message->left)
            return;
        if (!message->own)
            report_add(tcp, true, peer->who.id, &message->tag);
        co_free(message->own);
        sends->first = (sends->first + 1) & (sends->room - 1);
        sends->n--;
        sends->head_at = 0;
    }
}

co_err sends_turn(struct tcp *tcp, struct peer *peer)
{
    uint8_t head[LINK_BATCH][LINK_HEAD];
    struct iovec piece[2 * LINK_BATCH];
    size_t left, took = 1;

    for (size_t sent = 0; took && peer->sends.n && sent < LINK_ROUND; sent += took) {
        int n = gather(&peer->sends, piece, head);
        CO_TRY(co_stream_write(peer->stream, piece, n, &took));
        peer->moved |= took > 0;
        advance(tcp, peer, took);
    }
    CO_TRY(co_stream_flush(peer->stream, &left));
    peer->unflushed = left > 0;
    peer->can_write = took && !left;
    return CO_OK;
}
