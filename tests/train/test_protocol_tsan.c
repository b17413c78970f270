/* Runs the ranks as threads over one arena, so that ThreadSanitizer can check the step protocol; and compares
 * that with the same run as processes, undisturbed and disturbed. */
#include <pthread.h>
#include <string.h>

#include "base/maths.h"
#include "harness.h"
#include "train/stage.h"

static const char *const mlp[] = {"model=mlp",
                                  "data=fake",
                                  "optim=adamw",
                                  "model.hidden=56",
                                  "data.n=52",
                                  "data.inputs=8",
                                  "data.batch_size=16",
                                  "data.eval_slice=3",
                                  "trainer.slices=8",
                                  "trainer.max_epochs=3",
                                  "callbacks.model_checkpoint.every_n_steps=1",
                                  NULL};

static const char *const lm[] = {"model=lm",
                                 "data=text",
                                 "optim=adamw",
                                 "model.d_model=16",
                                 "model.heads=2",
                                 "model.layers=1",
                                 "data.max_len=16",
                                 "data.batch_size=8",
                                 "data.eval_slice=5",
                                 "trainer.slices=4",
                                 "trainer.limit_train_batches=3",
                                 "trainer.max_epochs=2",
                                 "callbacks.model_checkpoint.every_n_steps=2",
                                 NULL};

struct seat {
    co_plan plan; /* a copy: the order of samples is a rank's own, as after fork */
    struct rank rank;
    pthread_t thread;
};

static _Atomic int seated;

static void *sit(void *seat)
{
    struct seat *s = seat;

    co_fpu_init();
    rank_loop(&s->rank);
    atomic_fetch_sub(&seated, 1);
    return NULL;
}

/* `point`: of the last rank, or NULL. */
static void threads_agree(stage *g, const course *c, int ranks, int workers, void (*point)(struct rank *rank))
{
    static struct seat seat[4];
    char what[64], word[64];

    snprintf(what, sizeof what, "%s with %d ranks, %d workers", g->spec.model->name, ranks, workers);
    snprintf(word, sizeof word, "trainer.devices=%d", ranks);
    stage_set(g, word);
    snprintf(word, sizeof word, "data.workers=%d", workers);
    stage_set(g, word);
    g->spec.ckpt_root = "nowhere"; /* snapshots are asked for; we are the saver */
    co_plan *plan = stage_plan(g);
    CHECK(plan->ranks == ranks, "%d ranks", plan->ranks);
    for (int i = 0; i < ranks; i++) {
        seat[i].plan = *plan;
        CHECK_OK(co_order_new(&seat[i].plan.order, plan->data, CO_SPLIT_TRAIN, (uint64_t)plan->cfg.seed, true));
        CHECK_OK(rank_open(&seat[i].rank, &seat[i].plan, plan->regions, i, 0, -1));
    }
    seat[ranks - 1].rank.point = point;
    atomic_store(&seated, ranks);
    for (int i = 0; i < ranks; i++)
        CHECK(pthread_create(&seat[i].thread, NULL, sit, &seat[i]) == 0, "thread");
    while (atomic_load(&seated) > 0) {
        stage_attend(c, plan, what);
        sched_yield();
    }
    for (int i = 0; i < ranks; i++) {
        pthread_join(seat[i].thread, NULL);
        rank_close(&seat[i].rank);
        co_order_free(seat[i].plan.order);
    }
    stage_attend(c, plan, what);
    for (int u = 1; u <= c->units; u++)
        course_check_unit(c, plan, (uint32_t)u, what);
    course_check_state(c, plan, c->steps, what);
    co_plan_free(plan);
}

static void all_teams_agree(const char *const *words, const char *more)
{
    stage g;
    course c;

    stage_open(&g, words);
    if (more)
        stage_set(&g, more);
    course_open(&c, &g);
    for (int ranks = 1; ranks <= 4; ranks++)
        for (int workers = 0; workers <= 2; workers += 2) {
            stage_set(&g, workers ? "trainer.threads=2" : "trainer.threads=1");
            threads_agree(&g, &c, ranks, workers, NULL);
        }
    course_close(&c);
    stage_close(&g);
}

TEST(ranks_and_a_saver_of_an_mlp_do_not_race_tsan)
{
    all_teams_agree(mlp, NULL);
}

/* Its chunks are large enough to be divided among the threads of a rank. */
TEST(the_teams_of_two_ranks_do_not_race_over_chunks_tsan)
{
    static const char *const more[] = {
        "model.hidden=1100", "model.layers=2", "trainer.max_epochs=1", "trainer.clip_value=0.5",
        "trainer.threads=2", "data.n=40",      "trainer.slices=4",     "trainer.eval_every=0"};
    stage g;
    course c;

    stage_open(&g, mlp);
    for (size_t i = 0; i < CO_COUNT(more); i++)
        stage_set(&g, more[i]);
    course_open(&c, &g);
    for (int ranks = 1; ranks <= 2; ranks++)
        threads_agree(&g, &c, ranks, 0, NULL);
    course_close(&c);
    stage_close(&g);
}

TEST(ranks_and_a_saver_of_a_sparse_lm_do_not_race_tsan)
{
    char path[512];

    snprintf(path, sizeof path, "data.path=%s", test_repo("tests/data/verse.txt"));
    all_teams_agree(lm, path);
}

/* What evaluations leave behind is shared too: the average, a plateau, an early end. */
TEST(ranks_of_a_recipe_that_ends_early_do_not_race_tsan)
{
    static const char *const words[] = {"schedule=plateau",
                                        "schedule.patience=0",
                                        "optim.ema=0.9",
                                        "trainer.clip_value=0.01",
                                        "trainer.max_epochs=4",
                                        "callbacks.early_stopping.patience=1",
                                        "callbacks.early_stopping.min_delta=10"};
    stage g;
    course c;

    stage_open(&g, mlp);
    for (size_t i = 0; i < CO_COUNT(words); i++)
        stage_set(&g, words[i]);
    course_open(&c, &g);
    for (int ranks = 1; ranks <= 4; ranks++)
        threads_agree(&g, &c, ranks, 1, NULL);
    course_close(&c);
    stage_close(&g);
}

/* --- a rank that is units behind ------------------------------------------------------------------------ */
static uint32_t slow_unit;

static bool unit_is_done(const struct rank *rank)
{
    unit u = unit_of(&rank->plan->units, rank->who.unit);
    bool train = u.kind == UNIT_TRAIN;
    co_split split = u.kind == UNIT_VAL ? CO_SPLIT_VAL : CO_SPLIT_TEST;
    size_t n = train ? rank->plan->chunks : rank->plan->eval_items[split];

    for (size_t i = 0; i < n; i++)
        if (!co_claim_is_done(train ? &rank->regions->apply_claim[i] : &rank->regions->eval_claim[i],
                              rank->who.unit))
            return false;
    return true;
}

/* When everything of its unit is done but the end of it, this rank looks away until the others are as far as
 * they can get, and the supervisor has seen it. */
static void look_away(struct rank *rank)
{
    uint32_t last = rank->plan->units.last_unit, far = slow_unit;

    if (rank->who.unit != slow_unit || !unit_is_done(rank))
        return;
    do
        far++;
    while (far <= last && unit_of(&rank->plan->units, far).kind != UNIT_TRAIN); /* there they need us */
    while (atomic_load(&rank->regions->ctl->consumed) + 1 < far)
        sched_yield();
}

TEST(a_rank_that_is_units_behind_the_others_catches_up_tsan)
{
    stage g;
    course c;

    stage_open(&g, mlp);
    stage_set(&g, "trainer.max_steps=6"); /* 4 steps, VAL, 2 steps, VAL, TEST */
    course_open(&c, &g);
    for (slow_unit = 1; slow_unit <= (uint32_t)c.units; slow_unit++)
        threads_agree(&g, &c, 2, 0, look_away);
    course_close(&c);
    stage_close(&g);
}
