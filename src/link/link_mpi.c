/* link_mpi.c -- the link `mpi`: messages through the MPI whose launcher started this program. See
 * mpi_int.h.
 *
 * MPI has no descriptor that says when something has come, so the descriptor of this link is a timer:
 * short while pieces are under way, longer while a message is expected, slow otherwise. Elasticity is
 * tcp's: a host that is lost stays lost. A link that has lost a host, or had an error of MPI, is closed
 * without MPI_Finalize, which would wait for the lost one.
 */
#include "link/mpi_int.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

static struct mpi *mpi_of(const co_link *link)
{
    return (struct mpi *)(void *)((char *)(uintptr_t)link - offsetof(struct mpi, link));
}

/* --- calls ---------------------------------------------------------------------------------------------- */
void mpi_lose(struct mpi *mpi, struct mpi_peer *peer, const char *fmt, ...)
{
    va_list ap;

    if (peer->lost)
        return;
    va_start(ap, fmt);
    vsnprintf(peer->why, sizeof peer->why, fmt, ap);
    va_end(ap);
    peer->lost = peer->lost_news = true;
    mpi->broken = mpi->moved = true;
}

static bool check(struct mpi *mpi, struct mpi_peer *peer, int code)
{
    char text[300] = "";

    if (code == 0)
        return true;
    mpi->calls->text(code, text, sizeof text);
    mpi_lose(mpi, peer, "%s: %s", mpi->calls->name, text);
    return false;
}

bool mpi_send(struct mpi *mpi, struct mpi_peer *peer, struct mpi_call *call, const void *bytes, size_t len,
              int tag)
{
    mpi->moved = true;
    mpi->counts.wire_sent += len;
    call->open = check(mpi, peer, mpi->calls->send(bytes, (int)len, peer->rank, tag, &call->request));
    return call->open;
}

bool mpi_receive(struct mpi *mpi, struct mpi_peer *peer, struct mpi_call *call, void *to, size_t len, int tag)
{
    mpi->moved = true;
    call->open = check(mpi, peer, mpi->calls->receive(to, (int)len, peer->rank, tag, &call->request));
    return call->open;
}

bool mpi_ended(struct mpi *mpi, struct mpi_peer *peer, struct mpi_call *call, int *len)
{
    int done = 0;

    if (!call->open || !check(mpi, peer, mpi->calls->test(&call->request, &done, len)) || !done)
        return false;
    call->open = false;
    mpi->moved = true;
    return true;
}

void mpi_cancel(struct mpi *mpi, struct mpi_call *call)
{
    mpi->calls->cancel(&call->request);
    call->open = false;
}

/* --- the timer ------------------------------------------------------------------------------------------ */
static void arm(struct mpi *mpi, int us)
{
    struct itimerspec at = {.it_value = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000L}};

    mpi->nap_us = us;
    timerfd_settime(mpi->timer, 0, &at, NULL);
}

static bool expects(const struct mpi_peer *peer)
{
    return !peer->lost && !peer->left &&
           (peer->rank < 0 || peer->in.posted.n || peer->out.queue.n || peer->out.ended < peer->out.begun);
}

static int next_nap(const struct mpi *mpi, bool moved)
{
    bool busy = false, expected = false;

    for (int i = 0; i < mpi->n_met; i++) {
        const struct mpi_peer *peer = mpi->peer[mpi->ids[i]];
        busy = busy || (!peer->lost && (mpi_in_busy(peer) || mpi_out_busy(peer)));
        expected = expected || expects(peer);
    }
    if (busy)
        return NAP_BUSY_US;
    if (!expected)
        return NAP_IDLE_US;
    if (moved || mpi->nap_us > NAP_MOST_US)
        return NAP_LEAST_US;
    return 2 * mpi->nap_us < NAP_MOST_US ? 2 * mpi->nap_us : NAP_MOST_US;
}

/* On the timer, because a plain sleep may take 50 us longer than it should. */
static void nap(struct mpi *mpi, int us)
{
    struct pollfd timer = {.fd = mpi->timer, .events = POLLIN};

    arm(mpi, us);
    poll(&timer, 1, 100);
}

/* --- turns ---------------------------------------------------------------------------------------------- */
static void progress(struct mpi *mpi)
{
    mpi_greet_turn(mpi);
    for (int i = 0; i < mpi->n_met; i++) {
        struct mpi_peer *peer = mpi->peer[mpi->ids[i]];
        if (peer->rank < 0 || peer->lost)
            continue;
        mpi_out_turn(mpi, peer);
        mpi_in_turn(mpi, peer);
    }
}

static void report(struct mpi *mpi)
{
    for (int i = 0; i < mpi->n_met; i++) {
        mpi_in_report(mpi, mpi->peer[mpi->ids[i]]);
        mpi_out_report(mpi, mpi->peer[mpi->ids[i]]);
    }
}

static co_err mpi_turn(co_link *link, int timeout_ms)
{
    struct mpi *mpi = mpi_of(link);
    uint64_t until = timeout_ms > 0 ? co_now_ns() + (uint64_t)timeout_ms * 1000000 : 0;

    for (bool moved = false;;) {
        for (int round = 0; round < ROUNDS; round++) {
            mpi->moved = false;
            progress(mpi);
            report(mpi);
            if (!mpi->moved)
                break;
            moved = true;
        }
        arm(mpi, next_nap(mpi, moved));
        if (moved || mpi->err || !until || co_now_ns() >= until)
            break;
        nap(mpi, mpi->nap_us);
    }
    return mpi->err ? co_fail(mpi->err, "%s", mpi->why) : CO_OK;
}

/* --- messages ------------------------------------------------------------------------------------------- */
/* *out NULL: the peer is lost, and what is for it is given up. */
static co_err peer_for(const struct mpi *mpi, int id, struct mpi_peer **out)
{
    struct mpi_peer *peer = id >= 0 && id < LINK_IDS ? mpi->peer[id] : NULL;

    if (!peer || !peer->met)
        return co_fail(CO_EPEER, "host %d is not among the hosts that were met", id);
    *out = peer->lost || peer->left ? NULL : peer;
    return CO_OK;
}

static co_err mpi_post(co_link *link, int from, const co_tag *tag, void *to, size_t len)
{
    struct mpi *mpi = mpi_of(link);
    struct mpi_peer *peer;

    CO_TRY(peer_for(mpi, from, &peer));
    if (!peer || tag->view < mpi->view)
        return CO_OK;
    CO_TRY(receives_add(&peer->in.posted, tag, to, len));
    if (mpi->nap_us > NAP_LEAST_US)
        arm(mpi, NAP_LEAST_US);
    return CO_OK;
}

static co_err mpi_put(co_link *link, int to, const co_tag *tag, const void *bytes, size_t len)
{
    struct mpi *mpi = mpi_of(link);
    struct mpi_peer *peer;

    CO_TRY(peer_for(mpi, to, &peer));
    if (len > UINT32_MAX)
        return co_fail(CO_EINPUT, "a message of %zu bytes is too long for the link", len);
    if (!peer || tag->view < mpi->view)
        return CO_OK;
    CO_TRY(sends_add(&peer->out.queue, tag, bytes, (uint32_t)len));
    if (mpi->nap_us > NAP_BUSY_US)
        arm(mpi, NAP_BUSY_US);
    return CO_OK;
}

/* --- cutting -------------------------------------------------------------------------------------------- */
/* MPI may still write into memory that was posted for this peer: only the end of the process prevents it. */
static void give_up(struct mpi *mpi, struct mpi_peer *peer)
{
    mpi_lose(mpi, peer, "has not finished a message over MPI within %d s", CUT_STALL_MS / 1000);
    mpi->err = CO_EPEER;
    snprintf(mpi->why, sizeof mpi->why, "the link mpi is given up: host %d %.300s", peer->who.id, peer->why);
}

static bool holds(struct mpi *mpi, bool too_late)
{
    bool any = false;

    for (int i = 0; i < mpi->n_met; i++) {
        struct mpi_peer *peer = mpi->peer[mpi->ids[i]];
        if (!mpi_in_holds(peer) && !mpi_out_holds(peer))
            continue;
        if (peer->lost || too_late)
            give_up(mpi, peer);
        else
            any = true;
    }
    return any;
}

static void mpi_cut(co_link *link, uint32_t view)
{
    struct mpi *mpi = mpi_of(link);
    uint64_t stall = (uint64_t)CUT_STALL_MS * 1000000, until = co_now_ns() + stall;

    mpi->view = view > mpi->view ? view : mpi->view;
    for (int i = 0; i < mpi->n_met; i++) {
        mpi_in_cut(mpi, mpi->peer[mpi->ids[i]]);
        mpi_out_cut(mpi, mpi->peer[mpi->ids[i]]);
    }
    while (holds(mpi, co_now_ns() > until)) {
        mpi->moved = false;
        progress(mpi);
        if (mpi->moved)
            until = co_now_ns() + stall;
        else
            nap(mpi, NAP_BUSY_US);
    }
}

/* --- meeting -------------------------------------------------------------------------------------------- */
static co_err check_list(const struct mpi *mpi, const co_link_peer *peers, int n)
{
    bool seen[LINK_IDS] = {false};

    for (int i = 0; i < n; i++) {
        int id = peers[i].id;
        if (id < 0 || id >= LINK_IDS || seen[id])
            return co_fail(CO_EINPUT, "host %d is listed twice, or no place in a run", id);
        if (id == mpi->spec.me && peers[i].birth != mpi->spec.birth)
            return co_fail(CO_EINPUT, "the list of hosts has another process at this host's place %d", id);
        seen[id] = true;
    }
    return CO_OK;
}

static co_err meet_one(struct mpi *mpi, const co_link_peer *who)
{
    struct mpi_peer *peer = mpi->peer[who->id];

    if (!peer) {
        peer = mpi->peer[who->id] = co_zalloc(sizeof *peer);
        if (!peer)
            return CO_ENOMEM;
        *peer = (struct mpi_peer){.who = *who, .rank = -1};
        peer->deadline_ns = co_now_ns() + (uint64_t)HELLO_MS * 1000000;
        mpi->ids[mpi->n_met++] = (uint8_t)who->id;
    } else if (peer->who.birth != who->birth) {
        peer->who = *who;
        peer->lost = false;
        mpi_lose(mpi, peer, "was started again, and a process cannot come back under MPI");
    } else if (peer->lost || peer->left) {
        peer->lost_news = true; /* nobody comes back */
    }
    peer->met = true;
    return CO_OK;
}

static co_err mpi_meet(co_link *link, const co_link_peer *peers, int n)
{
    struct mpi *mpi = mpi_of(link);

    CO_TRY(check_list(mpi, peers, n));
    for (int i = 0; i < mpi->n_met; i++)
        mpi->peer[mpi->ids[i]]->met = false;
    for (int i = 0; i < n; i++)
        if (peers[i].id != mpi->spec.me)
            CO_TRY(meet_one(mpi, &peers[i]));
    arm(mpi, NAP_LEAST_US);
    return CO_OK;
}

static int mpi_fd(const co_link *link)
{
    return mpi_of(link)->timer;
}

static bool mpi_lost(co_link *link, int *peer, char *why, size_t size)
{
    struct mpi *mpi = mpi_of(link);

    for (int i = 0; i < mpi->n_met; i++) {
        struct mpi_peer *one = mpi->peer[mpi->ids[i]];
        if (!one->lost_news)
            continue;
        one->lost_news = false;
        if (!one->met)
            continue;
        *peer = one->who.id;
        snprintf(why, size, "%s", one->why);
        return true;
    }
    return false;
}

static co_link_counts mpi_counts(const co_link *link)
{
    return mpi_of(link)->counts;
}

/* --- opening and closing -------------------------------------------------------------------------------- */
static bool all_sent(const struct mpi *mpi)
{
    for (int i = 0; i < mpi->n_met; i++)
        if (!mpi->peer[mpi->ids[i]]->lost && mpi_out_busy(mpi->peer[mpi->ids[i]]))
            return false;
    return true;
}

/* True: everybody has left, and MPI may be finished. */
static bool farewell(struct mpi *mpi)
{
    uint64_t until = co_now_ns() + (uint64_t)FAREWELL_MS * 1000000;

    mpi_say_bye(mpi);
    while (!mpi->broken && co_now_ns() < until) {
        if (mpi_all_left(mpi) && all_sent(mpi))
            return true;
        progress(mpi);
        nap(mpi, NAP_BUSY_US);
    }
    return false;
}

/* Without an orderly end MPI may still use the memory of its calls, so the link stays allocated: this process
 * is about to end. */
static void mpi_close(co_link *link)
{
    struct mpi *mpi = mpi_of(link);

    mpi_cut(link, UINT32_MAX);
    bool orderly = farewell(mpi);
    close(mpi->timer);
    if (!orderly)
        return;
    for (int i = 0; i < mpi->n_met; i++) {
        mpi_in_close(mpi, mpi->peer[mpi->ids[i]]);
        mpi_out_close(mpi, mpi->peer[mpi->ids[i]]);
    }
    mpi->calls->finish();
    for (int i = 0; i < mpi->n_met; i++)
        co_free(mpi->peer[mpi->ids[i]]);
    co_free(mpi->ranks);
    co_free(mpi);
}

co_err co_link_mpi_sum(co_link *link, const float *from, float *to, int n)
{
    struct mpi *mpi = mpi_of(link);
    char text[300] = "";
    int code = mpi->calls->add_up(from, to, n);

    if (code == 0)
        return CO_OK;
    mpi->calls->text(code, text, sizeof text);
    return co_fail(CO_EPEER, "%s: %s", mpi->calls->name, text);
}

static const co_link_ops ops = {"mpi",    mpi_post, mpi_put,  mpi_turn,   mpi_cut,
                                mpi_meet, mpi_fd,   mpi_lost, mpi_counts, mpi_close};

static co_err start(struct mpi *mpi)
{
    char text[300] = "";
    int code = mpi->calls->start(&mpi->rank, &mpi->size);

    if (code) {
        mpi->calls->text(code, text, sizeof text);
        return co_fail(CO_EPEER, "%s does not start: %s", mpi->calls->name, text);
    }
    mpi->ranks = co_array((size_t)mpi->size, sizeof *mpi->ranks);
    return mpi->ranks ? mpi_greet_open(mpi) : CO_ENOMEM;
}

co_err co_link_mpi(co_link **out, const co_link_spec *spec)
{
    const mpi_calls *calls = mpi_launcher();

    if (!calls)
        return co_fail(CO_EINPUT, "the link mpi: " MPI_NOT_LAUNCHED);
    CO_TRY(mpi_load(calls, NULL));
    struct mpi *mpi = co_zalloc(sizeof *mpi);
    if (!mpi)
        return CO_ENOMEM;
    mpi->link = (co_link){.ops = &ops, .me = spec->me};
    mpi->spec = *spec;
    mpi->calls = calls;
    mpi->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    co_err err = mpi->timer < 0 ? co_fail(CO_EIO, "timerfd: %m") : start(mpi);
    if (err) { /* MPI may hold the memory of calls that it began */
        if (mpi->timer >= 0)
            close(mpi->timer);
        return err;
    }
    *out = &mpi->link;
    return CO_OK;
}
