/* test_publish.c -- what is asked before a checkpoint becomes visible, and what its manifest says. */
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
                                    "callbacks.model_checkpoint.every_n_steps=3",
                                    NULL};

static co_err refuse(void *ctx)
{
    (void)ctx;
    return co_fail(CO_EFAIL, "the folder belongs to another run now");
}

static co_err refuse_to_publish(void *ctx, int64_t view)
{
    CHECK(view == 1, "view %lld", (long long)view);
    return refuse(ctx);
}

static int refused;
static void on_saved(void *ctx, int64_t step, const char *path, const char *failure)
{
    (void)ctx, (void)step, (void)path;
    CHECK(failure && test_contains(failure, "belongs to another run"), "saved: %s", path);
    refused++;
}

/* `record` fails before a saver is started, `publish` in the saver. */
static void no_checkpoint_appears(co_train_hooks hooks)
{
    stage g;
    co_plan *p;
    co_train_summary sum;

    stage_open(&g, words);
    g.spec.ckpt_root = "checkpoints";
    mkdir("checkpoints", 0755);
    hooks.saved = on_saved;
    refused = 0;
    CHECK_OK(co_plan_new(&p, &g.spec));
    CHECK_FAILS(co_train_run(p, &hooks, &sum), CO_EFAIL, "belongs to another run");
    test_run r = test_sh("ls -A checkpoints");
    CHECK(!*r.out && refused > 1, "%d refused; there is %s", refused, r.out);
    co_plan_free(p);
    stage_close(&g);
}

TEST(a_checkpoint_that_is_refused_before_it_is_published_never_becomes_visible)
{
    no_checkpoint_appears((co_train_hooks){.publish = refuse_to_publish});
}

TEST(no_checkpoint_is_made_while_the_record_cannot_be_written)
{
    no_checkpoint_appears((co_train_hooks){.record = refuse});
}

TEST(a_checkpoint_says_its_view_and_is_refused_when_another_host_writes_meanwhile)
{
    stage g;
    co_plan *p;
    co_train_summary sum;
    co_ckpt_meta meta = {0};

    stage_open(&g, words);
    g.spec.ckpt_root = "checkpoints";
    mkdir("checkpoints", 0755);
    CHECK_OK(co_plan_new(&p, &g.spec));
    CHECK_OK(co_train_run(p, &(co_train_hooks){0}, &sum));
    CHECK_OK(co_ckpt_read_meta(&meta, "checkpoints/last"));
    CHECK(meta.view == 1, "view %lld", (long long)meta.view);
    co_ckpt_meta_fini(&meta);
    snapshot snap = {.plan = p, .regions = p->regions};
    CHECK_OK(snapshot_ready(&snap, 1));
    p->regions->deal->view = 2;
    CHECK_OK(snapshot_ready(&snap, 1)); /* this host still writes */
    p->regions->deal->writer = 1;
    CHECK_FAILS(snapshot_ready(&snap, 1), CO_EFAIL,
                "begun in view 1 of the hosts, and in view 2 another host writes");
    co_plan_free(p);
    stage_close(&g);
}

TEST(a_checkpoint_before_the_first_step_does_not_say_how_good_it_is)
{
    stage g;
    co_plan *p;

    stage_open(&g, words);
    CHECK_OK(co_plan_new(&p, &g.spec));
    watch start = p->monitors.start;
    json_t *extra = watch_json(p, &start, &start, 0);
    CHECK(extra && !json_object_get(extra, "value"), "it has a value");
    json_decref(extra);
    co_plan_free(p);
    stage_close(&g);
}
