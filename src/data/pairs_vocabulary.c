/* pairs_vocabulary.c -- all that is needed to translate a sentence without the pairs: languages, both
 * tokenizers with every byte of their files, and the longest sentence. A checkpoint has it as one JSON
 * object:
 *
 *     {"format": "pairs 1", "lang_src": "en", "lang_tgt": "it", "max_len": 350, "tokenizer_src": "...", ...}
 */
#include "data/pairs_int.h"

#include <string.h>

#include "base/json.h"

#define FORMAT "pairs 1"
static const char *const keys[] = {"tokenizer_src", "tokenizer_tgt"};

void pairs_vocabulary(const co_dataset *d, co_str *out)
{
    const struct pairs *set = (const struct pairs *)d;
    json_t *all = json_pack("{s:s, s:s, s:s, s:I}", "format", FORMAT, "lang_src", set->lang[0], "lang_tgt",
                            set->lang[1], "max_len", (json_int_t)set->limit);
    char *text;

    for (int side = 0; side < 2; side++) {
        size_t len;
        const char *file = co_tokenizer_file(set->tokenizer[side], &len);
        json_object_set_new(all, keys[side], json_stringn(file, len));
    }
    text = all ? co_json_text(all) : NULL;
    json_decref(all);
    if (text)
        co_str_add(out, text);
    else
        out->failed = true;
    co_free(text);
}

static co_err read_all(struct pairs **out, json_t *all)
{
    const char *format = co_json_str(all, "format"), *src = co_json_str(all, "lang_src"),
               *tgt = co_json_str(all, "lang_tgt");
    long long limit;

    if (!format || strcmp(format, FORMAT) != 0)
        return co_fail(CO_EINPUT, "vocabulary: its format is %s, not " FORMAT, format ? format : "not given");
    if (!src || !tgt || !co_json_i64(all, "max_len", &limit) || limit < 3 || limit > 65536)
        return co_fail(CO_EINPUT, "vocabulary: lang_src, lang_tgt or max_len is missing");
    if (!(*out = pairs_new(src, tgt, limit)))
        return CO_ENOMEM;
    for (int side = 0; side < 2; side++) {
        const char *file = co_json_str(all, keys[side]);
        if (!file)
            return co_fail(CO_EINPUT, "vocabulary: %s is missing", keys[side]);
        CO_TRY(co_tokenizer_parse(&(*out)->tokenizer[side], file, strlen(file), keys[side]));
        CO_TRY(co_tokenizer_marks((*out)->tokenizer[side], &(*out)->marks[side]));
    }
    return pairs_set_io(*out, limit);
}

co_err pairs_open_vocabulary(co_dataset **out, const char *json, size_t len)
{
    struct pairs *set = NULL;
    json_t *all;
    co_err err = co_json_parse(&all, json, len, "vocabulary");

    if (err)
        return err == CO_ENOMEM ? err : CO_EINPUT;
    err = read_all(&set, all);
    json_decref(all);
    if (err) {
        if (set)
            pairs_close(&set->base);
        return err;
    }
    *out = &set->base;
    return CO_OK;
}

bool pairs_run_file(const co_dataset *d, int i, co_str *name, const char **bytes, size_t *len)
{
    const struct pairs *set = (const struct pairs *)d;

    if (i > 1)
        return false;
    co_str_addf(name, "tokenizer_%s.json", set->lang[i]);
    *bytes = co_tokenizer_file(set->tokenizer[i], len);
    return true;
}
