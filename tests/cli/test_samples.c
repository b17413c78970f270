/* logger.samples: pictures and tables after each validation. */
#include "harness.h"

#include <string.h>

#define SAMPLES "model.hidden=16 optim.lr=0.01 test=false console=quiet logger=none logger.samples=12 "
#define LINES                                                                                                \
    "lines() { grep -h -e '\"image\":{' -e '\"table\":{' $1/events.jsonl | sed 's/,\"t\":.*//' | sort -u; "  \
    "}; "

/* The last table has the classes that `cohort predict` finds with the last checkpoint. */
TEST(each_validation_has_the_pictures_and_a_table_of_what_its_weights_predict)
{
    test_run r = test_sh(
        "$COHORT train " SAMPLES "run.dir=one trainer.max_steps=60 trainer.devices=1 && "
        "$COHORT train " SAMPLES "run.dir=two trainer.max_steps=60 trainer.devices=2 && "
        "$COHORT train " SAMPLES "run.dir=cut trainer.max_steps=46 trainer.devices=2 && "
        "$COHORT train " SAMPLES "run.dir=cut trainer.max_steps=60 trainer.devices=2 ckpt_path=auto; " LINES
        "lines one > a; lines two > b; lines cut > c; wc -l < a; cmp a b && cmp a c && echo alike; "
        "ls one/media/*.png | wc -l; "
        "grep -h -o 'weights_sha256\": *\"[^\"]*' */summary.json | sort -u | wc -l");
    CHECK(test_contains(r.out, "\n39\nalike\n12\n1\n"), "%s", r.out);
    r = test_sh(
        "$COHORT predict ckpt_path=one/checkpoints/last --split val --limit 12 | cut -d' ' -f2 > predicted; "
        "grep -h 'step\":60,\"name\":\"sample_images' one/events.jsonl | "
        "sed 's/.*\"index\":\\([0-9]*\\).*\"prediction\":\"\\([^\"]*\\).*/\\1 \\2/' | sort -n | cut -d' ' "
        "-f2 | "
        "diff - predicted && wc -l < predicted");
    CHECK(r.status == 0 && !strcmp(r.out, "12\n"), "%s", r.out);
}

/* A file where the folder media/ should be: nothing can be written there, even by root. */
TEST(pictures_of_the_validation_that_cannot_be_written_are_one_warning_that_says_why)
{
    test_run r = test_sh("mkdir one; : > one/media; $COHORT train " SAMPLES
                         "run.dir=one trainer.max_steps=60 trainer.devices=1 2>&1; echo status $?; "
                         "grep -c 'warning .*the validation has no pictures' one/train.log; "
                         "grep -c sample_images one/events.jsonl");
    CHECK(test_contains(r.out, "warning   logger.samples: the validation has no pictures in this run: ") &&
              test_contains(r.out, "media/val-sample-0.png") && test_contains(r.out, "Not a directory") &&
              test_contains(r.out, "status 0\n1\n0\n"),
          "%s", r.out);
}
