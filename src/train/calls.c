/* calls.c -- where a slice's time goes, kernel call by kernel call, and what each call computes. */
#include "train/measure_int.h"

#include "base/alloc.h"
#include "base/clock.h"

enum { ROUNDS = 3 };

struct co_calls {
    struct one_slice slice;
    co_call_facts *facts; /* [n] */
    int n;
    uint64_t last;
    double *ms; /* [n], of the pass that runs; NULL: nobody wants them */
};

co_err co_calls_open(co_calls **out, co_plan *plan)
{
    co_calls *c = co_zalloc(sizeof *c);

    if (!c)
        return CO_ENOMEM;
    co_err err = one_slice_open(&c->slice, plan);
    if (!err) {
        const co_exec *exec = c->slice.e->exec;
        co_bases bases = one_slice_bases(&c->slice);
        one_slice_load(&c->slice);
        c->n = co_exec_info_of(exec)->calls;
        c->facts = co_array((size_t)c->n, sizeof *c->facts);
        err = c->facts ? CO_OK : CO_ENOMEM;
        for (int i = 0; !err && i < c->n; i++)
            co_exec_call_facts(exec, i, plan->kernels, &bases, &c->facts[i]);
    }
    if (err)
        co_calls_close(c);
    else
        *out = c;
    return err;
}

void co_calls_close(co_calls *c)
{
    if (!c)
        return;
    one_slice_close(&c->slice);
    co_free(c->facts);
    co_free(c);
}

int co_calls_count(const co_calls *c)
{
    return c->n;
}

int co_calls_samples(const co_calls *c)
{
    return c->slice.shape.n;
}

const co_call_facts *co_calls_facts(const co_calls *c)
{
    return c->facts;
}

static void lap(void *ctx, int call, const co_arg *out, int n_out)
{
    co_calls *c = ctx;

    (void)out;
    (void)n_out;
    c->ms[call] = (double)(co_now_ns() - c->last) * 1e-6;
    c->last = co_now_ns();
}

void co_calls_run(co_calls *c, double *ms)
{
    co_bases bases = one_slice_bases(&c->slice);
    co_run run = one_slice_run(&c->slice);

    c->ms = ms;
    c->last = co_now_ns();
    co_exec_run_watched(c->slice.e->exec, &bases, &run, &(co_watcher){c, lap});
}

/* The shortest time of each call in a few passes. */
static void shortest(co_calls *c, co_op_time *list, double *ms)
{
    for (int round = 0; round < ROUNDS + 1; round++) {
        co_calls_run(c, ms);
        for (int i = 0; i < c->n; i++)
            list[i].ms = round == 0 || ms[i] < list[i].ms ? ms[i] : list[i].ms;
    }
}

co_err co_plan_profile(co_plan *plan, co_op_time **out, int *n)
{
    co_calls *c;

    *out = NULL;
    *n = 0;
    CO_TRY(co_calls_open(&c, plan));
    co_op_time *list = co_array((size_t)c->n, sizeof *list);
    double *ms = co_array((size_t)c->n, sizeof *ms);
    co_err err = list && ms ? CO_OK : CO_ENOMEM;
    if (err)
        co_free(list);
    else {
        for (int i = 0; i < c->n; i++)
            list[i] = (co_op_time){c->facts[i].name, c->facts[i].backward, 0};
        shortest(c, list, ms);
        *out = list;
        *n = c->n;
    }
    co_free(ms);
    co_calls_close(c);
    return err;
}

co_err co_plan_compute_step(co_plan *plan)
{
    struct one_slice slice;
    co_err err = one_slice_open(&slice, plan);

    for (int leaf = 0; !err && leaf < plan->slices; leaf++)
        if (one_slice_use(&slice, leaf)) {
            one_slice_load(&slice);
            one_slice_compute(&slice);
        }
    one_slice_close(&slice);
    return err;
}
