/* run_folder.c -- the run folder of a training: may it be used, and where its checkpoints are. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "cli/train_int.h"

co_err refuse_to_mix(const training *s, const char *path)
{
    char *header = co_sprintf("%s/header.json", path);
    bool there = header && co_fs_exists(header), meant = s->app.cfg->ckpt_path && s->app.cfg->ckpt_path[0];

    co_free(header);
    if (!there || meant)
        return CO_OK;
    return co_fail(
        CO_EINPUT,
        "run.dir: %s holds a run already: add ckpt_path=auto to continue it, or choose another folder", path);
}

co_err refuse_foreign(const training *s)
{
    const char *dir = s->app.cfg->ckpt_dir;
    char *own = s->app.run_dir ? co_sprintf("%s/checkpoints", s->app.run_dir) : NULL, a[PATH_MAX], b[PATH_MAX];
    bool ours = own && realpath(own, a) && realpath(dir, b) && strcmp(a, b) == 0;
    co_ckpt_info *list = NULL;
    int n = 0, good = 0;

    co_free(own);
    if (ours || !co_fs_is_dir(dir))
        return CO_OK;
    CO_TRY(co_ckpt_ls(&list, &n, dir));
    for (int i = 0; i < n; i++)
        good += !list[i].why_bad[0];
    co_ckpt_ls_free(list, n);
    if (good)
        return co_fail(CO_EINPUT,
                       "callbacks.model_checkpoint.dirpath: %s holds checkpoints of another run: give "
                       "another folder, or "
                       "continue that run with run.dir=ITS_FOLDER ckpt_path=auto",
                       dir);
    return CO_OK;
}

/* Two runs must not save into one folder: each would replace and prune the other's checkpoints. The folder
 * gets a lease of its own, unless it is the run folder or inside it. */
static co_err lease_checkpoints(training *s, const char *at)
{
    char run[PATH_MAX];

    if (!realpath(co_folder_path(s->folder), run))
        return co_fail(CO_EIO, "%s: %m", co_folder_path(s->folder));
    size_t len = strlen(run);
    if (strncmp(at, run, len) == 0 && (at[len] == '/' || !at[len]))
        return CO_OK;
    return co_folder_lease_too(s->folder, at, "callbacks.model_checkpoint.dirpath");
}

/* Makes checkpoints/ in the run folder a link to dirpath, so that everything is found from the run folder. */
static co_err link_elsewhere(training *s)
{
    char at[PATH_MAX];

    CO_TRY(co_fs_mkdirs(s->app.cfg->ckpt_dir));
    if (!realpath(s->app.cfg->ckpt_dir, at))
        return co_fail(CO_EIO, "callbacks.model_checkpoint.dirpath: %s: %m", s->app.cfg->ckpt_dir);
    CO_TRY(lease_checkpoints(s, at));
    if (symlink(at, s->ckpt_root) != 0 && errno != EEXIST)
        return co_fail(CO_EIO, "link %s to %s: %m", s->ckpt_root, at);
    return CO_OK;
}

co_err training_folder(training *s)
{
    CO_TRY(co_folder_open(&s->folder, s->app.run_dir, s->app.cfg->task_name));
    const char *path = co_folder_path(s->folder);
    CO_TRY(refuse_to_mix(s, path));
    s->ckpt_root = co_sprintf("%s/checkpoints", path);
    if (s->ckpt_root && s->app.cfg->ckpt_dir && s->app.cfg->ckpt_enabled)
        CO_TRY(link_elsewhere(s));
    s->log_dir = co_sprintf("%s/ranks", path);
    if (!s->ckpt_root || !s->log_dir)
        return CO_ENOMEM;
    CO_TRY(co_fs_mkdirs(s->log_dir));
    if (s->app.cfg->ckpt_enabled)
        CO_TRY(co_fs_mkdirs(s->ckpt_root));
    co_plan_place(s->plan, s->app.cfg->ckpt_enabled ? s->ckpt_root : NULL, s->log_dir,
                  co_folder_run_id(s->folder));
    CO_TRY(record_open(s));
    if (co_live_register(s->folder, s->app.cfg->task_name) != CO_OK)
        tell(s, "note      `cohort ps` will not list this run: %s", co_errmsg());
    return CO_OK;
}
