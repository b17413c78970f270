/* login.c -- `cohort wandb login`: the key goes into netrc and nowhere else. */
#include "wandb/wandb_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"

co_err co_wandb_login(const char *key, const char *base_url, char *machine, size_t size)
{
    const char *named = getenv("WANDB_BASE_URL");
    char *text = NULL, *path = netrc_path(), *real = path ? realpath(path, NULL) : NULL;
    co_str out = {0};
    size_t len = 0;
    co_err err = path ? CO_OK : CO_ENOMEM;

    if (!settings_is_key(key))
        err = co_fail(CO_EINPUT,
                      "this is no W&B key: a key has at least %d characters and no blanks; "
                      "https://wandb.ai/authorize shows yours",
                      KEY_LEAST);
    settings_machine(machine, size, base_url ? base_url : named && *named ? named : PUBLIC_SERVICE);
    if (!err && real) /* a link stays one: what it points to is written */
        err = co_fs_read(&text, &len, real, NETRC_MOST);
    if (!err) {
        netrc_put(&out, text ? text : "", len, machine, "user", key);
        err = co_str_err(&out);
    }
    if (!err)
        err = co_fs_write_private(real ? real : path, out.p, out.len);
    if (out.p)
        explicit_bzero(out.p, out.len);
    if (text)
        explicit_bzero(text, len);
    co_str_fini(&out);
    co_free(text);
    free(real);
    co_free(path);
    return err;
}

co_err co_wandb_whoami(char *out, size_t size)
{
    wandb_settings set;
    wandb_api api = {0};

    CO_TRY(settings_read(&set, &(co_wandb_cfg){0}, &(co_wandb_facts){0}));
    co_err err =
        set.key ? api_open(&api, &set, NULL) : co_fail(CO_EINPUT, "there is no key for %s", set.base_url);
    if (!err)
        err = api_viewer(&api, out, size);
    api_close(&api);
    settings_fini(&set);
    return err;
}
