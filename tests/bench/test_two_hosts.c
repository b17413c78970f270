/* The benches of two hosts: flags, what they say without PyTorch, and the wire between two namespaces. The
 * figures themselves are for a quiet machine. */
#include "harness.h"

#include <jansson.h>
#include <string.h>
#include <unistd.h>

static json_t *answer_of(const test_run *r)
{
    const char *line = strstr(r->out, "{\"task\"");
    json_t *j = line ? json_loads(line, JSON_DISABLE_EOF_CHECK, NULL) : NULL;

    CHECK(r->status == 0 && j, "%s", r->out);
    return j;
}

static double number(const json_t *j, const char *key)
{
    CHECK(json_is_number(json_object_get(j, key)), "%s is missing", key);
    return json_number_value(json_object_get(j, key));
}

TEST(bench_gloo_without_pytorch_says_how_to_install_it)
{
    test_run r = test_sh("$COHORT bench gloo --python false");

    CHECK(r.status == 2 && test_contains(r.out, "bench gloo needs a Python with PyTorch") &&
              test_contains(r.out, "pip install torch"),
          "%d %s", r.status, r.out);
}

/* Both sides run; a stand-in for PyTorch's side answers what gloo.py would. */
TEST_LONG_WITHIN(bench_gloo_runs_both_sides_in_turn_and_prints_ratios, 120)
{
    test_run r =
        test_sh("cat >stand-in <<'END'\n"
                "#!/bin/sh\n"
                "case \"$*\" in\n"
                "*--check*) echo '{\"torch\": \"none\", \"gloo\": true, \"gloo_tls\": false}';;\n"
                "*allreduce*'--rank 0'*) echo '{\"ms\": [9,9,9,9,9,9,9,9,9,9]}';;\n"
                "*train*'--rank 0'*) echo '{\"samples_per_s\": 10, \"parameters\": 11181642}';;\n"
                "*'--rank 1'*) ;;\n"
                "*) exit 1;;\n"
                "esac\n"
                "END\n"
                "chmod +x stand-in; touch s.py\n"
                "TMPDIR=$PWD $COHORT bench gloo --python ./stand-in --script s.py --batch 16 --rounds 1 "
                "--steps 1 2>talk || cat talk");
    json_t *exchange = answer_of(&r);

    CHECK(number(exchange, "gloo_plain_ms") == 9 && number(exchange, "cohort_plain_ms") > 0 &&
              number(exchange, "ratio") > 0,
          "%s", r.out);
    const char *second = strstr(r.out, "\"resnet18 64x64\"");
    CHECK(second, "%s", r.out);
    json_t *training = json_loads(strstr(r.out, "\n") + 1, JSON_DISABLE_EOF_CHECK, NULL);
    double ours = number(training, "cohort_tls_samples_per_s");
    CHECK(number(training, "ddp_samples_per_s") == 10 && ours > 0 && number(training, "ratio") == ours / 10,
          "%s", r.out);
    json_decref(exchange);
    json_decref(training);
}

/* 32 samples are two slices, one for each host. Each sends some 45 MB a step: at 300 Mbit/s that takes 1.2
 * s. */
TEST_LONG_WITHIN(bench_wire_limits_the_rate_between_two_namespaces_and_leaves_none, 120)
{
    if (geteuid() != 0 || test_sh("ip link help 2>&1 | grep -q veth && command -v tc").status != 0)
        test_skip("network namespaces need root, ip and tc");
    test_run before = test_sh("ip netns list; ip -o link | wc -l");
    test_run r = test_sh("TMPDIR=$PWD $COHORT bench wire --batch 32 --rounds 1 --steps 2 --mbit 300 2>talk");
    if (r.status != 0 && test_sh("grep 'cannot be joined by a bridge' talk").status == 0)
        test_skip("this kernel lacks veth, bridge or tbf");
    json_t *j = answer_of(&r);
    double wire = number(j, "wire_ms"), step = number(j, "step_ms"),
           planned = number(j, "planned_bytes_a_step");

    CHECK(wire > planned * 8 / 300e3 - 0.1 && wire < planned * 8 / 300e3 + 0.1, "%s", r.out);
    CHECK(step > 0.9 * wire, "a step of %g ms, %g ms of wire: is the rate limited?", step, wire);
    CHECK(number(j, "ratio") > 0.9 && number(j, "ratio_one_host") > 0.9 && number(j, "compute_ms") > 0, "%s",
          r.out);
    test_run after = test_sh("ip netns list; ip -o link | wc -l");
    CHECK(strcmp(before.out, after.out) == 0, "before: %s after: %s", before.out, after.out);
    json_decref(j);
}

TEST_LONG_WITHIN(bench_strangers_lets_them_come_and_finds_the_same_weights, 120)
{
    test_run r =
        test_sh("TMPDIR=$PWD $COHORT bench strangers --batch 32 --rounds 1 --steps 4 --strangers 40 2>talk");
    json_t *j = answer_of(&r);

    CHECK(number(j, "least_came") > 0 && number(j, "least_refused") == number(j, "least_came"), "%s", r.out);
    CHECK(number(j, "ratio") > 0 && number(j, "carrier_cpu_s") > 0 &&
              number(j, "among_strangers_carrier_cpu_s") > 0,
          "%s", r.out);
    json_decref(j);
}

TEST(benches_refuse_what_is_no_number)
{
    static const char *const lines[][2] = {
        {"bench wire --mbit 0", "bench wire: --mbit 0 is not a number"},
        {"bench hosts many", "bench hosts: the batch many is not a number"},
        {"bench gloo --steps -1", "bench gloo: --steps -1 is not a number"},
        {"bench strangers --steps x", "bench strangers: --steps x is not a number from 1 to 1000000"},
        {"bench threads --threads 1", "bench threads: --threads 1 is not a number from 2 to 256"},
        {"bench trackers --rounds 0", "bench trackers: --rounds 0 is not a number from 1 to 50"},
        {"bench trackers --only x", "bench trackers: --only x; give trackers, wandb or book"}};

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        test_run r = test_sh("$COHORT %s", lines[i][0]);
        CHECK(r.status == 2 && test_contains(r.out, lines[i][1]), "%s: %d %s", lines[i][0], r.status, r.out);
    }
}
