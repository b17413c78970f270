/* read_model.c -- the model of a tokeniser's file: WordLevel, or BPE with its merges. */
#include "text/text_int.h"

#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 1 << 24, MERGES_MOST = 1 << 22 };

static co_err read_vocab(co_tokenizer *t, json_t *vocab)
{
    const char *text;
    json_t *value;

    if (!json_is_object(vocab) || json_object_size(vocab) == 0)
        return co_fail(CO_EINPUT, "its model has no vocab");
    json_object_foreach(vocab, text, value)
    {
        if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) >= NUMBERS)
            return co_fail(CO_EINPUT, "the number of the token %s is none from 0 to %d", text, NUMBERS - 1);
        name_slot *slot = name_put(&t->vocab, text, strlen(text));
        if (!slot)
            return CO_ENOMEM;
        slot->value = json_integer_value(value);
    }
    return CO_OK;
}

/* unk_token: its number, or -1 if it is null. */
static co_err read_unknown(co_tokenizer *t, json_t *model)
{
    const char *text = co_json_str(model, "unk_token");
    const name_slot *slot = text ? name_find(&t->vocab, text, strlen(text)) : NULL;

    t->unknown = slot ? (int32_t)slot->value : -1;
    if (text && !slot)
        return co_fail(CO_EINPUT, "its unk_token %s is not in the vocab", text);
    return CO_OK;
}

static co_err read_words(co_tokenizer *t, json_t *model)
{
    CO_TRY(only_keys(model, "its model", "type vocab unk_token"));
    t->model = MODEL_WORDS;
    CO_TRY(read_vocab(t, json_object_get(model, "vocab")));
    CO_TRY(read_unknown(t, model));
    if (t->unknown < 0)
        return co_fail(CO_EINPUT, "its model has no unk_token for words that it does not know");
    return CO_OK;
}

/* --- merges ------------------------------------------------------------------------------------------- */
/* The two sides of a merge: "a b", or ["a", "b"]. `room` holds a copy. */
static bool sides_of(json_t *item, char **room, const char **left, const char **right)
{
    const char *text = json_string_value(item);

    *room = NULL;
    if (text) {
        *room = co_strdup(text);
        char *blank = *room ? strchr(*room, ' ') : NULL;
        if (!blank || strchr(blank + 1, ' '))
            return false;
        *blank = 0;
        *left = *room;
        *right = blank + 1;
        return true;
    }
    *left = json_string_value(json_array_get(item, 0));
    *right = json_string_value(json_array_get(item, 1));
    return *left && *right && json_array_size(item) == 2;
}

static co_err number_of(const co_tokenizer *t, const char *text, size_t rank, int32_t *id)
{
    const name_slot *slot = name_find(&t->vocab, text, strlen(text));

    if (!slot)
        return co_fail(CO_EINPUT, "merge %zu needs the token %s, which is not in the vocab", rank, text);
    *id = (int32_t)slot->value;
    return CO_OK;
}

static co_err read_merge(const co_tokenizer *t, merge *m, json_t *item, size_t rank)
{
    const char *left = "", *right = "";
    char *room, *joined = NULL;
    int32_t a = 0, b = 0;
    size_t skip = strlen(t->inner_prefix);
    co_err err = sides_of(item, &room, &left, &right)
                     ? CO_OK
                     : co_fail(CO_EINPUT, "merge %zu is neither \"a b\" nor [\"a\", \"b\"]", rank);

    if (!err)
        err = number_of(t, left, rank, &a);
    if (!err)
        err = number_of(t, right, rank, &b);
    if (!err && strlen(right) < skip)
        err = co_fail(CO_EINPUT, "merge %zu: its right side is shorter than continuing_subword_prefix", rank);
    if (!err && !(joined = co_sprintf("%s%s", left, right + skip)))
        err = CO_ENOMEM;
    *m = (merge){.rank = (uint32_t)rank};
    if (!err)
        err = number_of(t, joined, rank, &m->id);
    if (!err)
        m->pair = (uint64_t)(uint32_t)a << 32 | (uint32_t)b;
    co_free(joined);
    co_free(room);
    return err;
}

static int by_pair(const void *a, const void *b)
{
    const merge *left = a, *right = b;

    if (left->pair != right->pair)
        return left->pair < right->pair ? -1 : 1;
    return left->rank > right->rank ? -1 : 1; /* of two for one pair the later counts */
}

static co_err read_merges(co_tokenizer *t, json_t *list)
{
    json_t *item;
    size_t i, n = 0, many = json_array_size(list);

    if (!json_is_array(list) || many > MERGES_MOST)
        return co_fail(CO_EINPUT, "its model has no list of merges, or one of more than %d", (int)MERGES_MOST);
    if (!(t->merges = co_array(many + 1, sizeof *t->merges)))
        return CO_ENOMEM;
    json_array_foreach(list, i, item) CO_TRY(read_merge(t, &t->merges[i], item, i));
    qsort(t->merges, many, sizeof *t->merges, by_pair);
    for (i = 0; i < many; i++)
        if (n == 0 || t->merges[i].pair != t->merges[n - 1].pair)
            t->merges[n++] = t->merges[i];
    t->n_merges = n;
    return CO_OK;
}

/* --- BPE ---------------------------------------------------------------------------------------------- */
static co_err read_text(co_tokenizer *t, json_t *model, const char *key, const char **out)
{
    const char *text = co_json_str(model, key);

    *out = co_pool_str(&t->pool, text ? text : "");
    return *out ? CO_OK : CO_ENOMEM;
}

static co_err read_bpe(co_tokenizer *t, json_t *model)
{
    double dropout = 0;

    CO_TRY(
        only_keys(model, "its model",
                  "type vocab merges unk_token dropout continuing_subword_prefix end_of_word_suffix fuse_unk"
                  " byte_fallback ignore_merges"));
    if (co_json_f64(model, "dropout", &dropout) && dropout > 0)
        return co_fail(CO_EINPUT, "its model has a dropout of %g; only null is known here", dropout);
    t->model = MODEL_BPE;
    t->fuse_unknown = json_is_true(json_object_get(model, "fuse_unk"));
    t->bytes_back = json_is_true(json_object_get(model, "byte_fallback"));
    t->words_first = json_is_true(json_object_get(model, "ignore_merges"));
    CO_TRY(read_text(t, model, "continuing_subword_prefix", &t->inner_prefix));
    CO_TRY(read_text(t, model, "end_of_word_suffix", &t->end_suffix));
    if (t->bytes_back && (*t->inner_prefix || *t->end_suffix))
        return co_fail(CO_EINPUT,
                       "its model has byte_fallback with a prefix or suffix, which is not known here");
    CO_TRY(read_vocab(t, json_object_get(model, "vocab")));
    CO_TRY(read_unknown(t, model));
    return read_merges(t, json_object_get(model, "merges"));
}

co_err read_model(co_tokenizer *t, json_t *model)
{
    const char *type = co_json_str(model, "type");

    t->inner_prefix = t->end_suffix = "";
    if (type ? strcmp(type, "WordLevel") == 0 : !json_object_get(model, "merges"))
        return read_words(t, model);
    if (!type || strcmp(type, "BPE") == 0)
        return read_bpe(t, model);
    return co_fail(CO_EINPUT, "its model is %s, which is not known here (known are WordLevel and BPE)", type);
}
