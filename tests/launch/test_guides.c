/* The launch lines of guides that people follow, run unchanged on two hosts. Only torchrun or python -m
 * torch.distributed.launch is replaced by `cohort launch`, and the addresses by those of the hosts. */
#include "hosts.h"

#include <signal.h>

/* Makes a script with this name in the test's folder; it prints its place in the job and its arguments. */
static void script(const char *name)
{
    test_run have = test_sh("python3 -c 1");
    FILE *f;

    if (have.status)
        test_skip("no python3");
    free(have.out);
    f = fopen(name, "we");
    CHECK(f, "%s: %m", name);
    fputs("import os, sys\n"
          "e = os.environ\n"
          "print('place', '/'.join(e[k] for k in ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE',"
          " 'GROUP_RANK')), 'at', e['MASTER_ADDR'], 'run', e['TORCHELASTIC_RUN_ID'], 'got', sys.argv)\n"
          "if os.path.exists('hold'):\n"
          "    open('began' + e['RANK'], 'w').close()\n"
          "    open('hold').read()\n",
          f);
    CHECK(fclose(f) == 0, "%s: %m", name);
}

static void has(int i, const char *want)
{
    CHECK(strstr(output(i), want), "host %d lacks \"%s\":\n%s", i, want, output(i));
}

TEST(the_lines_of_the_kubernetes_guide_run_and_its_misplaced_flag_reaches_the_script)
{
    static const char line[] = "--nnodes=2 --node_rank=%d --nproc_per_node=2 --master_addr=10.77.0.1 "
                               "--master_port=29500 --wandb_run_group=go-sdk-1 main.py "
                               "/wandb/sh22-dist/tiny-imagenet-200/";
    ns_lan lan = ns_open(2);
    char text[400];
    pid_t pid[2];

    script("main.py");
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, line, i);
        pid[i] = launch(&lan, i, token_env(), text);
    }
    for (int i = 0; i < 2; i++) {
        int status = test_wait(pid[i], 30);
        CHECK(status == 0, "host %d: %d\n%s", i, status, output(i));
        has(i, "--wandb_run_group=go-sdk-1");
        for (int local = 0; local < 2; local++) {
            snprintf(text, sizeof text,
                     "place %d/4/%d/2/%d at 10.77.0.1 run none got ['main.py', '--wandb_run_group=go-sdk-1', "
                     "'/wandb/sh22-dist/tiny-imagenet-200/']",
                     2 * i + local, local, i);
            has(i, text);
        }
    }
    test_note("%.*s", (int)strcspn(output(1), "\n"), output(1));
}

#define MASTER                                                                                               \
    "--nproc_per_node=2 --nnodes=1 --rdzv_id=456 --rdzv_backend=c10d --rdzv_endpoint=127.0.0.1:48123 "       \
    "train.py --batch_size 8 --model_folder \"/mnt/training-data/weights\""
#define SLAVE                                                                                                \
    "--nproc_per_node=2 --nnodes=2 --rdzv_id=456 --rdzv_backend=c10d --rdzv_endpoint=10.77.0.1:48123 "       \
    "train.py --batch_size 8 --model_folder \"/mnt/training-data/weights\""

TEST(the_master_line_of_the_torchrun_guide_is_for_one_host_and_both_sides_say_so)
{
    ns_lan lan = ns_open(2);

    script("train.py");
    CHECK(test_sh("mkfifo hold").status == 0, "mkfifo");
    pid_t master = launch(&lan, 0, token_env(), MASTER);
    test_until(is_file_there, "began0", 20, "rank 0");
    test_until(is_file_there, "began1", 20, "rank 1");
    double began = co_now_s();
    pid_t slave = launch(&lan, 1, token_env(), SLAVE);
    int status = test_wait(slave, 30);
    CHECK(status == 2 && co_now_s() - began < 10, "%d after %.1f s: %s", status, co_now_s() - began, output(1));
    has(1, "it was started with --nnodes=1, this one with --nnodes=2");
    has(1, "start it with --nnodes=2");
    CHECK(test_sh("echo > hold").status == 0, "hold");
    status = test_wait(master, 30);
    CHECK(status == 0, "%d: %s", status, output(0));
    has(0, "it was started with --nnodes=2, this one with --nnodes=1");
    has(0, "place 1/2/1/2/0 at 127.0.0.1 run 456 got ['train.py', '--batch_size', '8', '--model_folder', "
           "'/mnt/training-data/weights']");
    test_note("%s", strstr(output(1), "cohort: host"));
}

TEST(the_slave_line_of_the_torchrun_guide_without_a_token_says_where_it_would_be_and_why_it_is_not)
{
    ns_lan lan = ns_open(2);

    script("train.py");
    pid_t slave = launch(&lan, 1, "", SLAVE);
    int status = test_wait(slave, 30);
    CHECK(status == 2, "%d: %s", status, output(1));
    has(1, "A first host that shows none was started for itself alone: with --nnodes=1, or at 127.0.0.1");
}

/* Runs the command lines that both sides are told to type. */
TEST(the_corrected_lines_of_the_torchrun_guide_run)
{
    ns_lan lan = ns_open(2);
    char *master = strdup(MASTER), text[200];
    pid_t pid[2];

    script("train.py");
    *strstr(master, "1 --rdzv_id") = '2';
    pid[0] = launch(&lan, 0, token_env(), master);
    pid[1] = launch(&lan, 1, token_env(), SLAVE);
    free(master);
    for (int i = 0; i < 2; i++) {
        int status = test_wait(pid[i], 30);
        CHECK(status == 0, "host %d: %d: %s", i, status, output(i));
        snprintf(text, sizeof text, "place %d/4/1/2/%d at 10.77.0.1 run 456", 2 * i + 1, i);
        has(i, text);
    }
}

TEST(the_line_of_the_pods_guide_runs_on_one_host)
{
    ns_lan lan = ns_open(1);
    char text[200];

    script("multigpu_torchrun.py");
    pid_t pid = launch(&lan, 0, "", "--standalone --nproc_per_node=4 multigpu_torchrun.py 50 10");
    int status = test_wait(pid, 30);
    CHECK(status == 0, "%d: %s", status, output(0));
    for (int rank = 0; rank < 4; rank++) {
        snprintf(text, sizeof text, "place %d/4/%d/4/0 at localhost", rank, rank);
        has(0, text);
    }
    has(0, "got ['multigpu_torchrun.py', '50', '10']");
}
