/* test_sameness.c -- `cohort bench sameness`: every way of running gives the same weights, and their hash is
 * the one in the repository. Large models take minutes and run in a long test. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void all_same(const char *command, int want)
{
    test_run r = test_sh("%s", command);

    CHECK(r.status == 0, "exit status %d:\n%s", r.status, r.out);
    int rows = 0;
    for (const char *at = r.out; (at = strstr(at, "\"same\":true")); at++)
        rows++;
    CHECK(rows == want, "%d rows:\n%s", rows, r.out);
    CHECK(!strstr(r.out, "\"same\":false"), "%s", r.out);
    free(r.out);
}

TEST_WITHIN(every_way_of_running_gives_the_expected_weights, 150)
{
    all_same("$COHORT bench sameness --columns "
             "digits/mlp,digits/cnn,text/lm,fake/linear,ratings/factors,images/vit --json",
             72);
}

TEST_LONG_WITHIN(every_way_of_running_the_transformer_gives_the_expected_weights, 600)
{
    all_same("$COHORT bench sameness --columns pairs/transformer --json", 12);
}

TEST_LONG_WITHIN(every_way_of_running_fastnet_gives_the_expected_weights, 300)
{
    all_same("$COHORT bench sameness --columns pictures/fastnet --json", 12);
}

TEST_LONG_WITHIN(every_way_of_running_a_resnet50_with_all_augmentation_gives_the_expected_weights, 1200)
{
    all_same("$COHORT bench sameness --columns pictures/resnet50 --json", 12);
}

TEST_LONG_WITHIN(every_way_of_running_a_resnet18_on_cifar10_gives_the_expected_weights, 1200)
{
    const char *data = getenv("COHORT_DATA");
    char command[4096];

    snprintf(command, sizeof command, "%s/cifar10", data ? data : test_repo("../shared/data"));
    if (access(command, R_OK) != 0)
        test_skip("no %s: set COHORT_DATA to a folder with cifar10/ in it", command);
    snprintf(command, sizeof command,
             "$COHORT bench sameness --columns cifar10/resnet18 --cifar '%s/cifar10' --json",
             data ? data : test_repo("../shared/data"));
    all_same(command, 12);
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
