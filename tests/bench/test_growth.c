/* test_growth.c -- `cohort bench growth`: its command line, its figures with a stand-in for PyTorch, and with
 * PyTorch itself ($COHORT_PYTHON) two points of each kind. The figures themselves are for a quiet machine. */
#include "harness.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The line of the output that has this text near its beginning. */
static json_t *line_with(const test_run *r, const char *text)
{
    const char *at = strstr(r->out, text);

    while (at && at > r->out && at[-1] != '\n')
        at--;
    json_t *j = at ? json_loads(at, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    CHECK(r->status == 0 && j, "%s: %d %s", text, r->status, r->out);
    return j;
}

static double number(const json_t *j, const char *key, const char *inner)
{
    const json_t *x = json_object_get(j, key);

    x = inner ? json_object_get(x, inner) : x;
    CHECK(json_is_number(x), "%s %s is missing", key, inner ? inner : "");
    return json_number_value(x);
}

TEST(bench_growth_refuses_axes_and_points_that_do_not_exist)
{
    static const char *const lines[][2] = {
        {"", "bench growth needs --axis: one of batch, size, depth, length"},
        {"--axis width", "no axis \"width\"; there are batch, size, depth, length"},
        {"--axis batch --points 0,16", "--points: \"0\" is not a number from 1 to 2048"},
        {"--axis batch --points 16,many", "--points: \"many\" is not a number from 1 to 2048"},
        {"--axis size --points 32,4096", "--points: \"4096\" is not a number from 1 to 1024"},
        {"--axis batch --points 16,,32", "--points: \"\" is not a number from 1 to 2048"},
        {"--axis batch --points 16,32,", "--points: \"\" is not a number from 1 to 2048"},
        {"--axis batch --points 16,99999999999999999999999999", "is not a number from 1 to 2048"},
        {"--axis batch --points 32,16", "--points: 16 follows 32; give them rising"},
        {"--axis batch --points 16,16", "--points: 16 follows 16; give them rising"},
        {"--axis batch --points 16", "one point does not grow; give two or more"},
        {"--axis batch --points 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "--points: more than 16"},
        {"--axis depth --points 18,20", "no resnet has 20 layers; there are 18, 34, 50, 101, 152"},
        {"--axis length --points 1,16", "--points: \"1\" is not a number from 2 to 4096"},
        {"--axis batch --rounds 0", "--rounds 0 is not a number from 1 to 50"},
        {"--axis batch --python false", "bench growth needs a Python with PyTorch"}};

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        test_run r = test_sh("$COHORT bench growth %s", lines[i][0]);
        CHECK(r.status == 2 && test_contains(r.out, lines[i][1]), "%s: %d %s", lines[i][0], r.status, r.out);
    }
    test_run r = test_sh("$COHORT bench growth --help");
    CHECK(r.status == 0 && test_contains(r.out, "16,32,64,128,256,512"), "%d %s", r.status, r.out);
}

/* Answers what versus.py would for resnet18 with a batch of 2 or 4: a batch of 4 is ten times as slow per
 * picture. Its first weights and loss are ours, from a step with the rate 0. */
static const char stand_in[] =
    "cat >stand-in <<'END'\n"
    "#!/bin/sh\n"
    "case \"$*\" in\n"
    "*--check*) echo '{\"torch\": \"none\", \"torchvision\": \"none\"}'; exit;;\n"
    "*--first-loss*) for f; do :; done\n"
    "    $COHORT train data=fake_images data.size=64 data.batch_size=2 model=resnet18 optim=sgd optim.lr=0 "
    "trainer.max_steps=1 trainer.slices=1 trainer.eval_every=0 test=false console=quiet run.dir=made >log "
    "2>&1\n"
    "    $COHORT ckpt export made --out \"$f\" >>log\n"
    "    grep -o '\"train/loss\": [0-9.]*' made/summary.json | sed 's/.*: /{\"loss\": /; s/$/}/'; exit;;\n"
    "*'--batch 2 '*) per_s=100;;\n"
    "*) per_s=10;;\n"
    "esac\n"
    "echo \"{\\\"per_s\\\": $per_s, \\\"cpu_s\\\": 1, \\\"first_step_clock_ns\\\": 1e18, "
    "\\\"parameters\\\": 11181642, \\\"pss_libraries_bytes\\\": 1000}\"\n"
    "END\n"
    "chmod +x stand-in; touch s.py\n";

TEST_WITHIN(bench_growth_tells_a_cliff_of_a_stand_in, 120)
{
    test_run r = test_sh(
        "%sTMPDIR=$PWD $COHORT bench growth --axis batch --points 2,4 --python ./stand-in "
        "--script s.py --rounds 1 --steps 1 --plots a/b 2>talk && cat a/b/growth-batch.svg || cat talk",
        stand_in);
    json_t *two = line_with(&r, "\"point\":2,"), *four = line_with(&r, "\"point\":4,");
    json_t *axis = line_with(&r, "growth-axis");
    const json_t *rises = json_object_get(axis, "largest_rise"), *cliffs = json_object_get(axis, "cliffs");

    CHECK(fabs(number(two, "ms_per_sample", "torch") - 10) < 1e-9 &&
              fabs(number(four, "ms_per_sample", "torch") - 100) < 1e-9,
          "%s", r.out);
    CHECK(fabs(number(two, "ratio", NULL) * number(two, "ms_per_sample", "cohort") / 10 - 1) < 1e-9 &&
              number(four, "ms_per_gflop", "cohort") > 0,
          "%s", r.out);
    /* resnet18 makes some 0.15 G products forward for a picture of 64x64: 0.9 GFLOP with the backward pass,
     * less what is padding. */
    CHECK(number(two, "gflop_per_sample", NULL) > 0.5 && number(two, "gflop_per_sample", NULL) < 0.9, "%s",
          r.out);
    CHECK(fabs(number(json_object_get(rises, "torch"), "rise", NULL) - 10) < 0.01, "%s", r.out);
    CHECK(json_array_size(json_object_get(cliffs, "torch")) == 1, "%s", r.out);
    CHECK(json_array_size(json_object_get(axis, "cliffs_only_cohort")) == 0, "%s", r.out);
    CHECK(test_contains(r.out, "<svg") && test_contains(r.out, "ms per sample"), "%s", r.out);
    json_decref(two);
    json_decref(four);
    json_decref(axis);
}

/* --- with PyTorch --------------------------------------------------------------------------------------- */
static void try_axis(const char *axis, const char *points)
{
    const char *python = getenv("COHORT_PYTHON");

    if (!python || test_sh("'%s' -c 'import torch, torchvision'", python).status != 0)
        test_skip("COHORT_PYTHON names no Python with torch and torchvision");
    test_run r = test_sh("TMPDIR=$PWD $COHORT bench growth --python '%s' --axis %s --points %s --rounds 1 "
                         "--steps 1 2>talk || cat talk",
                         python, axis, points);
    json_t *j = line_with(&r, "growth-axis");

    CHECK(number(j, "points", NULL) == 2, "%s", r.out);
    json_decref(j);
}

TEST_LONG_WITHIN(bench_growth_runs_pictures_beside_pytorch, 600)
{
    try_axis("batch", "4,8");
    try_axis("size", "32,64");
    try_axis("depth", "34,101");
}

TEST_LONG_WITHIN(bench_growth_runs_sequences_beside_pytorch, 600)
{
    try_axis("length", "16,64");
}
