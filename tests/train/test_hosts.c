/* Several hosts give the bits of one host with one rank, whatever happens to them. They live in this process,
 * on the link `self` (hosts.h). */
#include "train/hosts.h"

#include <string.h>

#include "harness.h"

static const char *const mlp[] = {
    "model=mlp",      "data=fake",         "optim=adamw",          "model.hidden=56",
    "data.n=52",      "data.inputs=8",     "data.batch_size=16",   "data.eval_slice=3",
    "data.workers=0", "trainer.slices=16", "trainer.max_epochs=2", NULL};

static const char *const lm[] = {"model=lm",
                                 "data=text",
                                 "optim=adamw",
                                 "model.d_model=16",
                                 "model.heads=2",
                                 "model.layers=1",
                                 "data.max_len=16",
                                 "data.batch_size=16",
                                 "data.eval_slice=5",
                                 "data.workers=0",
                                 "trainer.slices=16",
                                 "trainer.limit_train_batches=3",
                                 "trainer.limit_val_batches=2",
                                 "trainer.limit_test_batches=1",
                                 "trainer.max_epochs=2",
                                 "callbacks.model_checkpoint.every_n_steps=1",
                                 NULL};

/* A small convolutional network on the digits. */
static const char *const cnn[] = {"model=cnn",
                                  "data=digits",
                                  "optim=adamw",
                                  "data.batch_size=64",
                                  "data.workers=0",
                                  "trainer.slices=16",
                                  "trainer.limit_train_batches=2",
                                  "trainer.limit_val_batches=2",
                                  "trainer.limit_test_batches=1",
                                  "trainer.max_epochs=2",
                                  NULL};

/* Two tables with row-sparse gradients, and hardly anything else. */
static const char *const factors[] = {"model=factors",      "data=fake_ratings",    "optim=sparse_adam",
                                      "data.users=300",     "data.items=200",       "data.count=120",
                                      "data.batch_size=32", "data.workers=0",       "model.width=8",
                                      "trainer.slices=16",  "trainer.max_epochs=2", NULL};

static void set_number(stage *g, const char *key, int value)
{
    char word[64];

    snprintf(word, sizeof word, "%s=%d", key, value);
    stage_set(g, word);
}

/* The course is that of one host with one rank and one thread. */
static void open_stage(stage *g, course *c, const char *const *words)
{
    stage_open(g, words);
    if (words == lm) {
        char text[1024];
        snprintf(text, sizeof text, "data.path=%s", test_repo("tests/data/verse.txt"));
        stage_set(g, text);
    }
    set_number(g, "trainer.devices", 1);
    course_open(c, g);
    g->spec.hosts = HOSTS_MOST;
    g->spec.ckpt_root = "nowhere"; /* snapshots are asked for, and checked: the test is the saver */
}

TEST(two_hosts_give_the_bits_of_one)
{
    stage g;
    course c;

    open_stage(&g, &c, mlp);
    set_number(&g, "trainer.devices", 2);
    outcome o = hosts_run(&(scene){.stage = &g, .course = &c, .hosts = 2, .ranks = 2, .seed = 1});
    test_note("%ld points, %d views", o.points, o.views);
    CHECK(o.steps == c.steps, "%lld steps", (long long)o.steps);
    course_close(&c);
    stage_close(&g);
}

/* Runs a scene with its first accident at `from`, from + stride, ... until a run is over before it. */
static void everywhere(scene s, long stride)
{
    long points = 0, gap = s.plan[1].when ? s.plan[1].when : 150;
    int runs = 0, views = 0, given = 0;

    for (long when = 1; points == 0 || when <= points; when += stride, runs++) {
        s.plan[0].when = when;
        if (s.plan[1].what)
            s.plan[1].when = when + gap;
        s.seed = (uint64_t)when;
        outcome o = hosts_run(&s);
        points = o.points;
        views += o.views;
        given += o.given;
    }
    test_note("%d runs, the last of %ld points; %d views, %d times a host was given what it missed", runs,
              points, views, given);
}

static void link_everywhere(bool tcp, const char *const *words, int hosts, int ranks, accident what, int host,
                            long stride)
{
    stage g;
    course c;

    open_stage(&g, &c, words);
    set_number(&g, "trainer.devices", ranks);
    scene s = {.stage = &g, .course = &c, .tcp = tcp, .hosts = hosts, .ranks = ranks, .plan = {{what, host, 0}}};
    if (what == HOST_CUT_OFF) {
        s.plan[1].what = HOST_JOINS;
        s.plan[1].host = host;
    }
    everywhere(s, stride);
    course_close(&c);
    stage_close(&g);
}

static void accident_everywhere(const char *const *words, int hosts, int ranks, accident what, int host,
                                long stride)
{
    link_everywhere(false, words, hosts, ranks, what, host, stride);
}

static void accidents_over_tcp(long stride)
{
    link_everywhere(true, mlp, 3, 2, HOST_DIES, 1, stride);
    link_everywhere(true, mlp, 3, 1, HOST_CUT_OFF, 0, stride);
    link_everywhere(true, mlp, 2, 2, HOST_JOINS, 2, stride);
    link_everywhere(true, mlp, 3, 1, HOST_LEAVES, 2, stride);
    link_everywhere(true, factors, 2, 1, HOST_DIES, 0, stride);
}

TEST(hosts_train_over_tcp_and_may_die_be_cut_off_join_and_leave)
{
    accidents_over_tcp(211);
}

TEST_LONG(hosts_train_over_tcp_with_an_accident_at_every_eleventh_point)
{
    accidents_over_tcp(11);
}

TEST(a_host_may_die_at_any_point)
{
    accident_everywhere(mlp, 2, 2, HOST_DIES, 1, 61);
    accident_everywhere(mlp, 3, 1, HOST_DIES, 0, 61);
}

TEST(a_rank_of_a_host_may_die_at_any_point)
{
    accident_everywhere(mlp, 2, 2, RANK_DIES, 1, 61);
}

TEST(a_host_may_be_cut_off_at_any_point_and_come_back)
{
    accident_everywhere(mlp, 3, 2, HOST_CUT_OFF, 1, 61);
}

TEST(a_host_may_join_at_any_point)
{
    accident_everywhere(mlp, 1, 1, HOST_JOINS, 3, 61);
    accident_everywhere(mlp, 2, 2, HOST_JOINS, 2, 61);
}

TEST(a_host_may_leave_at_any_point)
{
    accident_everywhere(mlp, 3, 1, HOST_LEAVES, 0, 61);
}

/* A newcomer comes, and `gap` points later something else happens. */
static void after_a_join(const char *const *words, int hosts, accident then, int host, long gap, long stride)
{
    stage g;
    course c;

    open_stage(&g, &c, words);
    everywhere((scene){.stage = &g,
                       .course = &c,
                       .hosts = hosts,
                       .ranks = 1,
                       .plan = {{HOST_JOINS, 4, 0}, {then, host, gap}}},
               stride);
    course_close(&c);
    stage_close(&g);
}

TEST(the_host_that_feeds_a_newcomer_may_die)
{
    after_a_join(mlp, 2, HOST_DIES, 0, 60, 61);
    after_a_join(factors, 3, HOST_DIES, 0, 110, 131);
}

TEST(two_hosts_may_join_at_a_time)
{
    after_a_join(mlp, 2, HOST_JOINS, 3, 5, 61);
    after_a_join(mlp, 1, HOST_JOINS, 2, 70, 61);
}

TEST(too_few_hosts_wait_for_another)
{
    stage g;
    course c;

    open_stage(&g, &c, mlp);
    set_number(&g, "trainer.devices", 2);
    for (long when = 1; when < 900; when += 97) {
        outcome o = hosts_run(&(scene){.stage = &g,
                                       .course = &c,
                                       .hosts = 2,
                                       .ranks = 2,
                                       .min = 2,
                                       .seed = (uint64_t)when,
                                       .plan = {{HOST_DIES, (int)when % 2, when}, {HOST_JOINS, 3, 1 << 20}}});
        CHECK(o.newcomers == 1 && o.steps == c.steps, "%d came, %lld steps", o.newcomers, (long long)o.steps);
    }
    course_close(&c);
    stage_close(&g);
}

TEST(a_stop_is_the_same_step_everywhere)
{
    accident_everywhere(mlp, 3, 2, STOP_WISHED, 2, 61);
}

TEST(hosts_exchange_lists_of_rows)
{
    accident_everywhere(lm, 2, 2, HOST_DIES, 1, 211);
    accident_everywhere(lm, 3, 1, HOST_CUT_OFF, 0, 211);
    accident_everywhere(lm, 2, 1, HOST_JOINS, 2, 211);
}

/* --- every combination ---------------------------------------------------------------------------------- */
typedef enum {
    PLAIN,
    RANK_KILLED,
    HOST_KILLED,
    CUT_AND_BACK,
    JOINED,
    WRITER_KILLED,
    UNEQUAL,
    DISTURBANCES
} disturbance;

static const char *const disturbance_name[] = {
    "undisturbed",   "a rank killed",     "a host killed", "a host cut off and back",
    "a host joined", "the writer killed", "unequal deals"};

static scene scene_of(disturbance d, int hosts, uint64_t seed)
{
    scene s = {.hosts = hosts, .seed = seed};
    long when = 40 + (long)(seed * 977 % 500);

    switch (d) {
    case RANK_KILLED:
        s.plan[0].what = RANK_DIES;
        break;
    case HOST_KILLED:
        s.plan[0].what = hosts > 1 ? HOST_DIES : NOTHING;
        break;
    case CUT_AND_BACK:
        s.plan[0].what = hosts > 1 ? HOST_CUT_OFF : NOTHING;
        s.plan[1].what = hosts > 1 ? HOST_JOINS : NOTHING;
        break;
    case JOINED:
        s.plan[0].what = HOST_JOINS;
        break;
    case WRITER_KILLED:
        s.plan[0].what = hosts > 1 ? HOST_DIES : NOTHING;
        break;
    case UNEQUAL:
        for (int h = 0; h < hosts; h++)
            s.weight[h] = (h * 5 + 3) % 8; /* 3, 0, 5, 2: one of them is a spare */
        break;
    case PLAIN:
    case DISTURBANCES:
        break;
    }
    s.plan[0].host = d == WRITER_KILLED ? 0 : d == JOINED ? hosts : hosts - 1;
    s.plan[0].when = when;
    s.plan[1].host = hosts - 1;
    s.plan[1].when = when + 90;
    return s;
}

struct part {
    const char *name;
    const char *const *words;
    stage stage;
    course course;
};

static void run_row(struct part *of, int hosts, int ranks, int threads, disturbance d)
{
    scene s = scene_of(d, hosts, (uint64_t)(hosts + 7 * ranks + 31 * threads + 101 * (int)d));

    set_number(&of->stage, "trainer.devices", ranks);
    set_number(&of->stage, "trainer.threads", threads);
    s.stage = &of->stage;
    s.course = &of->course;
    s.ranks = ranks;
    outcome o = hosts_run(&s);
    CHECK(o.steps == of->course.steps, "%s, %d hosts x %d ranks x %d threads, %s: %lld steps", of->name,
          hosts, ranks, threads, disturbance_name[d], (long long)o.steps);
}

/* Every `stride`-th row of hosts x ranks x threads x disturbances x models, each with the seed of its
 * numbers. */
static void rows_give_one_course(int stride)
{
    static struct part part[] = {{.name = "digits/cnn", .words = cnn},
                                 {.name = "lm", .words = lm},
                                 {.name = "factors", .words = factors}};
    static const int ranks[] = {1, 2, 4};
    int rows = 0, n = 0;

    for (size_t i = 0; i < CO_COUNT(part); i++)
        open_stage(&part[i].stage, &part[i].course, part[i].words);
    for (int d = 0; d < DISTURBANCES; d++)
        for (int hosts = 1; hosts <= 4; hosts++)
            for (size_t r = 0; r < CO_COUNT(ranks); r++)
                for (int threads = 1; threads <= 3; threads++)
                    for (size_t i = 0; i < CO_COUNT(part); i++, n++)
                        if (n % stride == 0) {
                            run_row(&part[i], hosts, ranks[r], threads, (disturbance)d);
                            rows++;
                        }
    test_note("%d rows of %d", rows, n);
    for (size_t i = 0; i < CO_COUNT(part); i++) {
        course_close(&part[i].course);
        stage_close(&part[i].stage);
    }
}

TEST(hosts_ranks_threads_and_disturbances_give_one_course)
{
    rows_give_one_course(25); /* meets every value of every column */
}

/* The others read the sums of a rank while it computes: they notice that its successor computes them
 * again. */
TEST(a_rank_may_die_while_its_slices_go_backward_together)
{
    accident_everywhere(cnn, 2, 2, RANK_DIES, 1, 307);
    accident_everywhere(cnn, 3, 2, HOST_DIES, 1, 997);
}

TEST_LONG(a_rank_may_die_at_every_point_while_its_slices_go_backward_together)
{
    accident_everywhere(cnn, 2, 2, RANK_DIES, 1, 7);
    accident_everywhere(cnn, 2, 4, RANK_DIES, 0, 61);
    accident_everywhere(cnn, 3, 2, HOST_DIES, 1, 29);
}

TEST_LONG(all_hosts_ranks_threads_and_disturbances_give_one_course)
{
    rows_give_one_course(1);
}

TEST_LONG(a_host_may_die_at_every_point)
{
    accident_everywhere(mlp, 2, 2, HOST_DIES, 1, 1);
    accident_everywhere(mlp, 3, 1, HOST_DIES, 0, 1);
    accident_everywhere(lm, 3, 2, HOST_DIES, 2, 7);
}

TEST_LONG(hosts_may_die_and_come_after_a_join_at_every_point)
{
    for (long gap = 10; gap <= 310; gap += 100) {
        after_a_join(mlp, 2, HOST_DIES, 0, gap, 9);
        after_a_join(mlp, 3, HOST_DIES, 0, gap, 9);
        after_a_join(mlp, 2, HOST_JOINS, 3, gap, 9);
        after_a_join(mlp, 2, RANK_DIES, 4, gap, 9);
    }
}

TEST_LONG(a_host_may_come_and_go_at_every_point)
{
    accident_everywhere(mlp, 3, 2, HOST_CUT_OFF, 1, 1);
    accident_everywhere(mlp, 2, 2, HOST_JOINS, 2, 1);
    accident_everywhere(mlp, 3, 1, HOST_LEAVES, 0, 1);
    accident_everywhere(factors, 3, 1, HOST_CUT_OFF, 0, 3);
}
