/* A request to stop in the middle of an evaluation: the run stops at the next batch, is saved, and when it is
 * continued ends as if nothing had happened. A second request leaves at once. */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "harness.h"
#include "train/stage.h"

static const char *const words[] = {"model=mlp",
                                    "data=fake",
                                    "optim=sgd",
                                    "data.n=512", /* 64 to validate on, 64 to test on */
                                    "data.batch_size=64",
                                    "data.eval_slice=1",
                                    "trainer.slices=4",
                                    "trainer.devices=2",
                                    "trainer.max_epochs=2",
                                    "callbacks.model_checkpoint.every_n_epochs=0",
                                    NULL};

/* --- a split whose evaluation waits until the stop was requested ---------------------------------------- */
static struct shared {
    _Atomic int split;  /* that waits; -1: none */
    _Atomic int asked;  /* the stop was requested */
    _Atomic int twice;  /* ... for the second time */
    _Atomic int filled; /* its items, since then */
} * shared;
static co_dataset *real;

static int waiting_fill(const co_dataset *data, co_split split, const uint32_t *ids, co_slice_shape shape,
                        const co_draw *draw, const co_slice_dst *dst)
{
    (void)data;
    if (split == CO_SPLIT_TRAIN && shared->split == CO_SPLIT_TRAIN)
        return 1; /* one sample cannot be read */
    if ((int)split == shared->split) {
        for (int i = 0; ids[0] >= 8 && !shared->asked && i < 20000; i++)
            poll(NULL, 0, 1);
        shared->filled += shared->asked;
    }
    return real->fill(real, split, ids, shape, draw, dst);
}

static void close_both(co_dataset *data)
{
    co_dataset_close(real);
    free(data);
}

static co_err open_waiting(co_dataset **out, const void *cfg)
{
    CO_TRY(co_dataset_open(&real, co_dataset_find("fake"), cfg));
    *out = malloc(sizeof **out);
    **out = *real;
    (*out)->fill = waiting_fill;
    (*out)->stop_on_bad = true;
    (*out)->close = close_both;
    return CO_OK;
}

static bool page_asks, page_asked; /* the request comes by hooks.wants_stop ... */
static bool page_follows;          /* ... right after the signal */
static int requests;               /* to come ... */
static int64_t saved, save_first;  /* ... once this step is saved */
static char notices[4096];

static void on_notice(void *ctx, const char *text)
{
    (void)ctx;
    size_t at = strlen(notices);
    snprintf(notices + at, sizeof notices - at, "%s\n", text);
    if (test_contains(text, "asked to stop"))
        shared->asked = 1;
    if (test_contains(text, "asked twice to stop"))
        shared->twice = 1;
    if (test_contains(text, "asked to stop") && requests > 0 && requests--)
        raise(SIGINT);
    if (test_contains(text, "asked to stop") && page_follows)
        page_asked = true;
}

static void on_evaluating(void *ctx, co_split split, int64_t done, int64_t of)
{
    (void)ctx;
    CHECK(done >= 0 && done <= of && of == 64, "%lld of %lld", (long long)done, (long long)of);
    if ((int)split != shared->split || done < 1 || saved < save_first)
        return;
    if (page_asks)
        page_asked = true;
    else if (requests > 0 && requests--)
        raise(SIGINT);
}

static bool on_wants_stop(void *ctx)
{
    (void)ctx;
    return page_asked;
}

/* A step that ends the run: the requests come when it has failed already. */
static void on_step(void *ctx, const co_step_result *step)
{
    (void)ctx;
    (void)step;
    if (shared->split == CO_SPLIT_TRAIN && requests > 0 && requests--)
        raise(SIGINT);
}

/* In the saver: the checkpoint is written and not yet visible. */
static bool slow_save;
static co_err on_publish(void *ctx, int64_t view)
{
    (void)ctx;
    (void)view;
    for (int i = 0; slow_save && !shared->twice && i < 20000; i++)
        poll(NULL, 0, 1);
    return CO_OK;
}

static void on_saved(void *ctx, int64_t step, const char *path, const char *failure)
{
    (void)ctx;
    (void)path;
    saved = failure ? saved : step;
}

static co_err run(stage *g, int stop_in, int n_requests, co_train_summary *out)
{
    co_plan *plan;

    shared->split = stop_in;
    shared->asked = shared->twice = shared->filled = 0;
    requests = n_requests;
    saved = 0;
    notices[0] = '\0';
    CHECK_OK(co_plan_new(&plan, &g->spec));
    co_err err = co_train_run(plan,
                              &(co_train_hooks){.notice = on_notice,
                                                .evaluating = on_evaluating,
                                                .saved = on_saved,
                                                .step = on_step,
                                                .wants_stop = on_wants_stop,
                                                .publish = on_publish},
                              out);
    co_plan_free(plan);
    return err;
}

static void open_stage(stage *g, co_dataset_def *def)
{
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    stage_open(g, words);
    *def = *g->spec.data;
    def->open = open_waiting;
    g->spec.data = def;
    g->spec.ckpt_root = "checkpoints";
    mkdir("checkpoints", 0755);
}

static void stops_and_goes_on(co_split split, int64_t at_step, const char *saying)
{
    stage g;
    co_dataset_def def;
    co_train_summary calm, stopped, rest;
    char from[1024];

    open_stage(&g, &def);
    CHECK_OK(run(&g, -1, 0, &calm));
    CHECK_OK(run(&g, (int)split, 1, &stopped));
    CHECK(stopped.status == CO_STATUS_STOPPED, "status %d\n%s", (int)stopped.status, notices);
    CHECK(test_contains(notices, saying), "%s", notices);
    CHECK(shared->filled <= 4, "%d of 64 items after the request", shared->filled);
    CHECK(stopped.steps == at_step && stopped.saved[0], "%lld steps, saved in \"%s\"",
          (long long)stopped.steps, stopped.saved);
    snprintf(from, sizeof from, "%s", stopped.saved);
    g.spec.resume = from;
    CHECK_OK(run(&g, -1, 0, &rest));
    CHECK(rest.status == CO_STATUS_DONE && strcmp(rest.weights_sha256, calm.weights_sha256) == 0,
          "weights %s, undisturbed %s", rest.weights_sha256, calm.weights_sha256);
    CHECK(rest.val_loss == calm.val_loss && rest.test_loss == calm.test_loss && rest.best == calm.best &&
              rest.best_step == calm.best_step,
          "val %.17g test %.17g, undisturbed %.17g %.17g", rest.val_loss, rest.test_loss, calm.val_loss,
          calm.test_loss);
    stage_close(&g);
}

TEST(a_stop_in_a_validation_comes_at_the_next_batch_and_the_continued_run_is_the_same)
{
    stops_and_goes_on(CO_SPLIT_VAL, 8, "leaving the validation after this batch");
}

TEST(a_stop_in_the_final_test_comes_at_the_next_batch_and_the_continued_run_tests)
{
    stops_and_goes_on(CO_SPLIT_TEST, 16, "leaving the test after this batch");
}

TEST(a_second_request_leaves_at_once_and_the_last_checkpoint_stands)
{
    stage g;
    co_dataset_def def;
    co_train_summary out;

    open_stage(&g, &def);
    stage_set(&g, "callbacks.model_checkpoint.every_n_steps=6");
    save_first = 6;
    CHECK_OK(run(&g, CO_SPLIT_VAL, 2, &out));
    CHECK(out.status == CO_STATUS_STOPPED && out.steps == 6, "status %d, %lld steps\n%s", (int)out.status,
          (long long)out.steps, notices);
    CHECK(test_contains(out.saved, "step_00000006"), "%s", out.saved);
    CHECK(test_contains(notices, "the checkpoint of step 6 stands"), "%s", notices);
    stage_close(&g);
}

TEST(two_requests_in_the_final_test_keep_the_finished_training)
{
    stage g;
    co_dataset_def def;
    co_train_summary out;

    open_stage(&g, &def);
    slow_save = true; /* still at work when the second request comes */
    CHECK_OK(run(&g, CO_SPLIT_TEST, 2, &out));
    CHECK(out.status == CO_STATUS_STOPPED && out.steps == 16, "status %d, %lld steps\n%s", (int)out.status,
          (long long)out.steps, notices);
    CHECK(out.saved[0] && saved == 16, "saved \"%s\", step %lld", out.saved, (long long)saved);
    stage_close(&g);
}

TEST(a_save_under_way_in_a_validation_outlives_the_second_request)
{
    stage g;
    co_dataset_def def;
    co_train_summary out;

    open_stage(&g, &def);
    stage_set(&g, "callbacks.model_checkpoint.every_n_steps=6");
    slow_save = true;
    CHECK_OK(run(&g, CO_SPLIT_VAL, 2, &out));
    CHECK(out.status == CO_STATUS_STOPPED && out.steps == 6, "status %d, %lld steps\n%s", (int)out.status,
          (long long)out.steps, notices);
    stage_close(&g);
}

TEST(a_run_that_failed_stays_failed_when_it_is_asked_twice_to_stop)
{
    stage g;
    co_dataset_def def;
    co_train_summary out;

    open_stage(&g, &def);
    CHECK_FAILS(run(&g, CO_SPLIT_TRAIN, 2, &out), CO_EFAIL, "could not be read");
    CHECK(out.status == CO_STATUS_FAILED && test_contains(out.blame, "step 1"), "status %d: %s",
          (int)out.status, out.blame);
    stage_close(&g);
}

TEST(a_second_request_before_the_first_checkpoint_says_that_there_is_nothing_to_continue)
{
    stage g;
    co_dataset_def def;
    co_train_summary out;

    open_stage(&g, &def);
    CHECK_FAILS(run(&g, CO_SPLIT_VAL, 2, &out), CO_EFAIL, "nothing to continue");
    CHECK(out.status == CO_STATUS_FAILED, "status %d", (int)out.status);
    stage_close(&g);
}

/* Both requests fall into one turn of the supervisor. */
static void is_saved_once(int n_signals)
{
    stage g;
    co_dataset_def def;
    co_train_summary out;

    open_stage(&g, &def);
    CHECK_OK(run(&g, CO_SPLIT_VAL, n_signals, &out));
    CHECK(out.status == CO_STATUS_STOPPED && out.steps == 8 && saved == 8 && page_asked,
          "status %d, %lld steps, step %lld saved\n%s", (int)out.status, (long long)out.steps,
          (long long)saved, notices);
    CHECK(!test_contains(notices, "twice"), "%s", notices);
    stage_close(&g);
}

TEST(a_stop_on_a_tracker_s_page_saves_the_run)
{
    page_asks = true;
    is_saved_once(0);
    CHECK(!test_contains(notices, "once more"), "%s", notices);
}

TEST(ctrl_c_right_before_a_stop_on_a_tracker_s_page_still_saves_the_run)
{
    page_follows = true;
    is_saved_once(1);
}

TEST(ctrl_c_right_after_a_stop_on_a_tracker_s_page_still_saves_the_run)
{
    page_asks = true;
    is_saved_once(1);
}
