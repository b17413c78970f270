/* Measurements before a run (plan, profiler) use only samples that exist, even if the batch is larger than
 * the training set. */
#include <stdlib.h>

#include "base/alloc.h"
#include "harness.h"
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
