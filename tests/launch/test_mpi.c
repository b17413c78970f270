/* `cohort launch` under real mpiruns: Open MPI's (PMIx) and MPICH's (PMI-1). "Several hosts" are one machine
 * with two names; mpirun cannot tell the difference. */
#include "harness.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static void script(const char *name, const char *text)
{
    FILE *f = fopen(name, "w");

    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0, "%s", name);
    CHECK(test_sh("chmod +x %s", name).status == 0, "chmod %s", name);
}

static void needs(const char *program, const char *package)
{
    if (test_sh("command -v %s", program).status != 0)
        test_skip("no %s here (package %s)", program, package);
    test_may_leak();
    CHECK(test_sh("echo leak:libpmix > lsan").status == 0,
          "lsan"); /* the MPI library does not free all its memory */
    test_run here = test_sh("printf 'suppressions=%%s/lsan:print_suppressions=0' \"$PWD\"");
    setenv("LSAN_OPTIONS", here.out, 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_oob_tcp_if_include", "lo", 1);
    setenv("TMPDIR", "/tmp", 1); /* Open MPI's sockets need a short path */
    script("place", "#!/bin/sh\n"
                    "echo place $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK/$GROUP_WORLD_SIZE"
                    " token=$COHORT_TOKEN pmi=$PMI_FD.\n");
    script("gpu", "#!/bin/sh\necho gpu $CUDA_VISIBLE_DEVICES is $LOCAL_RANK of $RANK\n");
    script("fails", "#!/bin/sh\n[ $RANK = 1 ] && exit 7; exec sleep 50\n");
    script("shell", "#!/bin/sh\n" /* a remote shell that runs the command on this machine */
                    "while [ \"${1#-}\" != \"$1\" ]; do shift; done\nshift\nexec /bin/sh -c \"$*\"\n");
}

/* Checks that there are `n` workers, the right number on each host. */
static void runs(const char *line, int n, int per_host)
{
    test_run r = test_sh("%s", line);
    char want[100];

    CHECK(r.status == 0, "%s: status %d: %s", line, r.status, r.out);
    for (int i = 0; i < n; i++) {
        snprintf(want, sizeof want, "place %d/%d %d/%d %d/%d token= pmi=.", i, n, i % per_host, per_host,
                 i / per_host, n / per_host);
        CHECK(strstr(r.out, want), "%s: no \"%s\" in: %s", line, want, r.out);
    }
    CHECK(!strstr(r.out, "COHORT_TOKEN"), "a token on the screen: %s", r.out);
    test_note("%s: %.2f s", line, r.secs);
    free(r.out);
}

/* The job's name: the same for all launchers of one mpirun and different for another mpirun. Log folders
 * carry it. */
static void has_own_id(const char *mpirun)
{
    test_run r = test_sh("for i in 1 2; do %s $COHORT launch --log-dir=logs ./place || exit 1; done; "
                         "ls logs | sed 's/.........$//' | sort | uniq -c | grep -c '^ *2 mpi-'; rm -r logs",
                         mpirun);

    CHECK(r.status == 0 && strstr(r.out, "\n2\n"), "%s: %s", mpirun, r.out);
    free(r.out);
}

/* On a busy machine MPICH's mpirun itself sometimes dies of SIGPIPE when all its processes end at once; then
 * the test runs it again. */
static void ends(const char *line, int status, const char *words)
{
    test_run r = test_sh("%s", line);

    for (int again = 0; r.status == 128 + SIGPIPE && again < 5; again++) {
        free(r.out);
        r = test_sh("%s", line);
    }
    CHECK(r.status == status && strstr(r.out, words), "%s: status %d: %s", line, r.status, r.out);
    free(r.out);
}

TEST(mpirun_of_open_mpi_starts_a_worker_for_each_task_or_a_launcher_for_each_host)
{
    needs("mpirun.openmpi", "openmpi-bin");
    runs("mpirun.openmpi --oversubscribe -n 2 $COHORT launch ./place", 2, 2);
    runs("mpirun.openmpi --oversubscribe -n 4 $COHORT launch ./place", 4, 4);
    has_own_id("mpirun.openmpi --oversubscribe -n 2");
    runs("mpirun.openmpi -n 1 $COHORT launch --nproc-per-node=2 ./place", 2, 2);
    runs("mpirun.openmpi --mca plm rsh --mca plm_rsh_agent $PWD/shell --host localhost:1,127.0.0.2:1 -n 2 "
         "--map-by"
         " ppr:1:node $COHORT launch --nproc-per-node=2 ./place",
         4, 2);
    ends("mpirun.openmpi --oversubscribe -n 2 $COHORT launch --nproc-per-node=2 ./place", 2,
         "mpirun -n 1 --map-by ppr:1:node cohort launch --nproc-per-node=2");
    ends("mpirun.openmpi --oversubscribe -n 2 $COHORT launch ./fails", 7, "rank 1");
}

TEST(mpirun_of_mpich_starts_a_worker_for_each_task_or_a_launcher_for_each_host)
{
    needs("mpirun.mpich", "mpich");
    runs("mpirun.mpich -n 2 $COHORT launch ./place", 2, 2);
    runs("mpirun.mpich -n 4 $COHORT launch ./place", 4, 4);
    has_own_id("mpirun.mpich -n 2");
    runs("mpirun.mpich -n 1 $COHORT launch --nproc-per-node=2 ./place", 2, 2);
    runs("mpirun.mpich -launcher fork -hosts 127.0.0.1,127.0.0.2 -n 2 -ppn 1 $COHORT launch "
         "--nproc-per-node=2 ./place",
         4, 2);
    ends("mpirun.mpich -n 2 $COHORT launch --nproc-per-node=2 ./place", 2,
         "mpirun -n 1 -ppn 1 cohort launch --nproc-per-node=2");
    ends("mpirun.mpich -n 2 $COHORT launch ./fails", 7, "rank 1");
    ends("CUDA_VISIBLE_DEVICES=4,5 mpirun.mpich -n 2 $COHORT launch --virtual-local-rank ./gpu", 0,
         "gpu 5 is 0 of 1");
    ends("CUDA_VISIBLE_DEVICES=4 mpirun.mpich -n 2 $COHORT launch --virtual-local-rank ./gpu", 0,
         "gpu 4 is 0 of 1");
}

/* Three tasks as 2 + 1: the host with one task must not conclude the layout from itself. */
static void runs_unequal(const char *line)
{
    static const char *const places[] = {"place 0/3 0/2 0/2 ", "place 1/3 1/2 0/2 ", "place 2/3 0/1 1/2 "};
    test_run r = test_sh("%s", line);

    CHECK(r.status == 0, "%s: status %d: %s", line, r.status, r.out);
    for (size_t i = 0; i < 3; i++)
        CHECK(strstr(r.out, places[i]), "%s: no \"%s\" in: %s", line, places[i], r.out);
    free(r.out);
}

TEST(mpirun_of_open_mpi_may_have_more_tasks_on_one_host_than_on_another)
{
#define UNEQUAL                                                                                              \
    "mpirun.openmpi --mca plm rsh --mca plm_rsh_agent $PWD/shell --host localhost:2,127.0.0.2:1 -n 3 "
    needs("mpirun.openmpi", "openmpi-bin");
    runs_unequal(UNEQUAL "$COHORT launch ./place");
    runs_unequal(UNEQUAL "$COHORT launch --nnodes=2 ./place");
    runs_unequal(UNEQUAL "env -u OMPI_COMM_WORLD_RANK $COHORT launch ./place"); /* as prterun does it */
    ends(UNEQUAL "$COHORT launch --nnodes=3 ./place", 2, "has 2 hosts, but --nnodes=3");
#undef UNEQUAL
}

TEST(mpirun_of_mpich_may_have_more_tasks_on_one_host_than_on_another)
{
#define UNEQUAL(hosts) "mpirun.mpich -launcher fork -hosts " hosts " -n 3 "
    needs("mpirun.mpich", "mpich");
    runs_unequal(UNEQUAL("127.0.0.1:2,127.0.0.2:1") "$COHORT launch ./place");
    runs_unequal(UNEQUAL("127.0.0.1:2,127.0.0.2:1") "$COHORT launch --nnodes=2 ./place");
    ends(UNEQUAL("127.0.0.1:2,127.0.0.2:1") "$COHORT launch --nnodes=3 ./place", 2,
         "has 2 hosts, but --nnodes=3");
    ends(UNEQUAL("127.0.0.1:1,127.0.0.2:2") "$COHORT launch --nproc-per-node=2 ./place", 2,
         "starts 2 tasks on a host");
#undef UNEQUAL
}

/* A task that never starts its launcher. Both mpiruns end all tasks when a launcher fails; MPICH's exit
 * status may be that of a task that it killed. */
static void gives_up(const char *mpirun, const char *absent)
{
    test_run r = test_sh("%s -n 2 sh -c '[ %s ] && exec sleep 30; exec $COHORT launch"
                         " --rdzv-conf=join_timeout=4 ./place'",
                         mpirun, absent);

    CHECK(r.status != 0 && strstr(r.out, "not all of the 2 tasks came"), "%s: status %d: %s", mpirun,
          r.status, r.out);
    CHECK(strstr(r.out, "waiting; not all of the 2 tasks"), "%s: it waits without a word: %s", mpirun, r.out);
    CHECK(r.secs < 15, "%s: %.1f s", mpirun, r.secs);
    free(r.out);
}

TEST(a_launcher_of_open_mpi_waits_for_the_others_as_long_as_it_was_told_to)
{
    needs("mpirun.openmpi", "openmpi-bin");
    gives_up("mpirun.openmpi --oversubscribe", "$OMPI_COMM_WORLD_RANK = 1");
}

TEST(a_launcher_of_mpich_waits_for_the_others_as_long_as_it_was_told_to)
{
    needs("mpirun.mpich", "mpich");
    gives_up("mpirun.mpich", "$PMI_RANK = 0");
}

TEST(without_a_channel_to_the_others_mpi_processes_are_refused_with_what_to_do)
{
    needs("sh", "dash");
    ends("PMI_RANK=0 PMI_SIZE=2 $COHORT launch ./place", 2, "--nnodes=2 --rdzv-endpoint=HOST:29400");
    ends("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 $COHORT launch ./place", 2, "COHORT_TOKEN");
    ends("PMI_RANK=0 PMI_SIZE=2 PMI_FD=9 $COHORT launch ./place 9<>/dev/null", 1, "PMI closed the connection");
}

/* Compares our own declarations with those of an installed header: compiles and runs a check. */
TEST(what_is_declared_of_pmix_is_what_its_header_says)
{
    static const char program[] =
        "#include <pmix.h>\n#include <stddef.h>\n#include <string.h>\n#include \"place/pmix_abi.h\"\n"
        "#define SAME(a, b) _Static_assert((a) == (b), #a)\n"
        "SAME(sizeof(abi_proc), sizeof(pmix_proc_t));\nSAME(offsetof(abi_proc, rank), offsetof(pmix_proc_t, "
        "rank));\n"
        "SAME(offsetof(abi_value, data), offsetof(pmix_value_t, data));\n"
        "_Static_assert(sizeof(abi_value) >= sizeof(pmix_value_t), \"room\");\n"
        "SAME(offsetof(abi_info, flags), offsetof(pmix_info_t, flags));\n"
        "SAME(offsetof(abi_info, value), offsetof(pmix_info_t, value));\n"
        "SAME(TYPE_BOOL, PMIX_BOOL);\nSAME(TYPE_STRING, PMIX_STRING);\n"
        "SAME(TYPE_UINT32, PMIX_UINT32);\nSAME(SCOPE_GLOBAL, "
        "PMIX_GLOBAL);\n"
        "SAME((uint32_t)RANK_WILDCARD, (uint32_t)(PMIX_RANK_WILDCARD));\nSAME(PMIX_SUCCESS, 0);\n"
        "SAME(sizeof(pmix_scope_t), 1);\nSAME(sizeof(pmix_data_type_t), 2);\n"
        "pmix_status_t (*init)(pmix_proc_t *, pmix_info_t *, size_t);\n"
        "pmix_status_t (*fence)(const pmix_proc_t *, size_t, const pmix_info_t *, size_t,\n"
        "                       pmix_op_cbfunc_t, void *);\n"
        "void (*over)(int, void *);\nSAME(OVER_AT_ONCE, PMIX_OPERATION_SUCCEEDED);\n"
        "pmix_status_t (*get)(const pmix_proc_t *, const char *, const pmix_info_t *, size_t, pmix_value_t "
        "**);\n"
        "int main(void)\n{\n"
        "    init = PMIx_Init;\n    get = PMIx_Get;\n"
        "    fence = PMIx_Fence_nb;\n    over = (pmix_op_cbfunc_t)0;\n"
        "    return strcmp(PMIX_JOB_SIZE, \"pmix.job.size\") || strcmp(PMIX_HOSTNAME, \"pmix.hname\") ||\n"
        "           strcmp(PMIX_COLLECT_DATA, \"pmix.collect\");\n}\n";
    FILE *f = fopen("check.c", "w");

    test_may_leak();
    CHECK(f && fputs(program, f) >= 0 && fclose(f) == 0, "check.c");
    test_run at = test_sh("ls /usr/lib/*/pmix2/include/pmix.h /usr/include/pmix.h 2>/dev/null | head -n 1");
    at.out[strcspn(at.out, "\n")] = '\0';
    char *slash = strrchr(at.out, '/');
    if (!slash || test_sh("command -v cc").status != 0)
        test_skip("no pmix.h or no cc here (package libpmix-dev)");
    *slash = '\0';
    test_run r = test_sh(
        "cc -D_GNU_SOURCE -I%s -I%s check.c -o check -L%s/../../lib $(ls /usr/lib/*/libpmix.so.2) && ./check",
        at.out, test_repo("src"), at.out);
    CHECK(r.status == 0, "status %d: %s", r.status, r.out);
    free(r.out);
    free(at.out);
}

/* --- trainings ------------------------------------------------------------------------------------------ */
#define SHORT_TRAINING "$COHORT train data=digits trainer.devices=1 trainer.max_steps=5"

/* Two tasks on this machine are two hosts of one training, which ends with the weights of one host. */
static void trains_together(const char *start)
{
    test_run alone = test_sh(SHORT_TRAINING " run.dir=alone"),
             both = test_sh("%s " SHORT_TRAINING " run.dir=both", start);
    const char *sha = strstr(alone.out, "weights_sha256 ");
    char hash[65];

    CHECK(alone.status == 0 && sha, "%s", alone.out);
    snprintf(hash, sizeof hash, "%.64s", sha + 15);
    CHECK(both.status == 0 && strstr(both.out, hash), "%s: %d, and not %s: %s", start, both.status, hash,
          both.out);
    CHECK(strstr(both.out, "2 tasks on this machine, each a host of its own") &&
              strstr(both.out, "view 1: 2 hosts"),
          "%s: %s", start, both.out);
    free(alone.out);
    free(both.out);
    CHECK(test_sh("rm -r alone both").status == 0, "rm");
}

TEST(tasks_of_open_mpi_on_one_machine_are_hosts_of_a_training)
{
    needs("mpirun.openmpi", "openmpi-bin");
    trains_together("mpirun.openmpi --oversubscribe -n 2");
}

TEST(tasks_of_mpich_on_one_machine_are_hosts_of_a_training)
{
    needs("mpirun.mpich", "mpich");
    trains_together("mpirun.mpich -n 2");
}

TEST(workers_of_a_launch_on_one_machine_are_hosts_of_a_training)
{
    trains_together("$COHORT launch --nproc-per-node=2 --no-python");
}

/* Without --no-python the launcher sees that the program is itself: one training with two ranks. */
TEST(a_launch_of_this_program_is_the_training_itself)
{
    test_run r = test_sh(
        "$COHORT launch --nproc-per-node=2 --log-dir=x $COHORT train data=digits trainer.max_steps=1");

    CHECK(r.status == 0 && strstr(r.out, "ranks     2 on this host") && !strstr(r.out, "view"), "%d: %s",
          r.status, r.out);
    CHECK(strstr(r.out, "--log-dir=x has no effect on a training"), "%s", r.out);
    free(r.out);
    r = test_sh("$COHORT launch --nproc-per-node=2 $COHORT train data=digits trainer.devices=3");
    CHECK(r.status == 2 && strstr(r.out, "--nproc-per-node=2 and trainer.devices=3"), "%d: %s", r.status,
          r.out);
    free(r.out);
    r = test_sh("$COHORT launch $COHORT train --nnodes=2 data=digits");
    CHECK(r.status == 2 && strstr(r.out, "--nnodes=2 is about hosts: it goes before the word train"),
          "%d: %s", r.status, r.out);
    free(r.out);
}

TEST(a_file_named_train_is_a_program_and_not_our_training)
{
    script("train", "#!/bin/sh\necho mine $*\n");
    test_run r = test_sh("$COHORT launch train data=digits");
    CHECK(r.status == 0 && strstr(r.out, "mine data=digits"), "%d: %s", r.status, r.out);
    free(r.out);
}
