/* tokenizer_read.c -- the JSON of the tokenizers library: everything but its model, which is read_model.c's.
 *
 * What is not known is refused by its name, because a part that is passed over would give other tokens. A
 * post-processor only puts marks around sentences, which the caller does by itself: it is not applied.
 */
#include "text/text_int.h"

#include <string.h>

#include "base/fs.h"

enum { MOST_BYTES = 64 << 20, NAME_MAX_LEN = 1024 };

co_err only_keys(json_t *obj, const char *what, const char *keys)
{
    const char *key;
    json_t *value;

    json_object_foreach(obj, key, value)
    {
        size_t len = strlen(key);
        const char *at = keys;
        while (*at && (strncmp(at, key, len) != 0 || (at[len] && at[len] != ' '))) {
            at += strcspn(at, " ");
            at += strspn(at, " ");
        }
        if (!*at)
            return co_fail(CO_EINPUT, "%s has \"%s\", which is not known here", what, key);
    }
    return CO_OK;
}

/* The type of a part; "" if it is null or absent. */
static const char *type_of(json_t *part)
{
    const char *type = co_json_str(part, "type");

    return type ? type : json_is_object(part) ? "something without a type" : "";
}

static co_err unknown(const char *part, const char *type, const char *known)
{
    return co_fail(CO_EINPUT, "its %s is %s, which is not known here (known are %s)", part, type, known);
}

/* --- normaliser --------------------------------------------------------------------------------------- */
static co_err read_normaliser(co_tokenizer *t, json_t *part, int depth)
{
    const char *type = type_of(part);
    json_t *list = json_object_get(part, "normalizers"), *item;
    size_t i;

    if (!*type)
        return CO_OK;
    if (strcmp(type, "Lowercase") == 0) {
        t->lower = true;
        return only_keys(part, "the normalizer Lowercase", "type");
    }
    if (strcmp(type, "Sequence") != 0 || !json_is_array(list) || depth > 0)
        return unknown("normalizer", type, "Lowercase, and a Sequence of it");
    json_array_foreach(list, i, item) CO_TRY(read_normaliser(t, item, depth + 1));
    return CO_OK;
}

/* --- pre-tokenisers ----------------------------------------------------------------------------------- */
static bool flag(json_t *obj, const char *key, bool fallback)
{
    json_t *value = json_object_get(obj, key);

    return json_is_boolean(value) ? json_is_true(value) : fallback;
}

static co_err read_cutter(co_tokenizer *t, json_t *part, int depth)
{
    static const char *const types[] = {"Whitespace", "WhitespaceSplit", "ByteLevel"};
    const char *type = type_of(part);
    json_t *list = json_object_get(part, "pretokenizers"), *item;
    size_t i;

    if (!*type)
        return CO_OK;
    if (strcmp(type, "Sequence") == 0 && json_is_array(list) && depth == 0) {
        json_array_foreach(list, i, item) CO_TRY(read_cutter(t, item, depth + 1));
        return CO_OK;
    }
    for (i = 0; i < CO_COUNT(types) && strcmp(types[i], type) != 0; i++)
        ;
    if (i == CO_COUNT(types) || t->n_cuts == CUTS_MAX)
        return unknown("pre_tokenizer", type,
                       "Whitespace, WhitespaceSplit, ByteLevel, and a short Sequence of them");
    CO_TRY(only_keys(part, "the pre_tokenizer", "type add_prefix_space trim_offsets use_regex"));
    t->cut[t->n_cuts++] =
        (cutter){(cut_kind)i, flag(part, "add_prefix_space", true), flag(part, "use_regex", true)};
    return CO_OK;
}

/* --- decoder, post-processor -------------------------------------------------------------------------- */
static co_err read_decoder(co_tokenizer *t, json_t *part)
{
    const char *type = type_of(part), *suffix = co_json_str(part, "suffix");

    t->decode_suffix = "";
    if (!*type)
        return CO_OK;
    if (strcmp(type, "ByteLevel") == 0) {
        t->decode = DECODE_BYTES;
        return CO_OK;
    }
    if (strcmp(type, "BPEDecoder") != 0 || !suffix)
        return unknown("decoder", type, "ByteLevel and BPEDecoder");
    t->decode = DECODE_SUFFIX;
    t->decode_suffix = co_pool_str(&t->pool, suffix);
    return t->decode_suffix ? CO_OK : CO_ENOMEM;
}

static co_err read_post(json_t *part)
{
    static const char *const types[] = {"", "ByteLevel", "TemplateProcessing", "BertProcessing",
                                        "RobertaProcessing"};
    const char *type = type_of(part);

    for (size_t i = 0; i < CO_COUNT(types); i++)
        if (strcmp(types[i], type) == 0)
            return CO_OK;
    return unknown("post_processor", type, "ByteLevel and TemplateProcessing");
}

/* --- added tokens ------------------------------------------------------------------------------------- */
static co_err read_added(co_tokenizer *t, added_token *a, json_t *item)
{
    const char *text = co_json_str(item, "content");
    long long id;

    if (!text || !*text || strlen(text) > NAME_MAX_LEN || !co_json_i64(item, "id", &id) || id < 0 ||
        id > INT32_MAX - 1)
        return co_fail(CO_EINPUT, "one of its added_tokens has no \"content\" or no \"id\"");
    for (const char *const *key = (const char *const[]){"single_word", "lstrip", "rstrip", NULL}; *key; key++)
        if (flag(item, *key, false))
            return co_fail(CO_EINPUT, "its added token %s has %s, which is not known here", text, *key);
    const name_slot *known = name_find(&t->vocab, text, strlen(text));
    if (known && known->value != id)
        return co_fail(CO_EINPUT, "its added token %s has the number %lld, the vocabulary gives it %lld",
                       text, id, (long long)known->value);
    bool special = flag(item, "special", false);
    *a = (added_token){.id = (int32_t)id, .special = special, .late = flag(item, "normalized", !special)};
    a->text = co_pool_str(&t->pool, text);
    return a->text ? CO_OK : CO_ENOMEM;
}

static co_err read_all_added(co_tokenizer *t, json_t *list)
{
    json_t *item;
    size_t i;

    if (list && !json_is_null(list) && !json_is_array(list))
        return co_fail(CO_EINPUT, "its added_tokens are no list");
    if (json_array_size(list) > 4096)
        return co_fail(CO_EINPUT, "it has %zu added_tokens; at most 4096 are taken", json_array_size(list));
    if (!(t->added = co_array(json_array_size(list) + 1, sizeof *t->added)))
        return CO_ENOMEM;
    json_array_foreach(list, i, item)
    {
        CO_TRY(read_added(t, &t->added[i], item));
        t->n_added++;
    }
    return CO_OK;
}

/* --- numbers ------------------------------------------------------------------------------------------ */
static co_err name_number(co_tokenizer *t, int64_t id, const char *text)
{
    if (t->token[id] && strcmp(t->token[id], text) != 0)
        return co_fail(CO_EINPUT, "its tokens %s and %s have the same number, %lld", t->token[id], text,
                       (long long)id);
    t->token[id] = text;
    return CO_OK;
}

/* token[] and special[] from the vocabulary and the added tokens. */
static co_err number_tokens(co_tokenizer *t)
{
    int64_t most = -1, count = (int64_t)(t->vocab.n + t->n_added);

    for (size_t i = 0; i < t->vocab.room; i++)
        if (t->vocab.slot[i].text && t->vocab.slot[i].value > most)
            most = t->vocab.slot[i].value;
    for (size_t i = 0; i < t->n_added; i++)
        most = t->added[i].id > most ? t->added[i].id : most;
    if (most < 0 || most >= 2 * count + 1024)
        return co_fail(CO_EINPUT, "its %lld tokens are numbered to %lld: that is too sparse",
                       (long long)count, (long long)most);
    t->size = most + 1;
    t->token = co_array((size_t)t->size, sizeof *t->token);
    t->special = co_array((size_t)t->size, sizeof *t->special);
    if (!t->token || !t->special)
        return CO_ENOMEM;
    for (size_t i = 0; i < t->vocab.room; i++)
        if (t->vocab.slot[i].text)
            CO_TRY(name_number(t, t->vocab.slot[i].value, t->vocab.slot[i].text));
    for (size_t i = 0; i < t->n_added; i++) {
        CO_TRY(name_number(t, t->added[i].id, t->added[i].text));
        t->special[t->added[i].id] = t->added[i].special;
    }
    return CO_OK;
}

/* From here on `text` of an added token is what is looked for. */
static co_err prepare_added(co_tokenizer *t)
{
    for (size_t i = 0; i < t->n_added; i++) {
        added_token *a = &t->added[i];
        co_str low = {0};
        if (a->late && t->lower) {
            add_lower(&low, a->text, strlen(a->text));
            a->text = co_str_err(&low) ? NULL : co_pool_str(&t->pool, co_str_text(&low));
        }
        co_str_fini(&low);
        if (!a->text)
            return CO_ENOMEM;
        a->len = strlen(a->text);
    }
    return CO_OK;
}

/* --- the whole ---------------------------------------------------------------------------------------- */
static co_err read_parts(co_tokenizer *t, json_t *root)
{
    static const char *const null_only[] = {"truncation", "padding"};

    if (!json_is_object(root) || !json_is_object(json_object_get(root, "model")))
        return co_fail(CO_EINPUT, "it is not a file of the tokenizers library: it has no \"model\"");
    CO_TRY(only_keys(
        root, "it",
        "version truncation padding added_tokens normalizer pre_tokenizer post_processor decoder model"));
    for (size_t i = 0; i < CO_COUNT(null_only); i++) {
        json_t *value = json_object_get(root, null_only[i]);
        if (value && !json_is_null(value))
            return co_fail(CO_EINPUT,
                           "its %s is not null; write null there: sentences are cut and filled up by"
                           " the data set, if at all",
                           null_only[i]);
    }
    CO_TRY(read_normaliser(t, json_object_get(root, "normalizer"), 0));
    CO_TRY(read_cutter(t, json_object_get(root, "pre_tokenizer"), 0));
    CO_TRY(read_post(json_object_get(root, "post_processor")));
    CO_TRY(read_decoder(t, json_object_get(root, "decoder")));
    CO_TRY(read_model(t, json_object_get(root, "model")));
    CO_TRY(read_all_added(t, json_object_get(root, "added_tokens")));
    CO_TRY(number_tokens(t));
    return prepare_added(t);
}

co_err co_tokenizer_parse(co_tokenizer **out, const char *bytes, size_t len, const char *what)
{
    json_t *root;
    co_err err = co_json_parse(&root, bytes, len, what);

    if (err)
        return err == CO_ENOMEM ? err : co_fail_in(CO_EINPUT, "tokenizer");
    co_tokenizer *t = co_zalloc(sizeof *t);
    err = t ? read_parts(t, root) : CO_ENOMEM;
    json_decref(root);
    if (!err && !(t->file = co_alloc(len + 1)))
        err = CO_ENOMEM;
    if (err) {
        co_tokenizer_free(t);
        return err == CO_EINPUT ? co_fail_in(err, "tokenizer %s", what) : err;
    }
    memcpy(t->file, bytes, len);
    t->file[len] = 0;
    t->file_len = len;
    *out = t;
    return CO_OK;
}

co_err co_tokenizer_read(co_tokenizer **out, const char *path)
{
    char *bytes;
    size_t len;
    co_err err = co_fs_read(&bytes, &len, path, MOST_BYTES);

    if (err)
        return err == CO_ENOMEM ? err : co_fail_in(CO_EINPUT, "tokenizer");
    err = co_tokenizer_parse(out, bytes, len, path);
    co_free(bytes);
    return err;
}
