/* words.c -- trains a word-level tokeniser: counts words, numbers them, writes the file, and reads it
 * back.
 *
 * The order of the numbers is that of the tokenizers library, and so is every byte of the file, so that
 * the same sentences give the same file here and there. Words are what the pre-tokeniser Whitespace cuts.
 */
#include "text/text_int.h"

#include <stdlib.h>
#include <string.h>

static const char *const specials[] = {"[UNK]", "[PAD]", "[SOS]", "[EOS]"};

struct co_word_counter {
    name_table words; /* value: how often */
    bool no_memory;
};

co_err co_word_counter_new(co_word_counter **out)
{
    co_word_counter *c = co_zalloc(sizeof *c);

    if (!c)
        return CO_ENOMEM;
    *out = c;
    return CO_OK;
}

void co_word_counter_free(co_word_counter *c)
{
    if (c)
        name_table_fini(&c->words);
    co_free(c);
}

static void count_word(void *ctx, const char *text, size_t len)
{
    co_word_counter *c = ctx;
    name_slot *slot = c->no_memory ? NULL : name_put(&c->words, text, len);

    if (slot)
        slot->value++;
    else
        c->no_memory = true;
}

co_err co_word_counter_add(co_word_counter *c, const char *text, size_t len)
{
    each_word(text, len, count_word, c);
    return c->no_memory ? CO_ENOMEM : CO_OK;
}

static int by_count(const void *a, const void *b)
{
    const name_slot *left = *(const name_slot *const *)a, *right = *(const name_slot *const *)b;

    if (left->value != right->value)
        return left->value > right->value ? -1 : 1;
    return strcmp(left->text, right->text);
}

/* The slots with words that are frequent enough, in order. */
static const name_slot **order_words(const co_word_counter *c, uint64_t min_count, size_t *n)
{
    const name_slot **word = co_array(c->words.n + 1, sizeof *word);

    *n = 0;
    for (size_t i = 0; word && i < c->words.room; i++)
        if (c->words.slot[i].text && (uint64_t)c->words.slot[i].value >= min_count)
            word[(*n)++] = &c->words.slot[i];
    if (word)
        qsort(word, *n, sizeof *word, by_count);
    return word;
}

co_err co_word_counter_tokenizer(const co_word_counter *c, co_tokenizer **out, uint64_t min_count,
                                 size_t most_tokens)
{
    size_t n, n_special = CO_COUNT(specials);
    co_str file = {0};
    const name_slot **word = order_words(c, min_count, &n);
    const char **token = word ? co_array(n + n_special, sizeof *token) : NULL;
    co_err err = token ? CO_OK : CO_ENOMEM;

    for (size_t i = 0; i < n_special && !err; i++)
        token[i] = specials[i];
    for (size_t i = 0; i < n && !err; i++)
        token[n_special + i] = word[i]->text;
    n += n_special;
    if (!err)
        write_words(&file, token, n < most_tokens ? n : most_tokens);
    err = err ? err : co_str_err(&file);
    if (!err)
        err = co_tokenizer_parse(out, co_str_text(&file), file.len, "the tokenizer");
    co_str_fini(&file);
    co_free(token);
    co_free(word);
    return err;
}

/* --- the file ----------------------------------------------------------------------------------------- */
/* As serde_json writes a string: only quotes, backslashes and control characters are escaped. */
static void add_json(co_str *out, const char *text)
{
    static const char *const escaped[128] = {['"'] = "\\\"", ['\\'] = "\\\\", ['\b'] = "\\b", ['\f'] = "\\f",
                                             ['\n'] = "\\n", ['\r'] = "\\r",  ['\t'] = "\\t"};

    co_str_add(out, "\"");
    for (const uint8_t *at = (const uint8_t *)text; *at; at++)
        if (*at < 128 && escaped[*at])
            co_str_add(out, escaped[*at]);
        else if (*at < 0x20)
            co_str_addf(out, "\\u%04x", *at);
        else
            co_str_addn(out, (const char *)at, 1);
    co_str_add(out, "\"");
}

static void add_special(co_str *out, size_t id, bool last)
{
    co_str_addf(out, "    {\n      \"id\": %zu,\n      \"content\": ", id);
    add_json(out, specials[id]);
    co_str_add(out, ",\n      \"single_word\": false,\n      \"lstrip\": false,\n      \"rstrip\": false,\n"
                    "      \"normalized\": false,\n      \"special\": true\n    }");
    co_str_add(out, last ? "\n" : ",\n");
}

void write_words(co_str *out, const char *const *token, size_t n)
{
    co_str_add(out, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n"
                    "  \"added_tokens\": [\n");
    for (size_t i = 0; i < CO_COUNT(specials); i++)
        add_special(out, i, i + 1 == CO_COUNT(specials));
    co_str_add(out,
               "  ],\n  \"normalizer\": null,\n  \"pre_tokenizer\": {\n    \"type\": \"Whitespace\"\n  },\n"
               "  \"post_processor\": null,\n  \"decoder\": null,\n  \"model\": {\n"
               "    \"type\": \"WordLevel\",\n    \"vocab\": {\n");
    for (size_t i = 0; i < n; i++) {
        co_str_add(out, "      ");
        add_json(out, token[i]);
        co_str_addf(out, ": %zu%s\n", i, i + 1 < n ? "," : "");
    }
    co_str_add(out, "    },\n    \"unk_token\": \"[UNK]\"\n  }\n}");
}
