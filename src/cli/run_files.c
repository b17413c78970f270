/* run_files.c -- files that a data set gives to the run's folder, such as its tokenizers:
 * tokenizer_en.json.
 *
 * Weights know the numbers of tokens only. Whoever uses a run's weights again (a continued run, test,
 * predict) compares the files of the run with those of the data at hand, byte by byte, and refuses to mix
 * them up.
 */
#include "cli/cli_int.h"

#include <string.h>

#include "base/fs.h"

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

static co_err compare(const char *path, const char *name, const char *bytes, size_t len)
{
    char *runs;
    size_t runs_len;

    CO_TRY(co_fs_read(&runs, &runs_len, path, MOST_BYTES));
    bool same = runs_len == len && memcmp(runs, bytes, len) == 0;
    co_free(runs);
    if (same)
        return CO_OK;
    int folder = (int)(strlen(path) - strlen(name));
    return co_fail(
        CO_EINPUT,
        "%s of the data at hand has another vocabulary than the run's (%s): its tokens would mean other words"
        " to the weights. Give the run's own tokenizers, data.tokenizer_src=%.*s... and data.tokenizer_tgt,"
        " or the pairs that the run was trained on",
        name, path, folder, path);
}

co_err run_files_check(const char *checkpoint, const co_dataset *data)
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
