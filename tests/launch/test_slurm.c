/* `cohort launch` inside a real Slurm with two nodes (slurm.h).
 * Each test starts it in its folder and ends it. */
#include "launch/slurm.h"

#include "base/clock.h"
#include "launch/worker.h"

/* A worker that prints its place. */
static void up_with_place(void)
{
    slurm_up();
    script("place", "#!/bin/sh\n"
                    "echo place $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK/$GROUP_WORLD_SIZE"
                    " $MASTER_ADDR token=$COHORT_TOKEN.\n");
}

/* Allocates both nodes for all steps of a test: with a job per step, each would wait for the one before. */
static void take_nodes(void)
{
    test_run r = test_sh("salloc -N2 --no-shell 2>&1");
    const char *at = strstr(r.out, "job allocation ");

    CHECK(r.status == 0 && at, "salloc: %s", r.out);
    setenv("JOB", at + strlen("job allocation "), 1);
    char *job = getenv("JOB");
    job[strspn(job, "0123456789")] = '\0';
}

static void has_places(const char *text, int n, int per_node)
{
    char want[100];

    for (int i = 0; i < n; i++) {
        snprintf(want, sizeof want, "place %d/%d %d/%d %d/%d 127.0.0.1 token=.", i, n, i % per_node, per_node,
                 i / per_node, n / per_node);
        CHECK(strstr(text, want), "no \"%s\" in: %s", want, text);
    }
}

/* Every task refuses at once; the message has both values and the command line that works. */
static void refused(const char *srun, const char *flags, const char *words, const char *line)
{
    test_run r = test_sh("srun --jobid=$JOB -N2 %s $COHORT launch %s ./place", srun, flags);

    CHECK(r.status == 2 && strstr(r.out, words) && strstr(r.out, line), "status %d: %s", r.status, r.out);
    test_note("%s refused in %.2f s", flags, r.secs);
    CHECK(r.secs < 5, "took %.2f s", r.secs);
}

TEST(slurm_steps_run_over_two_nodes_without_a_token_and_mismatches_are_refused)
{
    up_with_place();
    take_nodes();
    test_run r = test_sh("srun --jobid=$JOB -N2 -n2 $COHORT launch --nproc-per-node=2 ./place");
    CHECK(r.status == 0, "status %d: %s", r.status, r.out);
    has_places(r.out, 4, 2);
    CHECK(strstr(r.out, "[node1:") && strstr(r.out, "[node2:"), "no names of nodes: %s", r.out);
    CHECK(strstr(r.out, "step 0: 2 hosts, this is 0 (node1); they meet at 127.0.0.1:"), "not said: %s", r.out);
    CHECK(!strstr(r.out, "COHORT_TOKEN"), "a token on the screen: %s", r.out);
    test_note("two nodes, two workers each: %.2f s", r.secs);

    r = test_sh("srun --jobid=$JOB -N2 -n4 --ntasks-per-node=2 $COHORT launch ./place");
    CHECK(r.status == 0 && strstr(r.out, "4 tasks, a worker each"), "status %d: %s", r.status, r.out);
    has_places(r.out, 4, 2);

    r = test_sh("COHORT_TOKEN=$($COHORT token) srun --jobid=$JOB -N2 -n2 $COHORT launch ./place");
    CHECK(r.status == 0, "with a token of one's own: status %d: %s", r.status, r.out);
    has_places(r.out, 2, 1);

    script("fails", "#!/bin/sh\n[ $RANK = 3 ] && exit 7; exec sleep 50\n");
    r = test_sh("srun --jobid=$JOB -N2 -n2 $COHORT launch --nproc-per-node=2 ./fails");
    CHECK(r.status == 7 && strstr(r.out, "rank 3 on node2"), "status %d: %s", r.status, r.out);

    refused("-n4 --ntasks-per-node=2", "--nproc-per-node=3",
            "2 tasks on a host, and each would start 3 workers",
            "srun --nodes=2 --ntasks=2 --ntasks-per-node=1 cohort launch --nproc-per-node=3");
    refused("-n2", "--nnodes=3", "has 2 hosts, but --nnodes=3",
            "srun --nodes=3 --ntasks=3 --ntasks-per-node=1");
    slurm_down();
}

/* The parts are those of the link's own tests (tests/link/mpi_part.h). */
static void carries(const char *mpi)
{
    test_run r =
        test_sh("srun --jobid=$JOB -N2 -n2 --mpi=%s env TEST_LINK_MPI=choose %s && srun --jobid=$JOB -N2 -n2 "
                "--mpi=%s env TEST_LINK_MPI=traffic %s",
                mpi, worker_program(), mpi, worker_program());

    CHECK(r.status == 0 && strstr(r.out, "auto: link: mpi (") && strstr(r.out, "host 0 of 2: all is well") &&
              strstr(r.out, "host 1 of 2: all is well"),
          "--mpi=%s: status %d: %s", mpi, r.status, r.out);
    test_note("--mpi=%s: %.2f s", mpi, r.secs);
    free(r.out);
}

TEST(srun_with_pmix_gives_the_link_open_mpi_and_with_pmi2_mpich)
{
    if (test_sh("command -v mpirun.openmpi && command -v mpirun.mpich").status != 0)
        test_skip("no mpirun.openmpi or no mpirun.mpich here (packages openmpi-bin, mpich)");
    up_with_place();
    take_nodes();
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* MPI does not free all its memory */
    carries("pmi2");
    if (test_sh("ls /usr/lib/*/pmix2/lib/libpmix.so").status == 0)
        carries("pmix");
    else
        test_note("--mpi=pmix: not tried, Slurm's plugin does not find libpmix.so (package libpmix-dev)");
    slurm_down();
}

TEST(a_batch_script_without_srun_starts_a_step_by_itself)
{
    char *text;
    size_t len;

    up_with_place();
    test_run r = test_sh(
        "printf '#!/bin/sh\\n%%s launch --nproc-per-node=2 ./place; echo $? > batch.end\\n' $COHORT > batch;"
        " sbatch -N2 -o batch.out batch");
    CHECK(r.status == 0, "sbatch: %s", r.out);
    test_until(answers, "batch.end", 30, "the batch script");
    CHECK_OK(co_fs_read(&text, &len, "batch.out", 1 << 20));
    CHECK(strstr(text, "starting one: srun --nodes=2 --ntasks=2 --ntasks-per-node=1"), "not said: %s", text);
    has_places(text, 4, 2);
    slurm_down();
}

static bool all_run(void *unused)
{
    return test_sh("test -e run.0 -a -e run.1 -a -e run.2 -a -e run.3").status == 0;
}

/* To the newest step: the one before it may still be listed. A try that fails has signalled nobody. */
static bool sent(void *sig)
{
    return test_sh(
               "scancel --signal=%s $(squeue -h -s -j $JOB -o %%i | grep -v ext | sort -t. -k2n | tail -1)",
               (const char *)sig)
               .status == 0;
}

static void signalled(const char *sig)
{
    char *text, want[64];
    size_t len;

    CHECK(test_sh("rm -f run.*").status == 0, "rm");
    pid_t pid =
        test_spawn("step.out", "exec srun --jobid=$JOB -N2 -n2 $COHORT launch --nproc-per-node=2 ./waits");
    test_until(all_run, NULL, 20, "four workers");
    test_until(sent, (void *)(uintptr_t)sig, 20, "scancel");
    int status = test_wait(pid, 20);
    CHECK_OK(co_fs_read(&text, &len, "step.out", 1 << 20));
    CHECK(status == 75, "status %d: %s", status, text);
    for (int i = 0; i < 4; i++) {
        snprintf(want, sizeof want, "%s came to %d.", sig, i);
        CHECK(strstr(text, want), "no \"%s\" in: %s", want, text);
    }
    CHECK(!strstr(text, "killed"), "somebody was killed: %s", text);
}

TEST(a_signal_of_slurm_reaches_every_worker_of_every_node)
{
    up_with_place();
    take_nodes();
    script("waits",
           "#!/bin/bash\n"
           "trap 'echo USR1 came to $RANK.; exit 0' USR1; trap 'echo TERM came to $RANK.; exit 0' TERM\n"
           "touch run.$RANK; while :; do read -t 1 < <(:) || sleep 0.05; done\n");
    signalled("USR1");
    signalled("TERM");
    slurm_down();
}
