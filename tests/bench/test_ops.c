/* test_ops.c -- the benches of single calls: what they print adds up. The times are for a quiet machine. */
#include "harness.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

static double number(const json_t *j, const char *key)
{
    CHECK(json_is_number(json_object_get(j, key)), "%s is missing in %s", key, json_dumps(j, 0));
    return json_number_value(json_object_get(j, key));
}

static bool is(const json_t *j, const char *key, const char *text)
{
    const char *value = json_string_value(json_object_get(j, key));

    return value && strcmp(value, text) == 0;
}

/* What the lines of all calls add up to. */
typedef struct sums {
    int calls, operators, convolutions;
    double flops, useful, bytes, ms, operator_ms;
} sums;

static void add_call(sums *s, const json_t *j)
{
    s->calls++;
    s->bytes += number(j, "bytes");
    s->ms += number(j, "ms");
    CHECK(number(j, "ms_two") > 0 && number(j, "of_bandwidth") > 0, "two ranks");
    CHECK(json_array_size(json_object_get(j, "out")) > 0, "shapes");
    CHECK(json_string_value(json_object_get(j, "algorithm")), "algorithm");
    if (!json_object_get(j, "flops"))
        return;
    s->flops += number(j, "flops");
    s->useful += number(j, "useful_flops");
    s->convolutions += strncmp(json_string_value(json_object_get(j, "op")), "conv2d", 6) == 0;
    CHECK(number(j, "useful_flops") <= number(j, "flops"), "useful ones are among them");
}

static void check_total(const sums *s, const json_t *j)
{
    CHECK(number(j, "calls") == s->calls && number(j, "bytes") == s->bytes, "%d calls", s->calls);
    CHECK(number(j, "flops") == s->flops && number(j, "useful_flops") == s->useful, "%g FLOPs", s->flops);
    CHECK(number(j, "ms") > 0.999 * s->ms && number(j, "ms") < 1.001 * s->ms, "%g ms", s->ms);
    CHECK(number(j, "ms") > 0.999 * s->operator_ms && number(j, "ms") < 1.001 * s->operator_ms,
          "by operator");
    CHECK(number(j, "samples") == 16, "a slice of digits");
    CHECK(json_array_size(json_object_get(j, "peak_gflops")) == 2, "peaks with one and two ranks");
    CHECK(json_array_size(json_object_get(j, "peak_gbytes_per_s")) == 2, "peaks with one and two ranks");
}

TEST(bench_ops_prints_every_call_and_what_they_add_up_to)
{
    test_run r = test_sh("$COHORT bench ops model=cnn data=digits --rounds 2 --json 2>talk || cat talk");
    sums s = {0};
    bool total = false;

    CHECK(r.status == 0, "%s", r.out);
    for (char *line = strtok(r.out, "\n"); line; line = strtok(NULL, "\n")) {
        json_t *j = json_loads(line, 0, NULL);
        CHECK(j && !total, "JSON, the total last: %s", line);
        if (is(j, "task", "ops call"))
            add_call(&s, j);
        else if (is(j, "task", "ops operator")) {
            s.operators++;
            s.operator_ms += number(j, "ms");
        } else {
            CHECK(is(j, "task", "ops") && is(j, "op", "all"), "%s", line);
            check_total(&s, j);
            total = true;
        }
        json_decref(j);
    }
    CHECK(total && s.operators > 5, "%d operators", s.operators);
    CHECK(s.convolutions == 8, "three layers, both gradients but of the first input: %d", s.convolutions);
    free(r.out);
}

TEST(bench_ops_as_text_is_sorted_by_time_and_ends_with_the_sum)
{
    test_run r = test_sh("$COHORT bench ops data=digits model=mlp --rounds 1 2>talk || cat talk");
    double last = 1e9, ms;
    int rows = 0;

    CHECK(r.status == 0, "%s", r.out);
    char *at = strstr(r.out, "inputs -> output\n");
    CHECK(at, "%s", r.out);
    for (at = strchr(at, '\n') + 1; sscanf(at, "%lf", &ms) == 1 && *at != '\n';
         at = strchr(at, '\n') + 1, rows++) {
        CHECK(ms <= last, "row %d: %g after %g", rows, ms, last);
        last = ms;
    }
    CHECK(rows > 8, "%d rows", rows);
    CHECK(strstr(at, "calls  operator\n") && strcmp(strrchr(r.out, ' '), " all\n") == 0, "%s", r.out);
    free(r.out);
}

TEST(bench_ops_refuses_what_it_does_not_know)
{
    test_run r = test_sh("$COHORT bench ops model=nosuch; $COHORT bench ops --round 2");

    CHECK(test_contains(r.out, "nosuch") && test_contains(r.out, "--rounds"), "%s", r.out);
    CHECK(r.status == 2, "status %d", r.status);
    free(r.out);
}

/* --- instructions --------------------------------------------------------------------------------------- */
static void needs_valgrind(void)
{
    test_run r = test_sh("command -v valgrind && $COHORT bench instructions --model digits/mlp 2>&1");

    if (r.status != 0 || test_contains(r.out, "NOTHING COUNTED"))
        test_skip("instructions cannot be counted here: %s", r.out);
    free(r.out);
}

static test_run compare(const char *file)
{
    return test_sh("$COHORT bench instructions --model digits/mlp --compare %s", file);
}

TEST(instructions_of_a_step_are_compared_with_what_was_recorded)
{
    static const char *const line =
        "$COHORT bench instructions --model digits/mlp --record own.json && "
        "sed 's/: \\([0-9]*\\)[0-9]$/: \\19/; s/gcc\\|clang/tcc/' own.json > other.json && "
        "sed 's/\\(mlp\": *\\)[0-9]/\\19/' own.json > more.json";
    needs_valgrind();
    test_run r = test_sh("%s", line);
    CHECK(r.status == 0, "%s", r.out);
    r = compare("own.json");
    CHECK(r.status == 0 && test_contains(r.out, "\"ratio\":1"), "%s", r.out);
    r = compare("other.json");
    CHECK(r.status == 0 && test_contains(r.out, "NOTHING COMPARED"), "%s", r.out);
    r = compare("more.json");
    CHECK(r.status == 1 && test_contains(r.out, "record the improvement"), "%s", r.out);
    r = test_sh("$COHORT bench instructions --model digits/mlq");
    CHECK(r.status == 2 && test_contains(r.out, "did you mean digits/mlp"), "%s", r.out);
}
