/* The guides' lines for two machines, typed on two hosts of a lan: only the program's name, the addresses
 * and a model that does not exist are replaced, and a limit makes them short. Both hosts end with the
 * weights of one host. */
#include "cli/typed.h"

#include <signal.h>

#include "launch/hosts.h"

/* Starts `line` on host i, to out<i>. */
static pid_t type(const ns_lan *lan, int i, const char *env, const char *line)
{
    char out[16];

    snprintf(out, sizeof out, "out%d", i);
    ns_enter(lan, i);
    pid_t pid = test_spawn(out, "%s TMPDIR=$PWD exec $COHORT train %s", env, line);
    ns_leave(lan);
    return pid;
}

/* Types line[0] and line[1] on two hosts, and `alone` on one. */
static void same_weights(const char *const env[2], const char *const line[2], const char *alone)
{
    ns_lan lan = ns_open(2);
    pid_t pid[2];
    char both[200], hash[17] = "";

    for (int i = 0; i < 2; i++) {
        snprintf(both, sizeof both, "%s %s", env[i], token_env());
        pid[i] = type(&lan, i, both, line[i]);
    }
    for (int i = 0; i < 2; i++) {
        int status = test_wait(pid[i], 100);
        CHECK(status == 0, "host %d: %d\n%s\n%s", i, status, output(i), output(!i));
        CHECK(strstr(output(i), "view 1: 2 hosts"), "host %d is alone: %s", i, output(i));
    }
    const char *first = strstr(output(0), "weights_sha256 "), *second = strstr(output(1), ", weights ");
    CHECK(first && second && strncmp(first + 15, second + 10, 16) == 0, "%s\n%s", output(0), output(1));
    snprintf(hash, sizeof hash, "%.16s", first + 15);
    test_run r = test_sh("$COHORT train %s", alone);
    CHECK(r.status == 0 && strstr(r.out, hash), "one host has other weights than %s: %s", hash, r.out);
    free(r.out);
    r = test_sh("eval \"$(sed -n 's/^reproduce: //p' out0)\"");
    CHECK(r.status == 0 && strstr(r.out, hash), "its own line does not reproduce %s: %s", hash, r.out);
    free(r.out);
}

#define GUIDE_000(n)                                                                                         \
    "--nnodes=2 --node_rank=" n " --nproc_per_node=2 --master_addr=10.77.0.1 --master_port=29500 "           \
    "--wandb_run_group=go-sdk-1 main.py tiny-imagenet-200/ -b 4" SHORT

TEST_LONG_WITHIN(the_kubernetes_guides_two_lines_train_together, 180)
{
    put_pictures("tiny-imagenet-200");
    same_weights((const char *const[]){"", ""}, (const char *const[]){GUIDE_000("0"), GUIDE_000("1")},
                 "main.py tiny-imagenet-200/ data.batch_size=16" SHORT);
}

#define GUIDE_002                                                                                            \
    "trainer.devices=1 trainer.default_root_dir=$(date +%Y-%m-%d_%H-%M-%S)-$NODE_RANK "                      \
    "callbacks.model_checkpoint.dirpath=logs/train/runs datamodule.batch_size=64 trainer.min_epochs=1 "      \
    "trainer.max_epochs=10 model.net.model_name=resnet18 experiment=cifar trainer=ddp" SHORT
#define ENV_002(n) "export MASTER_PORT=29501 MASTER_ADDR=10.77.0.1 WORLD_SIZE=2 NODE_RANK=" n ";"

TEST_LONG_WITHIN(the_lightning_guides_two_lines_train_together, 180)
{
    put_cifar();
    same_weights(
        (const char *const[]){ENV_002("0"), ENV_002("1")},
        (const char *const[]){GUIDE_002 " trainer.num_nodes=2", GUIDE_002 " trainer.num_nodes=2"},
        "trainer.devices=1 datamodule.batch_size=64 trainer.max_epochs=10 model.net.model_name=resnet18 "
        "experiment=cifar trainer=ddp" SHORT);
}

#define GUIDE_003(nodes, at)                                                                                 \
    "--nproc_per_node=2 --nnodes=" nodes " --rdzv_id=456 --rdzv_backend=c10d --rdzv_endpoint=" at ":48123 "  \
    "train.py --batch_size 8 data=digits"

TEST(the_torchrun_guides_master_line_is_one_host_and_has_its_weights)
{
    char hash[65];

    test_run r = test_sh("$COHORT train %s", GUIDE_003("1", "127.0.0.1") " trainer.max_steps=300");
    const char *sha = strstr(r.out, "weights_sha256 ");
    CHECK(r.status == 0 && sha, "%d: %s", r.status, r.out);
    snprintf(hash, sizeof hash, "%.64s", sha + 15);
    free(r.out);
    r = test_sh("$COHORT train data=digits data.batch_size=16 trainer.devices=1 trainer.max_steps=300");
    CHECK(r.status == 0 && strstr(r.out, hash), "other weights than %s: %s", hash, r.out);
    free(r.out);
}

TEST_WITHIN(the_torchrun_guides_corrected_lines_train_together, 100)
{
    same_weights((const char *const[]){"", ""},
                 (const char *const[]){GUIDE_003("2", "10.77.0.1") SHORT, GUIDE_003("2", "10.77.0.1") SHORT},
                 "data=digits data.batch_size=32" SHORT);
}

#define IMAGENET(n)                                                                                          \
    "--dist-url tcp://10.77.0.1:23456 --dist-backend nccl --multiprocessing-distributed --world-size 2 "     \
    "--rank " n " -b 32 "                                                                                    \
    "data=digits" SHORT

TEST_WITHIN(main_pys_own_flags_for_two_machines_train_together, 100)
{
    same_weights((const char *const[]){"", ""}, (const char *const[]){IMAGENET("0"), IMAGENET("1")},
                 "data=digits data.batch_size=32" SHORT);
}
