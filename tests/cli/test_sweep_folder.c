/* `cohort train -m` in a folder that holds a sweep already: a job's results are listed only under the words
 * that they were trained with. */
#include "cli/runs.h"

#define SWEEP "$COHORT train -m " SMALL " run.dir=all "

/* The line is refused before anything starts, and the folder stays as it was. */
static void refused(const char *words, const char *const *says)
{
    test_run before = test_sh("cat all/multirun.yaml all/multirun.json"), after;
    test_run r = test_sh("%s", words);

    CHECK(r.status == 2, "%s: %d: %s", words, r.status, r.out);
    CHECK(!test_contains(r.out, "done"), "%s: %s", words, r.out);
    for (; *says; says++)
        CHECK(test_contains(r.out, *says), "%s: not \"%s\": %s", words, *says, r.out);
    after = test_sh("cat all/multirun.yaml all/multirun.json");
    CHECK(!strcmp(before.out, after.out), "%s: the record was changed: %s", words, after.out);
    free(before.out);
    free(after.out);
    free(r.out);
}

#define REFUSED(words, ...) refused(words, (const char *const[]){__VA_ARGS__, NULL})

TEST(a_sweep_with_other_words_than_its_folder_is_refused_with_both)
{
    succeeds(SWEEP "optim.lr=0.1,0.01,0.001 trainer.max_steps=3");
    REFUSED(SWEEP "optim.lr=0.1,0.02 trainer.max_steps=9 ckpt_path=auto",
            "job 1 of this line has optim.lr=0.02, but all/1 was made with optim.lr=0.01");
    REFUSED("$COHORT train -m run.dir=all optim.lr=0.1,0.02 ckpt_path=auto",
            "job 1 of this line has optim.lr=0.02, but all/1 was made with optim.lr=0.01");
    REFUSED(SWEEP "optim.lr=1,0.1,0.01,0.001 trainer.max_steps=3 ckpt_path=auto",
            "job 0 of this line has optim.lr=1, but all/0 was made with optim.lr=0.1",
            "job 2 of this line has optim.lr=0.01, but all/2 was made with optim.lr=0.001");
    REFUSED(SWEEP "optim.lr=0.1,0.01,0.001 seed=7 trainer.max_steps=3 ckpt_path=auto",
            "job 2 of this line has seed=7, but all/2 was made with seed=0");
    REFUSED(SWEEP "optim.lr=0.1,0.02 trainer.max_steps=9", "all/0 holds a run already",
            "all/1 holds a run already");
}

TEST(a_sweep_over_a_key_that_may_change_is_compared_with_its_folder)
{
    succeeds(SWEEP "log_every=1,2 trainer.max_steps=3");
    REFUSED(SWEEP "log_every=1,3 trainer.max_steps=3 ckpt_path=auto",
            "job 1 of this line has log_every=3, but all/1 was made with log_every=2");
}

TEST(a_sweep_goes_on_in_its_folder_with_more_steps_and_more_jobs)
{
    succeeds(SWEEP "optim.lr=0.1,0.01 trainer.max_steps=3");
    succeeds(SWEEP "optim.lr=0.1,0.01,0.001 trainer.max_steps=6 ckpt_path=auto");
    /* with their own words */
    succeeds("$COHORT train -m run.dir=all optim.lr=0.1,0.01,0.001 ckpt_path=last");
    succeeds("$COHORT train " SMALL " optim.lr=0.01 trainer.max_steps=6 run.dir=alone");
    char alone[65], job[65];
    sha_of_run(alone, "alone");
    sha_of_run(job, "all/1");
    CHECK(!strcmp(alone, job), "other bits");
    json_t *rows = json_of("%s/multirun.json", "all");
    CHECK(json_array_size(rows) == 3, "%zu rows", json_array_size(rows));
    json_decref(rows);
}

TEST(a_refused_job_is_failed_without_the_figures_of_an_earlier_start)
{
    succeeds(SWEEP "seed=1,2 trainer.max_steps=5");
    test_run r = test_sh(SWEEP "seed=1,2 trainer.max_steps=2 ckpt_path=auto"); /* the checkpoints have five */
    CHECK(r.status == 1, "%d: %s", r.status, r.out);
    free(r.out);
    json_t *rows = json_of("%s/multirun.json", "all"), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        CHECK(!strcmp(text_in(row, "status"), "failed"), "job %zu is %s", i, text_in(row, "status"));
        CHECK(!text_in(row, "weights_sha256")[0] && !json_object_size(json_object_get(row, "metrics")),
              "job %zu has figures", i);
    }
    json_decref(rows);
}
