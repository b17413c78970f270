/* test_versus.c -- `cohort bench vs-torch`: its command line, and its figures with a stand-in for PyTorch; with
 * PyTorch itself ($COHORT_PYTHON) every task for a step or two. The figures themselves are for a quiet machine. */
#include "harness.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const tasks[] = {
    "resnet18",   "resnet34", "resnet50",          "resnet101",           "resnet152", "lm",
    "vit_base",   "vit_tiny", "transformer-guide", "transformer-buckets", "movielens", "digits-mlp",
    "digits-cnn", "start",    "exchange"};

static json_t *answer_of(const test_run *r)
{
    const char *line = strstr(r->out, "{\"task\"");
    json_t *j = line ? json_loads(line, JSON_DISABLE_EOF_CHECK, NULL) : NULL;

    CHECK(r->status == 0 && j, "%d %s", r->status, r->out);
    return j;
}

static double number(const json_t *j, const char *key)
{
    CHECK(json_is_number(json_object_get(j, key)), "%s is missing", key);
    return json_number_value(json_object_get(j, key));
}

TEST(bench_vs_torch_names_the_nearest_task_and_lists_all)
{
    test_run r = test_sh("$COHORT bench vs-torch --task vit_tine");

    CHECK(r.status == 2 && test_contains(r.out, "no task \"vit_tine\"; did you mean vit_tiny; there are "),
          "%d %s", r.status, r.out);
    test_has_all(r.out, tasks, sizeof tasks / sizeof *tasks);
    r = test_sh("$COHORT bench vs-torch --help");
    CHECK(r.status == 0, "%d %s", r.status, r.out);
    test_has_all(r.out, tasks, sizeof tasks / sizeof *tasks);
}

TEST(bench_vs_torch_refuses_flags_that_do_not_fit_the_task)
{
    static const char *const lines[][2] = {
        {"--task movielens", "--task movielens needs real data: give --data FOLDER with ratings.csv"},
        {"--task transformer-guide", "give --data FOLDER with a file tatoeba*.tsv of sentence pairs"},
        {"--task movielens --data nowhere", "--data nowhere: there is no such folder"},
        {"--task vit_tiny --data .", "--task vit_tiny makes up its data; leave --data out"},
        {"--task start --size 32", "--size is for tasks on pictures and for lm, not for --task start"},
        {"--task vit_tiny --batch 0", "--batch 0 is not a number from 1 to 2048"},
        {"--task vit_tiny --threads 65", "--threads 65 is not a number from 1 to 64"},
        {"--python false", "bench vs-torch needs a Python with PyTorch"}};

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        test_run r = test_sh("$COHORT bench vs-torch %s", lines[i][0]);
        CHECK(r.status == 2 && test_contains(r.out, lines[i][1]), "%s: %d %s", lines[i][0], r.status, r.out);
    }
}

/* Answers what versus.py would, for digits/mlp; --first-loss takes ./weights and any loss. */
static const char stand_in[] =
    "cat >stand-in <<'END'\n"
    "#!/bin/sh\n"
    "case \"$*\" in\n"
    "*--check*) echo '{\"torch\": \"none\"}'; exit;;\n"
    "*--first-loss*) for f; do :; done; cp weights \"$f\"; echo '{\"loss\": 1.5}'; exit;;\n"
    "*'--threads 1'*) per_s=100 cpu_s=0.5;;\n"
    "*) per_s=20 cpu_s=2;;\n"
    "esac\n"
    "echo \"{\\\"per_s\\\": $per_s, \\\"cpu_s\\\": $cpu_s, \\\"first_step_clock_ns\\\": 1e18, "
    "\\\"parameters\\\": 26122, \\\"pss_libraries_bytes\\\": 1000}\"\n"
    "END\n"
    "chmod +x stand-in; touch s.py\n";

TEST(bench_vs_torch_measures_a_start_beside_a_stand_in)
{
    test_run r =
        test_sh("%sTMPDIR=$PWD $COHORT bench vs-torch --task start --python ./stand-in --script s.py "
                "--rounds 2 2>talk || cat talk",
                stand_in);
    json_t *j = answer_of(&r);
    const json_t *ours = json_object_get(j, "cohort"), *theirs = json_object_get(j, "torchrun, 2 workers");

    CHECK(number(ours, "per_s") == number(ours, "per_s") && number(ours, "first_step_s") > 0 &&
              number(ours, "cpu_s_each") > 0 && number(ours, "least") <= number(ours, "most"),
          "%s", r.out);
    CHECK(number(theirs, "first_step_s") > 0 && number(j, "ratio") > 1 && number(j, "rounds") == 2, "%s",
          r.out);
    CHECK(number(j, "parameters") == 26122, "%s", r.out);
    CHECK(strcmp(json_string_value(json_object_get(j, "compared")), "number of parameters") == 0, "%s", r.out);
    json_decref(j);
}

TEST(bench_vs_torch_ends_if_the_first_losses_differ)
{
    test_run r =
        test_sh("%s$COHORT train data=digits model=mlp trainer.max_steps=1 run.dir=made console=quiet "
                "test=false trainer.eval_every=0 && $COHORT ckpt export made --out weights >/dev/null &&\n"
                "TMPDIR=$PWD $COHORT bench vs-torch --task digits-mlp --python ./stand-in --script s.py "
                "--rounds 1 --steps 3",
                stand_in);

    CHECK(r.status == 1 && test_contains(r.out, "and 1.5 in PyTorch: not the same computation"), "%d %s",
          r.status, r.out);
}

/* --- with PyTorch --------------------------------------------------------------------------------------- */
static const char *python(void)
{
    const char *found = getenv("COHORT_PYTHON");

    if (!found || test_sh("'%s' -c 'import torch, torchvision, timm, tokenizers'", found).status != 0)
        test_skip("COHORT_PYTHON names no Python with torch, torchvision, timm and tokenizers");
    return found;
}

/* `flags` may be a task's --data. */
static void try_task(const char *task, const char *flags)
{
    test_run r = test_sh("TMPDIR=$PWD $COHORT bench vs-torch --python '%s' --task %s --rounds 1 --steps 2 %s "
                         "2>talk || cat talk",
                         python(), task, flags);
    json_t *j = answer_of(&r);

    CHECK(number(j, "ratio") > 0 && number(j, "memory_ratio") > 0, "%s", r.out);
    test_note("%s: ratio %.3g, cpu_ratio %.3g", task, number(j, "ratio"),
              json_number_value(json_object_get(j, "cpu_ratio")));
    json_decref(j);
}

static void try_task_on(const char *task, const char *set)
{
    const char *data = getenv("COHORT_DATA");
    char folder[4096], flags[4200];

    snprintf(folder, sizeof folder, "%s/%s", data ? data : test_repo("../shared/data"), set);
    if (access(folder, R_OK) != 0)
        test_skip("no %s: set COHORT_DATA to a folder with %s/ in it", folder, set);
    snprintf(flags, sizeof flags, "--batch 4 --data '%s'", folder);
    try_task(task, flags);
}

TEST_LONG_WITHIN(bench_vs_torch_runs_resnets, 600)
{
    try_task("resnet18", "--batch 16 --size 32");
    try_task("resnet50", "--batch 16 --size 32");
}

TEST_LONG_WITHIN(bench_vs_torch_runs_vision_transformers, 900)
{
    try_task("vit_tiny", "--batch 8");
    try_task("vit_base", "--batch 4 --size 64");
}

TEST_LONG_WITHIN(bench_vs_torch_runs_the_small_tasks, 600)
{
    try_task("digits-mlp", "");
    try_task("digits-cnn", "");
    try_task("lm", "--batch 8 --size 16");
    try_task("start", "");
    try_task("exchange", "");
}

TEST_LONG_WITHIN(bench_vs_torch_runs_transformers, 1200)
{
    try_task_on("transformer-buckets", "en-it");
    try_task_on("transformer-guide", "en-it");
}

TEST_LONG_WITHIN(bench_vs_torch_runs_movielens, 300)
{
    try_task_on("movielens", "ml-latest-small");
}
