/* A program's own parts, tested without installing anything: what is refused, and with which messages. */
#include <cohort.h>
#include <math.h>
#include <signal.h>
#include <string.h>

#include "cli/runs.h"

struct settings {
    int64_t width;
    char *word;
};

static const cohort_option width_only[] = {
    {"width", COHORT_INT, offsetof(struct settings, width), "8", "numbers", 1, 100, NULL},
    {"word", COHORT_STR, offsetof(struct settings, word), "null", "a word", 0, 0, NULL},
    {0}};

static cohort_node *build(const cohort_build *b, const void *cfg)
{
    const struct settings *c = cfg;
    cohort_node *x = cohort_reshape(b->g, b->x, COHORT_SHAPE(b->n, -1));
    cohort_node *h = cohort_relu(b->g, cohort_nn_linear(b->g, x, c->width, true, "fc"));

    return cohort_nn_linear(b->g, h, b->outputs, true, "head");
}

static cohort_node *build_wrong(const cohort_build *b, const void *cfg)
{
    return cohort_nn_linear(b->g, cohort_reshape(b->g, b->x, COHORT_SHAPE(b->n, -1)), b->outputs + 1, true,
                            "fc");
}

static cohort_node *build_nothing(const cohort_build *b, const void *cfg)
{
    return NULL;
}

static cohort_err open_two(cohort_samples *out, const void *cfg)
{
    out->task = COHORT_CLASSIFY;
    out->x = COHORT_SHAPE(4);
    out->classes = 2;
    out->count[COHORT_TRAIN] = 64;
    out->count[COHORT_VAL] = out->count[COHORT_TEST] = 16;
    return COHORT_OK;
}

static cohort_err open_empty(cohort_samples *out, const void *cfg)
{
    open_two(out, cfg);
    out->count[COHORT_TEST] = 0;
    return COHORT_OK;
}

static cohort_err open_refused(cohort_samples *out, const void *cfg)
{
    return cohort_fail(COHORT_EIO, "the tape is torn");
}

static int fill_two(void *self, cohort_split split, uint32_t id, const cohort_draw *draw, void *x, void *y)
{
    cohort_uniform(x, 4, -1, 1, 7, split == COHORT_TRAIN ? "a" : "b", 0, id);
    *(int32_t *)y = ((float *)x)[0] > 0;
    return 0;
}

/* Every fourth class does not exist: the sample must be left out, not used as an index. */
static int fill_wild(void *self, cohort_split split, uint32_t id, const cohort_draw *draw, void *x, void *y)
{
    fill_two(self, split, id, draw, x, y);
    if (id % 4 == 0)
        *(int32_t *)y = 1000000000;
    return 0;
}

static cohort_err open_text(cohort_samples *out, const void *cfg)
{
    out->task = COHORT_TOKENS;
    out->classes = 5;
    out->max_len = 20;
    out->count[COHORT_TRAIN] = 64;
    out->count[COHORT_VAL] = out->count[COHORT_TEST] = 8;
    return COHORT_OK;
}

static int length_text(void *self, cohort_split split, uint32_t id)
{
    return 3 + (int)(id % 18);
}

/* 0 1 2 3 4 0 1 ...: each token determines the next one. */
static int fill_text(void *self, cohort_split split, uint32_t id, const cohort_draw *draw, void *x, void *y)
{
    for (int i = 0; i < length_text(self, split, id); i++) {
        ((int32_t *)x)[i] = (int32_t)((id + (uint32_t)i) % 5);
        ((int32_t *)y)[i] = (int32_t)((id + (uint32_t)i + 1) % 5);
    }
    return 0;
}

static int length_beyond(void *self, cohort_split split, uint32_t id)
{
    return split == COHORT_VAL && id == 7 ? 21 : length_text(self, split, id);
}

static cohort_err open_measured(cohort_samples *out, const void *cfg)
{
    open_two(out, cfg);
    out->task = COHORT_REGRESS;
    out->y_width = 1;
    return COHORT_OK;
}

/* One sample of 64 cannot be read, and no value of y can mark it as left out. */
static int fill_measured(void *self, cohort_split split, uint32_t id, const cohort_draw *draw, void *x, void *y)
{
    if (split == COHORT_TRAIN && id == 33)
        return (int)cohort_fail(COHORT_EINPUT, "never measured");
    cohort_uniform(x, 4, -1, 1, 7, split == COHORT_TRAIN ? "a" : "b", 0, id);
    *(float *)y = ((float *)x)[0];
    return 0;
}

#define MODEL(id, how)                                                                                       \
    {                                                                                                        \
        .name = id, .options = width_only, .cfg_size = sizeof(struct settings), .build = how                 \
    }
#define DATA(id, from, how)                                                                                  \
    {                                                                                                        \
        .name = id, .open = from, .fill = how                                                                \
    }

static const cohort_model good = MODEL("good", build), wrong = MODEL("wrong", build_wrong),
                          nothing = MODEL("nothing", build_nothing), taken = MODEL("mlp", build),
                          small = {.name = "small", .options = width_only, .cfg_size = 8, .build = build};
static const cohort_dataset two = DATA("two", open_two, fill_two), empty = DATA("empty", open_empty, fill_two),
                            torn = DATA("torn", open_refused, fill_two),
                            wild = DATA("wild", open_two, fill_wild),
                            measured = DATA("measured", open_measured, fill_measured),
                            text = {.name = "abc", .open = open_text, .fill = fill_text, .length = length_text},
                            longer = {
                                .name = "long", .open = open_text, .fill = fill_text, .length = length_beyond};

static const cohort_model *const models[] = {&good, &wrong, &nothing, NULL};
static const cohort_dataset *const datasets[] = {&two, &empty, &torn, &wild, &measured, &text, &longer, NULL};
static const cohort_parts parts = {.models = models, .datasets = datasets};

static cohort_err train(cohort_summary *s, const char *model, const char *data, const char *more)
{
    const char *words[] = {model, data, "trainer.devices=1", "trainer.max_epochs=2", "data.batch_size=16",
                           more};
    cohort_job job = {.parts = &parts, .words = words, .n_words = more ? 6 : 5};

    setenv("XDG_RUNTIME_DIR", ".", 1);
    return cohort_train(&job, s);
}

#define REFUSED(expr, code, what)                                                                            \
    do {                                                                                                     \
        cohort_err err_ = (expr);                                                                            \
        CHECK(err_ == (code) && strstr(cohort_errmsg(), what), "%d %s", (int)err_, cohort_errmsg());         \
    } while (0)

TEST(parts_that_cannot_work_are_refused_by_name)
{
    cohort_summary s;

    REFUSED(train(&s, "model=wrong", "data=two", NULL), COHORT_EINPUT, "'wrong' predicts [");
    REFUSED(train(&s, "model=nothing", "data=two", NULL), COHORT_EINPUT, "build() gave no prediction");
    REFUSED(train(&s, "model=good", "data=empty", NULL), COHORT_EINPUT, "data set empty: 0 samples in test");
    REFUSED(train(&s, "model=good", "data=torn", NULL), COHORT_EIO, "data set torn: the tape is torn");
    REFUSED(train(&s, "model=lm", "data=long", NULL), COHORT_EINPUT,
            "length() of sample 7 of val is 21; 1 to 20");
    REFUSED(train(&s, "model=good", "data=two", "model.width=0"), COHORT_EINPUT, "1 to 100");
    REFUSED(train(&s, "model=god", "data=two", NULL), COHORT_EINPUT, "good");
    REFUSED(train(&s, "model=good", "data=two", "seed=1,2"), COHORT_EINPUT, "seed");

    const cohort_model *const mlp[] = {&taken, NULL}, *const cut[] = {&small, NULL};
    cohort_parts bad = {.models = mlp};
    cohort_job job = {.parts = &bad};
    REFUSED(cohort_train(&job, &s), COHORT_EINPUT, "model=mlp: that name is taken");
    bad.models = cut;
    REFUSED(cohort_train(&job, &s), COHORT_EINPUT, "option word lies outside its struct");
    CHECK(!co_fs_exists("logs"), "something was started");
}

TEST(a_class_that_does_not_exist_leaves_its_sample_out)
{
    cohort_summary tame, s;

    CHECK(train(&tame, "model=good", "data=two", "run.dir=tame") == COHORT_OK, "%s", cohort_errmsg());
    CHECK(train(&s, "model=good", "data=wild", "run.dir=wild") == COHORT_OK, "%s", cohort_errmsg());
    CHECK(s.status == COHORT_DONE && isfinite(s.loss), "loss %g", s.loss);
    CHECK(strcmp(s.weights_sha256, tame.weights_sha256) != 0, "nothing was left out");
}

/* If zeros took its place, the model would learn them. */
TEST(a_number_that_cannot_be_read_ends_the_run)
{
    cohort_summary s;

    CHECK(train(&s, "model=good", "data=measured", "run.dir=run") == COHORT_EFAIL, "%s", cohort_errmsg());
    CHECK(s.status == COHORT_FAILED && strstr(s.blame, "never measured") && !strstr(s.blame, "data.on_error"),
          "%s", s.blame);
}

struct heard {
    int steps, evals, lines;
    int64_t stop_at;
};

static int on_step(void *ctx, const cohort_step *r)
{
    struct heard *h = ctx;

    h->steps++;
    return r->step == h->stop_at;
}

static int on_eval(void *ctx, const cohort_eval *e)
{
    ((struct heard *)ctx)->evals++;
    return 0;
}

static void on_text(void *ctx, const char *line)
{
    ((struct heard *)ctx)->lines++;
}

TEST(a_program_hears_every_step_and_may_stop_and_go_on)
{
    const char *words[] = {
        "model=good", "data=two", "trainer.devices=2", "data.batch_size=16", "trainer.max_epochs=40",
        "run.dir=run"};
    struct heard h = {0};
    cohort_job job = {.parts = &parts,
                      .words = words,
                      .n_words = 6,
                      .ctx = &h,
                      .on_step = on_step,
                      .on_eval = on_eval,
                      .on_text = on_text};
    cohort_summary whole, s;
    sigset_t before, after;

    setenv("XDG_RUNTIME_DIR", ".", 1);
    sigprocmask(SIG_SETMASK, NULL, &before);
    CHECK(cohort_train(&job, &whole) == COHORT_OK, "%s", cohort_errmsg());
    CHECK(whole.status == COHORT_DONE && whole.steps == 160 && h.steps == 160 && h.evals >= 40 && h.lines > 40,
          "%d steps, %d evaluations, %d lines", h.steps, h.evals, h.lines);

    h = (struct heard){.stop_at = 3};
    words[5] = "run.dir=cut";
    CHECK(cohort_train(&job, &s) == COHORT_OK, "%s", cohort_errmsg());
    CHECK(s.status == COHORT_STOPPED && s.steps >= 3 && s.steps < 160 && s.saved[0],
          "stopped at %lld, saved %s", (long long)s.steps, s.saved);
    h.stop_at = 0;
    const char *again[] = {"run.dir=cut", "ckpt_path=auto"};
    job.words = again;
    job.n_words = 2;
    CHECK(cohort_train(&job, &s) == COHORT_OK, "%s", cohort_errmsg());
    CHECK(s.status == COHORT_DONE && s.steps == 160 && h.steps == 160, "%lld steps, heard %d",
          (long long)s.steps, h.steps);
    CHECK(strcmp(s.weights_sha256, whole.weights_sha256) == 0, "in one go %s, in two %s",
          whole.weights_sha256, s.weights_sha256);
    CHECK(cohort_train(&job, &s) == COHORT_OK && s.steps == 160, "done before: %lld %s", (long long)s.steps,
          cohort_errmsg());
    CHECK(strcmp(s.weights_sha256, whole.weights_sha256) == 0, "done before: %s", s.weights_sha256);
    sigprocmask(SIG_SETMASK, NULL, &after);
    CHECK(memcmp(&before, &after, sizeof before) == 0, "the signal mask is not what it was");
}

TEST(tokens_of_a_program_are_learnt_by_the_built_in_language_model)
{
    const char *words[] = {"model=lm",          "model.layers=1",     "data=abc",
                           "trainer.devices=1", "data.batch_size=16", "trainer.max_epochs=12",
                           "optim.lr=0.01",     "run.dir=run"};
    cohort_job job = {.parts = &parts, .words = words, .n_words = 8};
    cohort_summary s;
    cohort_eval e;
    cohort_job look = {.parts = &parts, .words = (const char *[]){"ckpt_path=run"}, .n_words = 1};

    setenv("XDG_RUNTIME_DIR", ".", 1);
    CHECK(cohort_train(&job, &s) == COHORT_OK, "%s", cohort_errmsg());
    CHECK(s.val_metric > 0.9, "val acc %g", s.val_metric);
    CHECK(cohort_evaluate(&look, COHORT_TEST, &e) == COHORT_OK, "%s", cohort_errmsg());
    CHECK(e.metric == s.test_metric && strcmp(e.weights_sha256, s.weights_sha256) == 0, "acc %g, was %g",
          e.metric, s.test_metric);
    CHECK(e.count == 3 + 4 + 5 + 6 + 7 + 8 + 9 + 10, "%lld tokens", (long long)e.count);
    CHECK(cohort_predict(&look, COHORT_VAL, 2) == COHORT_OK, "%s", cohort_errmsg());
}

TEST(the_version_is_said_the_same_everywhere)
{
    int major, minor, patch;
    test_run r = test_sh("$COHORT --version");

    CHECK(strstr(r.out, COHORT_VERSION) && strcmp(cohort_version(), COHORT_VERSION) == 0, "%s", r.out);
    CHECK(sscanf(COHORT_VERSION, "%d.%d.%d", &major, &minor, &patch) == 3 &&
              major * 1000000 + minor * 1000 + patch == COHORT_VERSION_NUMBER,
          "%s %d", COHORT_VERSION, COHORT_VERSION_NUMBER);
    free(r.out);
}
