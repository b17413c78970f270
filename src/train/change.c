/* change.c -- a change of the members: freeze, say where we stand, take what we missed, go on with the new
 * deal.
 *
 *     freeze      the gate is frozen. A READY step is finished, but the next unit does not begin
 *     view        if this host gives: the sum of the last held unit, its statistics and wishes
 *                 if it takes: posts receives for them, and makes a READY turn of the unit when all have come
 *                 otherwise: a new turn of the unit in progress, with the new deal
 *
 * The deal is changed here only, while the gate is frozen, no step is READY, and no rank writes what hosts
 * share. So no rank depends on the old deal any more: whatever it still computes carries the stamp of an old
 * turn.
 */
#include "train/change_int.h"

#include <string.h>

static control *ctl_of(const struct carrier *carrier)
{
    return carrier->regions->ctl;
}

co_position carrier_freeze(struct carrier *carrier, uint32_t view)
{
    uint64_t pc = atomic_fetch_or(&ctl_of(carrier)->pc, PC_FROZEN);

    co_link_cut(carrier->link, view);
    carrier->frozen = true;
    carrier->changing = carrier->taking = false;
    for (int i = 0; i < FEED_AT_ONCE; i++)
        carrier->feeding[i].busy = false;
    return (co_position){.unit = pc_unit(pc),
                         .ready = (pc & PC_READY) != 0,
                         .ended = (pc & (PC_STOP | PC_END | PC_FAIL)) != 0,
                         .whole = carrier_is_whole(carrier),
                         .fresh = carrier->fresh,
                         .fed = (uint32_t)carrier->fed,
                         .since = carrier->since,
                         .starts = !carrier->begun,
                         .first = carrier->plan->units.first_unit,
                         .start = atomic_load(&ctl_of(carrier)->host.start)};
}

/* --- giving --------------------------------------------------------------------------------------------- */
static void write_news(struct carrier *carrier, uint32_t held)
{
    const control *ctl = ctl_of(carrier);
    unit u = unit_now(carrier->plan, ctl, held);
    size_t n, more;
    const leaf_stat *stats = stats_of(carrier, &u, &n);
    struct stats *news = carrier->news;
    int32_t *choice = choices_after(carrier, &u, news, &more);

    news->wish = atomic_load(&ctl->settled[held & 1]) & 0xff;
    news->fed = 0;
    uint64_t pc = atomic_load(&ctl->pc), cut = atomic_load(&ctl->cut);
    news->cut = !(pc & PC_CUT) ? 0
                : cut          ? cut
                               : pc_unit(pc); /* ranks store it only when they begin the unit */
    news->over = pc & (PC_STOP | PC_END | PC_FAIL);
    for (int i = 0; i < 2; i++) {
        news->applied[i] = atomic_load(&ctl->applied[i]);
        for (int w = 0; w < (int)WATCH_WORDS; w++)
            news->watch[i][w] = atomic_load(&ctl->watch[i][w]);
    }
    memcpy(news->stat, stats, n * sizeof *stats);
    if (more)
        memcpy(choice, carrier->regions->choice, more);
}

static size_t rows_bytes(const struct carrier *carrier)
{
    return carrier->plan->rows.sum_elements * sizeof(float);
}

static co_err give(struct carrier *carrier, int to)
{
    const co_view *view = &carrier->view;
    const co_exchange_map *wire = &carrier->regions->wire;
    bool sums = view->giver[to] >= 0 && unit_now(carrier->plan, ctl_of(carrier), view->held).kind == UNIT_TRAIN;
    co_tag tag = {view->deal.view, view->held, CO_MSG_NEWS, 0, 0};

    CO_TRY(co_link_send(carrier->link, view->deal.id[to], &tag, carrier->news, carrier->stats_bytes));
    for (size_t c = 0; sums && c < wire->chunks; c++) {
        size_t lo, n = chunk_span(carrier->plan, c, &lo);
        co_tag given = {view->deal.view, view->held, CO_MSG_GIVEN, 0, (uint32_t)c};
        CO_TRY(co_link_send(carrier->link, view->deal.id[to], &given, wire->sum + lo, n * sizeof(float)));
    }
    co_tag rows = {view->deal.view, view->held, CO_MSG_GIVEN, 0, (uint32_t)wire->chunks};
    return sums && carrier->plan->rows.n > 0 ? co_link_send(carrier->link, view->deal.id[to], &rows,
                                                            carrier->regions->sum_rows, rows_bytes(carrier))
                                             : CO_OK;
}

/* This host's own step is finished by now, so the words that a newcomer needs are known too. Newcomers are
 * fed one after the other. */
static co_err give_all(struct carrier *carrier)
{
    const co_view *view = &carrier->view;

    write_news(carrier, view->held);
    carrier->fed_member = -1;
    for (int h = 0; h < view->deal.hosts; h++) {
        bool feeds = view->feeder[h] == view->deal.me;
        if (view->giver[h] == view->deal.me || (feeds && view->anew[h]))
            CO_TRY(give(carrier, h)); /* nobody else posts a receive: a message would stop all that follow it */
        if (feeds && carrier->fed_member < 0) {
            carrier->fed_member = h;
            carrier->fed = view->fed[h];
        }
    }
    return CO_OK;
}

/* --- taking --------------------------------------------------------------------------------------------- */
static co_err post_all(struct carrier *carrier)
{
    const co_view *view = &carrier->view;
    const co_exchange_map *wire = &carrier->regions->wire;
    bool missed = view->giver[view->deal.me] >= 0;
    bool sums = missed && unit_now(carrier->plan, ctl_of(carrier), view->held).kind == UNIT_TRAIN;
    int from = view->deal.id[missed ? view->giver[view->deal.me] : view->feeder[view->deal.me]];
    co_tag tag = {view->deal.view, view->held, CO_MSG_NEWS, 0, 0};

    CO_TRY(co_link_post(carrier->link, from, &tag, carrier->news, carrier->stats_bytes));
    carrier->missing = 1;
    for (size_t c = 0; sums && c < wire->chunks; c++, carrier->missing++) {
        size_t lo, n = chunk_span(carrier->plan, c, &lo);
        co_tag given = {view->deal.view, view->held, CO_MSG_GIVEN, 0, (uint32_t)c};
        CO_TRY(co_link_post(carrier->link, from, &given, wire->sum + lo, n * sizeof(float)));
    }
    carrier->taking = true;
    if (!sums || carrier->plan->rows.n == 0)
        return CO_OK;
    co_tag rows = {view->deal.view, view->held, CO_MSG_GIVEN, 0, (uint32_t)wire->chunks};
    carrier->missing++;
    return co_link_post(carrier->link, from, &rows, carrier->regions->sum_rows, rows_bytes(carrier));
}

void change_took(struct carrier *carrier, const co_tag *tag)
{
    if (carrier->taking && tag->view == carrier->view.deal.view && carrier->missing > 0)
        carrier->missing--;
}

/* What the giver knew about the unit that this host missed. */
static void read_missed(struct carrier *carrier, uint64_t pc)
{
    control *ctl = ctl_of(carrier);
    uint32_t held = carrier->view.held;
    unit u = unit_now(carrier->plan, ctl, held);
    size_t n, more;
    leaf_stat *stats = stats_of(carrier, &u, &n);
    const int32_t *choice = choices_after(carrier, &u, carrier->news, &more);

    memcpy(stats, carrier->news->stat, n * sizeof *stats);
    if (more)
        memcpy(carrier->regions->choice, choice, more);
    for (size_t c = 0; c <= carrier->plan->chunks; c++) /* for the turn that enter() begins */
        co_mark_set(&carrier->regions->wire.here[c], pc_turn(pc) + 1, 1);
    atomic_store(&ctl->settled[held & 1], (uint64_t)held << 8 | (carrier->news->wish & 0xff));
}

/* A host that is fed anew may come to units that it has applied in vain.
 * No rank applies now: the gate is frozen. */
static void forget(struct carrier *carrier)
{
    const co_plan *plan = carrier->plan;

    for (size_t i = 0; i < plan->chunks + plan->rows.pieces; i++)
        atomic_store(&carrier->regions->apply_claim[i].word, 0);
    for (int slot = 0; slot < plan->ranks; slot++)
        co_mark_set(&carrier->regions->slots[slot].journal, 0, 0);
    atomic_store(&ctl_of(carrier)->translated, 0);
}

/* This host's supervisor has read none of the validations before. */
static void keep_what_was_seen(struct carrier *carrier)
{
    control *ctl = ctl_of(carrier);
    uint32_t cut = (uint32_t)carrier->news->cut;
    unit_order order = cut ? unit_order_cut(&carrier->plan->units, cut) : carrier->plan->units;
    unit last = unit_of(&order, carrier->view.held);

    if (order.cycle) {
        watch seen = watch_get(ctl->watch[(evals_before(&order, last.step) + (last.kind == UNIT_VAL)) & 1]);
        watch_put(ctl->joined_watch, &seen);
        atomic_store(&ctl->joined, carrier->view.held);
    }
}

/* A newcomer's words. */
static void read_words(struct carrier *carrier)
{
    control *ctl = ctl_of(carrier);

    atomic_store(&ctl->cut, carrier->news->cut);
    for (int i = 0; i < 2; i++) {
        atomic_store(&ctl->applied[i], carrier->news->applied[i]);
        for (int w = 0; w < (int)WATCH_WORDS; w++)
            atomic_store(&ctl->watch[i][w], carrier->news->watch[i][w]);
    }
    keep_what_was_seen(carrier);
    atomic_store(&ctl->consumed, carrier->view.held);
    forget(carrier);
    carrier->fresh = false;
    carrier->since = carrier->view.held + 1;
}

/* --- entering ------------------------------------------------------------------------------------------- */
static void enter(struct carrier *carrier, uint64_t pc, uint32_t open, uint64_t gate)
{
    uint64_t flags = (pc & (PC_SNAP | PC_CUT)) | gate;
    uint32_t back = pc_unit(pc) > open ? pc_unit(pc) - open : 0; /* turns only rise, also when units do not */

    *carrier->regions->deal = carrier->view.deal;
    atomic_store(&ctl_of(carrier)->host.counts, carrier->view.counts);
    carrier->changing = carrier->taking = carrier->frozen = false;
    carrier->turn = 0;
    atomic_store_explicit(&ctl_of(carrier)->pc, pc_of(open, pc_redeals(pc) + 1 + back, flags),
                          memory_order_release);
    co_event_ring(&ctl_of(carrier)->event);
}

/* All that was given has come. */
static void entered_with(struct carrier *carrier, uint64_t pc)
{
    if (carrier->view.giver[carrier->view.deal.me] >= 0) {
        read_missed(carrier, pc);
        enter(carrier, pc, carrier->view.held, PC_READY);
        return;
    }
    read_words(carrier);
    enter(carrier, pc | (carrier->news->cut ? PC_CUT : 0), carrier->view.held + 1,
          carrier->news->over & (PC_STOP | PC_END | PC_FAIL));
}

/* The unit that was READY is finished: takes its part in the view. */
static co_err take_part(struct carrier *carrier, uint64_t pc)
{
    const co_view *view = &carrier->view;
    int me = view->deal.me;

    CO_TRY(give_all(carrier));
    if (view->feeder[me] >= 0)
        CO_TRY(feed_post(carrier));
    if (view->giver[me] >= 0 || carrier->fresh)
        return post_all(carrier);
    enter(carrier, pc, pc_unit(pc), 0);
    return CO_OK;
}

/* A rank of the old turn writes sums or lists of rows. */
static bool somebody_writes(const struct carrier *carrier)
{
    for (int slot = 0; slot < carrier->plan->ranks; slot++)
        if (atomic_load(&carrier->regions->slots[slot].writes))
            return true;
    return false;
}

co_err change_turn(struct carrier *carrier)
{
    uint64_t pc = atomic_load_explicit(&ctl_of(carrier)->pc, memory_order_acquire);

    if (!carrier->changing || (pc & PC_READY) || somebody_writes(carrier))
        return CO_OK;
    if (carrier->taking) {
        if (carrier->missing > 0)
            return CO_OK;
        if (!rows_are_sound(carrier->plan, carrier->regions->sum_rows, true))
            return co_fail(CO_EIO, "a host gave sums of rows that are not in order");
        entered_with(carrier, pc);
        return CO_OK;
    }
    if (pc & (PC_STOP | PC_END | PC_FAIL)) { /* this host has ended: it only gives */
        *carrier->regions->deal = carrier->view.deal;
        carrier->changing = false;
        return give_all(carrier);
    }
    if (carrier->view.stops && !carrier->fresh && pc_unit(pc) == carrier->view.held + 1) {
        enter(carrier, pc, pc_unit(pc), PC_STOP);
        return give_all(carrier);
    }
    return take_part(carrier, pc);
}

co_err carrier_view(struct carrier *carrier, const co_view *view, int me)
{
    carrier->view = *view;
    carrier->view.deal.me = me;
    carrier->changing = carrier->begun = true;
    carrier->fresh = view->anew[me];
    if (view->feeder[me] >= 0)
        carrier->fed = view->fed[me];
    for (size_t i = 0; carrier->fresh && i < feed_parts(carrier->plan); i++)
        co_mark_set(&carrier->regions->fed[i], 0, 0);
    return change_turn(carrier);
}
