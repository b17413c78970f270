/* open.c -- the run's folder at the start: made, or found again by the id that the run folder remembers;
 * files are begun anew, because the record is handed over from its first line. */
#include "wandb/run_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"

/* Not its parents: a run folder that was removed is not made again. */
static co_err make(const char *path)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST ? CO_OK : co_fail(CO_EIO, "mkdir %s: %m", path);
}

/* DIR/wandb, or DIR/.wandb if that is there, as wandb does it. NULL: no memory. */
static char *parent_of_runs(const char *dir)
{
    char *hidden = co_sprintf("%s/.wandb", dir), *plain = hidden ? co_sprintf("%s/wandb", dir) : NULL;

    if (!plain || !co_fs_is_dir(hidden)) {
        co_free(hidden);
        return plain;
    }
    co_free(plain);
    return hidden;
}

static co_err link_latest(const char *parent, const char *name)
{
    char *link = co_sprintf("%s/latest-run", parent);

    if (!link)
        return CO_ENOMEM;
    unlink(link);
    if (symlink(name, link) != 0)
        errno = 0; /* a link that cannot be made is no reason to stop */
    co_free(link);
    return CO_OK;
}

static co_err make_folders(co_wandb *w)
{
    char *parent = parent_of_runs(w->set.dir), *logs = NULL;
    char *own = co_sprintf("%s/wandb", w->run_dir); /* where run.json is */
    co_err err = parent && own ? make(own) : CO_ENOMEM;

    if (!err && strcmp(w->set.dir, w->run_dir) != 0)
        err = co_fs_mkdirs(parent);
    if (!err)
        err = folder_saved(&w->saved, &w->set, w->run_dir);
    if (!err) {
        w->folder = co_sprintf("%s/%srun-%s", parent, w->set.mode == CO_WANDB_OFFLINE ? "offline-" : "",
                               w->saved.folder);
        w->files = w->folder ? co_sprintf("%s/files", w->folder) : NULL;
        logs = w->folder ? co_sprintf("%s/logs", w->folder) : NULL;
        err = w->files && logs ? make(w->folder) : CO_ENOMEM;
    }
    if (!err)
        err = make(w->files);
    if (!err)
        err = make(logs);
    if (!err && !w->set.rank)
        err = link_latest(parent, strrchr(w->folder, '/') + 1);
    co_free(logs);
    co_free(own);
    co_free(parent);
    return err;
}

/* `wandb sync` marks what it has uploaded; the file is about to have more. */
static co_err forget_marks(const co_wandb *w)
{
    static const char *const marks[] = {".synced", ".syncstate"};

    for (size_t i = 0; i < CO_COUNT(marks); i++) {
        char *path = co_sprintf("%s/run-%s.wandb%s", w->folder, w->saved.id, marks[i]);
        if (!path)
            return CO_ENOMEM;
        unlink(path);
        co_free(path);
    }
    return CO_OK;
}

static co_err open_files(co_wandb *w)
{
    static const char *const names[N_CHANNELS] = {"logs/history.jsonl", "logs/events.jsonl",
                                                  "logs/output.jsonl"};
    char *name = co_sprintf("run-%s.wandb", w->saved.id);
    co_err err = name ? spool_open(&w->log.out, w->folder, name) : CO_ENOMEM;

    co_free(name);
    for (int i = 0; i < N_CHANNELS && !err && w->set.mode == CO_WANDB_ONLINE; i++)
        err = spool_open(&w->channel[i], w->folder, names[i]);
    return err ? err : spool_open(&w->output_file, w->files, "output.log");
}

static void explain_missing_key(co_wandb *w)
{
    char machine[256];

    w->set.mode = CO_WANDB_OFFLINE;
    if (w->set.rank) /* rank 0's run says it */
        return;
    settings_machine(machine, sizeof machine, w->set.base_url);
    snprintf(
        w->notice, sizeof w->notice,
        "no key for %s (WANDB_API_KEY, netrc): the run is kept offline; `cohort wandb login` stores a key, "
        "`cohort wandb sync %.200s` uploads the run",
        machine, w->run_dir);
}

co_err run_open_folder(co_wandb *w, const co_wandb *of)
{
    if (w->set.mode == CO_WANDB_ONLINE && !w->set.key)
        explain_missing_key(w);
    if (of) {
        w->set.started = of->saved.started;
        CO_TRY(settings_name_rank(&w->set, of->set.id));
    }
    CO_TRY(make_folders(w));
    if (!of && w->set.per_rank)
        CO_TRY(settings_name_rank(&w->set, w->saved.id));
    if (!w->set.id) {
        w->set.id = co_strdup(w->saved.id);
        if (!w->set.id)
            return CO_ENOMEM;
    }
    CO_TRY(forget_marks(w));
    CO_TRY(open_files(w));
    folder_machine(&w->machine);
    if (w->set.mode != CO_WANDB_ONLINE) {
        if (!w->notice[0] && !w->set.silent && !w->set.rank)
            snprintf(w->notice, sizeof w->notice, "offline; `wandb sync %.500s%s` uploads it", w->folder,
                     w->set.per_rank ? "*" : "");
        return CO_OK;
    }
    return upload_start(&w->up, &(upload_job){.set = &w->set,
                                              .files = w->files,
                                              .channel = w->channel,
                                              .saved = &w->saved,
                                              .started = w->saved.started});
}
