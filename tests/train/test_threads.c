/* Threads inside a rank: any number of them gives the same weights, also when ranks are killed, and their
 * steps are as steady as those of one thread. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "harness.h"
#include "train/program.h"

#define CNN "data=digits model=cnn data.batch_size=64 trainer.max_steps=20 trainer.slices=4 "
#define LM                                                                                                   \
    "data=text data.path=%s model=lm model.d_model=64 model.heads=4 model.layers=2 data.max_len=64 "         \
    "data.batch_size=16 trainer.slices=2 trainer.max_steps=12 "

static outcome run(const char *dir, const char *model, const char *more)
{
    outcome o = strcmp(model, "cnn") == 0 ? program_run(dir, CNN "%s", more)
                                          : program_run(dir, LM "%s", test_repo("tests/data/verse.txt"), more);

    CHECK(o.status == 0, "%s with %s: exit %d\n%s", model, more, o.status, o.out);
    return o;
}

static void any_number_agrees(const char *model)
{
    static const char *const ways[] = {"trainer.devices=1 trainer.threads=2",
                                       "trainer.devices=1 trainer.threads=3",
                                       "trainer.devices=2 trainer.threads=2",
                                       "trainer.devices=2 trainer.threads=3 data.workers=2",
                                       "trainer.devices=1 trainer.threads=2 trainer.slices_at_once=false",
                                       "trainer.devices=1 trainer.threads=5",
                                       "trainer.devices=1 trainer.threads=auto"};
    outcome one = run("one", model, "trainer.devices=1 trainer.threads=1");

    for (size_t i = 0; i < CO_COUNT(ways); i++) {
        char dir[16];
        snprintf(dir, sizeof dir, "way%zu", i);
        outcome o = run(dir, model, ways[i]);
        program_same(&one, &o, ways[i]);
    }
}

TEST_WITHIN(any_number_of_threads_trains_a_cnn_to_the_same_weights, 120)
{
    any_number_agrees("cnn");
}

TEST_WITHIN(any_number_of_threads_trains_an_lm_to_the_same_weights, 120)
{
    any_number_agrees("lm");
}

/* Chunks of this model have 32,768 elements: the optimiser's threads divide them. */
#define LARGE                                                                                                \
    "data=digits model=mlp model.hidden=1100 model.layers=2 data.batch_size=32 trainer.slices=4 "            \
    "optim=adamw "                                                                                           \
    "optim.ema=0.9 trainer.clip_value=0.01 trainer.clip_norm=1 test=false trainer.eval_every=0 "

TEST_LONG_WITHIN(threads_that_divide_the_chunks_of_the_state_give_the_same_weights, 120)
{
    static const char *const ways[] = {
        "trainer.devices=1 trainer.threads=2", "trainer.devices=1 trainer.threads=3",
        "trainer.devices=2 trainer.threads=2", "trainer.devices=3 trainer.threads=5",
        "trainer.devices=2 trainer.threads=2 fault.phase=apply fault.kills=5 fault.mean_ms=20"};
    outcome one = program_run("one", LARGE "trainer.max_steps=30 trainer.devices=1 trainer.threads=1");

    program_same(&one, &one, "one thread");
    for (size_t i = 0; i < CO_COUNT(ways); i++) {
        char dir[16];
        snprintf(dir, sizeof dir, "way%zu", i);
        outcome o = program_run(dir, LARGE "trainer.max_steps=30 %s", ways[i]);
        program_same(&one, &o, ways[i]);
        CHECK(o.recoveries > 0 || !strstr(ways[i], "fault"), "%s: nobody was killed", ways[i]);
    }
}

/* A rank's helpers die with it; its successor starts a team of its own. */
TEST_LONG_WITHIN(ranks_with_threads_that_are_killed_end_in_the_same_weights, 150)
{
    static const char *const phases[] = {"forward", "backward", "sum", "apply", "evaluation", "random"};
#define LONGER "data=digits model=cnn data.batch_size=128 trainer.slices=4 trainer.max_epochs=4 "
    outcome calm = program_run("calm", LONGER "trainer.devices=1 trainer.threads=1");

    program_same(&calm, &calm, "undisturbed");
    for (size_t i = 0; i < CO_COUNT(phases); i++) {
        char what[128];
        snprintf(what, sizeof what, "trainer.devices=2 trainer.threads=2 fault.phase=%s", phases[i]);
        outcome o = program_run(phases[i], LONGER "fault.kills=4 fault.mean_ms=20 %s", what);
        program_same(&calm, &o, what);
        CHECK(o.recoveries > 0, "%s: nobody was killed", what);
    }
}

TEST_WITHIN(steady_steps_of_a_team_allocate_nothing_and_take_no_fault, 120)
{
    outcome o =
        program_run("steady", "data=digits model=cnn model.width=8 optim=adamw trainer.devices=2 "
                              "trainer.threads=2 trainer.eval_every=0 test=false trainer.max_epochs=15");

    CHECK(o.status == 0 && o.steps == 345, "exit %d\n%s", o.status, o.out);
#ifdef __SANITIZE_ADDRESS__
    o.faults = 0; /* the sanitizer's own */
#endif
    CHECK(o.allocs == 0 && o.faults == 0, "%lld allocations, %lld page faults after warm-up", o.allocs,
          o.faults);
}

TEST(the_first_screen_and_the_plan_say_how_many_threads_a_rank_has)
{
    static const struct {
        const char *words, *line;
    } rows[] = {
        {"trainer.devices=2 trainer.threads=2", "ranks     2 ranks x 2 threads on this host; "},
        {"trainer.devices=1 trainer.threads=3", "ranks     1 rank x 3 threads on this host; "},
        {"trainer.devices=2 trainer.threads=1", "ranks     2 on this host; "},
        {"trainer.devices=3 trainer.slices=1 trainer.threads=2",
         "ranks     1 rank x 2 threads: the batch has only "},
        {"trainer.devices=2 trainer.threads=2 trainer.kernels=far", "ranks     2 on this host; "},
    };

    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        test_run r = test_sh("$COHORT train data=digits model=mlp trainer.max_steps=1 test=false "
                             "run.dir=run%zu %s 2>&1",
                             i, rows[i].words);
        CHECK(r.status == 0 && strstr(r.out, rows[i].line), "%s: wanted \"%s\"\n%s", rows[i].words,
              rows[i].line, r.out);
        free(r.out);
    }
    test_run r = test_sh("$COHORT plan data=digits model=mlp trainer.devices=2 trainer.threads=2");
    CHECK(r.status == 0 && strstr(r.out, "ms with 2 ranks x 2 threads: "), "%s", r.out);
    free(r.out);
}

/* auto: the CPUs that one rank cannot use become its threads. */
TEST(threads_default_to_the_cpus_divided_by_the_ranks)
{
    test_run r =
        test_sh("n=$(nproc); for d in 1 $n; do $COHORT plan data=digits model=mlp trainer.devices=$d "
                "--json | grep -o '\"threads\": *[0-9]*' | grep -o '[0-9]*'; done; echo $n");
    int one = 0, each = 0, cpus = 0;

    CHECK(r.status == 0 && sscanf(r.out, "%d %d %d", &one, &each, &cpus) == 3, "%s", r.out);
    CHECK(one == cpus && each == 1, "one rank: %d threads, %d ranks: %d, %d CPUs", one, cpus, each, cpus);
    free(r.out);
}

TEST(a_number_of_threads_that_cannot_be_is_refused)
{
    static const char *const wrong[] = {"0", "-1", "257", "two", "1.5", "''"};

    for (size_t i = 0; i < CO_COUNT(wrong); i++) {
        test_run r = test_sh("$COHORT train data=digits model=mlp trainer.threads=%s run.dir=r 2>&1", wrong[i]);
        CHECK(r.status == 2 && strstr(r.out, "trainer.threads"), "%s: %d\n%s", wrong[i], r.status, r.out);
        free(r.out);
    }
}
