/* test_best.c -- which weights the final test looks at: the best ones, if they are not the last.
 *
 * The ranks of a TEST unit wait until the supervisor has chosen. The only saver that may be at work then
 * saves the state before the test, which no step changes, so the memory that lies aside for savers is free:
 * the best checkpoint is read into it, and the ranks evaluate it there. The state itself is not touched.
 * Every rank reads one word, so all evaluate the same weights, whoever dies on the way.
 */
#include "train/super_int.h"

#include <stdio.h>

#include "base/alloc.h"

bool test_wants_best(const co_plan *plan)
{
    return plan->units.final_test && plan->units.cycle && plan->spec.ckpt_root && plan->cfg.ckpt_top != 0 &&
           plan->cfg.test_ckpt == CO_TEST_BEST;
}

/* Reads the checkpoint of that step into the memory aside. *part: which part of it to evaluate. */
static co_err load_best(const struct run *run, int64_t step, uint32_t *part)
{
    const co_plan *plan = run->plan;
    struct regions *regions = run->regions;
    co_ckpt_meta meta = {0};
    char *path;

    CO_TRY(co_ckpt_of_step(&path, plan->spec.ckpt_root, step));
    co_err err = co_ckpt_load(path, plan->layout, regions->aside[0], plan->moments, plan->moment_name,
                              regions->aside + 1, &meta);
    *part = plan->ema >= 0 && meta.applied > 0 ? 1 + (uint32_t)plan->ema : 0;
    co_ckpt_meta_fini(&meta);
    co_free(path);
    return err;
}

static uint32_t choose(const struct run *run, int64_t best_step, int64_t last_step)
{
    uint32_t part;
    char text[1400];

    run->out->tested_step = last_step;
    if (best_step == 0 || best_step == last_step) {
        run->out->tested_best = best_step == last_step;
        return TEST_STATE;
    }
    if (load_best(run, best_step, &part) == CO_OK) {
        run->out->tested_best = true;
        run->out->tested_step = best_step;
        return TEST_ASIDE + part;
    }
    snprintf(text, sizeof text,
             "the best weights, of step %lld, cannot be tested: %s; the last ones are tested instead",
             (long long)best_step, co_errmsg());
    run_notice(run, text);
    return TEST_STATE;
}

/* Only the saver of the state before unit `test` may be at work: no step follows, so it reads nothing aside. */
static bool aside_is_free(const control *ctl, uint64_t test)
{
    uint64_t snap = atomic_load_explicit(&ctl->snap, memory_order_acquire);

    return !(snap & 1) || snap >> 1 == test;
}

void choose_test(struct supervisor *super)
{
    const struct run *run = &super->run;
    control *ctl = run->regions->ctl;
    uint64_t pc = atomic_load_explicit(&ctl->pc, memory_order_acquire);
    unit now = unit_now(run->plan, ctl, pc_unit(pc));

    if (atomic_load(&ctl->test_of) != TEST_UNDECIDED || pc & (PC_STOP | PC_END | PC_FAIL) ||
        now.kind != UNIT_TEST || !aside_is_free(ctl, pc_unit(pc)) ||
        atomic_load(&ctl->consumed) + 1 < pc_unit(pc))
        return;
    atomic_store_explicit(&ctl->test_of, choose(run, super->results.seen.best_step, now.step),
                          memory_order_release);
    co_event_ring(&ctl->event);
}
