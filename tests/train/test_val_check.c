/* trainer.val_check_interval: evaluations within an epoch give the same bits for any number of ranks, and
 * after a stop. Early stopping, plateau and checkpoint names go by these evaluations too. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "harness.h"
#include "train/stage.h"

static const char *const words[] = {"model=mlp",
                                    "data=fake",
                                    "optim=sgd",
                                    "schedule=plateau",
                                    "schedule.patience=0",
                                    "schedule.threshold=0.9",
                                    "schedule.factor=0.7",
                                    "optim.lr=0.3",
                                    "data.n=160", /* 10 steps an epoch */
                                    "data.batch_size=16",
                                    "trainer.slices=4",
                                    "trainer.max_epochs=3",
                                    "callbacks.model_checkpoint.every_n_epochs=1",
                                    "callbacks.model_checkpoint.min_interval_s=0",
                                    NULL};

enum { MOST = 64 };
struct course_of_evals {
    int64_t step[MOST];
    double loss[MOST], rate[MOST]; /* rate: of the step before */
    int n, stop_at;                /* request a stop at this one; -1: none */
    double lr;
    co_train_summary summary;
};

static void on_step(void *ctx, const co_step_result *r)
{
    ((struct course_of_evals *)ctx)->lr = r->lr;
}

static void on_eval(void *ctx, const co_eval_result *r)
{
    struct course_of_evals *c = ctx;

    if (r->split != CO_SPLIT_VAL)
        return;
    if (c->n > 0 && c->step[c->n - 1] == r->step)
        c->n--; /* a continued run evaluates the state again that it was stopped at */
    c->step[c->n] = r->step;
    c->loss[c->n] = r->loss;
    c->rate[c->n++] = c->lr;
    if (c->n - 1 == c->stop_at)
        raise(SIGINT);
    c->stop_at = c->n - 1 == c->stop_at ? -1 : c->stop_at;
}

static void run(stage *g, struct course_of_evals *c)
{
    co_plan *plan;

    CHECK_OK(co_plan_new(&plan, &g->spec));
    CHECK_OK(co_train_run(plan, &(co_train_hooks){.ctx = c, .step = on_step, .eval = on_eval}, &c->summary));
    co_plan_free(plan);
}

static void same(const struct course_of_evals *a, const struct course_of_evals *b, const char *what)
{
    CHECK(a->n == b->n, "%s: %d evaluations, want %d", what, b->n, a->n);
    for (int i = 0; i < a->n; i++)
        CHECK(a->step[i] == b->step[i] && bits_of(a->loss[i]) == bits_of(b->loss[i]),
              "%s: evaluation %d at step %lld %.17g, want %lld %.17g", what, i, (long long)b->step[i],
              b->loss[i], (long long)a->step[i], a->loss[i]);
    CHECK(strcmp(a->summary.weights_sha256, b->summary.weights_sha256) == 0, "%s: other weights", what);
    CHECK(a->summary.best_step == b->summary.best_step && a->summary.best == b->summary.best,
          "%s: best %g at %lld, want %g at %lld", what, b->summary.best, (long long)b->summary.best_step,
          a->summary.best, (long long)a->summary.best_step);
}

static void open_with(stage *g, const char *ranks, const char *interval, const char *every)
{
    stage_open(g, words);
    stage_set(g, ranks);
    stage_set(g, interval);
    stage_set(g, every);
    g->spec.ckpt_root = "checkpoints";
    mkdir("checkpoints", 0755);
}

static void evaluates_at(const char *interval, const char *every, const int64_t *steps)
{
    static const char *const ranks[] = {"trainer.devices=1", "trainer.devices=2", "trainer.devices=3"};
    struct course_of_evals one = {0};
    int drops = 0;

    for (int i = 0; i < 3; i++) {
        struct course_of_evals c = {.stop_at = -1};
        stage g;
        open_with(&g, ranks[i], interval, every);
        run(&g, &c);
        for (int k = 0; steps[k]; k++)
            CHECK(k < c.n && c.step[k] == steps[k], "%s %s: evaluation %d at step %lld, want %lld", interval,
                  every, k, (long long)c.step[k], (long long)steps[k]);
        if (i == 0)
            one = c;
        same(&one, &c, ranks[i]);
        stage_close(&g);
    }
    for (int k = 1; k < one.n; k++)
        drops += one.rate[k] < one.rate[k - 1];
    CHECK(drops >= 1, "plateau dropped the rate %d times", drops);
}

TEST(a_fraction_of_an_epoch_or_a_number_of_steps_evaluates_within_it_with_the_same_bits_for_any_ranks)
{
    evaluates_at("trainer.val_check_interval=0.25", "trainer.eval_every=1",
                 (const int64_t[]){2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 0});
    /* As in Lightning: steps are counted anew in each epoch. */
    evaluates_at("trainer.val_check_interval=4", "trainer.eval_every=1",
                 (const int64_t[]){4, 8, 14, 18, 24, 28, 30, 0});
    evaluates_at("trainer.val_check_interval=3", "trainer.eval_every=2", (const int64_t[]){13, 16, 19, 30, 0});
    evaluates_at("trainer.val_check_interval=7", "trainer.eval_every=-1",
                 (const int64_t[]){7, 14, 21, 28, 30, 0});
}

TEST(a_run_stopped_at_any_evaluation_within_an_epoch_and_continued_is_the_undisturbed_one)
{
    struct course_of_evals calm = {.stop_at = -1};
    stage g;

    open_with(&g, "trainer.devices=2", "trainer.val_check_interval=0.25", "trainer.eval_every=1");
    run(&g, &calm);
    for (int at = 0; at < 6; at++) {
        struct course_of_evals c = {.stop_at = at};
        char from[1024];
        g.spec.resume = NULL;
        run(&g, &c);
        CHECK(c.summary.status == CO_STATUS_STOPPED, "status %d", (int)c.summary.status);
        snprintf(from, sizeof from, "%s", c.summary.saved);
        g.spec.resume = from;
        run(&g, &c);
        CHECK(c.summary.status == CO_STATUS_DONE, "status %d", (int)c.summary.status);
        same(&calm, &c, from);
    }
    stage_close(&g);
}

TEST(early_stopping_counts_evaluations_within_an_epoch)
{
    struct course_of_evals c = {.stop_at = -1};
    stage g;

    open_with(&g, "trainer.devices=2", "trainer.val_check_interval=2", "trainer.eval_every=1");
    stage_set(&g, "callbacks.early_stopping.patience=2");
    stage_set(&g, "callbacks.early_stopping.min_delta=1e9"); /* nothing is an improvement */
    run(&g, &c);
    CHECK(c.n == 3 && c.step[2] == 6 && c.summary.steps == 6 && c.summary.early, "%d evaluations, %lld steps",
          c.n, (long long)c.summary.steps);
    stage_close(&g);
}

TEST(a_name_without_the_step_gets_it_within_an_epoch)
{
    stage g;
    co_plan *plan;
    char name[SAVE_NAME];
    watch none = {0};

    open_with(&g, "trainer.devices=1", "trainer.val_check_interval=0.5", "trainer.eval_every=1");
    stage_set(&g, "callbacks.model_checkpoint.filename=epoch_{epoch:03d}");
    CHECK_OK(co_plan_new(&plan, &g.spec));
    save_name(plan, 10, &none, name);
    CHECK(strcmp(name, "epoch_000") == 0, "%s", name);
    save_name(plan, 15, &none, name);
    CHECK(strcmp(name, "epoch_001_step_00000015") == 0, "%s", name);
    co_plan_free(plan);
    stage_close(&g);
}
