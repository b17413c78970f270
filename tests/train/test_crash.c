/* A rank that crashes at the same place again and again ends the run with a report, not an endless loop. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness.h"
#include "train/stage.h"

static const char *const words[] = {"model=mlp",
                                    "data=fake",
                                    "optim=sgd",
                                    "data.n=64",
                                    "data.batch_size=8",
                                    "trainer.slices=4",
                                    "trainer.devices=2",
                                    "trainer.max_epochs=2",
                                    "callbacks.model_checkpoint.every_n_epochs=0",
                                    NULL};

/* --- a sample that cannot be loaded --------------------------------------------------------------------- */
static co_dataset *healthy;
static uint32_t bad_sample;
static bool kills; /* it brings SIGKILL, not a crash */
static int *volatile nowhere = (int *)8;

int crash_test_fill(const co_dataset *d, co_split s, const uint32_t *id, co_slice_shape shape,
                    const co_draw *draw,
                    const co_slice_dst *dst); /* has a symbol, to be found in the backtrace */
int crash_test_fill(const co_dataset *d, co_split s, const uint32_t *id, co_slice_shape shape,
                    const co_draw *draw, const co_slice_dst *dst)
{
    for (int i = 0; i < shape.n; i++)
        if (s == CO_SPLIT_TRAIN && id[i] == bad_sample && kills)
            raise(SIGKILL);
        else if (s == CO_SPLIT_TRAIN && id[i] == bad_sample)
            *nowhere = 1;
    return healthy->fill(healthy, s, id, shape, draw, dst);
    (void)d;
}

static void close_both(co_dataset *d)
{
    co_dataset_close(healthy);
    free(d);
}

static co_err open_bad(co_dataset **out, const void *cfg)
{
    CO_TRY(co_dataset_open(&healthy, co_dataset_find("fake"), cfg));
    *out = malloc(sizeof **out);
    **out = *healthy;
    (*out)->fill = crash_test_fill;
    (*out)->close = close_both;
    return CO_OK;
}

/* The step of the first epoch that has the bad sample, by the order itself. */
static int64_t step_of_sample(const co_plan *p)
{
    const uint32_t *ids = co_order_epoch(p->order, 0);

    for (uint32_t i = 0; i < p->data->count[CO_SPLIT_TRAIN]; i++)
        if (ids[i] == bad_sample)
            return i / p->batch + 1;
    return -1;
}

static int deaths;
static void on_recovery(void *ctx, const co_recovery *r)
{
    (void)ctx;
    deaths += r->slot >= 0;
}

static void contains(const char *text, const char *part)
{
    CHECK(test_contains(text, part), "no \"%s\" in: %s", part, text);
}

static void a_bad_sample_ends_it(const char *workers)
{
    stage g;
    co_plan *p;
    co_train_summary sum;
    char text[64];

    stage_open(&g, words);
    stage_set(&g, workers);
    co_dataset_def def = *g.spec.data;
    def.open = open_bad;
    g.spec.data = &def;
    g.spec.ckpt_root = "checkpoints";
    mkdir("checkpoints", 0755);
    deaths = 0;
    bad_sample = 37;
    CHECK_OK(co_plan_new(&p, &g.spec));
    int64_t bad_step = step_of_sample(p);
    CHECK(bad_step > 1, "step %lld: choose another sample", (long long)bad_step);
    co_err err = co_train_run(p, &(co_train_hooks){.recovery = on_recovery}, &sum);
    CHECK(err == CO_EFAIL && sum.status == CO_STATUS_FAILED, "error %d", err);
    CHECK(deaths >= 3 && deaths < 20, "%d deaths", deaths);
    test_note("%.140s", sum.blame);
    /* Loaders are ahead: a rank may never come as far as the step of the bad sample. */
    bool ahead = strcmp(workers, "data.workers=0") != 0;
    CHECK(sum.steps == bad_step - 1 || (ahead && sum.steps < bad_step), "%lld steps", (long long)sum.steps);
    snprintf(text, sizeof text, "at step %lld", (long long)sum.steps + 1);
    contains(sum.blame, text);
    contains(sum.blame, "rank ");
    contains(sum.blame, "(pid ");
    contains(sum.blame, "Segmentation fault");
    contains(sum.blame, "crash_test_fill");
    contains(sum.blame, "please report it");
    if (!ahead)
        contains(sum.blame, "while loading");
    CHECK(sum.saved[0], "the state before the step is not saved");
    co_ckpt_meta meta;
    CHECK_OK(co_ckpt_read_meta(&meta, sum.saved));
    CHECK(meta.step == sum.steps && strcmp(meta.weights_sha256, sum.weights_sha256) == 0, "saved step %lld",
          (long long)meta.step);
    co_ckpt_meta_fini(&meta);
    co_plan_free(p);
    stage_close(&g);
}

TEST(a_sample_that_crashes_the_rank_ends_the_run_with_a_report)
{
    a_bad_sample_ends_it("data.workers=0");
}

TEST(a_sample_that_crashes_a_loader_thread_ends_the_run_with_a_report)
{
    a_bad_sample_ends_it("data.workers=2");
}

TEST(a_rank_that_is_killed_again_and_again_is_not_blamed_on_memory_without_evidence)
{
    stage g;
    co_plan *p;
    co_train_summary sum;

    stage_open(&g, words);
    co_dataset_def def = *g.spec.data;
    def.open = open_bad;
    g.spec.data = &def;
    kills = true;
    bad_sample = 37;
    CHECK_OK(co_plan_new(&p, &g.spec));
    CHECK(co_train_run(p, &(co_train_hooks){0}, &sum) == CO_EFAIL, "it went on");
    contains(sum.blame, "killed by SIGKILL (9)");
    contains(sum.blame, "somebody sent SIGKILL");
    CHECK(!test_contains(sum.blame, "out-of-memory"), "%s", sum.blame);
    co_plan_free(p);
    stage_close(&g);
}

/* --- an update that cannot be made ---------------------------------------------------------------------- */
static const co_optim_def *sgd;

static void apply_until_step_3(const void *cfg, const co_apply *a)
{
    if (a->t == 3)
        abort();
    sgd->apply(cfg, a);
}

TEST(a_crash_in_the_update_ends_the_run_and_the_torn_state_is_not_saved)
{
    stage g;
    co_plan *p;
    co_train_summary sum;

    stage_open(&g, words);
    sgd = g.spec.optim;
    co_optim_def def = *sgd;
    def.apply = apply_until_step_3;
    g.spec.optim = &def;
    g.spec.ckpt_root = "checkpoints";
    mkdir("checkpoints", 0755);
    stage_set(&g, "callbacks.model_checkpoint.every_n_steps=1");
    CHECK_OK(co_plan_new(&p, &g.spec));
    co_err err = co_train_run(p, &(co_train_hooks){0}, &sum);
    CHECK(err == CO_EFAIL, "error %d", err);
    contains(sum.blame, "at step 3");
    contains(sum.blame, "applying");
    contains(sum.blame, "Aborted");
    CHECK(sum.steps == 2, "%lld steps", (long long)sum.steps);
    CHECK(sum.weights_sha256[0] == '\0', "a torn state has no hash");
    contains(sum.saved, "step_00000002"); /* its snapshot, from what was set aside */
    co_plan_free(p);
    stage_close(&g);
}
