/* run_files.c -- files that a data set gives to the run's folder, such as its tokenizers:
 * tokenizer_en.json.
 *
 * Weights know the numbers of tokens only. Whoever uses a run's weights again (a continued run, test,
 * predict, weights=RUN) compares the files of the run with those of the data at hand, byte by byte, and refuses
 * to mix them up. The message names the first token that differs.
 */
#include "cli/cli_int.h"

#include <string.h>

#include "base/fs.h"
#include "base/json.h"

enum { MOST_BYTES = 128 << 20 };

co_err run_files_write(const co_dataset *data, co_folder *folder)
{
    co_err err = CO_OK;
    bool more = data->run_file != NULL;

    for (int i = 0; more && !err; i++) {
        co_str name = {0};
        const char *bytes;
        size_t len;
        more = data->run_file(data, i, &name, &bytes, &len);
        err = co_str_err(&name);
        if (more && !err)
            err = co_folder_write(folder, co_str_text(&name), bytes, len);
        co_str_fini(&name);
    }
    return err;
}

/* The lowest id of `a` whose token has another id in `b`, or none. -1: there is no such token. */
static json_int_t first_other(json_t *a, json_t *b)
{
    const char *token;
    json_t *id;
    json_int_t least = -1;

    json_object_foreach(a, token, id)
    {
        json_t *there = json_object_get(b, token);
        json_int_t at = json_integer_value(id);
        if ((!there || json_integer_value(there) != at) && (least < 0 || at < least))
            least = at;
    }
    return least;
}

/* The token of this number, to be printed. */
static const char *token_at(char out[64], json_t *vocabulary, json_int_t at)
{
    const char *token;
    json_t *id;

    json_object_foreach(vocabulary, token, id) if (json_integer_value(id) == at)
    {
        co_utf8_clean(out, 64, token);
        return out;
    }
    return "no token";
}

/* Adds the first token that differs, and how many there are, if both files list their tokens. */
static void tell_difference(co_str *out, const char *runs, size_t runs_len, const char *bytes, size_t len)
{
    json_t *file[2] = {NULL, NULL}, *words[2] = {NULL, NULL};
    char shown[2][64];

    if (co_json_parse(&file[0], runs, runs_len, "") == CO_OK && co_json_parse(&file[1], bytes, len, "") == CO_OK)
        for (int i = 0; i < 2; i++)
            words[i] = json_object_get(json_object_get(file[i], "model"), "vocab");
    if (json_is_object(words[0]) && json_is_object(words[1])) {
        json_int_t a = first_other(words[0], words[1]), b = first_other(words[1], words[0]);
        json_int_t at = a < 0 || (b >= 0 && b < a) ? b : a;
        if (at >= 0)
            co_str_addf(out, ". Token %lld is \"%s\" in the run's and \"%s\" here (%zu tokens there, %zu here)",
                        (long long)at, token_at(shown[0], words[0], at), token_at(shown[1], words[1], at),
                        json_object_size(words[0]), json_object_size(words[1]));
    }
    json_decref(file[0]);
    json_decref(file[1]);
}

static co_err compare(const char *path, const char *name, const char *bytes, size_t len)
{
    char *runs;
    size_t runs_len;
    co_str first = {0};

    CO_TRY(co_fs_read(&runs, &runs_len, path, MOST_BYTES));
    bool same = runs_len == len && memcmp(runs, bytes, len) == 0;
    if (!same)
        tell_difference(&first, runs, runs_len, bytes, len);
    co_free(runs);
    int folder = (int)(strlen(path) - strlen(name));
    co_err err =
        same ? CO_OK
             : co_fail(
                   CO_EINPUT,
                   "%s of the data at hand has another vocabulary than the run's (%s): its tokens would mean"
                   " other words to the weights%s. Give the run's own tokenizers, data.tokenizer_src=%.*s..."
                   " and data.tokenizer_tgt, or the pairs that the run was trained on",
                   name, path, co_str_text(&first), folder, path);
    co_str_fini(&first);
    return err;
}

static co_err run_files_check(const char *checkpoint, const co_dataset *data)
{
    char *config = checkpoint && data->run_file ? run_config_of(checkpoint) : NULL;
    const char *slash = config ? strrchr(config, '/') : NULL;
    co_err err = CO_OK;
    bool more = slash != NULL;

    for (int i = 0; more && !err; i++) {
        co_str name = {0};
        const char *bytes;
        size_t len;
        more = data->run_file(data, i, &name, &bytes, &len);
        char *path = more ? co_sprintf("%.*s/%s", (int)(slash - config), config, co_str_text(&name)) : NULL;
        if (more && (!path || co_str_err(&name)))
            err = CO_ENOMEM;
        else if (path && co_fs_exists(path))
            err = compare(path, co_str_text(&name), bytes, len);
        co_free(path);
        co_str_fini(&name);
    }
    co_free(config);
    return err;
}

co_err check_data(const co_train_spec *spec, const co_dataset *data)
{
    const co_train_cfg *cfg = spec->cfg;
    const char *from = spec->resume ? spec->resume : cfg->weights;
    co_err err = run_files_check(from, data);

    if (!err)
        err = ids_check(from, data);
    if (err != CO_EINPUT || spec->resume || !cfg->weights_skip)
        return err;
    co_notice("%s. This is only a warning, because weights_skip=%s leaves out some tensors", co_errmsg(),
              cfg->weights_skip);
    return CO_OK;
}
