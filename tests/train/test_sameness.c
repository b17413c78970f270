/* test_sameness.c -- the promise, through the program: 48 runs, one hash per column and level, and it is the one that
 * stands in the repository. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

TEST_WITHIN(every_way_of_running_gives_the_expected_weights, 150)
{
    test_run r = test_sh("$COHORT bench sameness --json");

    CHECK(r.status == 0, "exit status %d:\n%s", r.status, r.out);
    int rows = 0;
    for (const char *at = r.out; (at = strstr(at, "\"same\":true")); at++)
        rows++;
    CHECK(rows == 48, "%d rows:\n%s", rows, r.out);
    CHECK(!strstr(r.out, "\"same\":false"), "%s", r.out);
    free(r.out);
}

/* The bench must be able to fail: another seed is another run. */
TEST(another_seed_gives_other_weights)
{
    test_run a =
        test_sh("$COHORT train data=fake model=linear trainer.max_steps=3 run.dir=a console=quiet && "
                "$COHORT train data=fake model=linear trainer.max_steps=3 run.dir=b console=quiet seed=1 && "
                "grep -h weights_sha256 a/summary.json b/summary.json | sort -u | wc -l");

    CHECK(a.status == 0 && strstr(a.out, "\n2\n"), "%d: %s", a.status, a.out);
    free(a.out);
}
