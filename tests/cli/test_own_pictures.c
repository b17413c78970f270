/* `cohort predict RUN FILE...`: the user's own pictures get the same classes as the same pictures in a
 * split. */
#include "data/pictures.h"

#include <jansson.h>
#include <math.h>

#include "data/decode_int.h"
#include "data/pictures_int.h"

static const char *const classes[] = {"ant", "bee", "cat", "dog", "eel", "fox", NULL};

static void train(const char *words)
{
    test_run r =
        test_sh("$COHORT train data=imagefolder data.dir=set model=mlp run.dir=run trainer.max_epochs=1 "
                "trainer.devices=1 test=false %s",
                words);
    CHECK(r.status == 0, "%s", r.out);
    free(r.out);
}

/* The probability that follows `what` in the text. */
static double number_after(const char *text, const char *what)
{
    const char *at = strstr(text, what);

    CHECK(at, "%s is not in\n%s", what, text);
    return strtod(at + strlen(what), NULL);
}

TEST(predict_gives_pictures_of_ones_own_the_probabilities_of_the_same_samples)
{
    char want[64];

    put_classes("set/train", classes, 4);
    put_classes("set/val", classes, 1);
    train("");
    test_run of_split = test_sh("$COHORT predict ckpt_path=run --split val");
    int chosen;
    double p;
    CHECK(sscanf(of_split.out, "0 %d %lf", &chosen, &p) == 2, "%s", of_split.out);
    sh("mkdir mine && cp set/val/ant/0.jpg mine/some.jpg && cp mine/some.jpg other.jpg && mkdir 2");
    test_run own = test_sh("$COHORT predict run --limit 2 mine other.jpg");
    snprintf(want, sizeof want, "mine/some.jpg  %s ", classes[chosen]);
    CHECK(own.status == 0 && fabs(number_after(own.out, want) - p) < 1e-4, "%s\n%s", own.out, of_split.out);
    snprintf(want, sizeof want, "\nother.jpg  %s ", classes[chosen]);
    CHECK(fabs(number_after(own.out, want) - p) < 1e-4, "%s", own.out);
    test_run json = test_sh("$COHORT predict ckpt_path=run other.jpg --json");
    json_t *j = json_loads(json.out, 0, NULL);
    CHECK(j && json_array_size(json_object_get(j, "top")) == 5 && json_object_get(j, "label") == NULL &&
              strcmp(json_string_value(json_object_get(j, "file")), "other.jpg") == 0 &&
              fabs(json_number_value(json_object_get(j, "probability")) - p) < 1e-5,
          "%s", json.out);
    json_decref(j);
    free(json.out);
    free(own.out);
    free(of_split.out);
}

TEST(a_limit_counts_for_pictures_of_ones_own_and_a_split_is_refused)
{
    put_classes("set/train", classes, 2);
    put_classes("set/val", classes, 1);
    train("");
    sh("mkdir -p holiday/deep && cp set/val/ant/0.jpg holiday/a.jpg && cp set/val/bee/0.jpg "
       "holiday/deep/b.jpg && "
       "cp set/val/cat/0.jpg c.jpg");
    test_run r = test_sh("$COHORT predict ckpt_path=run c.jpg holiday// --limit 2");
    CHECK(r.status == 0 && test_contains(r.out, "c.jpg  ") && test_contains(r.out, "\nholiday/a.jpg  ") &&
              !test_contains(r.out, "b.jpg"),
          "exit %d\n%s", r.status, r.out);
    free(r.out);
    r = test_sh("$COHORT predict ckpt_path=run c.jpg --split val --limit x");
    CHECK(r.status == 2 && test_contains(r.out, "--split val: c.jpg is predicted") &&
              test_contains(r.out, "--limit x"),
          "exit %d\n%s", r.status, r.out);
    free(r.out);
}

TEST(predict_names_the_pictures_it_cannot_read_and_predicts_the_others)
{
    put_classes("set/train", classes, 2);
    put_classes("set/val", classes, 1);
    train("");
    put_text("broken.jpg", "no picture");
    put_text("scan.tiff", "II*");
    put_jpeg("large.jpg", 300, 200, 90);
    sh("mkdir empty");
    test_run r = test_sh("$COHORT predict run broken.jpg large.jpg missing.png scan.tiff");
    CHECK(r.status == 1 && test_contains(r.out, "broken.jpg unreadable") &&
              test_contains(r.out, "large.jpg  ") &&
              test_contains(r.out, "\nmissing.png: No such file or directory\n") &&
              test_contains(r.out, "scan.tiff: unsupported format"),
          "exit %d\n%s", r.status, r.out);
    free(r.out);
    r = test_sh("$COHORT predict run empty");
    CHECK(r.status == 2 && test_contains(r.out, "empty has no pictures"), "exit %d\n%s", r.status, r.out);
    free(r.out);
    r = test_sh("$COHORT train data=digits trainer.max_steps=1 trainer.devices=1 run.dir=numbers test=false; "
                "$COHORT predict numbers large.jpg");
    CHECK(r.status == 2 && test_contains(r.out, "data=digits is no set of pictures"), "exit %d\n%s", r.status,
          r.out);
    free(r.out);
}

/* Wider, higher and smaller pictures: the middle is used, and no black border appears. */
TEST(a_picture_of_another_size_is_made_to_cover_the_size_of_the_set)
{
    static const uint32_t sizes[][2] = {{8, 8}, {8, 50}, {50, 8}, {3, 5}, {1, 40}, {64, 64}};

    for (size_t k = 0; k < CO_COUNT(sizes); k++) {
        uint32_t h = sizes[k][0], w = sizes[k][1];
        uint8_t *grey = scratch_get(SCRATCH_FILE, (size_t)h * w);
        memset(grey, 77, (size_t)h * w);
        picture p = transform_fit((picture){grey, h, w, 1, w}, 8, 8);
        CHECK(p.height == 8 && p.width == 8 && p.planes == 1, "%u x %u", p.height, p.width);
        for (int i = 0; i < 64; i++)
            CHECK(p.bytes[i] == 77, "%u x %u: pixel %d is %d", h, w, i, p.bytes[i]);
    }
}
