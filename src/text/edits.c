/* edits.c -- character and word error rate: the least number of insertions, deletions and replacements
 * that turn what was predicted into what was wanted (Levenshtein 1966), summed over sentences and divided
 * by the length wanted.
 *
 * Cost: the product of both lengths, memory for one row.
 */
#include "text/score_int.h"

#include "base/alloc.h"

typedef bool (*same_fn)(const void *a, size_t i, const void *b, size_t j);

/* a and b have n and m items. `row` has room for m + 1 numbers. */
static uint32_t distance(const void *a, size_t n, const void *b, size_t m, same_fn same, uint32_t *row)
{
    for (size_t j = 0; j <= m; j++)
        row[j] = (uint32_t)j;
    for (size_t i = 0; i < n; i++) {
        uint32_t corner = row[0];
        row[0] = (uint32_t)i + 1;
        for (size_t j = 0; j < m; j++) {
            uint32_t best = corner + !same(a, i, b, j);
            corner = row[j + 1];
            best = corner + 1 < best ? corner + 1 : best;
            row[j + 1] = row[j] + 1 < best ? row[j] + 1 : best;
        }
    }
    return row[m];
}

static bool same_char(const void *a, size_t i, const void *b, size_t j)
{
    return ((const uint32_t *)a)[i] == ((const uint32_t *)b)[j];
}

static bool same_word(const void *a, size_t i, const void *b, size_t j)
{
    return word_same((const word *)a + i, (const word *)b + j);
}

static co_err add(co_error_rate *r, const void *a, size_t n, const void *b, size_t m, same_fn same)
{
    uint32_t *row = co_array(m + 1, sizeof *row);

    if (!row)
        return CO_ENOMEM;
    r->edits += distance(a, n, b, m, same, row);
    r->wanted += m;
    r->sentences++;
    co_free(row);
    return CO_OK;
}

co_err co_cer_add(co_error_rate *r, const char *predicted, const char *wanted)
{
    uint32_t *a = NULL, *b = NULL;
    size_t n, m;
    co_err err = split_chars(&a, &n, predicted);

    if (!err)
        err = split_chars(&b, &m, wanted);
    if (!err)
        err = add(r, a, n, b, m, same_char);
    co_free(a);
    co_free(b);
    return err;
}

co_err co_wer_add(co_error_rate *r, const char *predicted, const char *wanted)
{
    word_list a = {0}, b = {0};
    co_err err = split_words(&a, predicted);

    if (!err)
        err = split_words(&b, wanted);
    if (!err)
        err = add(r, a.word, a.n, b.word, b.n, same_word);
    co_free(a.word);
    co_free(b.word);
    return err;
}

double co_error_rate_value(const co_error_rate *r)
{
    return r->wanted ? (double)r->edits / (double)r->wanted : r->edits ? 1 : 0;
}
