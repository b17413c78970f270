/* carrier.c -- see carrier_int.h. What happens within a view; view changes are in change.c. */
#include "train/carrier_int.h"
#include "train/change_int.h"
#include "train/evaluate_int.h"

#include <string.h>

#include "base/alloc.h"

/* --- opening and closing -------------------------------------------------------------------------------- */
static size_t stats_room(const co_plan *plan)
{
    size_t most = (size_t)plan->slices;

    for (int split = 0; split < CO_SPLIT_COUNT; split++)
        most = plan->eval_items[split] > most ? plan->eval_items[split] : most;
    return sizeof(struct stats) + most * LEAF_STATS * sizeof(double) + choices_bytes(plan);
}

static void done(void *ctx, bool sent, int peer, const co_tag *tag);

co_err carrier_open(struct carrier *carrier, co_plan *plan, struct regions *regions, co_link *link)
{
    *carrier = (struct carrier){.plan = plan, .regions = regions, .link = link, .fed_member = -1};
    carrier->stats_bytes = stats_room(plan);
    link->done = done;
    link->ctx = carrier;
    carrier->mine[0] = co_zalloc(carrier->stats_bytes);
    carrier->mine[1] = co_zalloc(carrier->stats_bytes);
    carrier->news = co_zalloc(carrier->stats_bytes);
    carrier->parts = co_array(feed_parts(plan), sizeof *carrier->parts);
    bool ok = carrier->mine[0] && carrier->mine[1] && carrier->news && carrier->parts;
    for (int h = 0; h < plan->hosts; h++)
        ok = (carrier->theirs[h] = co_zalloc(carrier->stats_bytes)) && ok;
    for (int i = 0; i < FEED_AT_ONCE; i++)
        ok = (carrier->feeding[i].part =
                  co_array((1 + (size_t)plan->moments) * feed_size(plan), sizeof(float))) &&
             ok;
    return ok ? co_exchange_init(&carrier->exchange, link, regions->deal, &regions->wire) : CO_ENOMEM;
}

void carrier_close(struct carrier *carrier)
{
    co_exchange_fini(&carrier->exchange);
    co_free(carrier->mine[0]);
    co_free(carrier->mine[1]);
    co_free(carrier->news);
    co_free(carrier->parts);
    for (int h = 0; h < CO_MAX_MEMBERS; h++)
        co_free(carrier->theirs[h]);
    for (int i = 0; i < FEED_AT_ONCE; i++)
        co_free(carrier->feeding[i].part);
}

/* --- do all hosts agree? -------------------------------------------------------------------------------- */
/* Nobody changes the state before this host's statistics are sent. */
static void hash_state(struct carrier *carrier, const unit *u)
{
    int me = carrier->regions->deal->me;

    memset(carrier->state_hash, 0, sizeof carrier->state_hash);
    memset(carrier->leaf_hash, 0, sizeof carrier->leaf_hash);
    carrier->known = 0;
    if (carrier->flip_at && u->kind == UNIT_TRAIN && u->step == carrier->flip_at) {
        ((uint32_t *)(void *)carrier->regions->state)[0] ^= 1u << 12;
        carrier->flip_at = 0;
    }
    if (verify_due(carrier->plan, u) && carrier_is_whole(carrier))
        carrier->state_hash[me] = hash_of_state(carrier->plan, carrier->regions);
}

/* Member h's hashes have come. With all of them: does everybody agree? */
static void verify(struct carrier *carrier, const unit *u, int h, const struct stats *said)
{
    int hosts = carrier->regions->deal->hosts;

    carrier->state_hash[h] = said->state_hash;
    memcpy(carrier->leaf_hash[h], said->leaf_hash, sizeof said->leaf_hash);
    carrier->known |= (uint64_t)1 << h;
    if (carrier->known != UINT64_MAX >> (64 - hosts))
        return;
    carrier->wrong = outvoted(carrier->state_hash, hosts);
    if (!carrier->wrong) {
        carrier->wrong = outvoted_leaves(carrier->plan, carrier->regions->deal, u, carrier->leaf_hash);
        carrier->wrong_leaf = carrier->wrong != 0;
    }
}

/* In a unit that is verified nobody's part is taken before all hashes are known and agree. So no host makes
 * it READY if two differ. */
static bool may_take(const struct carrier *carrier, const unit *u)
{
    return !verify_due(carrier->plan, u) ||
           (carrier->known == UINT64_MAX >> (64 - carrier->regions->deal->hosts) && !carrier->wrong);
}

/* --- statistics and wishes ------------------------------------------------------------------------------ */
/* The statistics of the unit: leaves of a step, items of an evaluation. */
leaf_stat *stats_of(const struct carrier *carrier, const unit *u, size_t *n)
{
    const struct regions *regions = carrier->regions;
    co_split split = u->kind == UNIT_VAL ? CO_SPLIT_VAL : CO_SPLIT_TEST;

    *n = u->kind == UNIT_TRAIN ? (size_t)carrier->plan->slices : carrier->plan->eval_items[split];
    return u->kind == UNIT_TRAIN ? regions->leaf[u->step & 1] : regions->eval_stat[split];
}

int32_t *choices_after(const struct carrier *carrier, const unit *u, struct stats *stats, size_t *bytes)
{
    size_t n;

    stats_of(carrier, u, &n);
    *bytes = u->kind == UNIT_TEST ? choices_bytes(carrier->plan) : 0;
    return (int32_t *)(void *)(stats->stat + n * LEAF_STATS);
}

/* Copies the choices of items [lo, hi) of the final test, if the unit is one. */
static void copy_choices(const struct carrier *carrier, const unit *u, int32_t *to, const int32_t *from,
                         uint32_t lo, uint32_t hi)
{
    uint64_t size = (uint64_t)carrier->plan->cfg.eval_slice, count = carrier->plan->eval_count[CO_SPLIT_TEST];
    uint64_t first = lo * size, end = hi * size < count ? hi * size : count;

    if (u->kind == UNIT_TEST && carrier->regions->choice && first < end)
        memcpy(to + 2 * first, from + 2 * first, (end - first) * 2 * sizeof *to);
}

/* Which of them are member h's. */
static void share_of(const struct carrier *carrier, const unit *u, int h, uint32_t *lo, uint32_t *hi)
{
    const co_deal *deal = carrier->regions->deal;

    if (u->kind != UNIT_TRAIN) {
        eval_share(carrier->plan, deal, h, u->kind == UNIT_VAL ? CO_SPLIT_VAL : CO_SPLIT_TEST, lo, hi);
        return;
    }
    *lo = (uint32_t)deal->from[h];
    *hi = (uint32_t)deal->from[h + 1];
}

/* Everything of this host is in the arena: its ranks have arrived, or done (or left) their items. */
static bool may_speak(const struct carrier *carrier, const unit *u)
{
    const struct regions *regions = carrier->regions;
    uint64_t wish = atomic_load_explicit(&regions->ctl->wish[regions->deal->me], memory_order_acquire);

    if (wish >> 8 != carrier->turn)
        return false;
    for (int slot = 0; u->kind == UNIT_TRAIN && slot < carrier->plan->ranks; slot++)
        if (co_mark_get(&regions->slots[slot].progress, carrier->turn) == 0)
            return false;
    return true;
}

static co_err speak(struct carrier *carrier, const unit *u, uint32_t open)
{
    const co_deal *deal = carrier->regions->deal;
    struct stats *mine = carrier->mine[open & 1];
    uint32_t lo, hi;
    size_t n, more;
    const leaf_stat *stats = stats_of(carrier, u, &n);
    int32_t *choice = choices_after(carrier, u, mine, &more);

    share_of(carrier, u, deal->me, &lo, &hi);
    memset(mine, 0, sizeof *mine);
    mine->wish = atomic_load(&carrier->regions->ctl->wish[deal->me]) & 0xff;
    mine->fed = carrier->fed_member >= 0 ? carrier->fed : 0;
    mine->state_hash = carrier->state_hash[deal->me];
    for (int i = 0; i < AUDITORS; i++)
        if (atomic_load_explicit(&carrier->regions->ctl->host.audited[i], memory_order_acquire) == carrier->turn)
            mine->leaf_hash[i] =
                atomic_load_explicit(&carrier->regions->ctl->host.audit[i], memory_order_relaxed);
    mine->fed_to = carrier->fed_member >= 0 ? 1 + (uint64_t)deal->id[carrier->fed_member] : 0;
    memcpy(mine->stat + (size_t)lo * LEAF_STATS, stats + lo, (hi - lo) * sizeof *stats);
    copy_choices(carrier, u, choice, carrier->regions->choice, lo, hi);
    for (int h = 0; h < deal->hosts; h++) {
        co_tag tag = {deal->view, open, CO_MSG_STATS, 0, 0};
        if (h != deal->me)
            CO_TRY(co_link_send(carrier->link, deal->id[h], &tag, mine,
                                sizeof *mine + n * sizeof *stats + more));
    }
    carrier->said = true;
    verify(carrier, u, deal->me, mine);
    return u->kind == UNIT_TRAIN ? lists_send(carrier, u->step, open) : CO_OK;
}

/* --- hearing the others --------------------------------------------------------------------------------- */
/* Member h's statistics have come. Those of a newcomer's feeder count only with all that it has fed. */
static void hear(struct carrier *carrier, int h, uint32_t open)
{
    const struct regions *regions = carrier->regions;
    struct stats *theirs = carrier->theirs[h];
    unit u = unit_now(carrier->plan, regions->ctl, open);
    bool feeds_me = !carrier_is_whole(carrier) && carrier->view.feeder[regions->deal->me] == h &&
                    theirs->fed_to == 1 + (uint64_t)carrier->link->me;
    uint32_t lo, hi;
    size_t n, more;
    leaf_stat *stats = stats_of(carrier, &u, &n);

    verify(carrier, &u, h, theirs);
    carrier->held_back[h] = (feeds_me && !feed_has(carrier, theirs->fed)) || !may_take(carrier, &u);
    if (carrier->held_back[h])
        return;
    if (feeds_me)
        feed_count(carrier, theirs->fed, open);
    share_of(carrier, &u, h, &lo, &hi);
    memcpy(stats + lo, theirs->stat + (size_t)lo * LEAF_STATS, (hi - lo) * sizeof *stats);
    copy_choices(carrier, &u, regions->choice, choices_after(carrier, &u, theirs, &more), lo, hi);
    atomic_store_explicit(&regions->ctl->wish[h], (uint64_t)carrier->turn << 8 | (theirs->wish & 0xff),
                          memory_order_release);
    carrier->heard |= (uint64_t)1 << h;
    lists_check(carrier);
    co_event_ring(&regions->ctl->event);
}

static int member_of(const co_deal *deal, int id)
{
    for (int h = 0; h < deal->hosts; h++)
        if (deal->id[h] == id)
            return h;
    return -1;
}

static void done(void *ctx, bool sent, int peer, const co_tag *tag)
{
    struct carrier *carrier = ctx;
    const co_deal *deal = carrier->regions->deal;
    int h = member_of(deal, peer);

    if (tag->view != carrier->view.deal.view)
        return; /* of a view that was left */
    if (sent) {
        if (tag->kind == CO_MSG_FED)
            feed_sent(carrier, tag);
        if (tag->kind == CO_MSG_ROWS && tag->view == deal->view)
            carrier->rows_unsent--;
    } else if (tag->kind == CO_MSG_ROWS) {
        lists_took(carrier, peer, tag);
    } else if (tag->kind == CO_MSG_STATS) {
        if (h >= 0 && tag->view == deal->view)
            hear(carrier, h, tag->unit);
    } else if (tag->kind == CO_MSG_FED) {
        feed_took(carrier, tag);
    } else if (tag->kind == CO_MSG_GIVEN || tag->kind == CO_MSG_NEWS) {
        change_took(carrier, tag);
    } else if (co_exchange_took(&carrier->exchange, tag)) {
        co_event_ring(&carrier->regions->ctl->event);
    }
}

/* --- a unit --------------------------------------------------------------------------------------------- */
static co_err begin(struct carrier *carrier, const unit *u, uint64_t pc)
{
    const co_deal *deal = carrier->regions->deal;
    size_t n, more;

    carrier->turn = pc_turn(pc);
    carrier->said = false;
    carrier->rows_missing = carrier->rows_unsent = 0;
    carrier->heard = 0;
    hash_state(carrier, u);
    stats_of(carrier, u, &n);
    choices_after(carrier, u, carrier->news, &more);
    for (int h = 0; h < deal->hosts; h++) {
        co_tag tag = {deal->view, pc_unit(pc), CO_MSG_STATS, 0, 0};
        carrier->held_back[h] = false;
        if (h != deal->me)
            CO_TRY(co_link_post(carrier->link, deal->id[h], &tag, carrier->theirs[h],
                                sizeof(struct stats) + n * sizeof(leaf_stat) + more));
    }
    if (u->kind != UNIT_TRAIN)
        return CO_OK;
    CO_TRY(lists_post(carrier, u->step, pc_unit(pc)));
    CO_TRY(co_exchange_begin(&carrier->exchange, pc_unit(pc), carrier->turn,
                             &carrier->plan->cut[cut_of_step(carrier->plan, u->step)]));
    co_event_ring(&carrier->regions->ctl->event);
    return CO_OK;
}

static co_err go_on(struct carrier *carrier, uint64_t pc)
{
    uint32_t open = pc_unit(pc);
    unit u = unit_now(carrier->plan, carrier->regions->ctl, open);

    if (carrier->turn != pc_turn(pc))
        CO_TRY(begin(carrier, &u, pc));
    if (carrier->fed_member >= 0 && !carrier->said)
        CO_TRY(feed_turn(carrier, open));
    if (!carrier->said && may_speak(carrier, &u))
        CO_TRY(speak(carrier, &u, open));
    for (int h = 0; h < carrier->regions->deal->hosts; h++)
        if (carrier->held_back[h])
            hear(carrier, h, open);
    if (u.kind == UNIT_TRAIN)
        CO_TRY(co_exchange_turn(&carrier->exchange));
    if (carrier->said && (u.kind != UNIT_TRAIN || co_exchange_sent(&carrier->exchange)) &&
        carrier->rows_unsent == 0 && co_mark_get(&carrier->regions->ctl->sent, carrier->turn) == 0) {
        co_mark_set(&carrier->regions->ctl->sent, carrier->turn, 1);
        co_event_ring(&carrier->regions->ctl->event);
    }
    return CO_OK;
}

co_err carrier_turn(struct carrier *carrier)
{
    CO_TRY(co_link_turn(carrier->link, 0));
    CO_TRY(carrier->err);
    if (carrier->frozen)
        return change_turn(carrier);
    uint64_t pc = atomic_load_explicit(&carrier->regions->ctl->pc, memory_order_acquire);
    if (pc & (PC_STOP | PC_END | PC_FAIL | PC_FROZEN))
        return CO_OK;
    if (pc & PC_READY) /* all that this host owes the others was sent before, or the unit was given */
        return CO_OK;
    return go_on(carrier, pc);
}

bool carrier_is_whole(const struct carrier *carrier)
{
    const co_deal *deal = carrier->regions->deal;

    return !carrier->fresh && ((deal->whole >> deal->me & 1) || carrier->fed == feed_parts(carrier->plan));
}
