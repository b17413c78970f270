/* mpi_in.c -- messages from a peer: taken up in order when their receive is posted, reported in order.
 *
 * Heads come into the link's own slots, one for each message that the window allows. A head without a
 * receive stays in its slot and holds up those behind it. What is taken up is answered: at once for a long
 * message, whose sender waits for it; for short ones when half of the window is used.
 */
#include "link/mpi_int.h"

#include <string.h>

#include "base/alloc.h"

static bool listen_for_head(struct mpi *mpi, struct mpi_peer *peer, uint64_t number)
{
    struct mpi_in *in = &peer->in;
    size_t i = number % WINDOW;

    return mpi_receive(mpi, peer, &in->head[i], &in->slot[i], sizeof in->slot[i], TAG_HEAD);
}

co_err mpi_in_open(struct mpi *mpi, struct mpi_peer *peer)
{
    peer->in.slot = co_array(WINDOW, sizeof *peer->in.slot);
    if (!peer->in.slot)
        return CO_ENOMEM;
    for (uint64_t k = 0; k < WINDOW && !peer->lost; k++)
        listen_for_head(mpi, peer, k);
    return CO_OK;
}

void mpi_in_close(struct mpi *mpi, struct mpi_peer *peer)
{
    struct mpi_in *in = &peer->in;

    for (int i = 0; i < WINDOW; i++)
        if (in->head[i].open)
            mpi_cancel(mpi, &in->head[i]);
    receives_fini(&in->posted);
    co_free(in->slot);
}

/* --- answers -------------------------------------------------------------------------------------------- */
static bool may_answer(struct mpi *mpi, struct mpi_peer *peer)
{
    struct mpi_call *call = &peer->in.answer_call[peer->in.answers % WINDOW];

    return !call->open || mpi_ended(mpi, peer, call, NULL);
}

static void answer(struct mpi *mpi, struct mpi_peer *peer, bool go)
{
    struct mpi_in *in = &peer->in;
    size_t i = in->answers++ % WINDOW;
    const uint64_t word[2] = {in->taken, go};

    memcpy(in->answer[i], word, sizeof word);
    in->answered = in->taken;
    mpi_send(mpi, peer, &in->answer_call[i], in->answer[i], ANSWER_LEN, TAG_ANSWER);
}

/* --- bodies --------------------------------------------------------------------------------------------- */
static void receive_piece(struct mpi *mpi, struct mpi_peer *peer, uint64_t k)
{
    struct mpi_arriving *message = &peer->in.ring[k % WINDOW];
    size_t left = message->len - message->at;

    mpi_receive(mpi, peer, &message->body, message->to + message->at, left < PIECE_LEN ? left : PIECE_LEN,
                TAG_BODY + (int)(k % WINDOW));
}

static void go_on(struct mpi *mpi, struct mpi_peer *peer, uint64_t k)
{
    struct mpi_in *in = &peer->in;
    struct mpi_arriving *message = &in->ring[k % WINDOW];
    size_t left = message->len - message->at, want = left < PIECE_LEN ? left : PIECE_LEN;
    int len;

    if (!message->body.open || !mpi_ended(mpi, peer, &message->body, &len))
        return;
    mpi->counts.wire_got += (uint64_t)len;
    if (len == 0) { /* the sender has cut this view: what it had sent after this message would leave a gap */
        in->view = message->tag.view + 1 > in->view ? message->tag.view + 1 : in->view;
        message->at = message->len;
    } else if ((size_t)len != want) {
        mpi_lose(mpi, peer, "sent %d bytes instead of %zu", len, want);
    } else {
        message->at += want;
        if (message->at < message->len)
            receive_piece(mpi, peer, k);
    }
}

/* --- heads ---------------------------------------------------------------------------------------------- */
/* Is head number `taken` here? Its tag and length. */
static bool read_head(struct mpi *mpi, struct mpi_peer *peer, co_tag *tag, uint32_t *len)
{
    struct mpi_in *in = &peer->in;
    size_t i = in->taken % WINDOW;
    int bytes = 0;

    if (in->waits)
        return head_read(tag, len, in->slot[i].head) == CO_OK;
    if (!mpi_ended(mpi, peer, &in->head[i], &bytes))
        return false;
    mpi->counts.wire_got += (uint64_t)bytes;
    if (bytes < LINK_HEAD || head_read(tag, len, in->slot[i].head)) {
        mpi_lose(mpi, peer, "%s", bytes < LINK_HEAD ? "sent less than the head of a message" : co_errmsg());
        return false;
    }
    if ((size_t)bytes != LINK_HEAD + (*len <= SHORT_LEN ? *len : 0)) {
        mpi_lose(mpi, peer, "sent a head of %d bytes for a message of %u", bytes, *len);
        return false;
    }
    in->waits = true;
    return true;
}

/* Takes up message number `taken`, which goes to `to`; NULL: it is dropped. */
static void take(struct mpi *mpi, struct mpi_peer *peer, const co_tag *tag, uint32_t len, uint8_t *to)
{
    struct mpi_in *in = &peer->in;
    uint64_t k = in->taken++;
    struct mpi_arriving *message = &in->ring[k % WINDOW];

    *message = (struct mpi_arriving){.tag = *tag, .to = to, .len = len, .silent = !to};
    in->waits = false;
    if (len <= SHORT_LEN && to)
        memcpy(to, in->slot[k % WINDOW].bytes, len);
    if (len <= SHORT_LEN || !to)
        message->at = len;
    else
        receive_piece(mpi, peer, k);
    if (listen_for_head(mpi, peer, k) && (len > SHORT_LEN || in->taken - in->answered >= WINDOW / 2))
        answer(mpi, peer, len > SHORT_LEN && to);
}

static bool take_next(struct mpi *mpi, struct mpi_peer *peer)
{
    static uint8_t nothing[1]; /* where a message without bytes goes */
    struct mpi_in *in = &peer->in;
    struct receive receive = {.to = NULL};
    uint32_t view = in->view > mpi->view ? in->view : mpi->view, len;
    co_tag tag;

    if (peer->lost || in->taken - in->ended >= WINDOW || !may_answer(mpi, peer) ||
        !read_head(mpi, peer, &tag, &len))
        return false;
    if (tag.view >= view && !receives_take(&in->posted, &tag, &receive))
        return false; /* it waits */
    if (tag.view >= view && receive.len != len) {
        mpi_lose(mpi, peer, "sent a message of %u bytes where %zu were expected", len, receive.len);
        return false;
    }
    take(mpi, peer, &tag, len, tag.view < view ? NULL : len ? receive.to : nothing);
    return true;
}

void mpi_in_turn(struct mpi *mpi, struct mpi_peer *peer)
{
    for (uint64_t k = peer->in.ended; k < peer->in.taken && !peer->lost; k++)
        go_on(mpi, peer, k);
    while (take_next(mpi, peer))
        ;
}

void mpi_in_report(struct mpi *mpi, struct mpi_peer *peer)
{
    struct mpi_in *in = &peer->in;

    while (in->ended < in->taken && !peer->lost) {
        const struct mpi_arriving *message = &in->ring[in->ended % WINDOW];
        co_tag tag = message->tag;
        if (message->at < message->len || message->body.open)
            return;
        in->ended++;
        mpi->moved = true;
        if (message->silent || message->tag.view < in->view)
            continue;
        mpi->counts.payload_got += message->len;
        mpi->link.done(mpi->link.ctx, false, peer->who.id, &tag);
    }
}

/* --- cutting -------------------------------------------------------------------------------------------- */
void mpi_in_cut(struct mpi *mpi, struct mpi_peer *peer)
{
    struct mpi_in *in = &peer->in;

    receives_cut(&in->posted, mpi->view);
    for (uint64_t k = in->ended; k < in->taken; k++)
        if (in->ring[k % WINDOW].tag.view < mpi->view)
            in->ring[k % WINDOW].silent = true;
}

bool mpi_in_holds(const struct mpi_peer *peer)
{
    const struct mpi_in *in = &peer->in;

    for (uint64_t k = in->ended; k < in->taken; k++)
        if (in->ring[k % WINDOW].silent && in->ring[k % WINDOW].body.open)
            return true;
    return false;
}

bool mpi_in_busy(const struct mpi_peer *peer)
{
    const struct mpi_in *in = &peer->in;

    for (uint64_t k = in->ended; k < in->taken; k++)
        if (in->ring[k % WINDOW].body.open)
            return true;
    return false;
}
