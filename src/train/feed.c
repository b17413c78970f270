/* feed.c -- a newcomer is given the state chunk by chunk while the run goes on.
 *
 * The state is constant between two applies. In unit w the feeder copies chunks of the state before w and
 * sends them; with its statistics of w it says how many chunks it has fed so far. The newcomer, which takes
 * part in every unit without leaves, passes the gate of w only when these have come. It applies w, and all
 * later units, to them. When all chunks are counted it is whole, and the next view gives it leaves.
 */
#include "train/carrier_int.h"

#include <string.h>

/* The state in parts: the chunks of the dense parameters, then the ranges of the tables. */
size_t feed_parts(const co_plan *plan)
{
    return plan->chunks + plan->rows.ranges;
}

static size_t part_span(const co_plan *plan, size_t c, size_t *lo)
{
    if (c >= plan->chunks)
        return range_span(plan, c - plan->chunks, lo);
    return chunk_span(plan, c, lo);
}

static co_tag fed_tag(const struct carrier *carrier, int part, size_t c)
{
    return (co_tag){carrier->view.deal.view, 0, CO_MSG_FED, (uint16_t)part, (uint32_t)c};
}

co_err feed_post(struct carrier *carrier)
{
    const co_plan *plan = carrier->plan;
    const co_deal *deal = &carrier->view.deal;
    int from = deal->id[carrier->view.feeder[deal->me]];

    memset(carrier->parts, 0, feed_parts(plan) * sizeof *carrier->parts);
    for (size_t c = carrier->fed; c < feed_parts(plan); c++)
        for (int part = 0; part <= plan->moments; part++) {
            size_t lo, n = part_span(plan, c, &lo);
            co_tag tag = fed_tag(carrier, part, c);
            CO_TRY(co_link_post(carrier->link, from, &tag, state_part(carrier->regions, part) + lo,
                                n * sizeof(float)));
        }
    return CO_OK;
}

size_t feed_size(const co_plan *plan)
{
    return plan->chunk > plan->rows.piece_elements ? plan->chunk : plan->rows.piece_elements;
}

/* Copies a chunk as it is before unit `open`. False: the unit may be applied already. */
static bool copy_chunk(struct carrier *carrier, struct feeding *to, uint32_t open)
{
    const co_plan *plan = carrier->plan;
    const struct regions *regions = carrier->regions;
    size_t lo, n = part_span(plan, to->chunk, &lo);

    for (int part = 0; part <= plan->moments; part++)
        memcpy(to->part + (size_t)part * feed_size(plan), state_part(regions, part) + lo, n * sizeof(float));
    atomic_thread_fence(memory_order_seq_cst);
    uint64_t pc = atomic_load(&regions->ctl->pc);
    return pc_unit(pc) == open && !(pc & PC_READY);
}

co_err feed_turn(struct carrier *carrier, uint32_t open)
{
    const co_plan *plan = carrier->plan;
    const co_deal *deal = carrier->regions->deal;

    for (int i = 0; i < FEED_AT_ONCE && carrier->fed < feed_parts(plan); i++) {
        struct feeding *to = &carrier->feeding[i];
        if (to->busy)
            continue;
        to->chunk = carrier->fed;
        if (!copy_chunk(carrier, to, open))
            return CO_OK;
        *to = (struct feeding){true, 1 + plan->moments, to->chunk, to->part};
        carrier->fed++;
        for (int part = 0; part <= plan->moments; part++) {
            size_t lo, n = part_span(plan, to->chunk, &lo);
            co_tag tag = fed_tag(carrier, part, to->chunk);
            CO_TRY(co_link_send(carrier->link, deal->id[carrier->fed_member], &tag,
                                to->part + (size_t)part * feed_size(plan), n * sizeof(float)));
        }
    }
    return CO_OK;
}

void feed_sent(struct carrier *carrier, const co_tag *tag)
{
    for (int i = 0; i < FEED_AT_ONCE; i++) {
        struct feeding *f = &carrier->feeding[i];
        if (f->busy && f->chunk == tag->chunk && --f->left == 0)
            f->busy = false;
    }
}

void feed_took(struct carrier *carrier, const co_tag *tag)
{
    if (tag->chunk < feed_parts(carrier->plan))
        carrier->parts[tag->chunk]++;
}

bool feed_has(const struct carrier *carrier, uint64_t count)
{
    for (size_t c = carrier->fed; c < count && c < feed_parts(carrier->plan); c++)
        if (carrier->parts[c] <= carrier->plan->moments)
            return false;
    return true;
}

void feed_count(struct carrier *carrier, uint64_t count, uint32_t open)
{
    for (; carrier->fed < count && carrier->fed < feed_parts(carrier->plan); carrier->fed++)
        co_mark_set(&carrier->regions->fed[carrier->fed], open, 1);
}
