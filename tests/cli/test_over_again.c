/* A training over two hosts, which are processes of this machine with folders of their own, that is stopped
 * by a signal to one of them and started again with the same lines. */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "net/net.h"

/* The first host alone has a checkpoint: the second one is fed. */
TEST_LONG_WITHIN(hosts_that_were_stopped_continue_with_the_same_lines_from_the_checkpoint_of_one, 120)
{
    int port;

    CHECK_OK(co_net_free_port(&port));
    test_run r = test_sh(
        "export COHORT_TOKEN=$($COHORT token | head -1)\n"
        "what='model=cnn trainer.slices=16 trainer.devices=1 trainer.max_epochs=12'\n"
        "line=\"--nnodes=2 --master-addr=127.0.0.1 --master-port=%d $what run.dir=r ckpt_path=auto\"\n"
        "mkdir 0 1\n"
        "both() { (cd 0; exec $COHORT train $line --node-rank=0) > 0.out$1 2>&1 & A=$!\n"
        "  (cd 1; exec $COHORT train $line --node-rank=1) > 1.out$1 2>&1 & B=$!; }\n"
        "both a; for i in $(seq 600); do grep -q 'epoch 2/12' 0.outa && break; sleep 0.05; done\n"
        "kill -USR1 $B; wait $A; echo $?; wait $B; echo $?\n"
        "both b; wait $A; echo $?; wait $B; echo $?\n"
        "$COHORT train $what run.dir=one > one.out 2>&1\n"
        "cat one/summary.json 0/r/summary.json | grep weights_sha256 | sort -u | wc -l; ls 1 | wc -l; cat "
        "*.out?",
        port);
    CHECK(strncmp(r.out, "75\n75\n0\n0\n1\n0\n", 14) == 0,
          "75 on both, done on both, one hash, no folder of the second: %s", r.out);
    free(r.out);
}

/* The first host dies, and the others save what they have. When all start again, the first host is behind and is
 * fed. It keeps the record all the same: the others' folders still say where they stopped. */
TEST_LONG_WITHIN(a_first_host_that_died_keeps_the_record_again_though_others_are_ahead, 240)
{
    int port;

    CHECK_OK(co_net_free_port(&port));
    test_run r = test_sh(
        "export COHORT_TOKEN=$($COHORT token | head -1)\n"
        "what='model=cnn trainer.slices=16 trainer.devices=1 trainer.threads=1 trainer.max_epochs=12'\n"
        "line=\"--nnodes=3 --master-addr=127.0.0.1 --master-port=%d $what run.dir=r ckpt_path=auto\"\n"
        "mkdir 0 1 2\n"
        "all() { (cd 0; exec setsid $COHORT train $line --node-rank=0) > 0.out$1 2>&1 & A=$!\n"
        "  (cd 1; exec $COHORT train $line --node-rank=1) > 1.out$1 2>&1 & B=$!\n"
        "  (cd 2; exec $COHORT train $line --node-rank=2) > 2.out$1 2>&1 & C=$!; }\n"
        "all a; for i in $(seq 1200); do grep -q 'epoch 2/12' 0.outa && break; sleep 0.05; done\n"
        "kill -9 -$A; wait $A; wait $B; echo $?; wait $C; echo $?\n"
        "all b; wait $A; echo $?; wait $B; echo $?; wait $C; echo $?\n"
        "$COHORT train $what run.dir=one > one.out 2>&1\n"
        "cat one/summary.json 0/r/summary.json | grep weights_sha256 | sort -u | wc -l\n"
        "grep -l '\"status\": \"done\"' ?/r/summary.json; grep -c 'the record is on' 1.outb 2.outb\n"
        "grep -c 'nobody else was found: the run ends on this host, with a checkpoint' 1.outa 2.outa\n"
        "grep -c 'saved     r/checkpoints/step_.*: what this host held' 1.outa 2.outa; cat *.out?",
        port);
    CHECK(strstr(r.out, "75\n75\n0\n0\n0\n1\n0/r/"
                        "summary.json\n1.outb:1\n2.outb:1\n1.outa:1\n2.outa:1\n1.outa:1\n2.outa:1\n"),
          "75 on both survivors, done on all, one hash, one record: %s", r.out);
    free(r.out);
}
