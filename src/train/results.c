/* results.c -- what the ranks published, in order, to the hooks and into the figures of the summary. */
#include "train/train_int.h"

#include <math.h>
#include <stdlib.h>

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
                          .skipped = atomic_load_explicit(&r->skipped, memory_order_relaxed),
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
    s->out->loss = out.loss;
    s->out->train_metric = out.metric;
    accident_recovered(s, t_ns);
    if (s->hooks->step)
        s->hooks->step(s->hooks->ctx, &out);
}

/* Higher is better for accuracy, lower for errors. */
static bool better(const super *s, double metric)
{
    bool up = s->p->data->io.task != CO_TASK_REGRESS;

    return isnan(s->out->best) || (up ? metric > s->out->best : metric < s->out->best);
}

static void take_eval(super *s, const unit *u, const result *r)
{
    co_eval_result out = {.step = u->step,
                          .epoch = (u->step - 1) / s->p->sched.steps_per_epoch,
                          .split = u->kind == UNIT_VAL ? CO_SPLIT_VAL : CO_SPLIT_TEST,
                          .loss = of_bits(atomic_load_explicit(&r->loss, memory_order_relaxed)),
                          .metric = of_bits(atomic_load_explicit(&r->metric, memory_order_relaxed)),
                          .count = (int64_t)atomic_load_explicit(&r->count, memory_order_relaxed)};

    if (u->kind == UNIT_VAL) {
        s->out->val_loss = out.loss;
        s->out->val_metric = out.metric;
        if (better(s, out.metric)) {
            s->out->best = out.metric;
            s->out->best_step = out.step;
        }
    } else {
        s->out->test_loss = out.loss;
        s->out->test_metric = out.metric;
    }
    if (s->hooks->eval)
        s->hooks->eval(s->hooks->ctx, &out);
}

void consume_results(super *s)
{
    control *ctl = s->r->ctl;
    uint64_t at = atomic_load(&ctl->consumed), pc = atomic_load_explicit(&ctl->pc, memory_order_acquire) >> 8;

    for (; at + 1 < pc; at++) {
        uint32_t n = (uint32_t)at + 1;
        const result *r = &ctl->ring[n % RING];
        uint64_t t_ns = atomic_load_explicit(&r->t_ns, memory_order_relaxed);
        unit u = unit_of(&s->p->sched, n);
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
