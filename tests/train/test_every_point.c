/* Kills a rank at every place where its death could matter, one place per run. Every run ends in the same
 * state, to the bit, with the same results. The ranks are processes; the test's own process is their
 * supervisor and saver. */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/maths.h"
#include "harness.h"
#include "proc/crew.h"
#include "train/aside_int.h"
#include "train/stage.h"

/* Shared with the ranks: how often any of them has come to a point, and at which counts the one there
 * dies. */
struct fate {
    _Atomic int count;
    int die_at[2];
};

static struct fate *fate;
static co_optim_def torn; /* the optimiser, with points in its midst */
static const co_optim_def *whole;

static void maybe_die(struct rank *rank)
{
    int n = atomic_fetch_add(&fate->count, 1) + 1;

    (void)rank;
    if (n == fate->die_at[0] || n == fate->die_at[1])
        kill(getpid(), SIGKILL);
}

/* The first half of the elements, a point, and the rest: a state torn inside a chunk. */
static void in_halves(void (*apply)(const void *, const co_apply *), const void *cfg, const co_apply *a)
{
    co_apply first = *a, second = *a;

    first.n = a->row ? a->n / a->width / 2 * a->width : a->n / 2;
    second.n = a->n - first.n;
    second.g += first.n;
    if (a->row) {
        second.row += first.n / a->width;
    } else {
        second.w += first.n;
        for (int j = 0; j < CO_MAX_MOMENTS; j++)
            if (second.m[j])
                second.m[j] += first.n;
    }
    apply(cfg, &first);
    maybe_die(NULL);
    apply(cfg, &second);
}

static void apply_in_halves(const void *cfg, const co_apply *a)
{
    in_halves(whole->apply, cfg, a);
}

static void apply_sparse_in_halves(const void *cfg, const co_apply *a)
{
    in_halves(whole->apply_sparse, cfg, a);
}

/* --- the crew ------------------------------------------------------------------------------------------- */
struct scene {
    co_plan *plan;
    int deaths;
};

static int member(void *ctx, int slot, uint32_t inc)
{
    struct scene *s = ctx;
    struct rank rank;

    co_fpu_init();
    if (rank_open(&rank, s->plan, s->plan->regions, slot, inc, -1) != CO_OK)
        return 1;
    rank.point = maybe_die;
    rank_loop(&rank);
    return 0;
}

static uint64_t turns(void *ctx, int slot)
{
    return atomic_load(&((struct scene *)ctx)->plan->regions->slots[slot].record.turns);
}

static bool waiting(void *ctx, int slot)
{
    (void)ctx;
    return slot >= 0; /* deadlines are tested elsewhere */
}

static co_verdict died(void *ctx, const co_death *d)
{
    struct scene *s = ctx;

    if (WIFEXITED(d->status)) {
        CHECK(WEXITSTATUS(d->status) == 0, "rank %d exits %d", d->slot, WEXITSTATUS(d->status));
        return CO_CREW_LET_GO;
    }
    CHECK(WTERMSIG(d->status) == SIGKILL, "rank %d: signal %d", d->slot, WTERMSIG(d->status));
    s->deaths++;
    co_event_ring(&s->plan->regions->ctl->event);
    return CO_CREW_REPLACE;
}

/* One run. Returns the points that were come to. */
static int run(const stage *g, const course *c, int first, int second)
{
    struct scene s = {.plan = stage_plan(g)};
    co_crew *crew;
    char what[64];
    double end = (double)co_now_ns() * 1e-9 + 20;

    snprintf(what, sizeof what, "death at point %d (and %d)", first, second);
    CHECK(aside_holds_all(s.plan) == !g->spec.aside_bytes, "a pool of %zu bytes", g->spec.aside_bytes);
    *fate = (struct fate){.die_at = {first, second}};
    CHECK_OK(co_crew_start(&crew, &(co_crew_spec){.size = s.plan->ranks,
                                                  .ctx = &s,
                                                  .main = member,
                                                  .turns = turns,
                                                  .waiting = waiting,
                                                  .died = died,
                                                  .stall_s = 100}));
    while (co_crew_alive(crew) > 0) {
        CHECK_OK(co_crew_turn(crew, 1, NULL, 0));
        stage_attend(c, s.plan, what);
        CHECK((double)co_now_ns() * 1e-9 < end, "%s: hangs at unit %u", what,
              pc_unit(atomic_load(&s.plan->regions->ctl->pc)));
    }
    stage_attend(c, s.plan, what);
    co_crew_free(crew);
    int points = atomic_load(&fate->count), want = (first && first <= points) + (second && second <= points);
    CHECK(s.deaths == want, "%s: %d deaths", what, s.deaths);
    CHECK(pc_unit(atomic_load(&s.plan->regions->ctl->pc)) == (uint32_t)c->units + 1, "%s: not all units", what);
    course_check_state(c, s.plan, c->steps, what);
    co_plan_free(s.plan);
    return points;
}

/* Kills at points from, from + stride, ... until a run is over before its point. */
static void die_everywhere(stage *g, const char *ranks, int stride, int gap)
{
    course c;
    int n, points = 0, runs = 0;

    stage_set(g, ranks);
    course_open(&c, g);
    fate = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    whole = g->spec.optim;
    torn = *whole;
    torn.apply = apply_in_halves;
    torn.apply_sparse = apply_sparse_in_halves;
    g->spec.optim = &torn;
    g->spec.ckpt_root = "nowhere"; /* snapshots are asked for; we are the saver */
    for (n = 1; points == 0 || n <= points; n += stride, runs++)
        points = run(g, &c, n, gap ? n + gap : 0);
    test_note("%s: %d runs, the last of %d points", ranks, runs, points);
    CHECK(runs > 10, "too few");
    g->spec.optim = whole;
    course_close(&c);
}

/* Two epochs of two steps, the second one short; an evaluation after each, a test, a snapshot of every
 * step. */
static const char *const small[] = {"model=mlp",
                                    "data=fake",
                                    "optim=adamw",
                                    "model.hidden=40",
                                    "data.n=12",
                                    "data.inputs=8",
                                    "data.batch_size=8",
                                    "data.eval_slice=1",
                                    "trainer.slices=4",
                                    "trainer.max_epochs=2",
                                    "callbacks.model_checkpoint.every_n_steps=1",
                                    NULL};

TEST(a_death_at_every_single_point_changes_nothing)
{
    stage g;

    stage_open(&g, small);
    stage_set(&g, "trainer.max_steps=3");
    die_everywhere(&g, "trainer.devices=2", 1, 0);
    stage_close(&g);
}

TEST(two_deaths_close_together_change_nothing)
{
    stage g;

    stage_open(&g, small);
    die_everywhere(&g, "trainer.devices=3", 11, 1);
    die_everywhere(&g, "trainer.devices=1", 11, 2);
    stage_close(&g);
}

/* The average, clipping by value, a plateau and an early end: all that lives beside the weights. */
TEST(deaths_change_nothing_of_a_recipe_that_ends_early)
{
    stage g;

    stage_open(&g, small);
    stage_set(&g, "schedule=plateau");
    stage_set(&g, "schedule.patience=0");
    stage_set(&g, "optim.ema=0.9");
    stage_set(&g, "trainer.clip_value=0.01");
    stage_set(&g, "trainer.max_epochs=4");
    stage_set(&g, "callbacks.early_stopping.patience=1");
    stage_set(&g, "callbacks.early_stopping.min_delta=10");
    die_everywhere(&g, "trainer.devices=2", 7, 0);
    stage_close(&g);
}

static void open_lm(stage *g)
{
    static const char *const words[] = {"model=lm",
                                        "data=text",
                                        "optim=adamw",
                                        "model.d_model=8",
                                        "model.heads=2",
                                        "model.layers=1",
                                        "data.max_len=16",
                                        "data.batch_size=8",
                                        "data.eval_slice=16",
                                        "trainer.slices=4",
                                        "trainer.limit_train_batches=2",
                                        "trainer.max_epochs=2",
                                        "trainer.max_steps=3",
                                        "callbacks.model_checkpoint.every_n_steps=1",
                                        NULL};
    char path[512];

    stage_open(g, words);
    snprintf(path, sizeof path, "data.path=%s", test_repo("tests/data/verse.txt"));
    stage_set(g, path);
}

TEST(deaths_change_nothing_where_gradients_are_sparse)
{
    stage g;

    open_lm(&g);
    die_everywhere(&g, "trainer.devices=2", 17, 0);
    stage_close(&g);
}

/* Four tables, in several ranges and pieces. The checkpoint of every step is read while rows change. */
static const char *const factors[] = {"model=factors",
                                      "data=fake_ratings",
                                      "optim=adamw",
                                      "model.width=700",
                                      "data.users=23",
                                      "data.items=9",
                                      "data.count=48",
                                      "data.batch_size=16",
                                      "data.eval_slice=16",
                                      "trainer.slices=4",
                                      "trainer.max_steps=3",
                                      "callbacks.model_checkpoint.every_n_steps=1",
                                      NULL};

TEST(deaths_change_nothing_of_a_factorisation)
{
    stage g;

    stage_open(&g, factors);
    die_everywhere(&g, "trainer.devices=2", 9, 0);
    die_everywhere(&g, "trainer.devices=3", 19, 1);
    stage_close(&g);
}

TEST(deaths_change_nothing_of_a_factorisation_with_an_average_of_its_weights)
{
    stage g;

    stage_open(&g, factors);
    stage_set(&g, "optim.ema=0.9");
    stage_set(&g, "trainer.clip_value=0.01");
    die_everywhere(&g, "trainer.devices=2", 23, 0);
    stage_close(&g);
}

/* Room aside for none, or for some of the chunks and ranges: ranks wait until the checkpoint is read. */
TEST_LONG_WITHIN(deaths_change_nothing_while_ranks_wait_for_a_checkpoint_to_be_read, 120)
{
    stage g;

    stage_open(&g, small);
    stage_set(&g, "model.hidden=300");
    stage_set(&g, "trainer.max_steps=3");
    g.spec.aside_bytes = 20000;
    die_everywhere(&g, "trainer.devices=2", 5, 0);
    g.spec.aside_bytes = 1;
    die_everywhere(&g, "trainer.devices=3", 13, 1);
    stage_close(&g);
    open_lm(&g);
    g.spec.aside_bytes = 14000;
    die_everywhere(&g, "trainer.devices=2", 13, 0);
    stage_close(&g);
    stage_open(&g, factors);
    g.spec.aside_bytes = 150000;
    die_everywhere(&g, "trainer.devices=2", 17, 0);
    stage_set(&g, "optim.ema=0.9");
    die_everywhere(&g, "trainer.devices=3", 29, 1);
    stage_close(&g);
}

TEST_LONG_WITHIN(deaths_at_every_point_of_larger_crews_change_nothing, 1800)
{
    stage g;

    stage_open(&g, small);
    stage_set(&g, "data.n=20");
    die_everywhere(&g, "trainer.devices=1", 1, 0);
    die_everywhere(&g, "trainer.devices=3", 1, 0);
    die_everywhere(&g, "trainer.devices=4", 1, 3);
    stage_close(&g);
    open_lm(&g);
    die_everywhere(&g, "trainer.devices=2", 1, 0);
    die_everywhere(&g, "trainer.devices=4", 1, 1);
    stage_close(&g);
    stage_open(&g, factors);
    die_everywhere(&g, "trainer.devices=2", 1, 0);
    g.spec.aside_bytes = 150000;
    die_everywhere(&g, "trainer.devices=2", 1, 0);
    stage_close(&g);
    stage_open(&g, small);
    stage_set(&g, "model.hidden=300");
    g.spec.aside_bytes = 20000;
    die_everywhere(&g, "trainer.devices=3", 1, 0);
    stage_close(&g);
}
