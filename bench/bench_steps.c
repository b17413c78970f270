/* bench_steps.c -- training steps of a factorisation in this process alone: no supervisor, no other process.
 *
 *     bench_steps ROWS STEPS        prints
 *                                   {"task":"steps","rows":ROWS,"steps":STEPS,"step_us":...,"cpu_us":...}
 *
 * `cohort bench sparse` runs it under valgrind to count instructions: the difference of two lengths of run,
 * over the difference in steps, is what a step costs. ROWS are users and items together.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/maths.h"
#include "train/rank_int.h"

enum { MOST_STEPS = 4000 }; /* nobody reads the ring of results */

static void must(co_err err)
{
    if (!err)
        return;
    fprintf(stderr, "bench_steps: %s\n", co_errmsg());
    exit(1);
}

static void set(const co_option *options, void *cfg, const char *key, const char *value)
{
    must(co_option_set(co_option_find(options, key), cfg, key, value));
}

static void *defaults(const co_option *options, size_t size)
{
    void *cfg = calloc(1, size + 1);

    if (!cfg)
        exit(1);
    must(co_options_default(options, cfg));
    return cfg;
}

static co_plan *plan_for(const char *half, const char *steps)
{
    static co_train_cfg cfg;
    co_train_spec spec = {.cfg = &cfg,
                          .model = co_model_find("factors"),
                          .data = co_dataset_find("fake_ratings"),
                          .optim = co_optim_find("adamw")};
    void *data = defaults(spec.data->options, spec.data->cfg_size);
    co_plan *plan;

    spec.model_cfg = defaults(spec.model->options, spec.model->cfg_size);
    spec.optim_cfg = defaults(spec.optim->options, spec.optim->cfg_size);
    spec.data_cfg = data;
    set(spec.data->options, data, "users", half);
    set(spec.data->options, data, "items", half);
    set(spec.data->options, data, "count", "524288");
    for (const co_train_table *t = co_train_tables; t->prefix; t++)
        must(co_options_default(t->options, &cfg));
    cfg.batch_size = 128;
    cfg.max_steps = atoll(steps);
    cfg.eval_every = 0;
    cfg.devices = (char *)(uintptr_t) "1";
    cfg.threads = (char *)(uintptr_t) "1";
    must(co_plan_new(&plan, &spec));
    must(open_state(plan));
    return plan;
}

/* The CPU time of this process: other load on the machine hardly changes it. */
static double cpu_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

int main(int argc, char **argv)
{
    char half[32];
    struct rank rank;

    if (argc != 3 || atoll(argv[1]) < 2 || atoll(argv[2]) < 2 || atoll(argv[2]) > MOST_STEPS) {
        fprintf(stderr, "bench_steps ROWS STEPS   (2 to %d steps)\n", MOST_STEPS);
        return 2;
    }
    snprintf(half, sizeof half, "%lld", atoll(argv[1]) / 2);
    co_fpu_init();
    co_plan *plan = plan_for(half, argv[2]);
    must(rank_open(&rank, plan, plan->regions, 0, 0, -1));
    co_populate(plan->arena.base, plan->arena.bytes);
    uint64_t began = co_now_ns();
    double busy = cpu_us();
    rank_loop(&rank);
    busy = (cpu_us() - busy) / (double)plan->units.steps;
    double us = (double)(co_now_ns() - began) * 1e-3 / (double)plan->units.steps;
    printf("{\"task\":\"steps\",\"rows\":%s,\"steps\":%s,\"step_us\":%.1f,\"cpu_us\":%.1f}\n", argv[1],
           argv[2], us, busy);
    rank_close(&rank);
    co_plan_free(plan);
    return 0;
}
