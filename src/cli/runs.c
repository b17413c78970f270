/* runs.c -- finds runs and checkpoints on disk: the newest unfinished run, and the checkpoint a path means.
 */
#include "cli/cli_int.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"

bool has(const char *dir, const char *name)
{
    char *path = co_sprintf("%s/%s", dir, name);
    bool there = path && co_fs_exists(path);

    co_free(path);
    return there;
}

static const co_live_run *by_pid(const co_live_run *runs, int n, int pid)
{
    for (int i = 0; i < n; i++)
        if (runs[i].pid == pid)
            return &runs[i];
    return NULL;
}

const co_live_run *live_find(const co_live_run *runs, int n, const char *word)
{
    long long pid;
    char dir[PATH_MAX];

    if (co_str_to_i64(word, &pid) && pid > 0 && pid < INT_MAX)
        return by_pid(runs, n, (int)pid);
    for (int i = 0; i < n; i++)
        if (strcmp(runs[i].run_id, word) == 0 || (realpath(word, dir) && strcmp(runs[i].dir, dir) == 0))
            return &runs[i];
    return NULL;
}

/* --- unfinished runs ----------------------------------------------------------------------------------- */
/* Reads a text from one of the run's JSON files; "" if it is not there. */
static void read_text(char *out, size_t room, const char *dir, const char *file, const char *key)
{
    char *path = co_sprintf("%s/%s", dir, file);
    json_t *v = NULL;
    const char *text =
        path && co_fs_exists(path) && co_json_read(&v, path, 1 << 20) == CO_OK ? co_json_str(v, key) : NULL;

    snprintf(out, room, "%s", text ? text : "");
    json_decref(v);
    co_free(path);
    co_errclear();
}

/* Did the run end early? With `sha`, only runs of that configuration count. Without, only runs that have a
 * checkpoint and are not running now. */
static bool is_unfinished(const char *dir, const char *sha, const co_live_run *live, int n)
{
    char status[32], theirs[80];

    if (!has(dir, "header.json") || !has(dir, sha ? "checkpoints" : "checkpoints/last"))
        return false;
    read_text(theirs, sizeof theirs, dir, "header.json", "config_sha256");
    if (sha ? strcmp(theirs, sha) != 0 : live_find(live, n, dir) != NULL)
        return false;
    read_text(status, sizeof status, dir, "summary.json", "status");
    return strcmp(status, "done") != 0;
}

/* Run folders are named by date, so the greatest name is the newest. */
struct newest {
    char *dir;
    char name[256];
};

static void look_in(struct newest *best, const char *root, const char *sha, const co_live_run *live, int n)
{
    char **runs = NULL;
    size_t count = 0;

    if (!co_fs_is_dir(root) || co_fs_list(&runs, &count, root) != CO_OK)
        return;
    for (size_t i = count; i-- > 0 && strcmp(runs[i], best->name) > 0;) {
        char *dir = co_sprintf("%s/%s", root, runs[i]);
        if (dir && is_unfinished(dir, sha, live, n)) {
            snprintf(best->name, sizeof best->name, "%s", runs[i]);
            co_free(best->dir);
            best->dir = dir;
            break;
        }
        co_free(dir);
    }
    co_fs_list_free(runs, count);
}

char *unfinished_run(const char *task, const char *sha)
{
    struct newest best = {0};
    char **tasks = NULL;
    size_t count = 0;
    co_live_run *live = NULL;
    int n = 0;

    if (co_live_list(&live, &n) != CO_OK)
        co_errclear();
    if (co_fs_is_dir("logs") && co_fs_list(&tasks, &count, "logs") == CO_OK)
        for (size_t t = 0; t < count; t++) {
            char *root = co_sprintf("logs/%s/runs", tasks[t]);
            if (root && (!task || strcmp(task, tasks[t]) == 0))
                look_in(&best, root, sha, live, n);
            co_free(root);
        }
    co_fs_list_free(tasks, count);
    co_free(live);
    co_errclear();
    return best.dir;
}

/* --- checkpoints --------------------------------------------------------------------------------------- */
static void say_bad(void *ctx, const char *path, const char *why)
{
    ++*(int *)ctx;
    co_say("checkpoint %s is not usable: %s; looking at the one before it", path, why);
}

co_err newest_checkpoint(char **out, const char *dir)
{
    char *root = co_sprintf("%s/checkpoints", dir);
    int bad = 0;
    co_err err = root ? co_ckpt_newest(out, root, say_bad, &bad) : CO_ENOMEM;

    if (!err && bad)
        co_say("checkpoint %s is used instead: the newest whose bytes are those that were written", *out);
    co_free(root);
    return err;
}

co_err find_checkpoint(char **out, const char *path)
{
    if (!co_fs_exists(path))
        return co_fail(CO_EINPUT, "%s does not exist; give a checkpoint's folder or a run's", path);
    if (has(path, "checkpoints"))
        return newest_checkpoint(out, path);
    if (!co_fs_is_dir(path))
        return co_fail(CO_EINPUT,
                       "%s is a file; checkpoints are folders here. A run cannot be continued from a file of "
                       "another program, but "
                       "weights=%s starts from its weights (.safetensors, .pth, .pt, .ckpt)",
                       path, path);
    if (!has(path, "manifest.json"))
        return co_fail(CO_EINPUT,
                       "%s is neither a checkpoint (no manifest.json) nor a run folder (no checkpoints)", path);
    co_err err = co_ckpt_verify(path);
    if (err)
        return co_fail(err, "%s; take another (cohort ckpt ls shows which are good)", co_errmsg());
    *out = co_strdup(path);
    return *out ? CO_OK : CO_ENOMEM;
}
