/* lists.c -- the lists of rows of each leaf, exchanged between hosts.
 *
 * Every host gets every other host's lists, and adds all of them up itself. That overwrites the sum of the
 * step before, so a host does it only when everybody has begun this step.
 */
#include "train/carrier_int.h"

static float *lists_of(const struct carrier *carrier, int leaf)
{
    return carrier->regions->leaf_rows + (size_t)leaf * carrier->plan->rows.leaf_elements;
}

/* Sends the lists of one leaf to all others, or posts the receive of one that member h has. */
static co_err move_lists(struct carrier *carrier, int h, const co_tag *tag, bool send)
{
    const co_deal *deal = carrier->regions->deal;
    size_t bytes = carrier->plan->rows.leaf_elements * sizeof(float);
    float *lists = lists_of(carrier, (int)tag->chunk);

    if (!send) {
        carrier->rows_missing++;
        return co_link_post(carrier->link, deal->id[h], tag, lists, bytes);
    }
    for (int to = 0; to < deal->hosts; to++)
        if (to != deal->me) {
            carrier->rows_unsent++;
            CO_TRY(co_link_send(carrier->link, deal->id[to], tag, lists, bytes));
        }
    return CO_OK;
}

/* The lists of all leaves of member h that have samples. */
static co_err move_all(struct carrier *carrier, int h, int64_t step, uint32_t open, bool send)
{
    const co_deal *deal = carrier->regions->deal;
    const co_cut *cut = &carrier->plan->cut[cut_of_step(carrier->plan, step)];

    for (int leaf = deal->from[h]; carrier->plan->rows.n > 0 && leaf < deal->from[h + 1]; leaf++) {
        co_tag tag = {deal->view, open, CO_MSG_ROWS, 0, (uint32_t)leaf};
        if (!co_cut_is_empty(cut, leaf, leaf + 1))
            CO_TRY(move_lists(carrier, h, &tag, send));
    }
    return CO_OK;
}

co_err lists_post(struct carrier *carrier, int64_t step, uint32_t open)
{
    const co_deal *deal = carrier->regions->deal;

    carrier->rows_missing = carrier->rows_unsent = 0;
    for (int h = 0; h < deal->hosts; h++)
        if (h != deal->me)
            CO_TRY(move_all(carrier, h, step, open, false));
    lists_check(carrier);
    return CO_OK;
}

co_err lists_send(struct carrier *carrier, int64_t step, uint32_t open)
{
    return move_all(carrier, carrier->regions->deal->me, step, open, true);
}

void lists_check(struct carrier *carrier)
{
    const co_deal *deal = carrier->regions->deal;
    uint64_t others = (UINT64_MAX >> (64 - deal->hosts)) & ~((uint64_t)1 << deal->me);

    if (carrier->rows_missing == 0 && (carrier->heard & others) == others && !carrier->err)
        co_mark_set(&carrier->regions->wire.here[carrier->plan->chunks], carrier->turn, 1);
}

void lists_took(struct carrier *carrier, int peer, const co_tag *tag)
{
    if (!rows_are_sound(carrier->plan, lists_of(carrier, (int)tag->chunk), false)) {
        carrier->err = co_fail(CO_EIO, "host %d sent lists of rows that are not in order", peer);
        return; /* nobody adds them up */
    }
    carrier->rows_missing--;
    lists_check(carrier);
    co_event_ring(&carrier->regions->ctl->event);
}
