/* A learning rate that makes the loss explode. on_nan=stop names the step and saves the state before it;
 * on_nan=skip goes on, with the same result for any number of ranks. */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "train/program.h"

#define WORDS "data=digits model=mlp optim=sgd trainer.max_epochs=2 "

TEST(a_step_that_is_not_finite_stops_the_run_and_is_named)
{
    outcome o = program_run("run", WORDS "optim.lr=100000 trainer.devices=2");

    CHECK(o.status == 1 && strcmp(o.state, "failed") == 0, "exit %d, %s\n%s", o.status, o.state, o.out);
    char step[64];
    snprintf(step, sizeof step, "step %lld: the ", o.steps + 1);
    CHECK(test_contains(o.out, step) && test_contains(o.out, "not finite"), "no \"%s\":\n%s", step, o.out);
    CHECK(test_contains(o.out, "optim.lr"), "no advice:\n%s", o.out);
    CHECK(test_contains(o.out, "in slice ") && test_contains(o.out, "(samples ") &&
              test_contains(o.out, "the first operator whose result is not finite is "),
          "no cause:\n%s", o.out);
    CHECK(o.recoveries == 0, "%lld recoveries", o.recoveries);
    test_run blame = test_sh("cat run/blame.json");
    CHECK(blame.status == 0 && test_contains(blame.out, step), "blame.json: %s", blame.out);
    free(blame.out);
    CHECK(program_saved("run"), "the state before it is saved");
}

TEST(steps_that_are_not_finite_are_skipped_alike_by_any_number_of_ranks)
{
    outcome one = {0};

    for (int ranks = 1; ranks <= 3; ranks++) {
        char dir[16], what[32];
        snprintf(dir, sizeof dir, "run%d", ranks);
        snprintf(what, sizeof what, "%d ranks", ranks);
        outcome o = program_run(dir, WORDS "optim.lr=100000 trainer.on_nan=skip trainer.devices=%d", ranks);
        if (ranks == 1)
            one = o;
        program_same(&one, &o, what);
        test_run skipped = test_sh("grep -c '\"skipped\"' %s/events.jsonl", dir);
        CHECK(skipped.status == 0, "%s: nothing was skipped: %s", what, skipped.out);
        free(skipped.out);
    }
    CHECK(one.steps == 46, "%lld steps", one.steps);
}
