/* fuzz_frame.c -- any bytes into the frame parser, whole and in pieces, and what it takes into the roster's
 * words: the same frames must come out however the stream is cut, none may reach beyond its bytes, and each
 * must print back to what it was.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "roster/net/frame_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* Every number of a view that passes can be used as an index, and the view prints back to what it was. */
static void read_view(const json_t *body, uint32_t number)
{
    static co_roster_view view, back;

    if (view_unpack(&view, body, number) != CO_OK)
        return;
    const co_deal *deal = &view.view.deal;
    if (deal->hosts < 1 || deal->hosts > CO_MAX_MEMBERS || deal->me < 0 || deal->me >= deal->hosts)
        abort();
    for (int h = 0; h < deal->hosts; h++)
        if (view.view.giver[h] < -1 || view.view.giver[h] >= deal->hosts || view.view.feeder[h] < -1 ||
            view.view.feeder[h] >= deal->hosts || deal->from[h] > deal->from[h + 1] ||
            deal->from[h + 1] > CO_MAX_SLICES || deal->id[h] >= CO_MAX_MEMBERS)
            abort();
    json_t *again = view_pack(&view);
    if (again && view_unpack(&back, again, number) != CO_OK)
        abort();
    json_decref(again);
}

static void read_words(const co_frame *f)
{
    json_t *body = NULL;
    co_terms terms;
    co_round round;
    co_failure failure;
    co_leave how;
    co_position at;
    int weight;

    if (frame_read(&body, f))
        return;
    if (position_unpack(&at, &weight, body) == CO_OK && !at.fresh && at.unit == 0)
        abort();
    read_view(body, f->view);
    terms_unpack(&terms, body);
    if (round_unpack(&round, body) == CO_OK && (round.my_host >= round.hosts || round.first_rank >= round.world))
        abort();
    failure_unpack(&failure, body);
    leave_unpack(&how, body);
    json_decref(leave_pack(&how));
    json_decref(terms_pack(&terms));
    json_decref(round_pack(&round));
    json_decref(failure_pack(&failure));
    json_decref(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    uint8_t head[CO_FRAME_HEAD];
    co_frame f, cut;
    size_t used, at = 0;

    while (co_frame_parse(&f, &used, bytes + at, len - at) == CO_OK && used) {
        size_t less;
        if (used > len - at || f.len != used - CO_FRAME_HEAD ||
            (const uint8_t *)f.body != bytes + at + CO_FRAME_HEAD)
            abort();
        if (co_frame_parse(&cut, &less, bytes + at, used - 1) != CO_OK || less)
            abort(); /* a frame without its last byte */
        co_frame_head(head, &f);
        if (memcmp(head, bytes + at, CO_FRAME_HEAD) != 0)
            abort();
        read_words(&f);
        at += used;
    }
    return 0;
}
