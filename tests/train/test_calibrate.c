/* Measurements before a run (plan, profiler) use only samples that exist, even if the batch is larger than
 * the training set. */
#include <stdlib.h>

#include "base/alloc.h"
#include "harness.h"
#include "proc/crew.h"
#include "train/stage.h"
#include "train/measure.h"

static co_dataset *real;

static int checked_fill(const co_dataset *data, co_split split, const uint32_t *ids, co_slice_shape shape,
                        const co_draw *draw, const co_slice_dst *dst)
{
    CHECK(shape.n > 0 && (uint32_t)shape.n <= data->count[split], "a slice of %d of %u samples", shape.n,
          data->count[split]);
    for (int i = 0; i < shape.n; i++)
        CHECK(ids[i] < data->count[split], "sample %u of %u", ids[i], data->count[split]);
    return real->fill(real, split, ids, shape, draw, dst);
}

static void close_both(co_dataset *data)
{
    co_dataset_close(real);
    free(data);
}

static co_err open_checked(co_dataset **out, const void *cfg)
{
    CO_TRY(co_dataset_open(&real, co_dataset_find("fake"), cfg));
    *out = malloc(sizeof **out);
    **out = *real;
    (*out)->fill = checked_fill;
    (*out)->close = close_both;
    return CO_OK;
}

static void measure(const char *const *words)
{
    stage g;
    co_plan *plan;
    co_calibration found;
    co_op_time *ops;
    int n;

    stage_open(&g, words);
    co_dataset_def def = *g.spec.data;
    def.open = open_checked;
    g.spec.data = &def;
    CHECK_OK(co_plan_new(&plan, &g.spec));
    CHECK_OK(co_plan_calibrate(plan, &found));
    CHECK(found.step_ms > 0, "%g ms", found.step_ms);
    CHECK_OK(co_plan_profile(plan, &ops, &n));
    CHECK(n > 0, "%d operators", n);
    co_free(ops);
    co_plan_free(plan);
    stage_close(&g);
}

TEST(measuring_a_batch_larger_than_the_training_set_uses_only_samples_that_exist)
{
    static const char *const larger[] = {"model=mlp",           "data=fake",        "optim=sgd", "data.n=20",
                                         "data.batch_size=512", "trainer.slices=4", NULL};
    /* More slices than samples: the first of them are empty. */
    static const char *const empty[] = {"model=mlp",           "data=fake",         "optim=sgd", "data.n=8",
                                        "data.batch_size=512", "trainer.slices=32", NULL};

    measure(larger);
    measure(empty);
}

/* A rank of two threads with eight slices. */
static void with_two_threads(const char *more, co_calibration *found, int *at_once, int64_t *steps)
{
    const char *const words[] = {"model=mlp",
                                 "data=fake",
                                 "optim=sgd",
                                 "data.n=512",
                                 "data.batch_size=128",
                                 "trainer.slices=8",
                                 "trainer.devices=1",
                                 "trainer.threads=2",
                                 "trainer.max_epochs=3",
                                 more,
                                 NULL};
    stage g;
    co_plan *plan;

    stage_open(&g, words);
    CHECK_OK(co_plan_new(&plan, &g.spec));
    CHECK_OK(co_plan_calibrate(plan, found));
    *at_once = co_plan_facts_of(plan)->at_once;
    *steps = co_plan_facts_of(plan)->steps;
    co_plan_free(plan);
    stage_close(&g);
}

static bool near(double a, double b)
{
    return a > 0 && a < b * 1.0001 && b < a * 1.0001;
}

TEST(a_step_of_threads_with_slices_of_their_own_takes_as_many_slices_as_one_thread_has)
{
    co_calibration found;
    int at_once, rounds = co_cpus_usable() > 1 ? 4 : 8;
    int64_t steps;

    with_two_threads("data.workers=1", &found, &at_once, &steps);
    CHECK(at_once == 2 && near(found.step_ms - found.sum_apply_ms, rounds * found.slice_ms),
          "%d at once: a step of %g ms, %d rounds of %g ms, sum and apply %g ms", at_once, found.step_ms,
          rounds, found.slice_ms, found.sum_apply_ms);
    with_two_threads("trainer.slices_at_once=false", &found, &at_once, &steps);
    CHECK(at_once == 0 && found.step_ms > 7 * found.slice_ms, "%d at once: a step of %g ms, a slice %g ms",
          at_once, found.step_ms, found.slice_ms);
}

TEST(the_predicted_time_of_a_run_has_its_final_test_in_it)
{
    co_calibration found;
    int at_once;
    int64_t steps;

    with_two_threads("test=true", &found, &at_once, &steps);
    CHECK(steps == 12 && found.test_s > 0 && near(found.total_s, 3 * found.epoch_s + found.test_s),
          "%lld steps, an epoch of %g s, a test of %g s, in all %g s", (long long)steps, found.epoch_s,
          found.test_s, found.total_s);
    with_two_threads("test=false", &found, &at_once, &steps);
    CHECK(found.test_s == 0 && near(found.total_s, 3 * found.epoch_s), "a test of %g s, in all %g s",
          found.test_s, found.total_s);
}
