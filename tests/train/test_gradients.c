/* logger.gradients: counts of a step's gradient, the same whoever counts, and the training as without
 * them. */
#include "harness.h"

#include <math.h>
#include <string.h>

#include "train/gradients_int.h"

/* Two parameters over three chunks of 8 elements, and a frozen one between them. */
static void make_plan(co_plan *plan, co_layout *layout, co_entry entry[3], param_rule rule[3])
{
    *plan =
        (co_plan){.layout = layout, .chunk = 8, .chunks = 3, .spec.gradients_every = 5, .recipe.rule = rule};
    *layout = (co_layout){.entry = entry, .n = 3, .dense = 24, .count = 24};
    entry[0] = (co_entry){.name = "a", .kind = CO_KIND_PARAM, .offset = 0, .count = 10};
    entry[1] = (co_entry){.name = "frozen", .kind = CO_KIND_PARAM, .offset = 10, .count = 2};
    entry[2] = (co_entry){.name = "b", .kind = CO_KIND_PARAM, .offset = 12, .count = 12};
    rule[1].frozen = true;
}

TEST(the_elements_of_a_gradient_are_counted_by_size_over_chunks)
{
    static const float sum[24] = {4,        -4, 5.9f, 6, 0, -0.0f, 1e-30f, -7, 3, NAN, 99, 99,
                                  INFINITY, 0,  0,    0, 0, 0,     0,      0,  0, 0,   0,  0};
    co_entry entry[3];
    param_rule rule[3] = {0};
    co_layout layout;
    co_plan plan;
    co_histogram h;
    make_plan(&plan, &layout, entry, rule);
    CHECK(gradients_due(&plan, 10) && !gradients_due(&plan, 11), "every fifth step");
    gradient_part *parts = co_array(1, gradients_bytes(&plan));
    for (size_t c = 0; c < 3; c++)
        gradients_count(&plan, parts, sum + 8 * c, c, 8 * c, 8 * c + 8);
    CHECK(gradients_read(&plan, parts, 0, 2, &h) && strcmp(h.name, "a") == 0, "no histogram");
    CHECK(h.num == 9 && h.not_finite == 1 && h.least == -3.5 && h.most == 3 && h.edge[64] == 4 &&
              h.edge[32] == 0 && h.edge[0] == -4,
          "%lld finite, least %g, most %g, edges %g %g %g", (long long)h.num, h.least, h.most, h.edge[0],
          h.edge[32], h.edge[64]);
    int64_t seen = 0;
    for (int i = 0; i < CO_BUCKETS; i++) {
        int64_t want = 0;
        for (int k = 0; k < 10; k++) {
            double x = (double)sum[k] / 2;
            bool positive = !signbit(x); /* of two zeros each counts on its side */
            want += isfinite(x) && (positive ? i >= 32 && x >= h.edge[i] && x < h.edge[i + 1]
                                             : i < 32 && x > h.edge[i] && x <= h.edge[i + 1]);
        }
        CHECK(h.count[i] == want, "bucket %d from %g to %g: %lld, want %lld", i, h.edge[i], h.edge[i + 1],
              (long long)h.count[i], (long long)want);
        seen += h.count[i];
    }
    CHECK(seen == 9, "%lld", (long long)seen);
    CHECK(!gradients_read(&plan, parts, 1, 2, &h), "a frozen parameter has a histogram");
    CHECK(gradients_read(&plan, parts, 2, 2, &h) && h.num == 11 && h.not_finite == 1 && h.count[32] == 11 &&
              h.least == 0 && h.most == 0 && h.edge[33] > 0,
          "zeros: %lld", (long long)h.count[32]);
    co_free(parts);
}

#define DEMO  "$COHORT train model.hidden=16 trainer.max_steps=40 test=false console=quiet "
#define LINES "grep -h '\"gradients/' %s/events.jsonl | sed 's/,\"t\":.*//' | sort -u > %s.g; "

/* The squares of all gradients add up to the norm; a stopped, a killed and a whole run count the same. */
TEST(gradients_have_the_same_histograms_for_any_ranks_kills_and_stops_and_change_no_weight)
{
    test_run r = test_sh(
        DEMO
        "run.dir=off trainer.devices=2; " DEMO "run.dir=one trainer.devices=1 logger.gradients=5; " DEMO
        "run.dir=three trainer.devices=3 logger.gradients=5 fault.phase=sum fault.kills=3 "
        "fault.mean_ms=10; " DEMO
        "run.dir=cut trainer.devices=2 logger.gradients=5 trainer.max_steps=17; " DEMO
        "run.dir=cut trainer.devices=2 logger.gradients=5 ckpt_path=auto; " DEMO
        "run.dir=each trainer.devices=2 logger.gradients=1; "
        "grep -h -o 'weights_sha256\": *\"[^\"]*' */summary.json | sort | uniq -c | wc -l; " LINES LINES LINES
        "wc -l < one.g; cmp one.g three.g && cmp one.g cut.g && echo alike; grep -c recovery "
        "three/events.jsonl; "
        "grep -h '\"gradients/' each/events.jsonl | sed 's/,\"t\":.*//' | grep -E '\"step\":[0-9]*[05],' | "
        "sort -u | "
        "cmp - one.g && echo each; ! grep -q gradients/ off/events.jsonl && echo none",
        "one", "one", "three", "three", "cut", "cut");
    CHECK(test_contains(r.out, "\n1\n") && test_contains(r.out, "\n48\nalike\n") &&
              test_contains(r.out, "each\nnone\n"),
          "%s", r.out);
    r = test_sh("awk 'function number(key) { match($0, \"\\\"\" key \"\\\":[-0-9.e+]*\"); "
                "return substr($0, RSTART + length(key) + 3, RLENGTH) + 0 } "
                "/\"gradients.*\"step\":|\"step\":[0-9]*,\"name\":\"gradients/ { s[number(\"step\")] += "
                "number(\"sum_squares\") } "
                "/\"name\":\"grad_norm\"/ { n[number(\"step\")] = number(\"value\") } "
                "END { for (k in n) if (k in s) { d = s[k] - n[k] * n[k]; if (d < 0) d = -d; seen++; "
                "if (d > 1e-9 * s[k]) print \"step\", k, s[k], n[k] ^ 2 } print seen, \"steps\" }' "
                "each/events.jsonl");
    CHECK(!strcmp(r.out, "5 steps\n"), "%s", r.out);
}
