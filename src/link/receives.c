/* receives.c -- the receives that are posted for one peer, and reading its messages into them.
 *
 * Receives lie in a hash table that grows and stays. A message is read straight into the memory of its
 * receive; with it the head of the next one, so that a message costs one system call. A message without a
 * receive stops the reading from this peer until the receive is posted: TCP then holds up the sender. A
 * message of a view that was cut is read and dropped.
 */
#include "link/tcp_int.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"

/* --- the table ------------------------------------------------------------------------------------------ */
static size_t home(const struct receives *receives, const co_tag *tag)
{
    uint64_t x = (uint64_t)tag->chunk << 32 | (uint32_t)tag->node << 16 | tag->kind;

    x ^= ((uint64_t)tag->view << 32 | tag->unit) * 0x9e3779b97f4a7c15u;
    x *= 0xff51afd7ed558ccdu;
    return (size_t)(x >> 32) & (receives->room - 1);
}

static void insert(struct receives *receives, const struct receive *receive)
{
    size_t at = home(receives, &receive->tag);

    while (receives->slot[at].used)
        at = (at + 1) & (receives->room - 1);
    receives->slot[at] = *receive;
    receives->n++;
}

/* Inserts all of `from` that are not of earlier views into an empty table. */
static void refill(struct receives *receives, const struct receive *from, size_t room, uint32_t view)
{
    receives->n = 0;
    for (size_t i = 0; i < room; i++)
        if (from[i].used && from[i].tag.view >= view)
            insert(receives, &from[i]);
}

static co_err grow(struct receives *receives)
{
    struct receives more = {.room = receives->room ? 2 * receives->room : 128};

    more.slot = co_array(more.room, sizeof *more.slot);
    more.spare = co_array(more.room, sizeof *more.spare);
    if (!more.slot || !more.spare) {
        receives_fini(&more);
        return CO_ENOMEM;
    }
    refill(&more, receives->slot, receives->room, 0);
    receives_fini(receives);
    *receives = more;
    return CO_OK;
}

co_err receives_add(struct receives *receives, const co_tag *tag, void *to, size_t len)
{
    if (2 * (receives->n + 1) > receives->room)
        CO_TRY(grow(receives));
    insert(receives, &(struct receive){*tag, true, to, len});
    return CO_OK;
}

void receives_cut(struct receives *receives, uint32_t view)
{
    struct receive *old = receives->slot;

    if (!receives->n)
        return;
    receives->slot = receives->spare;
    receives->spare = old;
    memset(receives->slot, 0, receives->room * sizeof *receives->slot);
    refill(receives, old, receives->room, view);
}

void receives_clear(struct receives *receives)
{
    if (receives->n)
        memset(receives->slot, 0, receives->room * sizeof *receives->slot);
    receives->n = 0;
}

void receives_fini(struct receives *receives)
{
    co_free(receives->slot);
    co_free(receives->spare);
    *receives = (struct receives){0};
}

/* Empties a slot and moves later ones of the same run up, so that no search ends too early. */
static void remove_slot(struct receives *receives, size_t hole)
{
    size_t mask = receives->room - 1;

    receives->n--;
    for (size_t at = (hole + 1) & mask; receives->slot[at].used; at = (at + 1) & mask) {
        size_t from_home = (at - home(receives, &receives->slot[at].tag)) & mask;
        if (from_home >= ((at - hole) & mask)) {
            receives->slot[hole] = receives->slot[at];
            hole = at;
        }
    }
    receives->slot[hole].used = false;
}

bool receives_take(struct receives *receives, const co_tag *tag, struct receive *out)
{
    if (!receives->n)
        return false;
    for (size_t at = home(receives, tag); receives->slot[at].used; at = (at + 1) & (receives->room - 1))
        if (co_tag_same(&receives->slot[at].tag, tag)) {
            *out = receives->slot[at];
            remove_slot(receives, at);
            return true;
        }
    return false;
}

/* --- reading -------------------------------------------------------------------------------------------- */
co_err reading_match(struct tcp *tcp, struct peer *peer)
{
    struct reading *reading = &peer->reading;
    struct receive receive = {0};

    reading->dropped = reading->tag.view < tcp->view;
    reading->waits = !reading->dropped && !receives_take(&peer->receives, &reading->tag, &receive);
    reading->in_body = !reading->waits;
    reading->at = 0;
    reading->to = receive.to;
    if (reading->in_body && !reading->dropped && receive.len != reading->len)
        return co_fail(CO_EFORMAT, "sent what does not fit: %u bytes where %zu are expected", reading->len,
                       receive.len);
    return CO_OK;
}

void reading_cut(struct tcp *tcp, struct peer *peer)
{
    struct reading *reading = &peer->reading;

    if (reading->tag.view >= tcp->view || (!reading->in_body && !reading->waits))
        return;
    if (reading->waits)
        reading->at = 0;
    reading->dropped = reading->in_body = true;
    reading->waits = false;
}

/* The message is complete. */
static void finish(struct tcp *tcp, struct peer *peer)
{
    struct reading *reading = &peer->reading;

    reading->in_body = false;
    reading->head_at = 0;
    if (!reading->dropped)
        report_add(tcp, false, peer->who.id, &reading->tag);
}

/* Where the next bytes go: the rest of the payload, then the head of the next message. */
static int places(struct tcp *tcp, struct reading *reading, size_t most, struct iovec to[2])
{
    size_t rest = reading->in_body ? reading->len - reading->at : 0;
    size_t some = rest < most ? rest : most;
    int n = 0;

    if (reading->dropped && some > LINK_SCRATCH)
        some = LINK_SCRATCH;
    if (rest)
        to[n++] = (struct iovec){reading->dropped ? tcp->scratch : reading->to + reading->at, some};
    if (some == rest) {
        size_t at = reading->in_body ? 0 : reading->head_at;
        to[n++] = (struct iovec){reading->head + at, LINK_HEAD - at};
    }
    return n;
}

/* So many bytes have come. */
static co_err take_in(struct tcp *tcp, struct peer *peer, size_t got)
{
    struct reading *reading = &peer->reading;

    if (reading->in_body) {
        size_t rest = reading->len - reading->at, body = rest < got ? rest : got;
        reading->at += body;
        got -= body;
        tcp->counts.payload_got += body;
        if (reading->at < reading->len)
            return CO_OK;
        finish(tcp, peer);
    }
    reading->head_at += got;
    if (reading->head_at < LINK_HEAD)
        return CO_OK;
    CO_TRY(head_read(&reading->tag, &reading->len, reading->head));
    CO_TRY(reading_match(tcp, peer));
    if (reading->in_body && reading->len == 0)
        finish(tcp, peer);
    return CO_OK;
}

/* The connection ended while its next message waits for a receive: no read will tell. */
static co_err how_it_ended(const struct peer *peer)
{
    int why = 0;
    socklen_t len = sizeof why;

    getsockopt(co_stream_fd(peer->stream), SOL_SOCKET, SO_ERROR, &why, &len);
    errno = why;
    return why ? co_fail(CO_EPEER, "the connection broke: %m")
               : co_fail(CO_EPEER, "the other side closed the connection");
}

co_err receives_turn(struct tcp *tcp, struct peer *peer)
{
    struct iovec to[2];
    size_t got = 1;

    if (peer->reading.in_body && peer->reading.len == 0) /* its receive was posted since */
        finish(tcp, peer);
    for (size_t sum = 0; sum < LINK_ROUND && !peer->reading.waits; sum += got) {
        int n = places(tcp, &peer->reading, LINK_ROUND - sum, to);
        CO_TRY(co_stream_read(peer->stream, to, n, &got));
        peer->can_read = got > 0;
        if (!got)
            return CO_OK;
        peer->moved = true;
        CO_TRY(take_in(tcp, peer, got));
    }
    return peer->ended && peer->reading.waits ? how_it_ended(peer) : CO_OK;
}
