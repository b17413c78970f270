/* resume.c -- decides which run a command line continues.
 *
 *     ckpt_path=auto                    the newest unfinished run, with its own configuration
 *     ckpt_path=auto WORDS              the newest unfinished run of that configuration, or a new run
 *     run.dir=X ckpt_path=auto          the run in X, with its own configuration
 *     run.dir=X ckpt_path=auto WORDS    the run in X, or a new run there
 *     run.dir=X ckpt_path=3             the same from the checkpoint of epoch 3 in X
 *     ckpt_path=FOLDER                  that checkpoint, or the newest one of that run, in a new run folder
 *
 * If there is no such run and the line does not say what to train, the line is refused.
 */
#include "cli/cli_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"

/* --- the configuration to continue with ---------------------------------------------------------------- */
struct keys {
    const co_conf_spec *spec;
    int n;
    bool describes; /* one of them may not change when a run is continued */
};

static void see_key(void *ctx, const char *key, const char *value)
{
    struct keys *k = ctx;

    (void)value;
    k->n++;
    k->describes |= !co_conf_may_change(k->spec, key);
}

/* Does any word say what to train? Keys that a continued run may change freely do not. */
static bool describes_run(const line *l)
{
    struct keys k = {.spec = app_conf_spec(l->config_dir)};

    for (int i = 0; i < l->n && !k.describes; i++) {
        int before = k.n;
        if (word_is_place(l->words[i]))
            continue;
        if (co_conf_parse_word(l->words[i], see_key, &k) != CO_OK || k.n == before)
            k.describes = true; /* `~key`, or a word that composing will refuse */
    }
    co_errclear();
    return k.describes;
}

bool line_names_group(const line *l)
{
    static const char *const groups[] = {"experiment", "model", "data", "optim", "trainer"};

    for (size_t i = 0; i < CO_COUNT(groups); i++)
        if (line_has(l, groups[i]))
            return true;
    return false;
}

co_err line_use_own(line *l, const char *dir)
{
    return has(dir, "config.yaml") && !line_names_group(l) ? line_use_run(l, dir) : CO_OK;
}

static co_err use_dir(line *l, const char *dir)
{
    if (has(dir, "config.yaml") && !line_names_group(l)) {
        CO_TRY(line_use_own(l, dir));
        if (l->base)
            co_say("continuing with the configuration of %s", dir);
        return CO_OK;
    }
    if (has(dir, "header.json") || describes_run(l))
        return CO_OK;
    return co_fail(CO_EINPUT,
                   "run.dir=%s ckpt_path=auto: there is no run in %s. To start one there, say what to train: "
                   "experiment=demo, or data=NAME model=NAME",
                   dir, dir);
}

static co_err use_newest(line *l)
{
    char *dir = unfinished_run(NULL, NULL);

    if (!dir)
        return co_fail(CO_EINPUT,
                       "ckpt_path=auto: no unfinished run in logs/. To continue a run elsewhere: "
                       "run.dir=FOLDER ckpt_path=auto. To start one, say what to train: experiment=demo, or "
                       "data=NAME model=NAME");
    char *word = co_conf_word("run.dir", dir), *kept = word ? co_pool_str(&l->pool, word) : NULL;
    co_err err = kept ? line_use_run(l, dir) : CO_ENOMEM;
    if (!err) {
        CO_ASSERT(l->words > l->held, "there is room for two");
        *--l->words = kept;
        l->n++;
        co_say("ckpt_path=auto: continuing %s, the newest unfinished run, with its configuration", dir);
    }
    co_free(word);
    co_free(dir);
    return err;
}

/* Does ckpt_path name an epoch? A file or folder of that name comes first. */
static bool is_epoch(const char *path)
{
    return *path && strspn(path, "0123456789") == strlen(path) && strlen(path) < 10 && !co_fs_exists(path);
}

co_err line_use_continued(line *l)
{
    char *path = line_ckpt_path(l), *dir = line_run_dir(l);
    bool automatic = path && (strcmp(path, "auto") == 0 || strcmp(path, "last") == 0);
    co_err err = CO_OK;

    if (automatic && dir)
        err = use_dir(l, dir);
    else if (automatic && !describes_run(l))
        err = use_newest(l);
    else if (path && dir && is_epoch(path) && has(dir, "config.yaml"))
        err = use_dir(l, dir);
    co_free(path);
    co_free(dir);
    return err;
}

/* --- the checkpoint to continue from ------------------------------------------------------------------- */
/* Says that a new run begins, and names an unfinished run of another configuration: it may have been meant.
 */
static void say_begins(const app *a)
{
    char *other = a->cfg->run_dir ? NULL : unfinished_run(NULL, NULL);

    if (a->spec.meets)
        co_say(
            "ckpt_path=auto: this host has nothing to continue from; it takes the state of the hosts that it "
            "meets, or starts anew with them");
    else if (a->cfg->run_dir)
        co_say("ckpt_path=auto: nothing to continue from in %s, starting anew", a->cfg->run_dir);
    else
        co_say("ckpt_path=auto: no unfinished run has this configuration, starting anew");
    if (other)
        co_say("          %s is unfinished too; it has another configuration (%s train run.dir=%s "
               "ckpt_path=auto)",
               other, app_program(), other);
    co_free(other);
}

/* ckpt_path=auto: run.dir if it is given, else the newest unfinished run of this configuration. A run that
 * has checkpoints, none of them good, is refused: starting it anew would overwrite it. */
static co_err find_auto(app *a)
{
    if (!a->run_dir)
        a->run_dir = unfinished_run(a->cfg->task_name, a->spec.config_sha256);
    if (!a->run_dir || !has(a->run_dir, "checkpoints")) {
        say_begins(a);
        return CO_OK;
    }
    char *root = co_sprintf("%s/checkpoints", a->run_dir);
    co_ckpt_info *list = NULL;
    int n = 0;
    co_err err = root ? co_ckpt_ls(&list, &n, root) : CO_ENOMEM;
    co_ckpt_ls_free(list, n);
    co_free(root);
    if (!err && n == 0)
        co_say("ckpt_path=auto: %s has no checkpoint yet, starting anew", a->run_dir);
    else if (!err)
        err = newest_checkpoint(&a->resume, a->run_dir);
    return err ? co_fail_in(err, "ckpt_path=auto") : CO_OK;
}

/* The number after "epoch" in a checkpoint's name; -1: it has none. */
static long epoch_in(const char *name)
{
    const char *at = strstr(name, "epoch");

    at = at ? at + strcspn(at, "0123456789") : NULL;
    return at && *at ? strtol(at, NULL, 10) : -1;
}

/* The checkpoint of an epoch in the run's folder. If there is none, the message lists those that there are. */
static co_err find_epoch(app *a, const char *epoch)
{
    co_ckpt_info *list = NULL;
    int n = 0;
    co_str names = {0};

    if (!a->run_dir)
        return co_fail(
            CO_EINPUT,
            "%s names an epoch, and the line names no run: add run.dir=FOLDER (--model_folder FOLDER),"
            " or give the checkpoint's folder: ckpt_path=RUN/checkpoints/epoch_009",
            epoch);
    char *root = co_sprintf("%s/checkpoints", a->run_dir), *path = NULL;
    co_err err = !root ? CO_ENOMEM : co_fs_is_dir(root) ? co_ckpt_ls(&list, &n, root) : CO_OK;
    for (int i = 0; i < n; i++) {
        if (epoch_in(list[i].name) == strtol(epoch, NULL, 10) && !path)
            path = co_sprintf("%s/%s", root, list[i].name);
        co_str_addf(&names, "%s%s", names.len ? ", " : "", list[i].name);
    }
    if (!err)
        err = path ? find_checkpoint(&a->resume, path)
                   : co_fail(CO_EINPUT, "%s has no checkpoint of epoch %s; it has %s", a->run_dir, epoch,
                             names.len ? co_str_text(&names) : "none");
    co_str_fini(&names);
    co_ckpt_ls_free(list, n);
    co_free(path);
    co_free(root);
    return err;
}

co_err app_find_resume(app *a, const line *l)
{
    const char *path = a->cfg->ckpt_path;

    if (a->cfg->run_dir && !(a->run_dir = co_strdup(a->cfg->run_dir)))
        return CO_ENOMEM;
    if (!path || !path[0])
        return CO_OK;
    if (strcmp(path, "auto") == 0)
        return l->mistakes.n ? CO_OK : find_auto(a); /* with a mistake, no run has this configuration */
    co_err err = is_epoch(path) ? find_epoch(a, path) : find_checkpoint(&a->resume, path);
    return err ? co_fail_in(err, "ckpt_path") : CO_OK;
}
