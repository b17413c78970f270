/* fuzz_pairs.c -- any bytes as a file of pairs, in each format; of two files, both halves of the bytes.
 * What is accepted has two sides in UTF-8, neither empty, and splits. */
#include <stdlib.h>
#include <string.h>

#include "data/pairs_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static packed *stream_of(const uint8_t *bytes, size_t len)
{
    packed *in;

    if (packed_of_bytes(&in, bytes, len, "plain"))
        abort();
    return in;
}

static void check_list(const pair_list *list)
{
    uint32_t sources;
    uint8_t *part = co_array(list->n, 1);

    for (uint32_t i = 0; i < list->n; i++)
        for (int s = 0; s < 2; s++) {
            const char *text = pair_text(list, i, (co_side)s);
            if (!*text || strlen(text) != list->pair[i].side[s].len || !co_utf8_valid(text) ||
                strchr(text, '\n'))
                abort();
        }
    if (!part || pairs_split(part, list, &(pair_shares){.seed = 3}, &sources) || sources > list->n)
        abort();
    co_free(part);
}

static void try_format(pairs_format format, const pair_ask *ask, const uint8_t *bytes, size_t len)
{
    pair_list list = {0};
    size_t half = format == PAIRS_TWO_FILES ? len / 2 : len;
    packed *second = format == PAIRS_TWO_FILES ? stream_of(bytes + half, len - half) : NULL;

    if (pairs_parse(&list, format, stream_of(bytes, half), second, ask) == CO_OK)
        check_list(&list);
    else if (!*co_errmsg())
        abort(); /* refused without a word */
    pair_list_fini(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const pair_ask plain = {.lang = {"en", "it"}},
                          columns = {.lang = {"en", "it"}, .column = {"3", "name"}};

    try_format(PAIRS_TABS, &plain, bytes, len);
    try_format(PAIRS_TABS, &columns, bytes, len);
    try_format(PAIRS_JSON, &plain, bytes, len);
    try_format(PAIRS_TWO_FILES, &plain, bytes, len);
    return 0;
}
