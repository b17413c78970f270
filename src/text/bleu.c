/* bleu.c -- BLEU of a corpus (Papineni and others 2002), as sacrebleu computes it by default (Post 2018).
 *
 * Per sentence the n-grams of n = 1 to 4 words are counted; one that the reference has less often counts
 * only that often. The counts of all sentences are added before anything is divided. An order without a
 * match counts as 1/2, 1/4, ... of one ("exp"). Short output is punished by exp(1 - wanted / predicted).
 *
 * Cost: per sentence of m words m log m for sorting each order's n-grams.
 */
#include "text/score_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/maths.h"

enum { ORDERS = 4 };

/* An n-gram is a pointer to its first word; n is the same for all that are compared. */
static int compare_words(const word *a, const word *b)
{
    uint32_t least = a->len < b->len ? a->len : b->len;
    int c = memcmp(a->text, b->text, least);

    return c ? c : (a->len > b->len) - (a->len < b->len);
}

static int compare_grams(const word *a, const word *b, int n)
{
    int c = 0;

    for (int i = 0; i < n && c == 0; i++)
        c = compare_words(&a[i], &b[i]);
    return c;
}

static int by_gram(const void *a, const void *b, void *n)
{
    return compare_grams(*(const word *const *)a, *(const word *const *)b, *(int *)n);
}

static size_t count_grams(const word_list *words, int n)
{
    return words->n < (size_t)n ? 0 : words->n - (size_t)n + 1;
}

/* The n-grams of a sentence, sorted. `grams` has room for all its words. */
static size_t sort_grams(const word **grams, const word_list *words, int n)
{
    size_t count = count_grams(words, n);

    for (size_t i = 0; i < count; i++)
        grams[i] = &words->word[i];
    qsort_r(grams, count, sizeof *grams, by_gram, &n);
    return count;
}

/* Both are sorted: what they have in common, each n-gram as often as the one that has it less often. */
static uint64_t count_common(const word **a, size_t n_a, const word **b, size_t n_b, int n)
{
    uint64_t common = 0;

    for (size_t i = 0, j = 0; i < n_a && j < n_b;) {
        int c = compare_grams(a[i], b[j], n);
        common += c == 0;
        i += c <= 0;
        j += c >= 0;
    }
    return common;
}

static co_err add_words(co_bleu *b, const word_list *predicted, const word_list *wanted)
{
    const word **grams = co_array(predicted->n + wanted->n + 1, sizeof *grams), **second = grams + predicted->n;

    if (!grams)
        return CO_ENOMEM;
    for (int n = 1; n <= ORDERS; n++) {
        size_t n_a = sort_grams(grams, predicted, n), n_b = sort_grams(second, wanted, n);
        b->correct[n - 1] += count_common(grams, n_a, second, n_b, n);
        b->total[n - 1] += n_a;
    }
    b->predicted += predicted->n;
    b->wanted += wanted->n;
    b->sentences++;
    co_free(grams);
    return CO_OK;
}

co_err co_bleu_add(co_bleu *b, const char *predicted, const char *wanted)
{
    co_str text[2] = {0};
    word_list words[2] = {0};
    co_err err = CO_OK;

    for (int i = 0; i < 2 && !err; i++) {
        tokenize_13a(&text[i], i == 0 ? predicted : wanted);
        err = co_str_err(&text[i]);
        if (!err)
            err = split_words(&words[i], co_str_text(&text[i]));
    }
    if (!err)
        err = add_words(b, &words[0], &words[1]);
    for (int i = 0; i < 2; i++) {
        co_free(words[i].word);
        co_str_fini(&text[i]);
    }
    return err;
}

double co_bleu_score(const co_bleu *b)
{
    double sum = 0, smooth = 1, brevity = 1;

    if (b->correct[0] == 0) /* then no order has a match */
        return 0;
    for (int n = 0; n < ORDERS; n++) {
        if (b->total[n] == 0)
            return 0;
        smooth *= b->correct[n] ? 1 : 2;
        sum += co_log((b->correct[n] ? (double)b->correct[n] : 1 / smooth) / (double)b->total[n]);
    }
    if (b->predicted < b->wanted)
        brevity = co_exp(1 - (double)b->wanted / (double)b->predicted);
    return 100 * brevity * co_exp(sum / ORDERS);
}
