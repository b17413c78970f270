/* lease.c -- one writer per run folder, also on network disks, where locks are not enough.
 *
 * The process that lease.json names holds the folder. There are three moves. Each is decided by one atomic
 * operation of the file system: a finished file is linked to a name that must not exist yet. So of any number
 * of runs that start at the same time exactly one wins.
 *
 *   take       link our lease to lease.json
 *   take over  holder X is dead: link our lease to .lease-after-X, replace lease.json by ours, remove
 *              .lease-after-X. As long as .lease-after-X exists, its writer counts as the holder. So a run that dies
 *              while it takes over is taken over in turn: X -> Y -> Z.
 *   give back  unlink lease.json
 *
 * Invariant: while .lease-after-X exists, only its writer replaces a lease.json that names X. A slow run may
 * link .lease-after-X when the takeover is long done. It reads lease.json again, finds that it no longer
 * names X, and gives up.
 *
 * On the holder's own host /proc says whether it is dead. A holder on another host counts as dead when it has
 * not renewed its lease for LEASE_STALE_S; a live one touches the file every few seconds. The age is the
 * difference between the times of two files on the same server, so the clocks of the hosts do not matter.
 */
#include "track/track_int.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "track/times_int.h"

enum { LEASE_TRIES = 1000, LEASE_CHAIN = 16, LEASE_BYTES = 1 << 16, HEADER_BYTES = 1 << 20 };

typedef struct lease {
    process_id who;
    char run_id[64]; /* "unreadable" if the file is no lease */
    bool readable;
    double age_s; /* against our own file, just written */
} lease;

static bool run_id_is_plain(const char *id)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-";
    size_t n = strlen(id);
    return n > 0 && n < 64 && strspn(id, letters) == n;
}

static double mtime_s(const struct stat *st)
{
    return (double)st->st_mtim.tv_sec + 1e-9 * (double)st->st_mtim.tv_nsec;
}

/* *there is false if there is no such file. A file that cannot be read still counts as somebody's lease. */
static co_err read_lease(lease *out, bool *there, const char *path, double now_s)
{
    struct stat st;
    json_t *v = NULL;
    *out = (lease){.run_id = "unreadable"};
    *there = stat(path, &st) == 0;
    if (!*there)
        return errno == ENOENT ? CO_OK : co_fail(CO_EIO, "stat %s: %m", path);
    out->age_s = now_s - mtime_s(&st);
    co_err err = co_json_read(&v, path, LEASE_BYTES);
    if (err == CO_ENOMEM)
        return err;
    if (err) {
        *there = co_fs_exists(path);
        return CO_OK;
    }
    const char *id = co_json_str(v, "run_id");
    out->readable = id && run_id_is_plain(id) && process_from_json(&out->who, v);
    if (out->readable)
        strcpy(out->run_id, id);
    json_decref(v);
    return CO_OK;
}

static bool is_dead(const lease *l)
{
    process_state state = l->readable ? process_look(&l->who) : PROCESS_ELSEWHERE;
    return state == PROCESS_DEAD || (state == PROCESS_ELSEWHERE && l->age_s > LEASE_STALE_S);
}

/* One run that tries to take the lease; it owns the paths. */
struct taker {
    const char *dir, *key, *run_id;
    char *lease, *own, *text;
    double now_s;             /* the file server's clock */
    lease chain[LEASE_CHAIN]; /* lease.json and those who took it over in turn */
    int n;
};

static char *after_path(const struct taker *t, const char *run_id)
{
    return co_sprintf("%s/.lease-after-%s", t->dir, run_id);
}

/* Links our finished lease to `path`. *won is false if that name is taken. */
static co_err claim(const struct taker *t, const char *path, bool *won)
{
    struct stat st;
    *won = link(t->own, path) == 0;
    if (*won)
        return CO_OK;
    int why = errno;
    if (stat(t->own, &st) == 0 && st.st_nlink == 2) { /* NFS: done, but the answer was lost */
        *won = true;
        return CO_OK;
    }
    if (why == EEXIST)
        return CO_OK;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); /* a file system without links */
    if (fd < 0)
        return errno == EEXIST ? CO_OK : co_fail(CO_EINPUT, "cannot write %s: %m", path);
    *won = true;
    co_err err = co_fs_write_all(fd, t->text, strlen(t->text), path);
    close(fd);
    if (err)
        unlink(path);
    return err;
}

/* Reads lease.json, then the .lease-after- files that lead to the present holder. n = 0: nobody holds it. */
static co_err follow(struct taker *t)
{
    bool there;
    t->n = 0;
    CO_TRY(read_lease(&t->chain[0], &there, t->lease, t->now_s));
    while (there) {
        if (++t->n == LEASE_CHAIN)
            return co_fail(CO_EINPUT, "%s: %d starters died while taking it over; remove %s/.lease-after-*",
                           t->lease, LEASE_CHAIN, t->dir);
        char *path = after_path(t, t->chain[t->n - 1].run_id);
        if (!path)
            return CO_ENOMEM;
        co_err err = read_lease(&t->chain[t->n], &there, path, t->now_s);
        co_free(path);
        if (err)
            return err;
    }
    return CO_OK;
}

static co_err refuse(const struct taker *t, const lease *l)
{
    if (!l->readable)
        return co_fail(CO_EINPUT,
                       "run folder %s: its lease.json is not readable; if no run uses the folder, remove it",
                       t->dir);
    if (process_look(&l->who) == PROCESS_ALIVE)
        return co_fail(CO_EINPUT,
                       "run folder %s is in use by pid %lld on host %s (run %s); choose another %s, "
                       "or stop that run first",
                       t->dir, l->who.pid, l->who.host, l->run_id, t->key);
    return co_fail(CO_EINPUT,
                   "run folder %s is in use by pid %lld on host %s (run %s, last sign of life %.0f s ago); "
                   "if that host is gone, it can be taken over after %d s",
                   t->dir, l->who.pid, l->who.host, l->run_id, l->age_s, LEASE_STALE_S);
}

co_err co_folder_is_free(const char *dir)
{
    struct taker *t = co_zalloc(sizeof *t);
    co_err err = CO_ENOMEM;

    if (t && (t->lease = co_sprintf("%s/lease.json", dir))) {
        t->dir = dir;
        t->key = "run.dir";
        t->now_s = co_wall_s();
        err = follow(t);
        const lease *last = t->n ? &t->chain[t->n - 1] : NULL;
        if (!err && last && last->readable && process_look(&last->who) == PROCESS_ALIVE)
            err = refuse(t, last);
    }
    if (t)
        co_free(t->lease);
    co_free(t);
    return err;
}

/* The present holder is dead: try to take over from it. */
static co_err take_over(struct taker *t, bool *won)
{
    lease first = t->chain[0];
    char *path = after_path(t, t->chain[t->n - 1].run_id);
    if (!path)
        return CO_ENOMEM;
    co_err err = claim(t, path, won);
    if (err || !*won)
        goto out;
    err = follow(t);
    if (err)
        goto out;
    *won = t->n > 1 && strcmp(t->chain[0].run_id, first.run_id) == 0 &&
           strcmp(t->chain[t->n - 1].run_id, t->run_id) == 0;
    if (!*won) {
        unlink(path); /* another run had finished the takeover before us */
        goto out;
    }
    err = co_fs_write_atomic(t->lease, t->text, strlen(t->text));
    for (int i = 0; !err && i < t->n - 1; i++) {
        char *old = after_path(t, t->chain[i].run_id);
        if (old)
            unlink(old);
        co_free(old);
    }
    if (err) { /* a full disk: undo everything */
        unlink(path);
        lease_give_back(t->dir, t->run_id);
    }
out:
    co_free(path);
    return err;
}

static co_err try_all(struct taker *t)
{
    for (int i = 0; i < LEASE_TRIES; i++) {
        bool won;
        CO_TRY(claim(t, t->lease, &won));
        if (won)
            return CO_OK;
        CO_TRY(follow(t));
        if (t->n == 0)
            continue; /* its holder has just given it back */
        if (!is_dead(&t->chain[t->n - 1]))
            return refuse(t, &t->chain[t->n - 1]);
        CO_TRY(take_over(t, &won));
        if (won)
            return CO_OK;
    }
    return co_fail(CO_EINPUT, "run folder %s: its lease.json keeps changing hands", t->dir);
}

static char *lease_text(const char *run_id)
{
    process_id me;
    process_self(&me);
    json_t *v = process_to_json(&me);
    char *text = NULL;
    if (v && json_object_set_new(v, "run_id", json_string(run_id)) == 0)
        text = co_json_text(v);
    json_decref(v);
    return text;
}

/* Writes our lease under a name of its own. The file's time is the server's clock. */
static co_err write_own(struct taker *t)
{
    struct stat st;
    int fd = open(t->own, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return co_fail(CO_EINPUT, "run folder %s cannot be written: %m; choose another with run.dir=", t->dir);
    co_err err = co_fs_write_all(fd, t->text, strlen(t->text), t->own);
    if (!err && (fsync(fd) != 0 || fstat(fd, &st) != 0))
        err = co_fail(CO_EIO, "write %s: %m", t->own);
    close(fd);
    if (!err)
        t->now_s = mtime_s(&st);
    return err;
}

co_err lease_take(const char *dir, const char *key, const char *run_id)
{
    struct taker *t = co_zalloc(sizeof *t);
    if (!t)
        return CO_ENOMEM;
    t->dir = dir;
    t->key = key;
    t->run_id = run_id;
    t->lease = co_sprintf("%s/lease.json", dir);
    t->own = co_sprintf("%s/.lease-%s", dir, run_id);
    t->text = lease_text(run_id);
    co_err err = CO_ENOMEM;
    if (t->lease && t->own && t->text) {
        err = write_own(t);
        if (!err)
            err = try_all(t);
        unlink(t->own);
    }
    co_free(t->lease);
    co_free(t->own);
    co_free(t->text);
    co_free(t);
    return err;
}

void lease_give_back(const char *dir, const char *run_id)
{
    lease l;
    bool there;
    char *path = co_sprintf("%s/lease.json", dir);
    if (path && !read_lease(&l, &there, path, 0) && there && strcmp(l.run_id, run_id) == 0)
        unlink(path);
    co_free(path);
}

co_err lease_is_left_over(bool *yes, const char *path, const char *name)
{
    lease l;
    bool there;

    *yes = false;
    if (strncmp(name, ".lease-", 7) != 0 || strncmp(name, ".lease-after-", 13) == 0)
        return CO_OK;
    CO_TRY(read_lease(&l, &there, path, 0));
    *yes = there && l.readable && process_look(&l.who) == PROCESS_DEAD;
    return CO_OK;
}

/* header.json names the last start in this folder; false if there is no such file, or it names us. */
static bool another_started(const char *dir, const char *run_id)
{
    char *path = co_sprintf("%s/header.json", dir);
    json_t *v = NULL;
    bool another = false;

    if (path && co_fs_exists(path) && co_json_read(&v, path, HEADER_BYTES) == CO_OK) {
        const char *id = co_json_str(v, "run_id");
        another = id && strcmp(id, run_id) != 0;
    }
    json_decref(v);
    co_free(path);
    return another;
}

co_err lease_is_ours(const char *dir, const char *run_id)
{
    lease l;
    bool there;
    char *path = co_sprintf("%s/lease.json", dir);

    if (!path)
        return CO_ENOMEM;
    co_err err = read_lease(&l, &there, path, 0);
    co_free(path);
    if (!err && there && l.readable && strcmp(l.run_id, run_id) != 0)
        err = co_fail(CO_EFAIL,
                      "run folder %s was taken over by pid %lld on host %s (run %s) while we were away", dir,
                      l.who.pid, l.who.host, l.run_id);
    if (!err && !co_fs_is_dir(dir))
        return co_fail(CO_EFAIL, "folder %s is gone: it was removed or moved while the run was writing to it",
                       dir);
    if (!err && !there && another_started(dir, run_id))
        err = co_fail(CO_EFAIL, "run folder %s was taken over by another run, which has ended since", dir);
    return err;
}

co_err lease_renew(const char *dir, const char *run_id)
{
    char *path = co_sprintf("%s/lease.json", dir);
    co_err err = path ? lease_is_ours(dir, run_id) : CO_ENOMEM;

    if (!err && !co_fs_exists(path)) /* removed by hand */
        err = lease_take(dir, "run.dir", run_id);
    else if (!err && utimensat(AT_FDCWD, path, NULL, 0) != 0)
        err = co_fail(CO_EIO, "renew %s: %m", path);
    co_free(path);
    return err;
}
