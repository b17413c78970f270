/* golden_step.c -- one step of a case: leaves, their sum, the update, the average of the weights. */
#include "nn/golden.h"

#include <math.h>
#include <string.h>

#include "harness.h"

static void add(float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        a[i] += b[i];
}

/* a = a + b. A row that is absent in one is taken from the other; a row absent in both stays absent. */
static void add_leaf(const golden *r, float *a, float *b)
{
    const co_layout *l = r->layout;

    for (int i = 0; i < l->n; i++) {
        const co_entry *e = &l->entry[i];
        if (!e->sparse) {
            add(a + e->offset, b + e->offset, e->count);
            continue;
        }
        size_t width = (size_t)e->shape.d[1];
        uint32_t *in_a = golden_marks(r, a, e);
        const uint32_t *in_b = golden_marks(r, b, e);
        for (size_t row = 0; row < (size_t)e->shape.d[0]; row++) {
            size_t at = e->offset + row * width;
            if (in_a[row] && in_b[row])
                add(a + at, b + at, width);
            else if (in_b[row])
                memcpy(a + at, b + at, width * sizeof *a);
            in_a[row] |= in_b[row];
        }
    }
}

/* Calls visit(r, entry, start, n) for every run of elements that has a gradient or statistic in leaf[0]. */
typedef void (*visitor)(golden *r, const co_entry *e, size_t start, size_t n, void *ctx);

static void each_present(golden *r, visitor visit, void *ctx)
{
    for (int i = 0; i < r->layout->n; i++) {
        const co_entry *e = &r->layout->entry[i];
        size_t rows = e->sparse ? (size_t)e->shape.d[0] : 1;
        const uint32_t *marks = golden_marks(r, r->leaf[0], e);
        for (size_t row = 0; row < rows; row++)
            if (!e->sparse || marks[row])
                visit(r, e, e->offset + row * (e->count / rows), e->count / rows, ctx);
    }
}

static void add_squares(golden *r, const co_entry *e, size_t start, size_t n, void *ctx)
{
    bool finite = true;

    if (e->kind == CO_KIND_PARAM)
        *(double *)ctx += co_sum_squares(r->leaf[0] + start, n, &finite);
    CHECK(finite, "%s has a gradient that is not finite", e->name);
}

static void apply(golden *r, const co_entry *e, size_t start, size_t n, void *ctx)
{
    co_apply a = *(co_apply *)ctx;

    if (e->kind == CO_KIND_STAT)
        for (size_t i = start; i < start + n; i++)
            r->state[i] = (1 - e->momentum) * r->state[i] + e->momentum * (r->leaf[0][i] / (float)r->n);
    if (e->kind != CO_KIND_PARAM)
        return;
    a.w = r->state + start;
    a.g = r->leaf[0] + start;
    a.n = n;
    a.no_decay = r->no_decay && e->no_decay;
    for (int k = 0; k < CO_MAX_MOMENTS; k++)
        a.m[k] = r->moment[k] ? r->moment[k] + start : NULL;
    (e->sparse ? r->optim->apply_sparse : r->optim->apply)(r->optim_cfg, &a);
}

static void average(golden *r, int t)
{
    for (int i = 0; r->ema_decay > 0 && i < r->layout->n; i++) {
        const co_entry *e = &r->layout->entry[i];
        if (e->kind != CO_KIND_COUNTER)
            co_ema_apply(r->ema + e->offset, r->state + e->offset, e->count, r->ema_decay, t);
    }
}

/* Puts the rows of a list into the leaf, where the whole table has its place, and marks them. */
static void spread_rows(golden *r, float *leaf, const co_rows *rows)
{
    for (int i = 0; i < r->layout->n; i++) {
        const co_entry *e = &r->layout->entry[i];
        if (!e->sparse)
            continue;
        const co_rows *list = &rows[e->list];
        size_t width = co_entry_width(e);
        memset(golden_marks(r, leaf, e), 0, (size_t)e->shape.d[0] * sizeof(uint32_t));
        for (uint32_t k = 0; k < *list->count; k++) {
            memcpy(leaf + e->offset + list->row[k] * width, list->value + k * width, width * sizeof *leaf);
            golden_marks(r, leaf, e)[list->row[k]] = 1;
        }
    }
}

static void run_slices(golden *r, int t, double total[CO_STATS])
{
    double stat[CO_STATS];
    co_rows rows[GOLDEN_LISTS];

    for (int s = 0; s < r->slices; s++) {
        int b = (t - 1) % GOLDEN_BATCHES;
        co_bases bases = {.state = r->state,
                          .leaf = r->leaf[s],
                          .rows = rows,
                          .input = r->slice[b][s].input,
                          .work = r->work,
                          .work_bytes = r->work_bytes,
                          .stat = stat,
                          .ragged = {0, r->slice[b][s].shape.tokens, r->slice[b][s].shape.targets}};
        golden_lists(r, r->slice[b][s].exec, rows);
        co_exec_run(r->slice[b][s].exec, &bases, &(co_run){.seed = 1, .step = (uint32_t)t}, NULL);
        spread_rows(r, r->leaf[s], rows);
        golden_lists_free(r, rows);
        for (int k = 0; k < CO_STATS; k++)
            total[k] += stat[k];
    }
    for (int gap = 1; gap < r->slices; gap *= 2)
        for (int s = 0; s < r->slices; s += 2 * gap)
            add_leaf(r, r->leaf[s], r->leaf[s + gap]);
}

void golden_step(golden *r, int t, double *loss, double *norm)
{
    double total[CO_STATS] = {0}, squares = 0;
    co_pace pace = {.step = t - 1, .steps = r->steps, .steps_per_epoch = r->steps, .drop = 1};

    run_slices(r, t, total);
    each_present(r, add_squares, &squares);
    *loss = total[CO_STAT_LOSS] / total[CO_STAT_COUNT];
    *norm = sqrt(squares) / total[CO_STAT_COUNT];
    co_apply a = {.scale = (float)(co_clip_factor(*norm, r->clip) / total[CO_STAT_COUNT]), .t = t};
    a.lr = co_schedule_lr(r->schedule, r->schedule_cfg, r->optim->lr(r->optim_cfg), 0, 0, &pace);
    a.momentum = co_schedule_momentum(r->schedule, r->schedule_cfg, 0, &pace);
    each_present(r, apply, &a);
    average(r, t);
}

void golden_replay(golden *r, int steps, double bound, double *worst_loss, double *worst_norm)
{
    double loss, norm;

    *worst_loss = *worst_norm = 0;
    for (int t = 1; t <= steps; t++) {
        golden_step(r, t, &loss, &norm);
        double want = golden_at(r->c, "losses", (size_t)t - 1), off = fabs(loss - want) / want;
        double want_norm = golden_at(r->c, "grad_norms", (size_t)t - 1);
        CHECK(off <= bound, "%s, step %d: loss %.9g, PyTorch has %.9g: relative difference %.2g",
              r->model->name, t, loss, want, off);
        *worst_loss = fmax(*worst_loss, off);
        *worst_norm = fmax(*worst_norm, fabs(norm - want_norm) / want_norm);
    }
}
