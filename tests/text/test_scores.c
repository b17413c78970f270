/* BLEU against sacrebleu, error rates against torchmetrics: golden/text.json has 500 made-up pairs
 * and their figures. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "harness.h"
#include "text/text.h"

struct scores {
    co_bleu bleu;
    co_error_rate cer, wer;
};

static json_t *golden(void)
{
    json_t *all;

    test_may_leak();
    CHECK_OK(co_json_read(&all, test_repo("tests/golden/text.json"), 4 << 20));
    return json_object_get(all, "scores");
}

static void add(struct scores *s, json_t *pair)
{
    const char *predicted = json_string_value(json_array_get(pair, 0)),
               *wanted = json_string_value(json_array_get(pair, 1));

    CHECK_OK(co_bleu_add(&s->bleu, predicted, wanted));
    CHECK_OK(co_cer_add(&s->cer, predicted, wanted));
    CHECK_OK(co_wer_add(&s->wer, predicted, wanted));
}

static double number(json_t *want, const char *key)
{
    return json_number_value(json_object_get(want, key));
}

static void check(const struct scores *s, json_t *want)
{
    double bleu = co_bleu_score(&s->bleu), cer = co_error_rate_value(&s->cer),
           wer = co_error_rate_value(&s->wer);

    for (size_t n = 0; n < 4; n++) {
        CHECK((double)s->bleu.correct[n] ==
                  json_number_value(json_array_get(json_object_get(want, "counts"), n)),
              "correct %zu: %llu", n + 1, (unsigned long long)s->bleu.correct[n]);
        CHECK((double)s->bleu.total[n] == json_number_value(json_array_get(json_object_get(want, "totals"), n)),
              "total %zu: %llu", n + 1, (unsigned long long)s->bleu.total[n]);
    }
    CHECK(fabs(bleu - number(want, "bleu")) < 1e-9, "BLEU %.10f, sacrebleu %.10f", bleu, number(want, "bleu"));
    CHECK((double)s->bleu.predicted == number(want, "predicted"), "%llu words",
          (unsigned long long)s->bleu.predicted);
    CHECK((double)s->bleu.wanted == number(want, "wanted"), "%llu words", (unsigned long long)s->bleu.wanted);
    CHECK((double)s->bleu.sentences == number(want, "n"), "%llu sentences",
          (unsigned long long)s->bleu.sentences);
    CHECK(fabs(cer - number(want, "cer")) < 1e-6, "CER %.8f, torchmetrics %.8f", cer, number(want, "cer"));
    CHECK(fabs(wer - number(want, "wer")) < 1e-6, "WER %.8f, torchmetrics %.8f", wer, number(want, "wer"));
}

TEST(bleu_of_500_sentences_is_sacrebleu_s_and_the_error_rates_are_those_of_torchmetrics)
{
    json_t *all = golden(), *pair;
    struct scores s = {0};
    size_t i;

    json_array_foreach(json_object_get(all, "pairs"), i, pair) add(&s, pair);
    CHECK(i == 500, "%zu pairs", i);
    check(&s, json_object_get(all, "whole"));
    test_note("BLEU %.6f of 500 sentences, sacrebleu %.6f", co_bleu_score(&s.bleu),
              number(json_object_get(all, "whole"), "bleu"));
}

TEST(bleu_of_few_or_short_sentences_is_smoothed_as_sacrebleu_does_it)
{
    json_t *all = golden(), *want;
    size_t i;

    json_array_foreach(json_object_get(all, "first"), i, want)
    {
        struct scores s = {0};
        for (size_t k = 0; k < (size_t)number(want, "n"); k++)
            add(&s, json_array_get(json_object_get(all, "pairs"), k));
        check(&s, want);
    }
    json_array_foreach(json_object_get(all, "short"), i, want)
    {
        struct scores s = {0};
        add(&s, json_object_get(want, "pair"));
        check(&s, want);
    }
}

TEST(scores_of_parts_added_up_are_the_scores_of_the_whole)
{
    json_t *all = golden(), *pair;
    struct scores part[2] = {0}, sum = {0};
    size_t i;

    json_array_foreach(json_object_get(all, "pairs"), i, pair) add(&part[i % 2], pair);
    uint64_t *to = (uint64_t *)&sum, *a = (uint64_t *)&part[0], *b = (uint64_t *)&part[1];
    for (size_t k = 0; k < sizeof sum / sizeof *to; k++)
        to[k] = a[k] + b[k];
    check(&sum, json_object_get(all, "whole"));
}

TEST(nothing_scored_is_zero)
{
    CHECK(co_bleu_score(&(co_bleu){0}) == 0 && co_error_rate_value(&(co_error_rate){0}) == 0, "not 0");
}

static co_err score_one(void *ctx)
{
    struct scores s = {0};
    co_err err = co_bleu_add(&s.bleu, "a & b.", "a b &amp; c");

    if (!err)
        err = co_cer_add(&s.cer, "ab", "b");
    return err ? err : co_wer_add(&s.wer, "a b", "b");
}

TEST(scores_without_memory_say_so_and_leak_nothing)
{
    test_each_alloc_fails(score_one, NULL);
}
