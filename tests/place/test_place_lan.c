/* `cohort launch` without flags about hosts, on hosts that are network namespaces: RANK and WORLD_SIZE, URLs,
 * Kubeflow's variables, pods. */
#include "launch/hosts.h"

static const char place[] = " --no-python sh -c 'echo place $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE"
                            " $GROUP_RANK/$GROUP_WORLD_SIZE token=$COHORT_TOKEN.'";

/* Checks that both launchers ended with status 0, each with its two workers. */
static void both_ran(const pid_t pid[2])
{
    char want[100];

    for (int i = 0; i < 2; i++) {
        int status = test_wait(pid[i], 30);
        CHECK(status == 0, "host %d: status %d: %s", i, status, output(i));
        for (int local = 0; local < 2; local++) {
            snprintf(want, sizeof want, "place %d/4 %d/2 %d/2 token=.", 2 * i + local, local, i);
            CHECK(strstr(output(i), want), "host %d lacks \"%s\": %s", i, want, output(i));
        }
    }
}

static void run_both(const ns_lan *lan, const char *format, const char *flags, const char *said)
{
    char env[500], args[500];
    pid_t pid[2];

    for (int i = 0; i < 2; i++) {
        snprintf(env, sizeof env, "%s ", token_env());
        for (const char *f = format; *f; f++) /* # is the host's number */
            snprintf(env + strlen(env), sizeof env - strlen(env), "%c", *f == '#' ? '0' + i : *f);
        snprintf(args, sizeof args, "%s%s", flags, place);
        pid[i] = launch(lan, i, env, args);
    }
    both_ran(pid);
    CHECK(strstr(output(1), said), "not said: %s", output(1));
    CHECK(strstr(format, "PET_") || !strstr(output(0), "with --node-rank="), "a rank that nobody typed: %s",
          output(0));
}

TEST(hosts_meet_by_what_their_environment_says)
{
    ns_lan lan = ns_open(2);

    run_both(&lan, "RANK=# WORLD_SIZE=2 MASTER_ADDR=10.77.0.1 MASTER_PORT=2901", "--nproc-per-node=2",
             "2 hosts, this is 1");
    CHECK(strstr(output(1), "WORLD_SIZE=2 was taken as hosts"), "%s", output(1));
    run_both(&lan, "RANK=# WORLD_SIZE=4 DIST_URL=tcp://10.77.0.1:2902", "--nproc-per-node=2 --nnodes=2",
             "WORLD_SIZE=4 was taken as workers: 2 hosts x 2");
    run_both(&lan, "RANK=#", "--nproc-per-node=2 --nnodes=2 --rdzv-endpoint=tcp://10.77.0.1:2903", "");
    run_both(&lan, "NODE_RANK=# WORLD_SIZE=2 MASTER_ADDR=10.77.0.1", "--nproc-per-node=2",
             "NODE_RANK and WORLD_SIZE");
}

TEST(pods_of_kubeflow_meet_by_its_variables)
{
    ns_lan lan = ns_open(2);

    run_both(&lan, /* PyTorchJob */
             "MASTER_ADDR=10.77.0.1 MASTER_PORT=23456 WORLD_SIZE=4 RANK=# PET_NNODES=2 PET_NPROC_PER_NODE=2"
             " PET_NODE_RANK=#",
             "", "WORLD_SIZE=4 was taken as workers: 2 hosts x 2");
    run_both(&lan, /* its elastic form */
             "PET_RDZV_BACKEND=c10d PET_RDZV_ENDPOINT=10.77.0.1:23457 PET_RDZV_ID=job PET_NNODES=2:2 "
             "PET_NPROC_PER_NODE=2"
             " PET_MAX_RESTARTS=3",
             "", "");
    run_both(
        &lan, /* TrainJob */
        "JOB_COMPLETION_INDEX=# PET_NNODES=2 PET_NPROC_PER_NODE=2 PET_NODE_RANK=# PET_MASTER_ADDR=10.77.0.1"
        " PET_MASTER_PORT=29500",
        "", "");
}

/* Starts a pod on host i, with its own host name and its own /etc/hosts. */
static pid_t pod(const ns_lan *lan, int i, int index, const char *env)
{
    char out[16];

    snprintf(out, sizeof out, "out%d", i);
    CHECK(test_sh("echo '10.77.0.%d train-%d.sub.default.svc.cluster.local train-%d' > hosts%d", i + 1, index,
                  index, i)
                  .status == 0,
          "hosts");
    CHECK(test_sh("printf '#!/bin/sh\\nhostname train-%d && mount --bind hosts%d /etc/hosts && exec "
                  "\"$@\"\\n' > pod%d;"
                  " chmod +x pod%d",
                  index, i, i, i)
                  .status == 0,
          "pod");
    ns_enter(lan, i);
    pid_t pid = test_spawn(
        out, "JOB_COMPLETION_INDEX=%d %s TMPDIR=$PWD exec unshare -um ./pod%d %s launch --nproc-per-node=2%s",
        index, env, i, test_cohort(), place);
    ns_leave(lan);
    return pid;
}

static bool waits(void *unused)
{
    return access("out1", F_OK) == 0 && strstr(output(1), "not yet at train-0.sub.default.svc.cluster.local");
}

TEST(pods_of_an_indexed_job_wait_for_the_name_of_the_first)
{
    ns_lan lan = ns_open(2);
    pid_t pid[2];
    char env[200];

    if (test_sh("unshare -um true").status != 0)
        test_skip("no namespaces for host names and mounts here");
    pid[1] = pod(&lan, 1, 1, "PET_NNODES=2");
    int status = test_wait(pid[1], 20);
    CHECK(status == 2 && strstr(output(1), "COHORT_TOKEN is not set") && strstr(output(1), "secretKeyRef"),
          "status %d: %s", status, output(1));

    snprintf(env, sizeof env, "PET_NNODES=2 %s", token_env());
    pid[1] = pod(&lan, 1, 1, env);
    test_until(waits, NULL, 20, "the second pod to say that it waits for a name");
    pid[0] = pod(&lan, 0, 0, env);
    CHECK(test_sh("cat hosts0 >> hosts1").status == 0, "the name server");
    both_ran(pid);
    CHECK(strstr(output(0), "pod 0 of an Indexed Job: 2 hosts, this is 0 (train-0)"), "%s", output(0));
}

TEST(a_pod_whose_index_has_two_digits_meets_the_first)
{
    ns_lan lan = ns_open(2);
    char env[200];

    if (test_sh("unshare -um true").status != 0)
        test_skip("no namespaces for host names and mounts here");
    snprintf(env, sizeof env, "PET_NNODES=2:12 PET_RDZV_CONF=last_call_timeout=0.3 %s", token_env());
    pid_t pid[2] = {pod(&lan, 0, 0, env), pod(&lan, 1, 11, env)};
    CHECK(test_sh("cat hosts0 >> hosts1").status == 0, "the name server");
    both_ran(pid);
}

TEST(a_launch_inside_a_worker_starts_by_itself)
{
    test_run r = test_sh(
        "RANK=1 WORLD_SIZE=2 $COHORT launch --standalone --nproc-per-node=2 $COHORT launch --nproc-per-node=2"
        " --no-python sh -c 'echo place $RANK/$WORLD_SIZE.'");

    CHECK(r.status == 0 && strstr(r.out, "place 1/2.") && strstr(r.out, "of another launch"), "status %d: %s",
          r.status, r.out);
    free(r.out);
}
