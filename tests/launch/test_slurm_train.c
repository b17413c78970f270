/* `cohort train` on two nodes of a real Slurm, with the batch script of docs/schedulers.md: the job is
 * pre-empted, requeued, and ends with the weights of one undisturbed host. */
#include "launch/slurm.h"

#include "base/clock.h"

#define TRAINING                                                                                             \
    "data=digits model=cnn trainer.slices=16 trainer.devices=1 trainer.threads=1 trainer.max_epochs=24"

static bool said(void *words)
{
    return test_sh("grep -q -e '%s' job.out", (const char *)words).status == 0;
}

static bool queue_empty(void *unused)
{
    test_run r = test_sh("squeue -h -o %%i");
    bool none = r.status == 0 && !*r.out;

    free(r.out);
    return none;
}

/* The page's script, byte for byte. */
static void take_script(void)
{
    test_run r = test_sh("sed -n '/^```bash/,/^```/p' %s | grep -v '^```' > train.sbatch;"
                         " grep -c 'scontrol requeue' train.sbatch;"
                         " mkdir bin && ln -s $COHORT bin/cohort",
                         test_repo("docs/schedulers.md"));
    char path[4096];

    CHECK(r.status == 0 && atoi(r.out) == 1, "the script of the page: %s", r.out);
    free(r.out);
    snprintf(path, sizeof path, "%s/bin:%s", getenv("TMPDIR"), getenv("PATH"));
    setenv("PATH", path, 1);
}

static void submit(const char *line)
{
    test_run r = test_sh("%s", line);

    CHECK(r.status == 0, "%s: %s", line, r.out);
    free(r.out);
}

TEST_LONG_WITHIN(a_preempted_training_of_slurm_is_requeued_and_ends_with_the_weights_of_one_host, 240)
{
    slurm_up();
    take_script();
    submit("sbatch -o job.out train.sbatch " TRAINING);
    test_until(said, "epoch 2/24", 40, "the training on two nodes");
    double began = co_now_s();
    submit("sbatch -p urgent -N2 -o urgent.out --wrap 'touch urgent.ran'");
    test_until(said, "continuing", 150, "the requeued training");
    test_note("it continued %.0f s after the job that pre-empted it was submitted", co_now_s() - began);
    CHECK(access("urgent.ran", F_OK) == 0, "the other job has not run");
    test_until(queue_empty, NULL, 60, "the end of the training");
    slurm_down();
    test_run r = test_sh("cohort train " TRAINING " run.dir=one > one.out 2>&1;"
                         " grep -h weights_sha256 one/summary.json runs/*/summary.json | sort -u | wc -l;"
                         " grep -c 'Exited with exit code 75' job.out; ls runs | wc -l; cat job.out");
    CHECK(strncmp(r.out, "1\n2\n1\n", 6) == 0, "one hash, two hosts that ended with 75, one run: %s", r.out);
    free(r.out);
}
