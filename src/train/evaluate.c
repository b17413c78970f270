/* evaluate.c -- evaluates a split by all ranks together.
 *
 * The split is cut into items of data.eval_slice samples. Any free rank claims the next item. The totals are
 * summed along a fixed tree over the items, so they do not depend on which rank computed what. Evaluation
 * never changes the state.
 */
#include "train/evaluate_int.h"
#include "train/rank_int.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/maths.h"

co_slice_shape item_samples(const co_plan *plan, co_split split, uint32_t item, uint32_t *ids)
{
    uint32_t size = (uint32_t)plan->cfg.eval_slice, first = item * size;
    uint32_t n = plan->eval_count[split] - first < size ? plan->eval_count[split] - first : size;

    for (uint32_t i = 0; i < n; i++)
        ids[i] = first + i;
    return co_slice_of(plan->data, split, ids, (int)n);
}

int run_item(const co_plan *plan, const exec_set *set, co_split split, uint32_t item, co_bases *bases,
             _Atomic uint32_t *beat)
{
    uint32_t ids[EVAL_SLICE_MAX];
    co_slice_shape shape = item_samples(plan, split, item, ids);
    const shape_exec *shaped = exec_for(set, shape);
    co_slice_dst dst;

    slice_dst(shaped, bases->input, &dst);
    set_rows(bases, shape);
    int bad =
        co_dataset_fill(plan->data, split, ids, shape, &(co_draw){.seed = (uint64_t)plan->cfg.seed}, &dst);
    co_exec_run(shaped->exec, bases, &(co_run){.seed = (uint64_t)plan->cfg.seed}, beat);
    return bad;
}

void eval_bad_names(const co_plan *plan, const leaf_stat *items, co_split split, char *out, size_t room)
{
    enum { NAMED = 3 };
    const co_dataset *data = plan->data;
    uint32_t ids[EVAL_SLICE_MAX];
    int named = 0;
    size_t at = 0;

    out[0] = 0;
    for (uint32_t item = 0; item < plan->eval_items[split] && named < NAMED && data->check; item++) {
        int n = items[item].bad > 0 ? item_samples(plan, split, item, ids).n : 0;
        for (int i = 0; i < n && named < NAMED; i++) {
            if (data->check(data, split, ids[i]) == CO_OK)
                continue;
            int len = snprintf(out + at, room - at, "%s%s", named++ ? "; " : "", co_errmsg());
            at = len < (int)(room - at) ? at + (size_t)len : room - 1;
        }
    }
    co_errclear();
}

void eval_total(const co_plan *plan, const leaf_stat *items, co_split split, double total[LEAF_STATS])
{
    for (int i = 0; i < LEAF_STATS; i++)
        total[i] = tree_of((const double *)items + i, LEAF_STATS, plan->eval_items[split]);
}

/* If the run keeps an average of the weights (optim.ema), the average is what is evaluated. */
float *state_to_evaluate(const struct rank *rank)
{
    unit u = unit_now(rank->plan, rank->regions->ctl, rank->who.unit);
    uint32_t test_of = atomic_load_explicit(&rank->regions->ctl->test_of, memory_order_acquire);

    if (u.kind == UNIT_TEST && test_of == TEST_BEST)
        return rank->regions->best;
    return rank->plan->ema >= 0 && atomic_load(&rank->regions->ctl->applied[u.step & 1]) > 0
               ? rank->regions->moment[rank->plan->ema]
               : rank->regions->state;
}

/* What an item's samples were taken for. */
typedef struct chosen_item {
    const float *logits;  /* [n][classes] */
    const int32_t *right; /* [n] */
    int64_t classes;
    int n;
} chosen_item;

static chosen_item chosen_in(const co_plan *plan, co_split split, uint32_t item, const float *logits,
                             const char *input)
{
    uint32_t ids[EVAL_SLICE_MAX];
    co_slice_shape shape = item_samples(plan, split, item, ids);
    const char *right = input + exec_for(&plan->eval, shape)->y;

    return (chosen_item){logits, (const int32_t *)(const void *)right, plan->data->io.classes, shape.n};
}

static int32_t top_class(const chosen_item *found, int i)
{
    const float *row = found->logits + i * found->classes; /* [classes] */
    int64_t top = 0;

    for (int64_t c = 1; c < found->classes; c++)
        top = row[c] > row[top] ? c : top;
    return (int32_t)top;
}

/* Stores the likeliest class of each sample of an item beside the right one, for accuracy by class. */
void note_choices(const co_plan *plan, co_split split, uint32_t item, const float *logits, const char *input,
                  int32_t *choice)
{
    chosen_item found = chosen_in(plan, split, item, logits, input);

    for (int i = 0; i < found.n; i++) {
        choice[2 * i] = top_class(&found, i);
        choice[2 * i + 1] = found.right[i];
    }
}

/* Are the classes of some of the item's samples kept? */
static bool keeps_choices(const struct rank *rank, co_split split, uint32_t item)
{
    return split == CO_SPLIT_TEST ? rank->regions->choice != NULL
                                  : item * (uint64_t)rank->plan->cfg.eval_slice < val_kept(rank->plan);
}

static void keep_choices(const struct rank *rank, co_split split, uint32_t item, const co_bases *bases)
{
    const co_plan *plan = rank->plan;
    uint32_t first = item * (uint32_t)plan->cfg.eval_slice, kept = val_kept(plan);

    if (split == CO_SPLIT_TEST) {
        note_choices(plan, split, item, bases->output, bases->input, rank->regions->choice + 2 * first);
        return;
    }
    chosen_item found = chosen_in(plan, split, item, bases->output, bases->input);
    for (int i = 0; i < found.n && first + (uint32_t)i < kept; i++)
        rank->regions->val_choice[first + (uint32_t)i] =
            (val_choice){top_class(&found, i), found.right[i], rank->who.unit};
}

/* The best weights are in a checkpoint, which the host that writes can read. */
void eval_share(const co_plan *plan, const co_deal *deal, int h, co_split split, uint32_t *lo, uint32_t *hi)
{
    uint64_t items = plan->eval_items[split], slices = (uint64_t)plan->slices;

    if (split == CO_SPLIT_TEST && deal->hosts > 1 && test_wants_best(plan)) {
        *lo = 0;
        *hi = h == deal->writer ? (uint32_t)items : 0;
        return;
    }
    *lo = (uint32_t)((uint64_t)deal->from[h] * items / slices);
    *hi = (uint32_t)((uint64_t)deal->from[h + 1] * items / slices);
}

/* This host's items, and its translations. */
static bool all_evaluated(struct rank *rank, int64_t split)
{
    uint32_t lo, hi;

    eval_share(rank->plan, &rank->deal, rank->deal.me, (co_split)split, &lo, &hi);
    for (uint32_t i = hi; i-- > lo;)
        if (!co_claim_is_done(&rank->regions->eval_claim[i], rank->turn))
            return false;
    return all_translated(rank, (co_split)split);
}

static bool test_is_chosen(const struct rank *rank)
{
    return atomic_load_explicit(&rank->regions->ctl->test_of, memory_order_acquire) != TEST_UNDECIDED;
}

static bool chosen_or_stopping(struct rank *rank, int64_t unused)
{
    (void)unused;
    return test_is_chosen(rank) || evaluation_left(rank) ||
           atomic_load_explicit(&rank->regions->ctl->stop_request, memory_order_relaxed);
}

/* The supervisor checks by itself now and then; the bell makes it check at once. */
static bool wait_for_choice(struct rank *rank)
{
    if (!test_is_chosen(rank))
        ring_bell(rank);
    return wait_for(rank, chosen_or_stopping, 0, CO_PHASE_WAIT);
}

static bool evaluated_or_left(struct rank *rank, int64_t split)
{
    return evaluation_left(rank) || all_evaluated(rank, split) || (wishes(rank) & WISH_LEAVE);
}

static bool everybody_wished(struct rank *rank, int64_t unused)
{
    (void)unused;
    return all_wished(rank);
}

/* Our items are done, or somebody wants to leave: with everybody's items or wishes, all hosts agree on how it
 * ends. */
static bool meet_the_others(struct rank *rank)
{
    latch_wish(rank, 0);
    co_event_ring(&rank->regions->ctl->event);
    if (!wait_for(rank, everybody_wished, 0, CO_PHASE_WAIT))
        return false;
    if (wishes(rank) & WISH_LEAVE) {
        stop_evaluation(rank);
        return false;
    }
    return pass_gate(rank);
}

static bool others_gave_up(struct rank *rank, co_split split, uint32_t item, int bad)
{
    uint32_t ids[EVAL_SLICE_MAX];
    int n = item_samples(rank->plan, split, item, ids).n;

    return nobody_reads(rank, &(struct unread){split, item, ids, n, bad});
}

bool evaluate_items(struct rank *rank, co_split split)
{
    uint32_t lo, hi;

    if (rank->pc & PC_READY)
        return true;
    eval_share(rank->plan, &rank->deal, rank->deal.me, split, &lo, &hi);
    if (split == CO_SPLIT_TEST && lo < hi && !wait_for_choice(rank))
        return false;
    for (uint32_t i = lo; i < hi; i++) {
        if (rank->plan->hosts > 1 && turn_is_over(rank))
            return false;
        if (leave_evaluation(rank)) {
            if (rank->plan->hosts == 1)
                return false;
            break;
        }
        co_claimed got = co_claim_take(&rank->regions->eval_claim[i], turn_of(rank));
        if (got == CO_CLAIM_BUSY || got == CO_CLAIM_DONE)
            continue;
        rank_phase(rank, CO_PHASE_EVAL, i);
        fault_point(rank, CO_FAULT_EVAL);
        bool choices = keeps_choices(rank, split, i);
        co_bases bases = {.state = state_to_evaluate(rank),
                          .input = rank->regions->eval_input[rank->who.slot],
                          .work = rank->work,
                          .stat = rank->regions->eval_stat[split][i].stat,
                          .output = choices ? rank->regions->eval_output[rank->who.slot] : NULL,
                          .work_bytes = rank->work_bytes,
                          .team = rank->team};
        int bad = run_item(rank->plan, &rank->plan->eval, split, i, &bases, &rank->me->record.call);
        if (bad != 0 && !others_gave_up(rank, split, i, bad))
            return false;
        rank->regions->eval_stat[split][i].bad = bad < 0 ? LOST : bad;
        if (choices)
            keep_choices(rank, split, i, &bases);
        fault_point(rank, CO_FAULT_NONE);
        co_claim_finish(&rank->regions->eval_claim[i], turn_of(rank));
        co_event_ring(&rank->regions->ctl->event);
    }
    if (!translate_groups_of(rank, split))
        return false;
    if (!wait_for(rank, evaluated_or_left, split, CO_PHASE_WAIT) || evaluation_left(rank))
        return false;
    if (all_translated(rank, split))
        say_translated(rank, split);
    return meet_the_others(rank);
}
