/* results.c -- what the ranks published, in order, to the hooks and into the figures of the summary. */
#include "train/train_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"

/* The ranks' waiting for data since the last step that was read, as a share of their time. */
static void count_data(super *s, co_step_result *out, uint64_t t_ns)
{
    uint64_t wait = 0;

    for (int i = 0; i < s->p->ranks; i++) {
        const rank_slot *k = &s->r->slots[i];
        wait += atomic_load_explicit(&k->wait_ns, memory_order_relaxed);
        out->fill.read_ns += atomic_load_explicit(&k->read_ns, memory_order_relaxed);
        out->fill.decode_ns += atomic_load_explicit(&k->decode_ns, memory_order_relaxed);
        out->fill.augment_ns += atomic_load_explicit(&k->augment_ns, memory_order_relaxed);
    }
    if (s->have_t && t_ns > s->last_t_ns && wait > s->data_wait_ns)
        out->data_wait = (double)(wait - s->data_wait_ns) / ((double)(t_ns - s->last_t_ns) * s->p->ranks);
    if (out->data_wait > 1)
        out->data_wait = 1;
    s->data_wait_ns = wait;
}

static void take_step(super *s, const unit *u, const result *r, uint64_t t_ns)
{
    const co_plan *p = s->p;
    co_step_result out = {.step = u->step,
                          .epoch = (u->step - 1) / p->sched.steps_per_epoch,
                          .loss = of_bits(atomic_load_explicit(&r->loss, memory_order_relaxed)),
                          .metric = of_bits(atomic_load_explicit(&r->metric, memory_order_relaxed)),
                          .norm = of_bits(atomic_load_explicit(&r->norm, memory_order_relaxed)),
                          .lr = of_bits(atomic_load_explicit(&r->lr, memory_order_relaxed)),
                          .samples = samples_of_step(p, u->step),
                          .counted = (int64_t)atomic_load_explicit(&r->count, memory_order_relaxed),
                          .skipped = atomic_load_explicit(&r->skipped, memory_order_relaxed),
                          .top5 = of_bits(atomic_load_explicit(&r->top5, memory_order_relaxed)),
                          .t_ns = t_ns};

    if (s->out->first_step_ns == 0)
        s->out->first_step_ns = t_ns;
    if (s->have_t && t_ns > s->last_t_ns) {
        double dt = (double)(t_ns - s->last_t_ns) * 1e-9;
        s->timed_s += dt;
        s->samples_timed += out.samples;
        s->step_ms[s->steps_timed % STEPS_KEPT] = (float)(dt * 1e3);
        s->sum_ms[s->steps_timed % STEPS_KEPT] =
            (float)atomic_load_explicit(&r->sum_apply_ns, memory_order_relaxed) * 1e-6f;
        s->steps_timed++;
    }
    count_data(s, &out, t_ns);
    uint64_t bad = atomic_load_explicit(&r->bad, memory_order_relaxed);
    if (bad)
        tell_bad(s, u->step, bad);
    if (out.skipped && s->p->cfg.on_nan == CO_ON_NAN_SKIP)
        tell_skipped(s, u->step, (int)atomic_load_explicit(&r->slice, memory_order_relaxed) - 1,
                     atomic_load_explicit(&r->count, memory_order_relaxed) == 0);
    s->out->loss = out.loss;
    s->out->train_metric = out.metric;
    accident_recovered(s, t_ns);
    if (s->hooks->step)
        s->hooks->step(s->hooks->ctx, &out);
}

/* What the ranks concluded from this evaluation, concluded again. True: that the run ends. */
static bool see(super *s, const co_eval_result *r)
{
    const double total[LEAF_STATS] = {
        [CO_STAT_LOSS] = r->loss, [CO_STAT_COUNT] = 1, [CO_STAT_METRIC] = r->metric, [CO_STAT_TOP5] = r->top5};

    watch_see(s->p, total, r->step, &s->watch);
    s->out->best = s->watch.best_step ? s->watch.best : NAN;
    s->out->best_step = s->watch.best_step;
    return s->watch.why != GO_ON && (atomic_load(&s->r->ctl->pc) & PC_CUT);
}

/* Warns of the samples that this evaluation leaves out, once for each split. */
static void tell_eval_bad(super *s, co_eval_result *r)
{
    char text[800];

    if (r->bad == s->eval_bad[r->split] || r->bad < 0 || !s->hooks->notice)
        return;
    s->eval_bad[r->split] = r->bad;
    eval_bad_names(s->p, s->r->eval_stat[r->split], r->split, r->bad_names, sizeof r->bad_names);
    snprintf(text, sizeof text, "%lld sample%s to %s could not be read: left out of the figures (%s)",
             (long long)r->bad, r->bad == 1 ? "" : "s", r->split == CO_SPLIT_VAL ? "validate on" : "test on",
             r->bad_names);
    s->hooks->notice(s->hooks->ctx, text);
}

static void take_eval(super *s, const unit *u, const result *r)
{
    co_eval_result out = {.step = u->step,
                          .epoch = (u->step - 1) / s->p->sched.steps_per_epoch,
                          .split = u->kind == UNIT_VAL ? CO_SPLIT_VAL : CO_SPLIT_TEST,
                          .loss = of_bits(atomic_load_explicit(&r->loss, memory_order_relaxed)),
                          .metric = of_bits(atomic_load_explicit(&r->metric, memory_order_relaxed)),
                          .top5 = of_bits(atomic_load_explicit(&r->top5, memory_order_relaxed)),
                          .count = (int64_t)atomic_load_explicit(&r->count, memory_order_relaxed),
                          .t_ns = atomic_load_explicit(&r->t_ns, memory_order_relaxed),
                          .bad = (int64_t)atomic_load_explicit(&r->bad, memory_order_relaxed)};
    bool ends = false;
    char text[200];

    if (u->kind == UNIT_VAL) {
        s->out->val_loss = out.loss;
        s->out->val_metric = out.metric;
        s->out->val_top5 = out.top5;
        ends = see(s, &out);
    } else {
        s->out->test_loss = out.loss;
        s->out->test_metric = out.metric;
        s->out->test_top5 = out.top5;
    }
    tell_eval_bad(s, &out);
    if (s->hooks->eval)
        s->hooks->eval(s->hooks->ctx, &out);
    if (ends && s->hooks->notice) /* after the figures that it is about */
        s->hooks->notice(s->hooks->ctx, watch_why(s->p, &s->watch, text));
}

void consume_results(super *s)
{
    control *ctl = s->r->ctl;
    uint64_t at = atomic_load(&ctl->consumed), pc = atomic_load_explicit(&ctl->pc, memory_order_acquire) >> 8;

    for (; at + 1 < pc; at++) {
        uint32_t n = (uint32_t)at + 1;
        const result *r = &ctl->ring[n % RING];
        uint64_t t_ns = atomic_load_explicit(&r->t_ns, memory_order_relaxed);
        unit u = unit_now(s->p, s->r->ctl, n);
        if (u.kind == UNIT_TRAIN)
            take_step(s, &u, r, t_ns);
        else
            take_eval(s, &u, r);
        s->last_t_ns = t_ns;
        s->have_t = true;
        atomic_store_explicit(&ctl->consumed, n, memory_order_release);
    }
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

static double quantile(float *x, int n, double q)
{
    if (n == 0)
        return NAN;
    qsort(x, (size_t)n, sizeof *x, by_value);
    return x[(int)(q * (n - 1) + 0.5)];
}

void results_close(super *s)
{
    int n = s->steps_timed < STEPS_KEPT ? (int)s->steps_timed : STEPS_KEPT;
    double step_ms = quantile(s->step_ms, n, 0.5);

    s->out->sum_apply_ms = quantile(s->sum_ms, n, 0.5);
    s->out->samples_per_s = s->timed_s > 0 ? (double)s->samples_timed / s->timed_s : 0;
    for (int i = 0; i < s->n_recoveries; i++)
        s->recovery_ms[i] -= (float)(isnan(step_ms) ? 0 : step_ms);
    s->out->recovery_median_ms = quantile(s->recovery_ms, s->n_recoveries, 0.5);
    s->out->recovery_p99_ms = quantile(s->recovery_ms, s->n_recoveries, 0.99);
}

co_err co_plan_classes(const co_plan *p, co_class_result **out, int *n)
{
    const int32_t *choice = p->at ? p->at->choice : p->choice; /* [test samples][2] */
    int64_t classes = p->data->io.classes;

    *out = NULL;
    *n = 0;
    if (!choice)
        return CO_OK;
    co_class_result *list = co_array((size_t)classes, sizeof *list);
    if (!list)
        return CO_ENOMEM;
    for (int64_t c = 0; c < classes; c++)
        list[c] = (co_class_result){.label = c,
                                    .name = p->data->class_name ? p->data->class_name(p->data, c) : NULL};
    for (uint32_t i = 0; i < p->eval_count[CO_SPLIT_TEST]; i++) {
        int32_t y = choice[2 * i + 1];
        if (y < 0 || y >= classes)
            continue; /* unreadable */
        list[y].count++;
        list[y].right += choice[2 * i] == y;
    }
    *out = list;
    *n = (int)classes;
    return CO_OK;
}
