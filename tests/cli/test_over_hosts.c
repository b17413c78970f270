/* `cohort train` on several hosts, which are processes of this machine: what people type, and what they read
 * when the hosts do not fit together. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "harness.h"
#include "net/net.h"

/* Two hosts with one line; words of its own for each. Their output is in 0.out and 1.out, their status at
 * its end. PRETEND is for the second one's environment. */
static void two_hosts(const char *both, const char *first, const char *second)
{
    int port;

    CHECK_OK(co_net_free_port(&port));
    test_run r =
        test_sh("export COHORT_TOKEN=$($COHORT token | head -1)\n"
                "line=\"--nnodes=2 --master-addr=127.0.0.1 --master-port=%d %s\"\n"
                "mkdir -p 0 1; (cd 0; exec $COHORT train $line --node-rank=0 %s) > 0.out 2>&1 & K=$!\n"
                "(cd 1; exec timeout 20 env $PRETEND $COHORT train $line --node-rank=1 %s) > 1.out 2>&1\n"
                "echo status $? >> 1.out\n"
                "for i in $(seq 100); do kill -0 $K 2> /dev/null || break; "
                "grep -q -e 'is not the same' -e 'does not join' 0.out && kill $K; sleep 0.05; done\n"
                "kill $K 2> /dev/null; wait $K; echo status $? >> 0.out",
                port, both, first, second);
    free(r.out);
}

static bool says(const char *file, const char *text)
{
    test_run r = test_sh("cat %s", file);
    bool there = test_contains(r.out, text);

    if (!there)
        printf("     # %s does not say \"%s\":\n%s\n", file, text, r.out);
    free(r.out);
    return there;
}

TEST(two_hosts_with_one_line_give_the_weights_of_one)
{
    two_hosts("model=cnn trainer.max_epochs=2 trainer.devices=1", "run.dir=r", "");
    CHECK(says("0.out", "status 0") && says("1.out", "status 0"), "both are done");
    CHECK(says("0.out", "deal      4 slices over 2 hosts: 2 each") &&
              says("0.out", "wire      0.23 MB a step"),
          "the first screen");
    test_run r = test_sh(
        "$COHORT train model=cnn trainer.max_epochs=2 trainer.devices=1 run.dir=one > /dev/null 2>&1; "
        "grep -h weights_sha256 one/summary.json 0/r/summary.json | sort -u | wc -l; "
        "grep -c compute_s 0/r/summary.json; ls 1");
    CHECK(strncmp(r.out, "1\n2\n", 4) == 0, "one hash, the figures of two hosts: %s", r.out);
    CHECK(strlen(r.out) == 4, "the guest's folder is empty: %s", r.out + 4);
    free(r.out);
}

/* Each host evaluates a share of the test; the record has the classes of all samples. With test_ckpt=best one
 * host evaluates all of it. */
TEST(two_hosts_report_the_accuracy_by_class_of_one)
{
    static const char *const keys[] = {"test_ckpt=last", "test_ckpt=best",
                                       "callbacks.model_checkpoint.enabled=false data.eval_slice=7"};

    for (size_t i = 0; i < CO_COUNT(keys); i++) {
        char words[200];
        snprintf(words, sizeof words, "model=mlp trainer.max_epochs=2 trainer.devices=1 %s", keys[i]);
        free(test_sh("rm -rf 0 1 one").out);
        two_hosts(words, "run.dir=r", "");
        CHECK(says("0.out", "status 0") && says("1.out", "status 0"), "both are done");
        test_run r = test_sh(
            "$COHORT train %s run.dir=one > /dev/null 2>&1\n"
            "for d in one 0/r; do sed -n '/\"test_classes\"/,/]/p' $d/summary.json > classes.$(basename $d); "
            "done; grep -c '\"class\"' classes.one; cmp classes.one classes.r && echo same",
            words);
        CHECK(test_contains(r.out, "same") && r.out[0] != '0', "%s: %s", keys[i], r.out);
        free(r.out);
    }
}

/* Each host translates all sentences by itself; the one that writes records them. */
TEST(two_hosts_translate_after_a_validation_to_the_text_of_one)
{
    static const char words[] = "data=pairs data.dir=$PWD/p.tsv data.min_frequency=1 data.val_fraction=0.4 "
                                "data.test_fraction=0.1 model=transformer model.d_model=16 model.layers=1 "
                                "model.heads=2 model.d_ff=32 data.batch_size=8 trainer.max_steps=6 "
                                "trainer.devices=1 optim=adam logger=none run.book=false";

    free(test_sh("i=0; while [ $i -lt 40 ]; do echo \"a b c d $i\tw x y z $i\"; i=$((i+1)); done > p.tsv").out);
    two_hosts(words, "run.dir=r", "");
    CHECK(says("0.out", "status 0") && says("1.out", "status 0"), "both are done");
    test_run r =
        test_sh("$COHORT train %s run.dir=one > /dev/null 2>&1; for d in one 0/r; do "
                "grep -E '(val|test)/(translation_|bleu|cer|wer)' $d/events.jsonl | grep -v run_end | "
                "sed 's/,\"t\":.*//' > told.$(basename $d); done; grep -c translation_ told.one; "
                "cmp told.one told.r && echo same",
                words);
    CHECK(test_contains(r.out, "same") && r.out[0] != '0', "%s", r.out);
    free(r.out);
}

TEST(hosts_that_do_not_fit_say_so_on_both_sides)
{
    static const struct {
        const char *first, *second, *guest, *keeper;
        bool declines;    /* the guest finds the mistake itself: nobody refuses it */
        const char *also; /* the guest says this, too */
    } rows[] = {
        {"seed=1", "seed=2 ckpt_path=auto", "config.seed is not the same", "config.seed is not the same",
         .also = "this host has nothing to continue from; it takes the state of the hosts"},
        {"seed=1", "seed=2 console=quiet", "config.seed is not the same", "config.seed is not the same"},
        {"optim.lr=0.1", "optim.lr=0.2", "config.optim.lr is not the same", "config.optim.lr is not the same"},
        {"data=text data.path=../a.txt model=lm", "data=text data.path=../b.txt model=lm",
         " train, 4 val, 4 test, sha256 ", "data is not the same"},
        {"trainer.kernels=avx2", "trainer.kernels=ref", "kernels is not the same", "kernels is not the same"},
        {"data=text data.path=../a.txt model=lm", "data=text data.path=../none.txt model=lm", "none.txt",
         "does not join: ", .declines = true},
        {"trainer.max_epochs=2", "trainer.max_epochs=3", "config.trainer.max_epochs is not the same",
         "config.trainer.max_epochs is not the same"},
    };

    free(test_sh("for i in $(seq 40); do echo a line $i >> a.txt; echo another $i >> b.txt; done").out);
    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        two_hosts("trainer.devices=1", rows[i].first, rows[i].second);
        CHECK(says("1.out", rows[i].guest) && says("1.out", "status 2"), "row %zu: the guest", i);
        CHECK(!rows[i].also || says("1.out", rows[i].also), "row %zu: the guest", i);
        CHECK(says("0.out", rows[i].keeper), "row %zu: the first host", i);
        test_run r = test_sh("grep -c 'refuses this host' 1.out");
        CHECK(atoi(r.out) == !rows[i].declines, "row %zu: the guest says it %s times", i, r.out);
        free(r.out);
    }
}

/* Another libjpeg on one host, as COHORT_FAULT pretends. Pictures differ only where pictures are decoded: the
 * digits are none. */
TEST(hosts_that_decode_a_picture_to_other_pixels_say_so_on_both_sides)
{
    setenv("WHAT", "data=imagefolder data.dir=../d data.crop=24 model=cnn trainer.max_epochs=1", 1);
    free(test_sh("for c in cat dog; do mkdir -p d/$c; for i in $(seq 20); do cp %s d/$c/$i.jpg; done; done",
                 test_repo("tests/data/pictures/jpeg-420.jpg"))
             .out);
    setenv("PRETEND", "COHORT_FAULT=pixels=other", 1);
    two_hosts("trainer.devices=1 $WHAT", "", "");
    CHECK(says("1.out", "libjpeg's decoding of a test picture is not the same") &&
              says("1.out", "has other") && says("1.out", "status 2"),
          "the guest");
    CHECK(says("0.out", "libjpeg's decoding of a test picture is not the same"), "the first host");
    two_hosts("trainer.devices=1 trainer.max_epochs=1", "", "");
    CHECK(says("0.out", "status 0") && says("1.out", "status 0"), "a set without picture files");
    unsetenv("PRETEND");
    two_hosts("trainer.devices=1 $WHAT", "", "");
    CHECK(says("0.out", "status 0") && says("1.out", "status 0"), "the same libraries");
}

static bool does_listen(void *port)
{
    co_holder who;

    return co_net_holder(&who, *(int *)port) && who.pid;
}

/* A host of two in the background; its output is in N.out. */
static pid_t spawn_host(int n, int meets, const char *words)
{
    char out[16];

    snprintf(out, sizeof out, "%d.out", n);
    return test_spawn(out,
                      "exec %s train --nnodes=2 --master-addr=127.0.0.1 --master-port=%d --node-rank=%d %s",
                      test_cohort(), meets, n, words);
}

TEST(a_port_for_the_gradients_can_be_given)
{
    int meets, port;
    char words[160];

    free(test_sh("$COHORT token > token").out);
    test_run token = test_sh("head -1 token | tr -d '\n'");
    setenv("COHORT_TOKEN", token.out, 1);
    free(token.out);
    CHECK_OK(co_net_free_port(&meets));
    CHECK_OK(co_net_free_port(&port));
    const char *what = "trainer.devices=1 trainer.max_epochs=100000";
    snprintf(words, sizeof words, "%s run.dir=r", what);
    pid_t first = spawn_host(0, meets, words);
    snprintf(words, sizeof words, "%s --port %d", what, port);
    pid_t second = spawn_host(1, meets, words);
    test_until(does_listen, &port, 30, "the second host to listen where it was told to");
    test_run r = test_sh("for i in $(seq 600); do grep -q 'epoch 1' 0.out && break; sleep 0.05; done");
    free(r.out);
    CHECK(says("0.out", "epoch 1"), "they train");
    r = test_sh("$COHORT train --nnodes=2 --rdzv-endpoint=127.0.0.1:%d --port=%d", meets == 1 ? 2 : 1, port);
    CHECK(r.status == 2 && test_contains(r.out, "--port=") &&
              test_contains(r.out, "the port is taken by process"),
          "%d: %s", r.status, r.out);
    free(r.out);
    kill(first, SIGTERM);
    CHECK(test_wait(first, 30) == 75 && test_wait(second, 30) == 75, "both stop");
    r = test_sh("$COHORT train --nnodes=2 --rdzv-endpoint=127.0.0.1:%d --port=%d", port, port);
    CHECK(r.status == 2 && test_contains(r.out, "is where the hosts meet"), "%d: %s", r.status, r.out);
    free(r.out);
    r = test_sh("$COHORT train --nnodes=2 --rdzv-endpoint=127.0.0.1:%d --port=70000", port);
    CHECK(r.status == 2 && test_contains(r.out, "--port"), "%d: %s", r.status, r.out);
    free(r.out);
    r = test_sh("$COHORT launch --port=7000 true");
    CHECK(r.status == 2 && test_contains(r.out, "--port=7000 is for trainings"), "%d: %s", r.status, r.out);
    free(r.out);
}

/* The second host has 20 MiB left: /proc/meminfo of its own. The plan is for the worst deal, in which it
 * would hold all slices, so it is known before anything starts. */
TEST(a_host_without_memory_for_the_worst_deal_says_so_on_both_sides)
{
    if (system("unshare -rm true 2> /dev/null") != 0)
        test_skip("no namespaces for mounts here");
    free(
        test_sh("printf 'MemTotal: 40960 kB\nMemFree: 20480 kB\nMemAvailable: 20480 kB\n' > meminfo\n"
                "printf '#!/bin/sh\nmount --bind ../meminfo /proc/meminfo || exit 77\nexec \"$@\"\n' > poor\n"
                "chmod +x poor")
            .out);
    setenv("PRETEND", "unshare -rm ../poor", 1);
    uint64_t began = co_now_ns();
    two_hosts("trainer.devices=1 model=mlp model.hidden=3000", "", "");
    CHECK(says("1.out", "the plan needs ") && says("1.out", "20.0 MiB are free") && says("1.out", "status 2"),
          "the host that lacks memory");
    CHECK(says("0.out", "does not join: the plan needs "), "the first host");
    double took = (double)(co_now_ns() - began) * 1e-9;
    test_note("%.1f s", took);
    CHECK(took < 10, "the first host learns it after %.1f s", took);
}

/* Real clocks through libfaketime. A clock that is an hour off is worth a line and ends nothing. */
TEST(a_host_whose_clock_is_far_off_is_told_so_and_trains_on)
{
    if (system("faketime -f +1h true 2> /dev/null") != 0)
        test_skip("faketime is not installed: apt install faketime");
    setenv("PRETEND", "FAKETIME_DONT_FAKE_MONOTONIC=1 faketime -f +1h", 1);
    two_hosts("trainer.devices=1 trainer.max_epochs=3", "run.dir=r", "");
    CHECK(says("0.out", "status 0") && says("1.out", "status 0"), "both are done");
    CHECK(says("0.out", "step clock: the clock of host") && says("0.out", "s ahead of"), "the warning");
    CHECK(says("1.out", "step clock: the clock of host"), "the other host reads it too");
}

/* Keys of a host may differ: folders, ranks, dates. */
TEST(what_belongs_to_a_host_may_differ)
{
    two_hosts("trainer.max_epochs=1", "trainer.devices=1 trainer.default_root_dir=one console=plain",
              "trainer.devices=2 trainer.default_root_dir=two log_every=3 data.workers=1");
    CHECK(says("0.out", "status 0") && says("1.out", "status 0"), "both are done");
}

/* The second line of guide 003's pair has another number of hosts. */
TEST(lines_with_different_numbers_of_hosts_are_refused_naming_both)
{
    int port;

    CHECK_OK(co_net_free_port(&port));
    test_run r = test_sh(
        "export COHORT_TOKEN=$($COHORT token | head -1)\n"
        "where='--rdzv-id=7 --rdzv-backend=c10d --rdzv-endpoint=127.0.0.1:%d'\n"
        "$COHORT train --nnodes=1 $where trainer.max_epochs=100000 run.dir=r > 0.out 2>&1 & K=$!\n"
        "for i in $(seq 200); do grep -q 'epoch 1' 0.out && break; sleep 0.05; done\n"
        "timeout 10 $COHORT train --nnodes=2 $where trainer.max_epochs=100000 > 1.out 2>&1; echo status "
        "$? >> 1.out\n"
        "kill $K; wait $K; echo status $? >> 0.out",
        port);
    free(r.out);
    CHECK(says("1.out", "--nnodes=1") && says("1.out", "--nnodes=2") && says("1.out", "status 2"),
          "the second");
    CHECK(says("0.out", "--nnodes=1") && says("0.out", "--nnodes=2") && says("0.out", "status 75"),
          "the first");
}

/* One line for two hosts, of which the first is slow, so that there is time for something on the second. */
static void rehearse(const char *nnodes, const char *second)
{
    int port;

    CHECK_OK(co_net_free_port(&port));
    test_run r = test_sh(
        "export COHORT_TOKEN=$($COHORT token | head -1)\n"
        "line='--nnodes=%s --rdzv-conf=last_call_timeout=0.1,lost_after=1 --rdzv-endpoint=127.0.0.1:%d "
        "model=cnn trainer.max_epochs=4 trainer.devices=1'\n"
        "mkdir -p 0 1; (cd 0; exec $COHORT train $line run.dir=r fault.host_slow=6) > 0.out 2>&1 & K=$!\n"
        "cd 1; %s\n"
        "cd ..; wait $K; echo status $? >> 0.out\n"
        "$COHORT train model=cnn trainer.max_epochs=4 trainer.devices=1 run.dir=one > /dev/null 2>&1\n"
        "grep -h weights_sha256 one/summary.json 0/r/summary.json | sort -u | wc -l",
        nnodes, port, second);
    CHECK(says("0.out", "status 0"), "the first host is done");
    CHECK(strcmp(r.out, "1\n") == 0, "one hash: %s", r.out);
    free(r.out);
}

TEST_LONG_WITHIN(a_host_that_rehearses_to_come_late_waits_and_then_joins_in_the_middle, 60)
{
    rehearse("1:2", "for i in $(seq 500); do grep -q 'view 1: 1 host' ../0.out && break; sleep 0.02; done\n"
                    "timeout 1 $COHORT train $line fault.host_join_s=100 > ../early.out 2>&1\n"
                    "grep -c joins ../0.out > ../joined\n"
                    "$COHORT train $line fault.host_join_s=0.1 > ../1.out 2>&1; echo status $? >> ../1.out");
    CHECK(says("early.out", "rehearsal: this host comes in 100 s") && says("joined", "0"), "it waits");
    CHECK(says("0.out", "joins") && says("1.out", "status 0"), "it joined");
}

TEST_LONG_WITHIN(a_host_that_rehearses_a_cut_joins_the_others_again, 60)
{
    rehearse("2",
             "for i in $(seq 500); do grep -q 'waiting for 2 hosts' ../0.out && break; sleep 0.02; done\n"
             "timeout 40 $COHORT train $line fault.host_cut=5 fault.host_cut_s=2 > ../1.out 2>&1\n"
             "echo status $? >> ../1.out");
    CHECK(says("1.out", "rehearsal: this host is silent for 2 s after step 5"), "it says so");
    CHECK(says("0.out", "is lost") && says("1.out", "this host joins the others again") &&
              says("1.out", "status 0"),
          "it came back");
}

TEST(a_guest_that_is_stopped_while_it_looks_for_the_first_host_leaves_nothing)
{
    int port;

    CHECK_OK(co_net_free_port(&port));
    test_run r =
        test_sh("export COHORT_TOKEN=$($COHORT token | head -1); mkdir g; cd g\n"
                "$COHORT train --nnodes=2 --master-addr=127.0.0.1 --master-port=%d --node-rank=1 model=mlp "
                "trainer.devices=1 > ../out 2>&1 & A=$!\n"
                "for i in $(seq 400); do grep -q 'trying on' ../out && break; sleep 0.05; done\n"
                "kill -INT $A; wait $A; echo status $?; ls -A; cat ../out",
                port);
    CHECK(strncmp(r.out, "status 75\nnot yet at ", 21) == 0, "status 75 and no file: %s", r.out);
    CHECK(test_contains(r.out, "stopped   before this host met the others: nothing was written"), "%s", r.out);
    CHECK(!test_contains(r.out, "continue with"), "there is nothing to continue: %s", r.out);
    free(r.out);
}

/* The guest has a checkpoint of step 920 when it takes the place of a host that died. It is fed the state of
 * the run, which is far behind that. Then the first host falls silent, and the guest is stopped. */
TEST_WITHIN(a_guest_that_was_fed_from_behind_its_start_saves_the_step_that_it_has, 60)
{
    int port;

    CHECK_OK(co_net_free_port(&port));
    test_run r =
        test_sh("export COHORT_TOKEN=$($COHORT token | head -1); mkdir 0 1 2\n"
                "what='model=mlp trainer.devices=1 trainer.threads=1 ckpt_path=auto run.dir=r'\n"
                "line=\"--nnodes=2 --rdzv-conf=lost_after=2 --master-addr=127.0.0.1 --master-port=%d $what "
                "trainer.max_epochs=100000\"\n"
                "host() { (cd $1; exec setsid $COHORT train $line --node-rank=$2) > $1.out 2>&1 & }\n"
                "until_says() { for i in $(seq 500); do grep -q \"$2\" $1 && break; sleep 0.02; done; }\n"
                "own() { $COHORT ckpt ls 2/r | awk '$2 == 920 { print $5 }'; }\n"
                "(cd 2; exec $COHORT train $what trainer.max_epochs=40) > own.out 2>&1; own > before\n"
                "host 0 0; A=$!; host 1 1; B=$!; until_says 0.out 'view 1'; kill -9 -$B\n"
                "host 2 1; B=$!; until_says 2.out 'holds the whole state'; until_says 0.out 'epoch 2/'\n"
                "kill -STOP -$A; kill -INT $B; wait $B; echo status $?; kill -9 -$A\n"
                "own > after; test -s before && cmp before after && echo same\n"
                "$COHORT ckpt ls 2/r | awk '/last$/ && $2 > 0 && $2 < 920 { print \"saved behind it\" }'\n"
                "cat before after 2.out; $COHORT ckpt ls 2/r",
                port);
    CHECK(strncmp(r.out, "status 75\nsame\nsaved behind it\n", 31) == 0, "%s", r.out);
    free(r.out);
}
