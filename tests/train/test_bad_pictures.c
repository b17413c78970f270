/* One corrupt JPEG among a thousand is named and counted. data.on_error decides whether it is left out or
 * ends the run. The result is the same for any number of ranks. */
#include "data/pictures.h"

#include "train/program.h"

#define WORDS "data=imagefolder data.dir=set data.batch_size=64 model=cnn trainer.max_epochs=2 test=false "

static void put_set(void)
{
    static const char *const classes[] = {"ant", "bee", "cat", "dog", NULL};

    put_classes("set/train", classes, 250);
    put_classes("set/val", classes, 8);
    CHECK(truncate("set/train/bee/117.jpg", 200) == 0, "%m");
}

static int times(const char *text, const char *what)
{
    int n = 0;

    for (; (text = strstr(text, what)) != NULL; text += strlen(what))
        n++;
    return n;
}

TEST(one_corrupt_picture_is_left_out_alike_by_any_number_of_ranks)
{
    outcome one = {0};

    put_set();
    for (int ranks = 1; ranks <= 3; ranks++) {
        char dir[16];
        snprintf(dir, sizeof dir, "run%d", ranks);
        outcome o = program_run(dir, WORDS "data.on_error=skip trainer.devices=%d", ranks);
        CHECK(times(o.out, "bee/117.jpg") == 1 && test_contains(o.out, "left out (1 so far)"),
              "%d ranks:\n%s", ranks, o.out);
        if (ranks == 1)
            one = o;
        program_same(&one, &o, dir);
    }
    outcome killed = program_run("kills", WORDS "data.on_error=skip trainer.devices=2 data.workers=1 "
                                                "fault.phase=loading fault.kills=6 fault.mean_ms=20");
    program_same(&one, &killed, "with deaths while loading");
}

TEST(corrupt_pictures_of_an_evaluation_are_named_once)
{
    static const char *const classes[] = {"ant", "bee", NULL};

    put_classes("set/train", classes, 16);
    put_classes("set/val", classes, 8);
    CHECK(truncate("set/val/bee/3.jpg", 200) == 0, "%m");
    outcome o = program_run("run", WORDS "data.on_error=skip trainer.devices=2");
    CHECK(o.status == 0 && times(o.out, "1 sample to validate on could not be read") == 1, "%s", o.out);
    test_run r = test_sh("$COHORT test ckpt_path=run --split val");
    CHECK(r.status == 0 && test_contains(r.out, "1 sample could not be read") &&
              test_contains(r.out, "(15 samples)"),
          "%s", r.out);
    free(r.out);
    r = test_sh(
        "$COHORT predict ckpt_path=run --split val; $COHORT predict ckpt_path=run --split val --json");
    CHECK(r.status == 0 && test_contains(r.out, "unreadable val/bee/3.jpg\n") &&
              test_contains(r.out, " val/ant/0.jpg\n") && test_contains(r.out, "\"unreadable\":true") &&
              test_contains(r.out, "\"label\":1"),
          "%s", r.out);
    free(r.out);
}

/* data.on_error=stop is about training: an evaluation leaves such pictures out and goes on. */
TEST(unreadable_pictures_of_val_and_test_are_left_out_alike_by_any_number_of_ranks)
{
    static const char *const classes[] = {"ant", "bee", NULL};
    outcome one = {0};

    put_classes("set/train", classes, 16);
    put_classes("set/val", classes, 8);
    put_classes("set/test", classes, 8);
    CHECK(truncate("set/val/bee/3.jpg", 200) == 0 && truncate("set/test/ant/5.jpg", 0) == 0, "%m");
    for (int ranks = 1; ranks <= 3; ranks++) {
        char dir[16];
        snprintf(dir, sizeof dir, "run%d", ranks);
        outcome o =
            program_run(dir, WORDS "test=true data.on_error=stop data.eval_slice=3 trainer.devices=%d", ranks);
        CHECK(o.status == 0 && times(o.out, "1 sample to validate on could not be read") == 1 &&
                  times(o.out, "1 sample to test on could not be read") == 1 &&
                  times(o.out, "set/val/bee/3.jpg") == 1 && times(o.out, "set/test/ant/5.jpg") == 1,
              "%d ranks: exit %d\n%s", ranks, o.status, o.out);
        if (ranks == 1)
            one = o;
        program_same(&one, &o, dir);
    }
    test_run r = test_sh("$COHORT test ckpt_path=run1");
    CHECK(r.status == 0 && test_contains(r.out, "test/ant/5.jpg") && test_contains(r.out, "(15 samples)"),
          "%s", r.out);
    free(r.out);
}

TEST(an_evaluation_without_one_readable_picture_ends_the_run_with_a_sentence)
{
    static const char *const classes[] = {"ant", "bee", NULL};

    put_classes("set/train", classes, 16);
    put_classes("set/val", classes, 2);
    sh("for f in set/val/*/*.jpg; do echo no > $f; done");
    outcome o = program_run("run", WORDS "data.on_error=skip trainer.devices=2");
    CHECK(o.status == 1 && test_contains(o.out, "4 samples could not be read") &&
              test_contains(o.out, "none is left to evaluate on"),
          "exit %d\n%s", o.status, o.out);
    CHECK(!test_contains(o.out, "nan"), "%s", o.out);
    CHECK(test_contains(o.out, "ant/0.jpg") && test_contains(o.out, "ant/1.jpg") && test_contains(o.out, "bee/"),
          "three are named: %s", o.out);
}

TEST(one_corrupt_picture_ends_the_run_at_the_same_step_for_any_number_of_ranks)
{
    long long steps = -1;

    put_set();
    for (int ranks = 1; ranks <= 3; ranks++) {
        char dir[16];
        snprintf(dir, sizeof dir, "run%d", ranks);
        outcome o = program_run(dir, WORDS "data.on_error=stop trainer.devices=%d data.workers=1", ranks);
        CHECK(o.status == 1 && test_contains(o.out, "bee/117.jpg") && test_contains(o.out, "data.on_error=skip"),
              "%d ranks: exit %d\n%s", ranks, o.status, o.out);
        steps = ranks == 1 ? o.steps : steps;
        CHECK(o.steps == steps, "%d ranks end at step %lld, one at %lld", ranks, o.steps, steps);
        CHECK(program_saved(dir), "%s: nothing saved", dir);
    }
    /* Mended, or left out, it goes on from there. */
    outcome o = program_run("run2", WORDS "data.on_error=skip trainer.devices=2 ckpt_path=auto");
    CHECK(o.status == 0, "%s", o.out);
}

/* The sparse file makes the set too large for memory and for a fingerprint of every byte. */
TEST(a_picture_replaced_by_one_of_the_same_length_ends_the_continued_run_with_its_name)
{
    static const char *const classes[] = {"ant", "bee", NULL};
    const char *victim = "set/train/bee/3.jpg";

    put_classes("set/train", classes, 16);
    put_classes("set/val", classes, 4);
    CHECK(truncate(victim, 1000) == 0, "%m");
    sh("truncate -s 2G set/train/ant/huge.jpg");
    outcome o =
        program_run("run", WORDS "data.crop=8 data.on_error=skip trainer.devices=2 trainer.max_epochs=1");
    CHECK(o.status == 0, "%s", o.out);
    put_jpeg(victim, 8, 8, 250);
    CHECK(truncate(victim, 1000) == 0, "%m");
    o = program_run("run", WORDS "data.crop=8 data.on_error=skip trainer.devices=2 ckpt_path=auto");
    CHECK(o.status == 1 && test_contains(o.out, "a file is not what it was when the run began") &&
              test_contains(o.out, victim),
          "exit %d\n%s", o.status, o.out);
}
