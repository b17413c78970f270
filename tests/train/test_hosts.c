/* Several hosts give the bits of one host with one rank, whatever happens to them. They live in this process, on the
 * link `self` (hosts.h). */
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
                                 NULL};

static void open_stage(stage *g, course *c, const char *const *words, int ranks)
{
    char word[32];

    stage_open(g, words);
    if (words == lm) {
        char text[1024];
        snprintf(text, sizeof text, "data.path=%s", test_repo("tests/data/verse.txt"));
        stage_set(g, text);
    }
    snprintf(word, sizeof word, "trainer.devices=%d", ranks);
    stage_set(g, word);
    course_open(c, g);
    g->spec.hosts = HOSTS_MOST;
}

TEST(two_hosts_give_the_bits_of_one)
{
    stage g;
    course c;

    open_stage(&g, &c, mlp, 2);
    outcome o = hosts_run(&(scene){.stage = &g, .course = &c, .hosts = 2, .ranks = 2, .seed = 1});
    test_note("%ld points, %d views", o.points, o.views);
    CHECK(o.steps == c.steps, "%lld steps", (long long)o.steps);
    course_close(&c);
    stage_close(&g);
}

/* Runs a scene with its first accident at `from`, from + stride, ... until a run is over before it. */
static void everywhere(scene s, long stride)
{
    long points = 0;
    int runs = 0, views = 0, given = 0;

    for (long when = 1; points == 0 || when <= points; when += stride, runs++) {
        s.plan[0].when = when;
        if (s.plan[1].what)
            s.plan[1].when = when + 150;
        s.seed = (uint64_t)when;
        outcome o = hosts_run(&s);
        points = o.points;
        views += o.views;
        given += o.given;
    }
    test_note("%d runs, the last of %ld points; %d views, %d times a host was given what it missed", runs,
              points, views, given);
}

static void accident_everywhere(const char *const *words, int hosts, int ranks, accident what, int host,
                                long stride)
{
    stage g;
    course c;

    open_stage(&g, &c, words, ranks);
    scene s = {.stage = &g, .course = &c, .hosts = hosts, .ranks = ranks, .plan = {{what, host, 0}}};
    if (what == HOST_CUT_OFF) {
        s.plan[1].what = HOST_JOINS;
        s.plan[1].host = host;
    }
    everywhere(s, stride);
    course_close(&c);
    stage_close(&g);
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
