/* test_data.c -- `cohort bench data`: what it prints adds up. The times are for a quiet machine. */
#include "data/pictures.h"

#include <jansson.h>
#include <math.h>
#include <unistd.h>

/* The lines of a run with --json; what the stages of each way add up to is the total that follows them. */
typedef struct seen {
    int ways, stages;
    double us, share;
    char names[256];                          /* of the stages of the last way */
    double loader_us[8], last_us, speedup[8]; /* by way */
} seen;

static double number(const json_t *j, const char *key)
{
    CHECK(json_is_number(json_object_get(j, key)), "%s is missing in %s", key, json_dumps(j, 0));
    return json_number_value(json_object_get(j, key));
}

static void take_stage(seen *s, const json_t *j)
{
    if (s->stages++ == 0)
        s->us = s->share = s->names[0] = 0;
    s->us += number(j, "us");
    s->share += number(j, "share");
    CHECK(fabs(number(j, "us") * number(j, "samples_per_s") - 1e6) < 1, "the rate is not that of the time");
    snprintf(s->names + strlen(s->names), sizeof s->names - strlen(s->names), "%s ",
             json_string_value(json_object_get(j, "stage")));
}

static void take_total(seen *s, const json_t *j)
{
    CHECK(s->stages > 0 && s->ways < 8, "no stages before %s", json_dumps(j, 0));
    CHECK(fabs(number(j, "us") - s->us) < 1e-6 * s->us && fabs(s->share - 1) < 1e-6, "%g us, share %g", s->us,
          s->share);
    s->loader_us[s->ways] = number(j, "loader_us");
    s->speedup[s->ways++] = number(j, "speedup");
    s->last_us = s->us;
    s->stages = 0;
}

static seen bench(const char *words)
{
    test_run r = test_sh("TMPDIR=. $COHORT bench data %s --json 2>talk || cat talk", words);
    seen s = {0};

    CHECK(r.status == 0, "%s", r.out);
    for (char *line = strtok(r.out, "\n"); line; line = strtok(NULL, "\n")) {
        json_t *j = json_loads(line, 0, NULL);
        CHECK(j, "no JSON: %s", line);
        if (strcmp(json_string_value(json_object_get(j, "task")), "data stage") == 0)
            take_stage(&s, j);
        else
            take_total(&s, j);
        json_decref(j);
    }
    CHECK(s.ways > 0 && s.stages == 0 && s.loader_us[0] > 0 && s.speedup[0] == 1, "%d ways", s.ways);
    free(r.out);
    return s;
}

TEST(bench_data_times_each_stage_of_pictures_that_it_makes)
{
    seen s = bench("--rounds 2 --samples 40 data.hue=0.1 data.brightness=0.2 data.mixup=1");

    CHECK(test_contains(s.names, "decode ") && test_contains(s.names, "crop brightness hue normalise ") &&
              test_contains(s.names, "mix "),
          "%s", s.names);
    CHECK(!test_contains(s.names, "contrast") && !test_contains(s.names, "erase"), "%s", s.names);
    test_run r = test_sh("ls -d cohort-bench-*");
    CHECK(r.status != 0, "left behind: %s", r.out);
    free(r.out);
}

TEST(bench_data_measures_ways_in_turn_and_compares_them_with_the_first)
{
    seen s = bench(
        "--made 320x240 --rounds 3 --samples 24 data.scale=0.9:1 --vs data.decode=reduced --vs data.crop=32");

    CHECK(s.ways == 3 && s.speedup[1] > 0 && s.speedup[2] > 0, "%d ways", s.ways);
    test_note("reduced by half: %.2fx", s.speedup[1]);
    test_run r = test_sh("$COHORT bench data --rounds 1 --samples 8 --vs data.crop=32 2>talk || cat talk");
    CHECK(r.status == 0 && test_contains(r.out, "data.crop=32\n") && test_contains(r.out, "x the first") &&
              test_contains(r.out, "  decode ") &&
              test_contains(r.out, "8 samples a round, medians of 1 rounds"),
          "%s", r.out);
    free(r.out);
}

TEST(bench_data_has_one_stage_for_text_and_ratings)
{
    char words[512];

    snprintf(words, sizeof words, "data=text data.path=%s model=lm --rounds 2 --samples 20",
             test_repo("tests/data/verse.txt"));
    CHECK(strcmp(bench(words).names, "fill ") == 0, "%s", bench(words).names);
    seen s = bench("data=fake_ratings model=factors --rounds 2 --samples 2000");
    CHECK(strcmp(s.names, "fill ") == 0 && s.last_us > 0, "%s", s.names);
    CHECK(test_contains(bench("data=digits --rounds 2 --samples 500").names, "fill "), "digits");
}

TEST(bench_data_refuses_what_it_cannot_measure)
{
    static const struct {
        const char *words, *says;
    } rows[] = {
        {"--vs", "--vs needs words"},
        {"--vs --vs data.crop=32", "--vs needs words"},
        {"--made 64", "--made 64 is not a size as 500x400"},
        {"--made 64x4", "sides from 8 to 4096"},
        {"--made 64x64x3", "is not a size"},
        {"data=digits --made 64x64", "--made is for pictures that the bench makes"},
        {"--rounds 0", "--rounds 0 is not a number from 1 to 200"},
        {"--samples none", "--samples none is not a number"},
        {"data.crop=none", "data.crop=none: not a size"},
        {"data=imagefolder data.dir=nowhere", "nowhere"},
        {"--round 3", "did you mean --rounds?"},
    };

    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        test_run r = test_sh("TMPDIR=. $COHORT bench data %s", rows[i].words);
        CHECK(r.status == 2 && test_contains(r.out, rows[i].says), "%s: status %d, %s", rows[i].words,
              r.status, r.out);
        free(r.out);
    }
    test_run r = test_sh("ls -d cohort-bench-*");
    CHECK(r.status != 0, "left behind: %s", r.out);
    free(r.out);
}

TEST(bench_data_ends_at_a_picture_that_training_would_end_at)
{
    static const char *const pets[] = {"cat", "dog", NULL};
#define BAD "$COHORT bench data data=imagefolder data.dir=d model=linear --rounds 1 --samples 16 "

    put_classes("d/train", pets, 8);
    put_classes("d/val", pets, 2);
    CHECK(truncate("d/train/cat/3.jpg", 200) == 0, "%m");
    test_run r = test_sh(BAD);
    CHECK(r.status == 2 && test_contains(r.out, "d/train/cat/3.jpg"), "status %d: %s", r.status, r.out);
    free(r.out);
    r = test_sh(BAD "data.on_error=skip");
    CHECK(r.status == 0 && test_contains(r.out, "  decode "), "%s", r.out);
    free(r.out);
}
