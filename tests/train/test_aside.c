/* test_aside.c -- a pool for copies aside that is smaller than the state: ranks wait for the saver, a saver
 * that dies is replaced as long as its state can be read, and the best weights find room for the test. */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "train/aside_int.h"
#include "train/stage.h"

static const char *const words[] = {"model=mlp",
                                    "data=fake",
                                    "optim=adamw",
                                    "data.n=128",
                                    "data.inputs=8",
                                    "data.batch_size=16",
                                    "model.hidden=300",
                                    "trainer.slices=4",
                                    "trainer.devices=2",
                                    "trainer.max_epochs=2",
                                    "callbacks.model_checkpoint.every_n_steps=3",
                                    NULL};
enum { TINY = 20000, SAVES = 7 }; /* bytes, of some 40,000; of steps 3, 6 ... 15, 8 (the best), 16 */

/* --- savers that die ------------------------------------------------------------------------------------ */
static _Atomic int *savers;      /* shared with them: how many were begun, or came to `publish` */
static bool dies_first, started; /* when it begins; else when all is written */
static int saved_ok, saved_not;
static char failure_text[512];

static void die_once(void)
{
    if (atomic_fetch_add(savers, 1) == 0)
        raise(SIGKILL);
}

static void in_child(void)
{
    if (started && dies_first)
        die_once();
}

static void on_started(void *ctx, double ms) /* from here on, forks are savers */
{
    (void)ctx, (void)ms;
    started = true;
}

static co_err on_publish(void *ctx, int64_t view)
{
    (void)ctx, (void)view;
    if (!dies_first)
        die_once();
    return CO_OK;
}

static void on_saved(void *ctx, int64_t step, const char *path, const char *failure)
{
    (void)ctx, (void)step, (void)path;
    saved_ok += !failure;
    saved_not += failure != NULL;
    if (failure)
        snprintf(failure_text, sizeof failure_text, "%s", failure);
}

static co_train_summary run(size_t room, bool first, bool kills)
{
    stage g;
    co_plan *plan;
    co_train_summary out;

    stage_open(&g, words);
    g.spec.ckpt_root = kills ? "killed" : "calm";
    g.spec.aside_bytes = room;
    mkdir(g.spec.ckpt_root, 0755);
    savers = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    atomic_store(savers, kills ? 0 : 1);
    dies_first = first;
    started = false;
    saved_ok = saved_not = 0;
    pthread_atfork(NULL, NULL, in_child);
    CHECK_OK(co_plan_new(&plan, &g.spec));
    CHECK(aside_holds_all(plan) == (room == 0), "room for %zu elements", plan->aside_room);
    CHECK_OK(co_train_run(
        plan, &(co_train_hooks){.started = on_started, .publish = on_publish, .saved = on_saved}, &out));
    co_plan_free(plan);
    stage_close(&g);
    return out;
}

static void a_saver_dies(size_t room, bool first, int lost)
{
    co_train_summary calm = run(room, first, false);

    CHECK(saved_ok == SAVES && saved_not == 0, "%d saved, %d not: %s", saved_ok, saved_not, failure_text);
    co_train_summary killed = run(room, first, true);
    CHECK(saved_ok == SAVES - lost && saved_not == lost, "%d saved, %d not: %s", saved_ok, saved_not,
          failure_text);
    CHECK(strcmp(calm.weights_sha256, killed.weights_sha256) == 0, "other weights");
    CHECK(lost == 0 || test_contains(failure_text, "killed by SIGKILL when training had already gone on"),
          "%s", failure_text);
    test_run r = test_sh(
        "for c in killed/step_* killed/epoch_*; do $COHORT ckpt verify $c || exit 1; done; ls -A killed");
    CHECK(r.status == 0 && test_contains(r.out, "epoch_001") && !test_contains(r.out, ".tmp"), "%s", r.out);
    free(r.out);
}

TEST(a_saver_that_dies_before_it_has_read_the_state_is_replaced)
{
    a_saver_dies(TINY, true, 0);
}

TEST(a_saver_that_dies_late_is_replaced_if_the_pool_holds_the_whole_state)
{
    a_saver_dies(0, false, 0);
}

TEST(a_saver_that_dies_after_training_went_on_without_copies_is_reported_and_the_next_one_saves)
{
    a_saver_dies(TINY, false, 1);
}

/* --- the best weights ----------------------------------------------------------------------------------- */
/* The loss falls, so the first evaluation has the greatest, which is "best" here. */
static co_train_summary test_the_best(const char *model, size_t room, size_t best_bytes)
{
    static const char *const mlp[] = {"model=mlp",  "data=fake",          "optim=adamw",
                                      "data.n=512", "data.batch_size=64", NULL};
    static const char *const factors[] = {
        "model=factors", "data=fake_ratings", "optim=adamw",        "model.width=200",
        "data.users=90", "data.count=512",    "data.batch_size=64", NULL};
    stage g;
    co_plan *plan;
    co_train_summary out;
    size_t bytes = 0;

    stage_open(&g, strncmp(model, "mlp", 3) == 0 ? mlp : factors);
    stage_set(&g, "trainer.max_epochs=2");
    stage_set(&g, "callbacks.model_checkpoint.monitor=val/loss");
    stage_set(&g, "callbacks.model_checkpoint.mode=max");
    if (strstr(model, "average"))
        stage_set(&g, "optim.ema=0.5");
    g.spec.ckpt_root = "checkpoints";
    g.spec.aside_bytes = room;
    free(test_sh("rm -rf checkpoints; mkdir checkpoints").out);
    CHECK_OK(co_plan_new(&plan, &g.spec));
    for (int i = 0; i < plan->arena.n; i++)
        bytes += strcmp(plan->arena.region[i].name, "best") == 0 ? plan->arena.region[i].bytes : 0;
    CHECK(bytes == (best_bytes ? plan->layout->count * sizeof(float) : 0), "%s: %zu bytes for the best",
          model, bytes);
    CHECK_OK(co_train_run(plan, &(co_train_hooks){0}, &out));
    CHECK(out.tested_best && out.tested_step < out.steps, "%s: step %lld of %lld was tested", model,
          (long long)out.tested_step, (long long)out.steps);
    co_plan_free(plan);
    stage_close(&g);
    return out;
}

TEST(the_best_weights_are_tested_the_same_wherever_they_find_room)
{
    static const char *const models[] = {"mlp", "mlp, average", "factors", "factors, average"};

    for (size_t i = 0; i < CO_COUNT(models); i++) {
        co_train_summary aside = test_the_best(models[i], 0, 0);
        co_train_summary other = test_the_best(models[i], 1000, i >= 2);
        CHECK(aside.test_loss == other.test_loss && aside.test_metric == other.test_metric &&
                  aside.test_loss > 0,
              "%s: loss %.9g, %.9g", models[i], aside.test_loss, other.test_loss);
    }
}
