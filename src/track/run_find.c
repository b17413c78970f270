/* run_find.c -- run folders below a folder. Read to a limited depth; links are not followed, so nothing
 * outside of it is found. */
#include "track/run_read.h"

#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/fs.h"

enum { DEPTH = 6 };

static bool is_kind(const char *dir, const char *name, mode_t kind)
{
    char *path = co_sprintf("%s/%s", dir, name);
    struct stat st;
    bool yes = path && lstat(path, &st) == 0 && (st.st_mode & S_IFMT) == kind;

    co_free(path);
    return yes;
}

static co_err add(co_run_list *list, const char *dir)
{
    list->more |= list->n == CO_RUNS_MOST;
    if (list->n == CO_RUNS_MOST)
        return CO_OK;
    if (list->n % 64 == 0) {
        char **more = co_realloc(list->dir, (list->n + 64) * sizeof *more);
        if (!more)
            return CO_ENOMEM;
        list->dir = more;
    }
    list->dir[list->n] = co_strdup(dir);
    return list->dir[list->n] ? (list->n++, CO_OK) : CO_ENOMEM;
}

static co_err look(co_run_list *list, const char *dir, int depth)
{
    char **names = NULL;
    size_t n = 0;
    co_err err = CO_OK;

    if (is_kind(dir, "header.json", S_IFREG) && is_kind(dir, "events.jsonl", S_IFREG))
        return add(list, dir);
    if (depth == DEPTH || co_fs_list(&names, &n, dir) != CO_OK) {
        co_errclear();
        return CO_OK; /* a folder that cannot be read has no runs for us */
    }
    for (size_t i = 0; i < n && !err; i++) {
        char *path = names[i][0] == '.' ? NULL : co_sprintf("%s/%s", dir, names[i]);
        if (path && is_kind(dir, names[i], S_IFDIR))
            err = look(list, path, depth + 1);
        co_free(path);
    }
    co_fs_list_free(names, n);
    return err;
}

co_err co_runs_find(co_run_list *out, const char *dir)
{
    *out = (co_run_list){0};
    if (!co_fs_is_dir(dir))
        return co_fail(CO_EINPUT, "%s is no folder; give a run's folder, or one with runs below it", dir);
    co_err err = look(out, dir, 0);
    if (err)
        co_run_list_fini(out);
    return err;
}

void co_run_list_fini(co_run_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        co_free(list->dir[i]);
    co_free(list->dir);
    *list = (co_run_list){0};
}
