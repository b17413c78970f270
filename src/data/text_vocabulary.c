/* text_vocabulary.c -- the characters of a text without the text, as a checkpoint holds them:
 *
 *     {"format": "text 1", "max_len": 64, "characters": "\n abc"}
 *
 * The i-th character is token i + 1; they rise. With them, lines of the user's own become samples: the
 * prediction for a line is the character that follows it.
 */
#include "data/text_int.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "data/vocabulary_int.h"

#define FORMAT "text 1"

void text_vocabulary(const co_dataset *d, co_str *out)
{
    const struct text *t = (const struct text *)d;
    co_str all = {0};

    for (int64_t i = 1; i < d->io.classes; i++) {
        char c[4];
        co_str_addn(&all, c, (size_t)co_utf8_put(c, t->code_of[i]));
    }
    json_t *object = co_str_err(&all)
                         ? NULL
                         : json_pack("{s:s, s:I, s:s#}", "format", FORMAT, "max_len",
                                     (json_int_t)d->io.max_len, "characters", all.p, (int)all.len);
    vocabulary_add(out, object);
    co_str_fini(&all);
}

/* --- opening -------------------------------------------------------------------------------------------- */
static co_err mark_characters(struct text *t, const char *all, size_t len)
{
    uint32_t code, before = 0;

    for (const char *at = all; at < all + len;) {
        int n = co_utf8_get(&code, at, (size_t)(all + len - at));
        if (n == 0 || code <= before)
            return co_fail(CO_EINPUT, "vocabulary: its characters do not rise at byte %zu", (size_t)(at - all));
        t->token_of[code] = 1;
        before = code;
        at += n;
    }
    if (!t->token_of['\n'])
        return co_fail(CO_EINPUT, "vocabulary: its characters have no newline");
    return text_number_tokens(t);
}

static co_err read_all(co_dataset **out, const json_t *all)
{
    const json_t *characters = json_object_get(all, "characters");
    long long max_len = 0;

    co_json_i64(all, "max_len", &max_len);
    if (!json_is_string(characters) || max_len < 2 || max_len > 65536)
        return co_fail(CO_EINPUT, "vocabulary: characters or max_len is missing");
    struct text *t = text_new((int)max_len);
    if (!t)
        return CO_ENOMEM;
    *out = &t->base;
    return mark_characters(t, json_string_value(characters), json_string_length(characters));
}

co_err text_open_vocabulary(co_dataset **out, const char *json, size_t len)
{
    return vocabulary_open(out, json, len, FORMAT, read_all);
}

/* --- lines as samples ----------------------------------------------------------------------------------- */
/* The last max_len - 1 characters of a line: the model has no places for more. *characters: how many. */
static co_err end_of_line(const struct text *like, const char *line, long long number, const char **from,
                          int *characters)
{
    int n = 0, most = like->max_len - 1;
    uint32_t code;

    for (const char *at = line; *at; n++) {
        int len = co_utf8_get(&code, at, 4);
        if (len == 0)
            return co_fail(CO_EINPUT, "line %lld is not UTF-8", number);
        if (!like->token_of[code])
            return co_fail(CO_EINPUT,
                           "line %lld has the character %.*s (U+%04X), which the run was not trained on",
                           number, len, at, code);
        at += len;
    }
    *characters = n < most ? n : most;
    *from = line;
    for (int i = 0; i < n - *characters; i++)
        *from += co_utf8_get(&code, *from, 4);
    return CO_OK;
}

static co_err add_lines(struct text *t, const struct text *like, const char *const *lines, int n,
                        long long first)
{
    co_str bytes = {0};
    co_err err = CO_OK;

    for (int i = 0; i < n && !err; i++) {
        const char *from = NULL;
        int characters = 0;
        if ((err = end_of_line(like, lines[i], first + i, &from, &characters)))
            break;
        t->place[i] = (uint32_t)i;
        t->pieces[i] = (struct piece){(uint32_t)bytes.len, (uint32_t)characters + 1, 1};
        co_str_add(&bytes, from);
        if (bytes.len > INT32_MAX)
            err = co_fail(CO_EINPUT, "the lines have more than 2 GiB");
    }
    if (!err)
        err = co_str_err(&bytes);
    t->n_bytes = bytes.len;
    t->bytes = co_str_take(&bytes);
    co_str_fini(&bytes);
    return err;
}

co_err co_lines_open(co_dataset **out, const co_dataset *like, const char *const *lines, int n, long long first)
{
    const struct text *of = (const struct text *)like;
    struct text *t;

    if (like->vocabulary != text_vocabulary)
        return co_fail(CO_EINPUT, "lines can be continued by a run on data=text only");
    if (!(t = text_new(of->max_len)))
        return CO_ENOMEM;
    size_t classes = (size_t)like->io.classes;
    t->pieces = co_array((size_t)n, sizeof *t->pieces);
    t->place = co_array((size_t)n, sizeof *t->place);
    t->code_of = co_array(classes, sizeof *t->code_of);
    co_err err = t->pieces && t->place && t->code_of ? add_lines(t, of, lines, n, first) : CO_ENOMEM;
    if (err) {
        t->base.close(&t->base);
        return err;
    }
    memcpy(t->code_of, of->code_of, classes * sizeof *t->code_of);
    for (size_t i = 1; i < classes; i++)
        t->token_of[t->code_of[i]] = (int32_t)i;
    t->base.def = like->def;
    t->base.io.classes = like->io.classes;
    t->base.count[CO_SPLIT_TEST] = (uint32_t)n;
    *out = &t->base;
    return CO_OK;
}
