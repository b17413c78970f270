/* regions.c -- what lies where in the arena. Reserved from the plan, bound once the memory is there.
 *
 * Two passes over the same list (reserve, then bind) would drift apart; so there is one list, walked twice: in the first
 * walk the arena has no memory yet and pointers come out as NULL.
 */
#include "train/train_int.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

struct walk {
    co_arena *a;
    int next; /* region to bind, in the second walk */
};

static void *region(struct walk *w, const char *name, size_t bytes)
{
    if (!w->a->base) {
        co_arena_reserve(w->a, name, bytes);
        return NULL;
    }
    const co_region *r = &w->a->region[w->next++];
    CO_ASSERT(r->bytes == bytes && strcmp(r->name, name) == 0, "both walks see the same list");
    return co_arena_at(w->a, r->offset);
}

static size_t loader_depth(const co_plan *p)
{
    return p->cfg.workers ? (size_t)p->cfg.workers + 2 : 1;
}

/* Of the test samples: the class chosen and the right one. */
static size_t choices_bytes(const co_plan *p)
{
    bool wanted = p->data->io.task == CO_TASK_CLASSIFY && p->sched.final_test;

    return wanted ? (size_t)p->eval_count[CO_SPLIT_TEST] * 2 * sizeof(int32_t) : 0;
}

static void walk_slot(const co_plan *p, struct walk *w, regions *r, int i)
{
    size_t work = p->train.work_bytes > p->eval.work_bytes ? p->train.work_bytes : p->eval.work_bytes;
    size_t levels = (size_t)__builtin_ctz((unsigned)p->slices) + 1;
    size_t slot_bytes = (p->train.input_bytes + 63) & ~(size_t)63;

    r->leaf_buffer[i] = region(w, "leaves", (size_t)r->n_buffers * p->layout->leaf_count * sizeof(float));
    r->work[i] = region(w, "work", p->kernels->space ? 0 : work);
    r->input[i] = region(w, "input", loader_depth(p) * slot_bytes);
    r->eval_input[i] = region(w, "input.eval", p->eval.input_bytes);
    r->eval_output[i] = region(w, "output.eval", choices_bytes(p) ? p->eval.output_bytes : 0);
    r->journal[i] = region(w, "journal", (size_t)(1 + p->moments) * p->chunk * sizeof(float));
    r->scratch[i] = region(w, "scratch",
                           (p->ranks > 1        ? levels
                            : p->clip_value > 0 ? 1
                                                : 0) *
                               p->chunk * sizeof(float));
}

static void walk_all(const co_plan *p, struct walk *w, regions *r)
{
    size_t state = p->layout->count * sizeof(float);
    int full = co_tree_buffers(&p->tree[CUT_FULL]), last = co_tree_buffers(&p->tree[CUT_SHORT]);

    r->n_buffers = full > last ? full : last;
    r->ctl = region(w, "control", sizeof *r->ctl);
    r->slots = region(w, "slots", (size_t)p->ranks * sizeof *r->slots);
    r->state = region(w, "weights", state);
    for (int j = 0; j < p->moments; j++)
        r->moment[j] = region(w, "moments", state);
    r->sum = region(w, "sum", p->ranks > 1 ? p->layout->leaf_count * sizeof(float) : 0);
    for (int j = 0; j <= p->moments; j++)
        r->aside[j] = region(w, "aside", p->spec.ckpt_root ? state : 0);
    r->aside_mark = region(w, "marks.aside", p->chunks * sizeof *r->aside_mark);
    r->sum_claim = region(w, "marks.sum", (p->chunks + 1) * sizeof *r->sum_claim);
    r->apply_claim = region(w, "marks.apply", p->chunks * sizeof *r->apply_claim);
    for (int parity = 0; parity < 2; parity++) {
        r->leaf[parity] = region(w, "stats.leaf", (size_t)p->slices * sizeof **r->leaf);
        r->norm[parity] = region(w, "stats.norm", p->chunks * sizeof **r->norm);
    }
    r->eval_claim = region(w, "marks.eval", p->max_items * sizeof *r->eval_claim);
    for (int split = 0; split < CO_SPLIT_COUNT; split++)
        r->eval_stat[split] = region(w, "stats.eval", p->eval_items[split] * sizeof **r->eval_stat);
    r->choice = region(w, "choices", choices_bytes(p));
    if (choices_bytes(p) == 0)
        r->choice = NULL;
    for (int i = 0; i < p->ranks; i++)
        walk_slot(p, w, r, i);
}

void regions_reserve(co_plan *p)
{
    regions nowhere = {0};
    struct walk w = {&p->arena, 0};

    walk_all(p, &w, &nowhere);
}

void regions_bind(co_plan *p, regions *r)
{
    struct walk w = {&p->arena, 0};

    memset(r, 0, sizeof *r);
    walk_all(p, &w, r);
}

float *leaf_buffer_of(const co_plan *p, const regions *r, int slot, int i)
{
    return r->leaf_buffer[slot] + (size_t)i * p->layout->leaf_count;
}

const float *sum_of_step(const co_plan *p, const regions *r, int64_t step)
{
    int slot, i;

    if (co_tree_root(&p->tree[cut_of_step(p, step)], &slot, &i))
        return leaf_buffer_of(p, r, slot, i);
    return r->sum;
}
