/* apply_rows.c -- the optimiser on one piece of a list of rows, step by step as apply.c does it for a chunk.
 *
 * The rows of a piece lie scattered in the tables of weights and moments. They are gathered into the journal,
 * and the optimiser then updates them where they lie. With an average of the weights a piece is a whole range
 * of the table, because the average of every row moves in every step.
 *
 * A range of the table is copied aside for a checkpoint before its first row changes. Several ranks may have
 * rows of one range, so whoever comes first claims the range, and the others wait until it is copied.
 */
#include "train/aside_int.h"
#include "train/rank_int.h"

#include <string.h>

/* The elements of the piece in the weights (part 0) or a moment, one row after the other. */
static void gather(const struct rank *rank, const piece *p, int part, float *dst)
{
    co_rows_gather(dst, part_of(rank, part) + p->entry->offset, p->row, p->n, p->of->width);
}

/* A newcomer changes only the ranges of the table that it has been given. */
static bool holds_row(const struct rank *rank, const piece *p, size_t row)
{
    return holds_part(rank, rank->plan->chunks + p->of->first_range + row / p->of->piece);
}

static void scatter(struct rank *rank, const piece *p, int part, const float *src)
{
    float *table = part_of(rank, part) + p->entry->offset;
    size_t width = p->of->width;

    for (size_t i = 0; i < p->n; i++)
        if (holds_row(rank, p, p->row[i]))
            co_row_copy(table + p->row[i] * width, src + i * width, width);
}

static size_t part_size(const struct rank *rank)
{
    return rank->plan->rows.piece_elements;
}

/* --- copies aside --------------------------------------------------------------------------------------- */
static size_t range_of_row(const piece *p, size_t row)
{
    return p->of->first_range + row / p->of->piece;
}

static bool is_aside(struct rank *rank, int64_t range)
{
    uint32_t of = (uint32_t)(atomic_load_explicit(&rank->regions->ctl->snap, memory_order_acquire) >> 1);

    return co_claim_is_done(&rank->regions->aside_claim[range], of);
}

static void set_range_aside(struct rank *rank, size_t range, uint32_t snap)
{
    co_claim *claim = &rank->regions->aside_claim[range];
    co_who who = {.unit = snap, .slot = rank->who.slot, .inc = rank->who.inc};
    co_claimed got = co_claim_take(claim, who);

    if (got == CO_CLAIM_BUSY)
        wait_for(rank, is_aside, (int64_t)range, CO_PHASE_WAIT);
    if (got == CO_CLAIM_BUSY || got == CO_CLAIM_DONE)
        return;
    fault_point(rank, CO_FAULT_NONE);
    copy_aside(rank, rank->plan->chunks + range);
    fault_point(rank, CO_FAULT_NONE);
    co_claim_finish(claim, who);
    co_event_ring(&rank->regions->ctl->event);
}

void rows_set_aside(struct rank *rank, size_t number)
{
    uint32_t snap = aside_needed(rank->regions);
    piece p = piece_of(rank, number);
    size_t last = SIZE_MAX;

    if (!snap)
        return;
    if (p.to_row)
        set_range_aside(rank, range_of_row(&p, p.from_row), snap);
    for (size_t i = 0; !p.to_row && i < p.n; i++) {
        size_t range = range_of_row(&p, p.row[i]);
        if (range != last)
            set_range_aside(rank, range, snap);
        last = range;
    }
    atomic_thread_fence(memory_order_seq_cst); /* the marks are there before the state changes */
}

/* --- the journal ---------------------------------------------------------------------------------------- */
static float *journal_of(const struct rank *rank, int part)
{
    return rank->regions->journal[rank->who.slot] + (size_t)part * part_size(rank);
}

void rows_keep(struct rank *rank, size_t number)
{
    piece p = piece_of(rank, number);
    size_t lo = p.entry->offset + p.from_row * p.of->width, n = (p.to_row - p.from_row) * p.of->width;

    for (int part = 0; part <= rank->plan->moments; part++)
        if (p.to_row)
            memcpy(journal_of(rank, part), part_of(rank, part) + lo, n * sizeof(float));
        else
            gather(rank, &p, part, journal_of(rank, part));
}

void rows_put_back(struct rank *rank, size_t number)
{
    piece p = piece_of(rank, number);
    size_t lo = p.entry->offset + p.from_row * p.of->width, n = (p.to_row - p.from_row) * p.of->width;

    for (int part = 0; part <= rank->plan->moments; part++)
        if (p.to_row && !holds_row(rank, &p, p.from_row))
            continue;
        else if (p.to_row)
            memcpy(part_of(rank, part) + lo, journal_of(rank, part), n * sizeof(float));
        else
            scatter(rank, &p, part, journal_of(rank, part));
}

/* --- the update ----------------------------------------------------------------------------------------- */
/* Rows [from, to) of the piece, in place, in the tables. */
static void optimise(struct rank *rank, const piece *p, size_t from, size_t to, const decision *decided)
{
    const co_plan *plan = rank->plan;
    const param_rule *how = &plan->recipe.rule[p->of->entry];
    co_apply given = {.w = rank->regions->state + p->entry->offset,
                      .g = p->value + from * p->of->width,
                      .n = (to - from) * p->of->width,
                      .scale = decided->scale,
                      .lr = decided->lr * how->rate,
                      .t = decided->t,
                      .no_decay = how->no_decay,
                      .momentum = decided->momentum,
                      .row = p->row + from,
                      .width = p->of->width};

    for (int j = 0; j < plan->moments; j++)
        given.m[j] = rank->regions->moment[j] + p->entry->offset;
    clip(rank, &given, given.scale, 0);
    plan->spec.optim->apply_sparse(plan->spec.optim_cfg, &given);
}

/* Runs of rows that this host holds: everywhere but in a newcomer that is a single one. */
static void optimise_held(struct rank *rank, const piece *p, const decision *decided)
{
    if (holds_all(rank)) {
        optimise(rank, p, 0, p->n, decided);
        return;
    }
    for (size_t from = 0, to; from < p->n; from = to) {
        bool held = holds_row(rank, p, p->row[from]);
        for (to = from + 1; to < p->n && holds_row(rank, p, p->row[to]) == held;)
            to++;
        if (held)
            optimise(rank, p, from, to, decided);
    }
}

void rows_update(struct rank *rank, size_t number, const decision *decided)
{
    const co_plan *plan = rank->plan;
    piece p = piece_of(rank, number);
    size_t lo = p.entry->offset + p.from_row * p.of->width, n = (p.to_row - p.from_row) * p.of->width;

    if (p.n > 0 && !plan->recipe.rule[p.of->entry].frozen)
        optimise_held(rank, &p, decided);
    if (p.to_row && holds_row(rank, &p, p.from_row))
        co_ema_apply(rank->regions->moment[plan->ema] + lo, rank->regions->state + lo, n, plan->cfg.ema,
                     decided->t);
}
