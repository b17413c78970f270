/* Limits of the system that a run meets: file sizes, pipes that nobody reads, few classes, files of 4 TiB. */
#include "cli/runs.h"

#include <string.h>

TEST(a_file_size_limit_is_said_and_nobody_dies_of_it)
{
    test_run r = test_sh(
        "(ulimit -f 4; exec $COHORT train data=digits model=mlp model.hidden=512 trainer.max_steps=30 "
        "run.dir=r) >out 2>&1; s=$?; cat out; exit $s");

    CHECK(r.status < 128 && r.status != 0, "exit status %d\n%s", r.status, r.out);
    CHECK(test_contains(r.out, "File too large"), "the limit is not named:\n%s", r.out);
    CHECK(!test_contains(r.out, "cohort: \n"), "an empty message:\n%s", r.out);
    free(r.out);
}

TEST(a_launcher_outlives_a_file_size_limit_and_its_workers_have_the_default)
{
    test_run r = test_sh("(ulimit -f 4; exec $COHORT launch --log-dir=logs --redirects=3 sh -c "
                         "'trap - XFSZ; head -c 100000 /dev/zero > big; echo worker $?') 2>&1");

    CHECK(r.status != 128 + 25, "the launcher died of SIGXFSZ:\n%s", r.out);
    free(r.out);
    r = test_sh("$COHORT launch --no-python grep -E 'Sig(Ign|Cgt)' /proc/self/status 2>&1");
    unsigned long long ignored = 0;
    const char *at = strstr(r.out, "SigIgn:");
    CHECK(at && sscanf(at, "SigIgn: %llx", &ignored) == 1, "%s", r.out);
    CHECK(!(ignored >> (13 - 1) & 1) && !(ignored >> (25 - 1) & 1),
          "a worker ignores SIGPIPE or SIGXFSZ: %llx", ignored);
    free(r.out);
}

TEST(a_run_whose_output_nobody_reads_still_ends_with_its_record)
{
    test_run r = test_sh("$COHORT train " SMALL " trainer.max_steps=20 run.dir=r 2>&1 | true; "
                         "for i in $(seq 200); do test -e r/summary.json && break; sleep 0.05; done; "
                         "grep -o '\"status\": *\"[a-z]*\"' r/summary.json");

    CHECK(test_contains(r.out, "done"), "%s", r.out);
    free(r.out);
}

TEST(a_command_that_only_prints_ends_when_nobody_reads)
{
    succeeds("$COHORT train " SMALL " trainer.max_steps=2 run.dir=r 2>/dev/null");
    test_run r = test_sh("{ $COHORT predict ckpt_path=r 2>err; echo $? >status; } | true; cat status err");

    CHECK(!test_contains(r.out, "rror"), "%s", r.out);
    free(r.out);
}

TEST(below_six_classes_there_is_no_accuracy_of_the_best_five)
{
    static const char *const consoles[] = {"plain", "imagenet"};

    for (size_t i = 0; i < CO_COUNT(consoles); i++) {
        test_run r = test_sh(
            "rm -rf r; $COHORT train data=fake_images data.classes=3 model=linear trainer.max_steps=4 "
            "log_every=1 console=%s run.dir=r 2>&1; cat r/summary.json r/events.jsonl r/train.log",
            consoles[i]);
        CHECK(r.status == 0 && test_contains(r.out, " * Acc@1 "), "%d\n%s", r.status, r.out);
        CHECK(!test_contains(r.out, "Acc@5") && !test_contains(r.out, "acc5"), "%s", r.out);
        free(r.out);
    }
}

TEST(a_picture_of_4_tib_is_not_said_to_have_4294967295_bytes)
{
    test_run r = test_sh(
        "mkdir -p d/a d/b; for i in 1 2 3 4 5 6 7 8 9; do truncate -s 4T d/a/$i.jpg d/b/$i.jpg || exit 77; "
        "done; $COHORT train data=imagefolder data.dir=d data.resize=8x8 model=linear trainer.max_steps=1 "
        "run.dir=r 2>&1");

    if (r.status == 77)
        test_skip("this file system has no files of 4 TiB");
    CHECK(!test_contains(r.out, "4294967295") && test_contains(r.out, "more than 4 GiB"), "%s", r.out);
    free(r.out);
}

TEST(messages_cite_pages_that_exist)
{
    test_run r = test_sh(
        "p=$($COHORT train data=imagefolder 2>&1 | grep -o '[^ (]*data[.]md'); test -r \"$p\" && echo $p");

    CHECK(r.status == 0 && r.out[0] == '/', "%s", r.out);
    free(r.out);
}

TEST(a_full_disk_at_the_end_of_a_run_is_named)
{
    test_run r = test_sh(
        "mkdir t; unshare -rm true 2>/dev/null || exit 77; unshare -rm sh -c 'mount -t tmpfs -o size=300k "
        "none t || exit 77; exec $COHORT train " SMALL
        " model.hidden=64 trainer.max_epochs=60 log_every=1 run.dir=t/r' 2>&1");

    if (r.status == 77)
        test_skip("no small file system can be mounted here");
    CHECK(r.status == 1 && test_contains(r.out, "cohort: the record is not whole: ") &&
              test_contains(r.out, "No space left on device") && !test_contains(r.out, "cohort: \n"),
          "%d\n%s", r.status, r.out);
    free(r.out);
}
