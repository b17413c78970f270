/* live.c -- the runs of this user on this machine, one small file each, for ps and stop.
 *
 * The folder is $XDG_RUNTIME_DIR/cohort, or /tmp/cohort-UID: private (mode 0700) and ours, or it is not used,
 * since ps and stop believe what they find there. An entry holds the pid with its start time, so that a later
 * process with the same number is not mistaken for the run.
 */
#include "track/track_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"

enum { ENTRY_BYTES = 1 << 16 };

/* Makes the folder if it is absent and checks whose it is. */
static co_err make_private(const char *path)
{
    struct stat st;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return co_fail(CO_EIO, "mkdir %s: %m", path);
    if (lstat(path, &st) != 0)
        return co_fail(CO_EIO, "stat %s: %m", path);
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0)
        return co_fail(CO_EIO, "%s is not a folder of ours that is closed to others; remove it", path);
    return CO_OK;
}

/* *out is the caller's. */
static co_err live_dir(char **out)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char *path = NULL;
    if (runtime && runtime[0] == '/' && co_fs_is_dir(runtime) && access(runtime, W_OK) == 0)
        path = co_sprintf("%s/cohort", runtime);
    else
        path = co_sprintf("/tmp/cohort-%u", (unsigned)geteuid());
    co_err err = path ? make_private(path) : CO_ENOMEM;
    if (err)
        co_free(path);
    else
        *out = path;
    return err;
}

static co_err entry_path(char **out)
{
    char *dir;
    CO_TRY(live_dir(&dir));
    *out = co_sprintf("%s/%d.json", dir, (int)getpid());
    co_free(dir);
    return *out ? CO_OK : CO_ENOMEM;
}

co_err co_live_register(const co_folder *f, const char *task)
{
    process_id me;
    char *path, dir[PATH_MAX];
    if (!realpath(f->path, dir))
        return co_fail(CO_EIO, "realpath %s: %m", f->path);
    process_self(&me);
    json_t *v = process_to_json(&me);
    if (!v || json_object_set_new(v, "run_id", json_string(f->run_id)) ||
        json_object_set_new(v, "dir", json_string(dir)) ||
        json_object_set_new(v, "task", json_string(task)) ||
        json_object_set_new(v, "started", json_real(co_wall_s()))) {
        json_decref(v);
        return co_fail(CO_ENOMEM, "no memory for the entry of %s (or its name is not UTF-8)", dir);
    }
    co_err err = entry_path(&path);
    if (!err) {
        err = co_json_write(v, path);
        co_free(path);
    }
    json_decref(v);
    return err;
}

void co_live_unregister(void)
{
    char *path;
    if (entry_path(&path))
        return;
    unlink(path);
    co_free(path);
}

static bool copy(char *out, size_t size, const char *text)
{
    return text && snprintf(out, size, "%s", text) < (int)size;
}

/* Reads one entry; PROCESS_DEAD for one that is no entry at all. */
static co_err read_entry(co_live_run *run, process_state *state, const char *path)
{
    process_id who;
    json_t *v = NULL;
    co_err err = co_json_read(&v, path, ENTRY_BYTES);
    *state = PROCESS_DEAD;
    if (err)
        return err == CO_ENOMEM ? err : CO_OK;
    memset(run, 0, sizeof *run);
    if (process_from_json(&who, v) && copy(run->run_id, sizeof run->run_id, co_json_str(v, "run_id")) &&
        copy(run->dir, sizeof run->dir, co_json_str(v, "dir")) &&
        copy(run->task, sizeof run->task, co_json_str(v, "task")) &&
        co_json_f64(v, "started", &run->started)) {
        run->pid = (int)who.pid;
        *state = process_look(&who);
    }
    json_decref(v);
    return CO_OK;
}

static int by_start(const void *a, const void *b)
{
    const co_live_run *x = a, *y = b;
    if (x->started != y->started)
        return x->started < y->started ? -1 : 1;
    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* "123.json"; a temporary file of a writer is none. */
static bool is_entry(const char *name)
{
    size_t digits = strspn(name, "0123456789");
    return digits > 0 && strcmp(name + digits, ".json") == 0;
}

static co_err collect(co_live_run *runs, int *n, const char *dir, char **names, size_t n_names)
{
    for (size_t i = 0; i < n_names; i++) {
        process_state state;
        if (!is_entry(names[i]))
            continue;
        char *path = co_sprintf("%s/%s", dir, names[i]);
        co_err err = path ? read_entry(&runs[*n], &state, path) : CO_ENOMEM;
        if (!err && state == PROCESS_DEAD)
            unlink(path);
        if (!err && state == PROCESS_ALIVE)
            ++*n;
        co_free(path);
        if (err)
            return err;
    }
    return CO_OK;
}

co_err co_live_list(co_live_run **out, int *n)
{
    char *dir, **names;
    size_t n_names;
    int count = 0;
    CO_TRY(live_dir(&dir));
    co_err err = co_fs_list(&names, &n_names, dir);
    if (!err) {
        co_live_run *runs = co_array(n_names + 1, sizeof *runs);
        err = runs ? collect(runs, &count, dir, names, n_names) : CO_ENOMEM;
        if (!err) {
            qsort(runs, (size_t)count, sizeof *runs, by_start);
            *out = runs;
            *n = count;
        } else {
            co_free(runs);
        }
        co_fs_list_free(names, n_names);
    }
    co_free(dir);
    return err;
}
