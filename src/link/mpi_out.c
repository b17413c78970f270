/* mpi_out.c -- messages to a peer: begun in order while the window allows, ended and reported in order.
 *
 * A short message is copied into the slot of its head, so its send is over when MPI has read the slot. A
 * long one waits for the receiver's answer. An answer has two numbers: `taken`, how many of our messages
 * the receiver has taken up, and `go`, 1 if it waits for the bytes of the last of them. A long message
 * that is taken without "go" was dropped.
 */
#include "link/mpi_int.h"

#include <string.h>

#include "base/alloc.h"

static bool listen_for_answer(struct mpi *mpi, struct mpi_peer *peer, uint64_t number)
{
    struct mpi_out *out = &peer->out;
    size_t i = number % WINDOW;

    return mpi_receive(mpi, peer, &out->answer_call[i], out->answer[i], ANSWER_LEN, TAG_ANSWER);
}

co_err mpi_out_open(struct mpi *mpi, struct mpi_peer *peer)
{
    peer->out.slot = co_array(WINDOW, sizeof *peer->out.slot);
    if (!peer->out.slot)
        return CO_ENOMEM;
    for (uint64_t k = 0; k < WINDOW && !peer->lost; k++)
        listen_for_answer(mpi, peer, k);
    return CO_OK;
}

void mpi_out_close(struct mpi *mpi, struct mpi_peer *peer)
{
    struct mpi_out *out = &peer->out;

    for (int i = 0; i < WINDOW; i++)
        if (out->answer_call[i].open)
            mpi_cancel(mpi, &out->answer_call[i]);
    sends_fini(&out->queue);
    co_free(out->slot);
}

/* --- beginning ------------------------------------------------------------------------------------------ */
static void begin(struct mpi *mpi, struct mpi_peer *peer)
{
    struct mpi_out *out = &peer->out;
    const struct sending *next = &out->queue.ring[out->queue.first];
    struct mpi_leaving *message = &out->ring[out->begun % WINDOW];
    struct mpi_slot *slot = &out->slot[out->begun % WINDOW];
    size_t inside = next->len <= SHORT_LEN ? next->len : 0;

    *message = (struct mpi_leaving){.tag = next->tag, .bytes = next->bytes, .len = next->len};
    head_write(slot->head, &message->tag, message->len);
    if (inside)
        memcpy(slot->bytes, message->bytes, inside);
    out->queue.first = (out->queue.first + 1) & (out->queue.room - 1);
    out->queue.n--;
    out->begun++;
    mpi_send(mpi, peer, &message->head, slot, LINK_HEAD + inside, TAG_HEAD);
}

/* --- bodies --------------------------------------------------------------------------------------------- */
/* The next piece of message k; an empty one if it was cut. */
static void send_piece(struct mpi *mpi, struct mpi_peer *peer, uint64_t k)
{
    struct mpi_leaving *message = &peer->out.ring[k % WINDOW];
    size_t left = message->cut ? 0 : message->len - message->at;

    mpi_send(mpi, peer, &message->body, message->bytes + message->at, left < PIECE_LEN ? left : PIECE_LEN,
             TAG_BODY + (int)(k % WINDOW));
    message->at = left < PIECE_LEN ? message->len : message->at + PIECE_LEN;
}

static void go_on(struct mpi *mpi, struct mpi_peer *peer, uint64_t k)
{
    struct mpi_leaving *message = &peer->out.ring[k % WINDOW];

    if (message->head.open && mpi_ended(mpi, peer, &message->head, NULL))
        message->over = message->len <= SHORT_LEN || message->over;
    if (!message->body.open || !mpi_ended(mpi, peer, &message->body, NULL))
        return;
    if (message->at < message->len)
        send_piece(mpi, peer, k);
    else
        message->over = true;
}

/* --- answers -------------------------------------------------------------------------------------------- */
static void take_answer(struct mpi *mpi, struct mpi_peer *peer, uint64_t taken, uint64_t go)
{
    struct mpi_out *out = &peer->out;

    if (taken < out->taken || taken > out->begun || go > 1 || (go && taken == out->taken) ||
        (go && out->ring[(taken - 1) % WINDOW].len <= SHORT_LEN)) {
        mpi_lose(mpi, peer, "sent an answer that does not fit");
        return;
    }
    for (uint64_t k = out->taken; k < taken; k++) {
        struct mpi_leaving *message = &out->ring[k % WINDOW];
        if (k < out->ended || message->len <= SHORT_LEN)
            continue;
        if (go && k + 1 == taken)
            send_piece(mpi, peer, k);
        else
            message->over = true; /* dropped */
    }
    out->taken = taken;
}

static bool hear_answer(struct mpi *mpi, struct mpi_peer *peer)
{
    struct mpi_out *out = &peer->out;
    size_t i = out->answers % WINDOW;
    uint64_t word[2];
    int len;

    if (peer->lost || !mpi_ended(mpi, peer, &out->answer_call[i], &len))
        return false;
    mpi->counts.wire_got += (uint64_t)len;
    if (len != ANSWER_LEN) {
        mpi_lose(mpi, peer, "sent an answer of %d bytes", len);
        return false;
    }
    memcpy(word, out->answer[i], sizeof word);
    out->answers++;
    return listen_for_answer(mpi, peer, out->answers - 1) && (take_answer(mpi, peer, word[0], word[1]), true);
}

void mpi_out_turn(struct mpi *mpi, struct mpi_peer *peer)
{
    struct mpi_out *out = &peer->out;

    while (hear_answer(mpi, peer))
        ;
    for (uint64_t k = out->ended; k < out->begun && !peer->lost; k++)
        go_on(mpi, peer, k);
    while (out->queue.n && out->begun - out->ended < WINDOW && out->begun - out->taken < WINDOW && !peer->lost)
        begin(mpi, peer);
}

void mpi_out_report(struct mpi *mpi, struct mpi_peer *peer)
{
    struct mpi_out *out = &peer->out;

    while (out->ended < out->begun && !peer->lost) {
        struct mpi_leaving *message = &out->ring[out->ended % WINDOW];
        co_tag tag = message->tag;
        if (!message->over || message->head.open || message->body.open)
            return;
        out->ended++;
        mpi->moved = true;
        if (message->cut)
            continue;
        mpi->counts.payload_sent += message->len;
        mpi->link.done(mpi->link.ctx, true, peer->who.id, &tag);
    }
}

/* --- cutting -------------------------------------------------------------------------------------------- */
void mpi_out_cut(struct mpi *mpi, struct mpi_peer *peer)
{
    struct mpi_out *out = &peer->out;

    sends_cut(&out->queue, mpi->view); /* copies nothing: none of them has begun */
    for (uint64_t k = out->ended; k < out->begun; k++)
        if (out->ring[k % WINDOW].tag.view < mpi->view)
            out->ring[k % WINDOW].cut = true;
}

bool mpi_out_holds(const struct mpi_peer *peer)
{
    const struct mpi_out *out = &peer->out;

    for (uint64_t k = out->ended; k < out->begun; k++)
        if (out->ring[k % WINDOW].cut && out->ring[k % WINDOW].body.open)
            return true;
    return false;
}

bool mpi_out_busy(const struct mpi_peer *peer)
{
    const struct mpi_out *out = &peer->out;

    for (uint64_t k = out->ended; k < out->begun; k++)
        if (out->ring[k % WINDOW].head.open || out->ring[k % WINDOW].body.open)
            return true;
    return false;
}
