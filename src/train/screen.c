/* screen.c -- the first screen: what was decided, in words, before anything runs. A line per fact, its name in front. */
#include "train/train_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Adds to the lines; what does not fit is cut. */
static void add(co_plan_facts *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(co_plan_facts *f, const char *fmt, ...)
{
    size_t at = strlen(f->lines);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(f->lines + at, sizeof f->lines - at, fmt, ap);
    va_end(ap);
}

static double mib(size_t bytes)
{
    return (double)bytes / 1048576;
}

static void add_model(co_plan *p)
{
    co_plan_facts *f = &p->facts;
    size_t frozen = 0;

    for (int i = 0; p->treat && i < p->layout->n; i++)
        if (p->layout->entry[i].kind == CO_KIND_PARAM && p->treat[i].frozen)
            frozen += p->layout->entry[i].count;
    add(f, "model     %s: %zu parameters", p->spec.model->name, f->params);
    if (frozen)
        add(f, " (%zu trainable, %zu frozen)", f->params - frozen, frozen);
    add(f, "\n");
}

static void add_data(co_plan *p)
{
    co_plan_facts *f = &p->facts;
    const co_dataset *d = p->data;
    char shape[64];

    add(f, "data      %s: %u train, %u val, %u test; ", p->spec.data->name, d->count[CO_SPLIT_TRAIN],
        d->count[CO_SPLIT_VAL], d->count[CO_SPLIT_TEST]);
    if (d->io.task == CO_TASK_LM)
        add(f, "text, %lld tokens", (long long)d->io.classes);
    else
        add(f, "sample %s", co_shape_text(shape, sizeof shape, &d->io.x));
    if (d->io.task == CO_TASK_CLASSIFY)
        add(f, ", %lld classes", (long long)d->io.classes);
    add(f, "; fingerprint %.12s\n", d->fingerprint);
    if (d->note[0])
        add(f, "          %s\n", d->note);
}

/* "global batch = slice x slices", and what becomes of it when the data is smaller than that. */
static void add_batch(co_plan *p)
{
    co_plan_facts *f = &p->facts;
    uint32_t slices = (uint32_t)p->slices, most = (p->batch + slices - 1) / slices,
             count = p->data->count[CO_SPLIT_TRAIN];

    add(f, "batch     global batch %u = slice %u x %u slices%s", p->batch, p->batch / slices, slices,
        most > p->batch / slices ? " (some with one sample more)" : "");
    if (count < p->batch)
        add(f, "; larger than the data: each epoch is one step of %u samples", count);
    add(f, "\nsteps     %lld per epoch", (long long)p->sched.steps_per_epoch);
    add(f, ", %lld in all", (long long)p->sched.steps);
    if (p->start.step)
        add(f, "; continuing after step %lld", (long long)p->start.step);
    add(f, "\n");
}

static void add_ranks(co_plan *p)
{
    co_plan_facts *f = &p->facts;
    int idle = f->ranks_asked - p->ranks;

    add(f, "ranks     %d on this host; %d slices keep at most %d busy", p->ranks, p->slices, p->slices);
    if (idle > 0)
        add(f, ": the other %d asked for would be idle and are not started", idle);
    add(f, "\n");
}

static void add_memory(co_plan *p)
{
    const co_arena *a = &p->arena;

    add(&p->facts,
        "memory    %.1f MiB = %.1f shared (weights and moments %.1f, leaves and work %.1f) + %.1f private\n",
        mib(a->bytes + p->facts.private_bytes), mib(a->bytes),
        mib(co_arena_sum(a, "weights") + co_arena_sum(a, "moments")),
        mib(co_arena_sum(a, "leaves") + co_arena_sum(a, "work")), mib(p->facts.private_bytes));
}

static void add_recipe(co_plan *p)
{
    co_plan_facts *f = &p->facts;

    add(f, "optimiser %s, learning rate %g", p->spec.optim->name, p->lr);
    if (p->cfg.ema > 0)
        add(f, ", average of the weights with decay %g", p->cfg.ema);
    if (p->clip_norm > 0)
        add(f, ", gradient's norm clipped to %g", p->clip_norm);
    if (p->clip_value > 0)
        add(f, ", gradient clipped to +-%g", p->clip_value);
    add(f, "\n");
    if (!p->spec.schedule)
        return;
    add(f, "schedule  %s", p->spec.schedule->name);
    if (p->warmup)
        add(f, " after %lld steps of warm-up from %g of the rate", (long long)p->warmup, p->cfg.warmup_start);
    add(f, "\n");
    double reach = p->ema >= 0 ? 1 / (1 - p->cfg.ema) : 0;
    if (p->ema >= 0)
        add(f, "average   of about the last %.0f steps' weights: what is evaluated%s\n", reach,
            (double)p->sched.steps < 3 * reach ? "; this run is short for it, and it will lag behind" : "");
}

void plan_lines(co_plan *p)
{
    p->facts.lines[0] = '\0';
    add_model(p);
    add_data(p);
    add_batch(p);
    add_ranks(p);
    add_memory(p);
    add_recipe(p);
    add(&p->facts, "kernels   %s\n", p->facts.kernels);
}
