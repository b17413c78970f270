/* translate_rank.c -- a rank's part in the translations of an evaluation.
 *
 * Sentences are translated in groups, greedily. A free rank claims the next group, as it claims the items
 * of the evaluation. The tokens go into the arena, where the supervisor makes text and scores of them
 * (translate_read.c) when it reads the unit's result. So nobody writes there before the supervisor has read
 * the results of all earlier units.
 *
 * A translation is a function of the weights and its source, so it does not matter which rank makes it. Of
 * several hosts each translates all sentences: nothing has to be sent, and the others would only wait.
 */
#include "train/rank_int.h"

#include <string.h>

#include "base/alloc.h"

/* The order of units as this turn found it. */
static unit_order order_of(const struct rank *rank)
{
    const control *ctl = rank->regions->ctl;

    return rank->pc & PC_CUT ? unit_order_cut(&rank->plan->units, (uint32_t)atomic_load(&ctl->cut))
                             : rank->plan->units;
}

bool translation_due(const struct rank *rank, co_split split)
{
    const co_plan *plan = rank->plan;
    int64_t every = plan->cfg.translate_every;

    const co_deal *deal = &rank->deal;

    if (!plan->translations.n[split] || deal->from[deal->me] == deal->from[deal->me + 1])
        return false; /* a host without slices has just come, and may not have the whole state yet */
    if (split == CO_SPLIT_TEST) /* the best weights are on the host that writes */
        return rank->deal.hosts == 1 || !test_wants_best(plan) || rank->deal.me == rank->deal.writer;
    unit_order order = order_of(rank);
    int64_t step = unit_of(&order, rank->who.unit).step;
    return step == order.steps || (evals_before(&plan->units, step) + 1) % every == 0;
}

static void translate_group(struct rank *rank, co_split split, uint32_t group)
{
    const co_plan *plan = rank->plan;
    struct regions *regions = rank->regions;
    uint32_t slot = rank->who.slot, first = group * TRANSLATE_GROUP, left = plan->translations.n[split] - first;
    int n = left < TRANSLATE_GROUP ? (int)left : TRANSLATE_GROUP;
    int32_t offsets[TRANSLATE_GROUP + 1];
    co_source source[TRANSLATE_GROUP];
    co_bases bases = {.state = state_to_evaluate(rank),
                      .input = regions->eval_input[slot],
                      .work = rank->work,
                      .output = regions->eval_output[slot],
                      .work_bytes = rank->work_bytes,
                      .team = rank->team};

    read_sources(plan->data, split, first, n, offsets, rank->sources, source);
    search_run(rank->search, &bases, source, n, &rank->me->record.call);
    for (int i = 0; i < n; i++) {
        co_translation best = search_best(rank->search, i);
        int32_t *to = regions->translation[split] + (first + (uint32_t)i) * translation_stride(plan);
        to[0] = best.n;
        memcpy(to + 1, best.token, (size_t)best.n * sizeof *to);
    }
}

bool translate_groups_of(struct rank *rank, co_split split)
{
    uint32_t groups = translate_groups(rank->plan->translations.n[split]);

    if (!translation_due(rank, split))
        return true;
    if (!wait_for(rank, supervisor_has_read, rank->who.unit, CO_PHASE_WAIT))
        return false;
    for (uint32_t g = 0; g < groups; g++) {
        if (turn_is_over(rank))
            return false;
        if (leave_evaluation(rank))
            return rank->plan->hosts > 1; /* several hosts agree on it when they meet */
        co_claim *claim = &rank->regions->translate_claim[g];
        co_claimed got = co_claim_take(claim, turn_of(rank));
        if (got == CO_CLAIM_BUSY || got == CO_CLAIM_DONE)
            continue;
        rank_phase(rank, CO_PHASE_TRANSLATE, g);
        fault_point(rank, CO_FAULT_EVAL);
        translate_group(rank, split, g);
        fault_point(rank, CO_FAULT_NONE);
        co_claim_finish(claim, turn_of(rank));
        co_event_ring(&rank->regions->ctl->event);
    }
    return true;
}

bool all_translated(const struct rank *rank, co_split split)
{
    uint32_t groups = translation_due(rank, split) ? translate_groups(rank->plan->translations.n[split]) : 0;

    while (groups > 0 && co_claim_is_done(&rank->regions->translate_claim[groups - 1], rank->turn))
        groups--;
    return groups == 0;
}

void say_translated(struct rank *rank, co_split split)
{
    _Atomic uint32_t *translated = &rank->regions->ctl->translated;
    uint32_t last = atomic_load(translated);

    if (!translation_due(rank, split))
        return;
    while (last < rank->who.unit && !atomic_compare_exchange_weak(translated, &last, rank->who.unit))
        ; /* never back: a slow rank may come here when the others have ended a later unit */
}

co_err open_search(struct rank *rank)
{
    const translate_plan *t = &rank->plan->translations;

    if (!t->most)
        return CO_OK;
    rank->sources = co_array((size_t)TRANSLATE_GROUP * (size_t)t->decoder.longest, sizeof *rank->sources);
    return rank->sources ? search_new(&rank->search, rank->plan, &t->decoder) : CO_ENOMEM;
}

void close_search(struct rank *rank)
{
    search_free(rank->search);
    co_free(rank->sources);
}
