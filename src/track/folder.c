/* folder.c -- the run folder: made (or found), leased, written into, given back.
 *
 * mkdir(2) itself says who made a folder. Checking beforehand would let two runs that start together both
 * believe that they made it, and only the one that made it may discard it.
 */
#include "track/track_int.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "proc/crew.h"
#include "track/times_int.h"

/* Cuts the last part off a path, in place; false if there is only one part. */
static bool cut_last(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return false;
    *slash = '\0';
    return true;
}

/* The topmost folder of `path` that does not exist yet; NULL if memory is out. */
static char *first_missing(const char *path)
{
    char *at = co_strdup(path), *top = co_strdup(path);
    while (at && top && cut_last(at) && !co_fs_exists(at))
        strcpy(top, at);
    if (!at) {
        co_free(top);
        top = NULL;
    }
    co_free(at);
    return top;
}

static co_err make_parents(const char *path)
{
    char *parent = co_strdup(path);
    co_err err = parent ? CO_OK : CO_ENOMEM;
    if (parent && cut_last(parent))
        err = co_fs_mkdirs(parent);
    co_free(parent);
    return err == CO_EIO
               ? co_fail(CO_EINPUT, "run folder %s: %s; choose another with run.dir=", path, co_errmsg())
               : err;
}

/* Makes f->path; *made is false if it was there already. */
static co_err make(co_folder *f, bool *made)
{
    char *top = first_missing(f->path);
    if (!top)
        return CO_ENOMEM;
    co_err err = make_parents(f->path);
    *made = !err && mkdir(f->path, 0777) == 0;
    if (!err && !*made && (errno != EEXIST || !co_fs_is_dir(f->path)))
        err = co_fail(CO_EINPUT, "run folder %s: %m; choose another with run.dir=", f->path);
    if (*made) {
        f->made_from = top;
        top = NULL;
    }
    co_free(top);
    return err;
}

/* Removes f->path and the folders above it that we made, as far as they are empty. */
static void unmake(co_folder *f)
{
    size_t least = f->made_from ? strlen(f->made_from) : SIZE_MAX;
    while (strlen(f->path) >= least && rmdir(f->path) == 0 && cut_last(f->path))
        ;
}

static co_err open_given(co_folder *f, const char *dir)
{
    bool made;
    size_t len = strlen(dir);
    while (len > 1 && dir[len - 1] == '/')
        len--;
    if (len == 0)
        return co_fail(CO_EINPUT, "run.dir is empty; give a folder or leave it out");
    f->path = co_sprintf("%.*s", (int)len, dir);
    return f->path ? make(f, &made) : CO_ENOMEM;
}

static co_err open_dated(co_folder *f, const char *task)
{
    char date[64];
    bool made = false;
    if (!*task || strchr(task, '/') || task[0] == '.')
        return co_fail(CO_EINPUT, "task_name \"%s\" cannot be a folder's name", task);
    co_date(date, sizeof date, "%Y-%m-%d_%H-%M-%S", co_wall_s());
    for (int i = 1; !made && i < 10000; i++) {
        co_free(f->path);
        f->path = i == 1 ? co_sprintf("logs/%s/runs/%s", task, date)
                         : co_sprintf("logs/%s/runs/%s-%d", task, date, i);
        if (!f->path)
            return CO_ENOMEM;
        CO_TRY(make(f, &made));
    }
    return made ? CO_OK : co_fail(CO_EINPUT, "ten thousand run folders named %s", f->path);
}

/* A run id that no other run has: the time in seconds and 32 random bits. */
static co_err make_run_id(co_folder *f)
{
    char date[32];
    uint32_t random;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return co_fail(CO_EIO, "no random bytes: %m");
    co_date(date, sizeof date, "%Y%m%d-%H%M%S", co_wall_s());
    snprintf(f->run_id, sizeof f->run_id, "%s-%08x", date, random);
    return CO_OK;
}

static void free_folder(co_folder *f)
{
    co_free(f->second);
    co_str_fini(&f->pending);
    co_free(f->path);
    co_free(f->made_from);
    co_free(f);
}

co_err co_folder_open(co_folder **out, const char *dir, const char *task)
{
    co_folder *f = co_zalloc(sizeof *f);
    struct stat st;
    if (!f)
        return CO_ENOMEM;
    f->events_fd = -1;
    co_err err = make_run_id(f);
    if (!err)
        err = dir ? open_given(f, dir) : open_dated(f, task ? task : "train");
    if (!err)
        err = lease_take(f->path, "run.dir", f->run_id);
    if (!err && (stat(f->path, &st) != 0 || sweep_run_folder(f->path) != CO_OK)) {
        err = co_fail(CO_EINPUT, "run folder %s: no memory, or it is gone already", f->path);
        lease_give_back(f->path, f->run_id);
    }
    if (err) {
        if (f->path)
            unmake(f);
        free_folder(f);
        return err;
    }
    f->device = st.st_dev;
    f->inode = st.st_ino;
    f->renewed_s = co_now_s();
    *out = f;
    return CO_OK;
}

const char *co_folder_path(const co_folder *f)
{
    return f->path;
}

const char *co_folder_run_id(const co_folder *f)
{
    return f->run_id;
}

co_err co_folder_lease_too(co_folder *f, const char *dir, const char *key)
{
    char *second = co_strdup(dir);
    co_err err = second ? lease_take(dir, key, f->run_id) : CO_ENOMEM;

    if (err)
        co_free(second);
    else
        f->second = second;
    return err;
}

/* --- the second folder's lease -------------------------------------------------------------------------- */
/* It is renewed by a process of its own: that folder may be on a mount that hangs, while the run folder is
 * not, and the supervisor must not wait for it. A checkpoint still cannot appear in a folder that we lost:
 * the saver reads the lease again before it publishes. */
static bool is_lost(co_err err)
{
    return err == CO_EFAIL || err == CO_EINPUT; /* other errors, like a full disk, leave the lease ours */
}

static int renew_second(void *ctx)
{
    const co_folder *f = ctx;

    return is_lost(lease_renew(f->second, f->run_id));
}

/* Waits for its end, at most wait_ms; false: it is still at work. */
static bool reap_renewer(co_folder *f, int wait_ms)
{
    struct pollfd p = {.fd = f->renewer_fd, .events = POLLIN};
    int status = 0;

    if (poll(&p, 1, wait_ms) <= 0)
        return false;
    while (waitpid(f->renewer, &status, 0) < 0 && errno == EINTR)
        ;
    close(f->renewer_fd);
    f->renewer = 0;
    f->second_lost = WIFEXITED(status) && WEXITSTATUS(status) == 1;
    return true;
}

/* What the last renewer found. While it is at work, the lease counts as ours. */
static co_err second_is_ours(co_folder *f)
{
    if (f->renewer)
        reap_renewer(f, 0);
    return f->second_lost ? lease_is_ours(f->second, f->run_id) : CO_OK; /* for the message: that disk answers */
}

static void start_renewer(co_folder *f)
{
    co_child_spec spec = {.main = renew_second, .ctx = f};

    if (f->second && !f->renewer && co_child_start(&f->renewer, &f->renewer_fd, &spec) != CO_OK)
        f->renewer = 0; /* tried again in a few seconds */
}

/* So that it does not take the lease again once it is given back. */
static void end_renewer(co_folder *f)
{
    if (!f->renewer)
        return;
    kill(f->renewer, SIGKILL);
    if (!reap_renewer(f, CO_FENCE_MS)) {
        close(f->renewer_fd); /* the kernel holds it: nothing of ours runs in it any more */
        f->renewer = 0;
    }
}

static void give_leases_back(co_folder *f)
{
    end_renewer(f);
    if (f->second)
        lease_give_back(f->second, f->run_id);
    lease_give_back(f->path, f->run_id);
}

void co_folder_close(co_folder *f)
{
    if (!f)
        return;
    events_close(f);
    give_leases_back(f);
    free_folder(f);
}

void co_folder_discard(co_folder *f)
{
    if (!f)
        return;
    co_str_clear(&f->pending);
    events_close(f);
    end_renewer(f);
    if (f->second)
        lease_give_back(f->second, f->run_id);
    if (f->made_from) {
        if (co_fs_remove_tree(f->path) == CO_OK && cut_last(f->path))
            unmake(f);
    } else {
        lease_give_back(f->path, f->run_id);
    }
    free_folder(f);
}

/* Removed, moved, or another folder in its place. */
static bool is_gone(const co_folder *f)
{
    struct stat st;

    if (stat(f->path, &st) != 0)
        return errno == ENOENT || errno == ENOTDIR;
    return st.st_dev != f->device || st.st_ino != f->inode;
}

co_err folder_is_ours(co_folder *f)
{
    double now = co_now_s();
    co_err err = CO_OK;

    if (is_gone(f)) {
        f->taken = true;
        return co_fail(CO_EFAIL,
                       "run folder %s is gone: it was removed or moved while the run was writing to it",
                       f->path);
    }
    err = second_is_ours(f);
    if (!is_lost(err) && !f->taken && now - f->renewed_s <= RENEW_S)
        return CO_OK;
    f->renewed_s = now;
    if (!is_lost(err))
        err = lease_renew(f->path, f->run_id);
    if (!is_lost(err)) {
        start_renewer(f);
        return CO_OK;
    }
    f->taken = true;
    return co_fail(CO_EFAIL, "%s", co_errmsg());
}

co_err co_folder_append(co_folder *f, const char *name, int *fd)
{
    char *path = co_sprintf("%s/%s", f->path, name);
    co_err err = path ? co_fs_open_log(fd, path) : CO_ENOMEM;

    co_free(path);
    return err;
}

co_err co_folder_sync(const co_folder *f)
{
    for (int i = 0; i < f->n_unsynced; i++) {
        char *path = co_sprintf("%s/%s", f->path, f->unsynced[i]);
        co_err err = path ? co_fs_sync(path) : CO_ENOMEM;
        co_free(path);
        CO_TRY(err);
    }
    return f->n_unsynced ? co_fs_sync_dir(f->path) : CO_OK;
}

/* A file that is there belongs to a run that is continued: it is replaced by one that survives a crash. */
static co_err write_file(co_folder *f, const char *name, const char *path, const void *bytes, size_t len)
{
    if (f->n_unsynced == CO_COUNT(f->unsynced) || strlen(name) >= sizeof f->unsynced[0] ||
        strchr(name, '/') || co_fs_exists(path))
        return co_fs_write_atomic(path, bytes, len);
    CO_TRY(co_fs_write_lightly(path, bytes, len));
    strcpy(f->unsynced[f->n_unsynced++], name);
    return CO_OK;
}

co_err co_folder_write(co_folder *f, const char *name, const void *bytes, size_t len)
{
    co_err err = folder_is_ours(f);
    if (err)
        return err;
    char *path = co_sprintf("%s/%s", f->path, name);
    if (!path)
        return CO_ENOMEM;
    if (strchr(name, '/')) {
        cut_last(path);
        err = co_fs_mkdirs(path);
        path[strlen(path)] = '/'; /* put back what cut_last removed */
    }
    if (!err)
        err = write_file(f, name, path, bytes, len);
    co_free(path);
    return err;
}

co_err co_folder_write_json(co_folder *f, const char *name, const json_t *v)
{
    size_t len;
    char *text = co_json_file(v, &len);
    co_err err = text ? co_folder_write(f, name, text, len) : co_fail(CO_ENOMEM, "no memory for %s", name);

    co_free(text);
    return err;
}
