/* regions.c -- what lies where in the arena. Reserved from the plan, bound once the memory is there.
 *
 * The list of regions is walked twice, so that reserving and binding cannot disagree. In the first walk the
 * arena has no memory yet, and all pointers are NULL.
 */
#include "train/regions_int.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

struct walk {
    co_arena *a;
    int next; /* region to bind, in the second walk */
};

static void *bind(struct walk *walk, const char *name, size_t bytes)
{
    const co_region *r = &walk->a->region[walk->next++];
    CO_ASSERT(r->bytes == bytes && strcmp(r->name, name) == 0, "both walks see the same list");
    return co_arena_at(walk->a, r->offset);
}

static void *region(struct walk *walk, const char *name, size_t bytes)
{
    if (walk->a->base)
        return bind(walk, name, bytes);
    co_arena_reserve(walk->a, name, bytes);
    return NULL;
}

/* For what only some deals or some wires need. */
static void *late_region(struct walk *walk, const char *name, size_t bytes)
{
    if (walk->a->base)
        return bind(walk, name, bytes);
    co_arena_reserve_late(walk->a, name, bytes);
    return NULL;
}

/* Slices that are computed at once are taken one after the other, without a pause. */
int loader_depth(const co_plan *plan)
{
    int more = plan->at_once > 1 ? plan->at_once * AT_ONCE_EACH - 1 : 0;

    return plan->cfg.workers ? (int)plan->cfg.workers + 2 + more : 1;
}

size_t loader_slot_bytes(const co_plan *plan)
{
    return (plan->train.input_bytes + 63) & ~(size_t)63;
}

size_t choices_bytes(const co_plan *plan)
{
    bool wanted = plan->data->io.task == CO_TASK_CLASSIFY && plan->units.final_test;

    return wanted ? (size_t)plan->eval_count[CO_SPLIT_TEST] * 2 * sizeof(int32_t) : 0;
}

uint32_t val_kept(const co_plan *plan)
{
    int64_t most = plan->units.cycle ? plan->eval_count[CO_SPLIT_VAL] : 0, asked = plan->spec.val_samples;

    return plan->data->io.task == CO_TASK_CLASSIFY ? (uint32_t)(asked < most ? asked : most) : 0;
}

static size_t most_of(size_t a, size_t b)
{
    return a > b ? a : b;
}

size_t work_bytes(const co_plan *plan)
{
    size_t steps = most_of(plan->train.work_bytes, plan->eval.work_bytes);

    return most_of(steps, plan->translations.decoder.set.work_bytes);
}

static void walk_slot(const co_plan *plan, struct walk *walk, struct regions *regions, int i)
{
    size_t chunk =
        (plan->chunk > plan->rows.piece_elements ? plan->chunk : plan->rows.piece_elements) * sizeof(float);
    size_t levels = (size_t)__builtin_ctz((unsigned)plan->slices) + 1;

    const exec_set *translating = &plan->translations.decoder.set;

    regions->leaf_buffer[i] =
        region(walk, "leaves", (size_t)regions->n_buffers * plan->layout->dense * sizeof(float));
    regions->work[i] = region(walk, "work", plan->kernels->space ? 0 : work_bytes(plan));
    regions->input[i] = region(walk, "input", (size_t)loader_depth(plan) * loader_slot_bytes(plan));
    regions->audit_input[i] = region(walk, "input.audit", plan->hosts > 1 ? loader_slot_bytes(plan) : 0);
    regions->group[i] = late_region(walk, "work.group", group_bytes(plan));
    regions->at_once[i] = region(walk, "work.at_once", at_once_bytes(plan));
    regions->eval_input[i] =
        region(walk, "input.eval", most_of(plan->eval.input_bytes, translating->input_bytes));
    size_t output = choices_bytes(plan) || val_kept(plan) ? plan->eval.output_bytes : 0;
    regions->eval_output[i] = region(walk, "output.eval", most_of(output, translating->output_bytes));
    regions->journal[i] = region(walk, "journal", (size_t)(1 + plan->moments) * chunk);
    bool adds = plan->ranks > 1 || plan->hosts > 1; /* else a single slot holds the root */
    regions->scratch[i] =
        region(walk, "scratch", (adds ? levels : 0) * plan->chunk * (size_t)plan->threads * sizeof(float));
    regions->clipped[i] = region(walk, "scratch.clip", plan->recipe.clip_value > 0 ? chunk : 0);
    regions->row_scratch[i] = region(walk, "scratch.rows", plan->rows.order_bytes + plan->rows.sum_scratch);
}

/* What several hosts exchange. Planned for any deal: a host alone may have to hold all leaves. */
static void walk_wire(const co_plan *plan, struct walk *walk, struct regions *regions)
{
    bool several = plan->hosts > 1;
    size_t pieces = several ? (size_t)co_exchange_pieces(plan->slices) : 0, chunks = several ? plan->chunks : 0;
    size_t inbox = several ? co_exchange_inbox(plan->chunk, plan->chunks, plan->hosts, (int)pieces) : 0;
    co_exchange_map *wire = &regions->wire;

    regions->sum = region(walk, "sum", (several ? plan->layout->dense : 0) * sizeof(float));
    wire->outbox = late_region(walk, "wire.out", pieces * plan->layout->dense * sizeof(float));
    wire->inbox = late_region(walk, "wire.in", inbox * sizeof(float));
    wire->here = region(walk, "marks.here", (chunks + several) * sizeof *wire->here);
    regions->piece_claim = region(walk, "marks.piece", chunks * sizeof *regions->piece_claim);
    regions->fed =
        region(walk, "marks.fed", (chunks + (several ? plan->rows.ranges : 0)) * sizeof *regions->fed);
    wire->sum = regions->sum;
    wire->pieced = regions->piece_claim;
    wire->summed = regions->sum_claim;
    wire->count = plan->layout->dense;
    wire->chunk = plan->chunk;
    wire->chunks = plan->chunks;
}

/* Where the best weights go for the final test. No step follows, so they may use what only steps use: the
 * pool for copies aside, or the leaf buffers of the first slot. */
enum best_place { BEST_NOWHERE, BEST_ASIDE, BEST_LEAVES, BEST_ALONE };

static enum best_place best_share(const co_plan *plan)
{
    size_t need = plan->layout->count;

    return !test_wants_best(plan)                                  ? BEST_NOWHERE
           : plan->aside_room >= need                              ? BEST_ASIDE
           : (size_t)plan->n_buffers * plan->layout->dense >= need ? BEST_LEAVES
                                                                   : BEST_ALONE;
}

static void walk_all(const co_plan *plan, struct walk *walk, struct regions *regions)
{
    size_t state = plan->layout->count * sizeof(float);

    regions->n_buffers = plan->n_buffers;
    regions->ctl = region(walk, "control", sizeof *regions->ctl);
    regions->deal = region(walk, "deal", sizeof *regions->deal);
    regions->slots = region(walk, "slots", (size_t)plan->ranks * sizeof *regions->slots);
    regions->state = region(walk, "weights", state);
    for (int j = 0; j < plan->moments; j++)
        regions->moment[j] = region(walk, "moments", state);
    regions->leaf_rows =
        region(walk, "rows.leaves", (size_t)plan->slices * plan->rows.leaf_elements * sizeof(float));
    regions->sum_rows = region(walk, "rows.sum", plan->rows.sum_elements * sizeof(float));
    regions->aside = region(walk, "aside", plan->aside_room * sizeof(float));
    regions->best = region(walk, "best", best_share(plan) == BEST_ALONE ? state : 0);
    size_t lists = (size_t)plan->rows.n;
    regions->aside_mark =
        region(walk, "marks.aside", (plan->chunks + plan->rows.ranges) * sizeof *regions->aside_mark);
    regions->aside_claim = region(walk, "marks.ranges", plan->rows.ranges * sizeof *regions->aside_claim);
    regions->sum_claim = region(walk, "marks.sum", (plan->chunks + lists) * sizeof *regions->sum_claim);
    regions->apply_claim =
        region(walk, "marks.apply", (plan->chunks + plan->rows.pieces) * sizeof *regions->apply_claim);
    walk_wire(plan, walk, regions);
    for (int parity = 0; parity < 2; parity++) {
        regions->leaf[parity] = region(walk, "stats.leaf", (size_t)plan->slices * sizeof **regions->leaf);
        regions->norm[parity] = region(walk, "stats.norm", (plan->chunks + lists) * sizeof **regions->norm);
    }
    regions->gradients = region(walk, "stats.gradients", gradients_bytes(plan));
    if (gradients_bytes(plan) == 0)
        regions->gradients = NULL;
    regions->eval_claim = region(walk, "marks.eval", plan->max_items * sizeof *regions->eval_claim);
    for (int split = 0; split < CO_SPLIT_COUNT; split++)
        regions->eval_stat[split] =
            region(walk, "stats.eval", plan->eval_items[split] * sizeof **regions->eval_stat);
    for (int split = 0; split < CO_SPLIT_COUNT; split++)
        regions->given_up[split] =
            region(walk, "marks.unreadable",
                   plan->hosts > 1 ? (plan->data->count[split] + 63) / 64 * sizeof(uint64_t) : 0);
    size_t sentences = plan->translations.most;
    regions->translate_claim = region(
        walk, "marks.translation", translate_groups((uint32_t)sentences) * sizeof *regions->translate_claim);
    for (int split = 0; split < CO_SPLIT_COUNT; split++)
        regions->translation[split] = region(
            walk, "translations", plan->translations.n[split] * translation_stride(plan) * sizeof(int32_t));
    regions->choice = region(walk, "choices", choices_bytes(plan));
    if (choices_bytes(plan) == 0)
        regions->choice = NULL;
    regions->val_choice = region(walk, "choices.val", val_kept(plan) * sizeof *regions->val_choice);
    for (int i = 0; i < plan->ranks; i++)
        walk_slot(plan, walk, regions, i);
    if (best_share(plan) == BEST_ASIDE)
        regions->best = regions->aside;
    else if (best_share(plan) == BEST_LEAVES)
        regions->best = regions->leaf_buffer[0];
}

void regions_reserve(co_plan *plan)
{
    struct regions nowhere = {0};
    struct walk walk = {&plan->arena, 0};

    walk_all(plan, &walk, &nowhere);
}

void regions_bind(co_plan *plan, struct regions *regions)
{
    struct walk walk = {&plan->arena, 0};

    memset(regions, 0, sizeof *regions);
    walk_all(plan, &walk, regions);
}

float *state_part(const struct regions *regions, int part)
{
    return part == 0 ? regions->state : regions->moment[part - 1];
}

float *leaf_buffer_of(const co_plan *plan, const struct regions *regions, int slot, int i)
{
    return regions->leaf_buffer[slot] + (size_t)i * plan->layout->dense;
}
