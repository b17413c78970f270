/* pairs_vocabulary.c -- all that is needed to translate a sentence without the pairs: languages, both
 * tokenizers with every byte of their files, and the longest sentence. A checkpoint has it as one JSON
 * object:
 *
 *     {"format": "pairs 1", "lang_src": "en", "lang_tgt": "it", "max_len": 350, "tokenizer_src": "...", ...}
 */
#include "data/pairs_int.h"

#include <string.h>

#include "base/json.h"
#include "data/vocabulary_int.h"

#define FORMAT "pairs 1"
static const char *const keys[] = {"tokenizer_src", "tokenizer_tgt"};

void pairs_vocabulary(const co_dataset *d, co_str *out)
{
    const struct pairs *set = (const struct pairs *)d;
    json_t *all = json_pack("{s:s, s:s, s:s, s:I}", "format", FORMAT, "lang_src", set->lang[0], "lang_tgt",
                            set->lang[1], "max_len", (json_int_t)set->limit);

    for (int side = 0; side < 2; side++) {
        size_t len;
        const char *file = co_tokenizer_file(set->tokenizer[side], &len);
        json_object_set_new(all, keys[side], json_stringn(file, len));
    }
    vocabulary_add(out, all);
}

static co_err read_all(co_dataset **out, const json_t *all)
{
    const char *src = co_json_str(all, "lang_src"), *tgt = co_json_str(all, "lang_tgt");
    long long limit;

    if (!src || !tgt || !co_json_i64(all, "max_len", &limit) || limit < 3 || limit > 65536)
        return co_fail(CO_EINPUT, "vocabulary: lang_src, lang_tgt or max_len is missing");
    struct pairs *set = pairs_new(src, tgt, limit);
    if (!set)
        return CO_ENOMEM;
    *out = &set->base;
    for (int side = 0; side < 2; side++) {
        const char *file = co_json_str(all, keys[side]);
        if (!file)
            return co_fail(CO_EINPUT, "vocabulary: %s is missing", keys[side]);
        CO_TRY(co_tokenizer_parse(&set->tokenizer[side], file, strlen(file), keys[side]));
        CO_TRY(co_tokenizer_marks(set->tokenizer[side], &set->marks[side]));
    }
    return pairs_set_io(set, limit);
}

co_err pairs_open_vocabulary(co_dataset **out, const char *json, size_t len)
{
    return vocabulary_open(out, json, len, FORMAT, read_all);
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
