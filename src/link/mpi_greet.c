/* mpi_greet.c -- which MPI rank is which host, and who leaves.
 *
 * After MPI_Init every process sends its hello (that of tcp, without a receiver) to every rank. A host
 * that was met is known when a hello with its place and birth has come. A process that closes its link
 * sends a bye with the number of messages that it sent before, so that none of them is missed.
 */
#include "link/mpi_int.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

static bool ended(struct mpi *mpi, struct mpi_call *call, int *len)
{
    int done = 0;

    if (!call->open)
        return false;
    bool failed = mpi->calls->test(&call->request, &done, len) != 0;
    mpi->broken = mpi->broken || failed;
    call->open = !done && !failed;
    mpi->moved = mpi->moved || !call->open;
    return done && !failed;
}

/* --- hello ---------------------------------------------------------------------------------------------- */
static co_err fail(const struct mpi *mpi, int code)
{
    char text[400] = "";

    mpi->calls->text(code, text, sizeof text);
    return co_fail(CO_EPEER, "%s: %s", mpi->calls->name, text);
}

co_err mpi_greet_open(struct mpi *mpi)
{
    hello mine = {.version = HELLO_VERSION,
                  .run = mpi->spec.run,
                  .from = (uint32_t)mpi->spec.me,
                  .from_birth = mpi->spec.birth};
    const mpi_calls *calls = mpi->calls;

    hello_write(mpi->hello_bytes, &mine);
    for (int r = 0; r < mpi->size; r++) {
        struct mpi_rank *rank = &mpi->ranks[r];
        int code = 0;
        if (r == mpi->rank)
            continue;
        code = calls->receive(rank->hello_bytes, CO_STREAM_HELLO, r, TAG_HELLO, &rank->hello_got.request);
        if (code == 0)
            code = calls->receive(rank->bye_bytes[0], BYE_LEN, r, TAG_BYE, &rank->bye_got.request);
        if (code == 0)
            code = calls->send(mpi->hello_bytes, CO_STREAM_HELLO, r, TAG_HELLO, &rank->hello_sent.request);
        if (code)
            return fail(mpi, code);
        rank->hello_got.open = rank->bye_got.open = rank->hello_sent.open = true;
    }
    return CO_OK;
}

static void hear(struct mpi *mpi, struct mpi_rank *rank)
{
    int len = 0;

    ended(mpi, &rank->hello_sent, NULL);
    ended(mpi, &rank->bye_sent, NULL);
    if (ended(mpi, &rank->hello_got, &len))
        rank->greeted = len == CO_STREAM_HELLO && hello_read(&rank->hello, rank->hello_bytes) == CO_OK;
    if (ended(mpi, &rank->bye_got, &len)) {
        rank->left = true;
        memcpy(&rank->messages, rank->bye_bytes[0], sizeof rank->messages);
    }
}

/* --- finding the hosts ---------------------------------------------------------------------------------- */
static int rank_of(const struct mpi *mpi, int id)
{
    for (int r = 0; r < mpi->size; r++)
        if (mpi->ranks[r].greeted && mpi->ranks[r].hello.from == (uint32_t)id)
            return r;
    return -1;
}

static void find(struct mpi *mpi, struct mpi_peer *peer)
{
    int r = rank_of(mpi, peer->who.id);

    if (r < 0) {
        if (co_now_ns() > peer->deadline_ns)
            mpi_lose(mpi, peer, "none of the %d MPI processes is this host (waited for %d s)", mpi->size,
                     HELLO_MS / 1000);
        return;
    }
    const hello *said = &mpi->ranks[r].hello;
    if (said->version != HELLO_VERSION)
        mpi_lose(mpi, peer, "speaks version %u of the link, this host speaks %d", said->version, HELLO_VERSION);
    else if (said->run != mpi->spec.run)
        mpi_lose(mpi, peer, "is in another run");
    else if (said->from_birth != peer->who.birth)
        mpi_lose(mpi, peer, "was started again, and a process cannot come back under MPI");
    if (peer->lost)
        return;
    peer->rank = r;
    mpi->moved = true;
    if (mpi_out_open(mpi, peer) || mpi_in_open(mpi, peer))
        mpi_lose(mpi, peer, "%s", co_errmsg());
}

void mpi_greet_turn(struct mpi *mpi)
{
    for (int r = 0; r < mpi->size; r++)
        if (r != mpi->rank)
            hear(mpi, &mpi->ranks[r]);
    for (int i = 0; i < mpi->n_met; i++) {
        struct mpi_peer *peer = mpi->peer[mpi->ids[i]];
        if (peer->rank < 0 && peer->met && !peer->lost)
            find(mpi, peer);
        if (peer->rank < 0 || peer->left || peer->lost || !mpi->ranks[peer->rank].left ||
            peer->in.taken < mpi->ranks[peer->rank].messages || peer->in.ended < peer->in.taken)
            continue;
        peer->left = peer->lost_news = true;
        snprintf(peer->why, sizeof peer->why, "has closed its link");
    }
}

/* --- bye ------------------------------------------------------------------------------------------------ */
static uint64_t messages_to(const struct mpi *mpi, int rank)
{
    for (int i = 0; i < mpi->n_met; i++)
        if (mpi->peer[mpi->ids[i]]->rank == rank)
            return mpi->peer[mpi->ids[i]]->out.begun;
    return 0;
}

void mpi_say_bye(struct mpi *mpi)
{
    for (int r = 0; r < mpi->size && !mpi->broken; r++) {
        struct mpi_rank *rank = &mpi->ranks[r];
        uint64_t messages = messages_to(mpi, r);
        if (r == mpi->rank)
            continue;
        memcpy(rank->bye_bytes[1], &messages, sizeof messages);
        mpi->broken = mpi->calls->send(rank->bye_bytes[1], BYE_LEN, r, TAG_BYE, &rank->bye_sent.request) != 0;
        rank->bye_sent.open = !mpi->broken;
    }
}

bool mpi_all_left(struct mpi *mpi)
{
    for (int r = 0; r < mpi->size; r++) {
        const struct mpi_rank *rank = &mpi->ranks[r];
        if (r != mpi->rank &&
            (!rank->left || rank->bye_sent.open || rank->hello_sent.open || rank->hello_got.open))
            return false;
    }
    return true;
}
