/* test_trackers.c -- the bench of what trackers cost: every question is answered. The figures are for a quiet
 * machine. */
#include "harness.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static double number(const json_t *j, const char *key)
{
    CHECK(json_is_number(json_object_get(j, key)), "%s is missing", key);
    return json_number_value(json_object_get(j, key));
}

/* The line of this question. */
static json_t *line_of(const char *out, const char *task)
{
    char begin[64];

    snprintf(begin, sizeof begin, "{\"task\":\"%s\"", task);
    const char *line = strstr(out, begin);
    json_t *j = line ? json_loads(line, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    CHECK(j, "%s is not in %s", task, out);
    return j;
}

TEST_LONG_WITHIN(bench_trackers_answers_every_question, 120)
{
    test_run r =
        test_sh("TMPDIR=$PWD $COHORT bench trackers --rounds 2 --steps 40 2>talk || cat talk; ls | wc -l");

    CHECK(r.status == 0, "%s", r.out);
    json_t *all = line_of(r.out, "trackers"), *live = line_of(r.out, "wandb"), *book = line_of(r.out, "book");
    CHECK(number(all, "ratio") > 0.1 && number(all, "rounds") == 2 && number(all, "steps") == 40, "%s", r.out);
    CHECK(number(all, "cpu_beside_ranks") > 0, "trackers take CPU time: %s", r.out);
    CHECK(number(all, "ratio_low") <= number(all, "ratio") &&
              number(all, "ratio") <= number(all, "ratio_high"),
          "%s", r.out);
    CHECK(number(all, "ratio_by_cpu") > 0 && number(all, "ratio_by_cpu") < 1, "%s", r.out);
    CHECK(number(live, "ratio") > 0.1 && number(live, "with_step_ms") > 0, "%s", r.out);
    CHECK(number(live, "lines_received") >= 8, "every recorded step of both runs arrives: %s", r.out);
    CHECK(number(book, "rounds") == 4 && number(book, "with_ms") > 0 && number(book, "ends_later_ms") < 10000,
          "%s", r.out);
    CHECK(strcmp(strrchr(r.out, '}') + 1, "\n1\n") == 0, "only the file talk is left: %s", r.out);
    json_decref(all);
    json_decref(live);
    json_decref(book);
    free(r.out);
}
