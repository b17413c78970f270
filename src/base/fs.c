/* fs.c -- reading and writing whole files, making and listing folders. Removing is in fs_remove.c.
 *
 * A write is atomic: after a crash at any point the path holds either the whole old file or the whole new
 * one. The bytes go to a temporary file in the same folder; then fsync, rename, and fsync of the folder. A
 * killed writer can leave a "NAME.tmp-PID-N" behind, which nobody reads.
 */
#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs_int.h"

static co_err too_long(const char *path, size_t limit)
{
    return co_fail(CO_EFORMAT, "%s is longer than the %zu bytes allowed here (is it the right file?)", path,
                   limit);
}

enum { PIPE_WAIT_MS = 30000 };

/* Waits for bytes, or the end, of a pipe that is not ready yet. */
static co_err wait_for_pipe(int fd, const char *path)
{
    int n = poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, PIPE_WAIT_MS);

    if (n == 0)
        return co_fail(CO_EIO, "read %s: a pipe whose writer sent nothing for %d s", path, PIPE_WAIT_MS / 1000);
    return n < 0 && errno != EINTR ? co_fail(CO_EIO, "wait for %s: %m", path) : CO_OK;
}

/* Reads until end of file into *buf, which holds `room` bytes and grows as needed: pipes and /proc files
 * report no size. */
static co_err read_fd(char **buf, size_t *len, size_t room, int fd, const char *path, size_t limit)
{
    for (*len = 0;;) {
        if (*len == room) {
            room = room > SIZE_MAX / 4 ? SIZE_MAX / 2 : room * 2;
            char *more = co_realloc(*buf, room + 1);
            if (!more)
                return co_fail_in(CO_ENOMEM, "read %s", path);
            *buf = more;
        }
        ssize_t n = read(fd, *buf + *len, room - *len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            CO_TRY(wait_for_pipe(fd, path));
            continue;
        }
        if (n < 0)
            return co_fail(CO_EIO, "read %s: %m", path);
        if (n == 0)
            break;
        *len += (size_t)n;
        if (*len > limit)
            return too_long(path, limit);
    }
    (*buf)[*len] = '\0';
    return CO_OK;
}

/* O_NONBLOCK: opening a FIFO that nobody writes into would wait for ever. Only a FIFO keeps the flag. */
static co_err open_to_read(int *out, struct stat *st, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0 && errno == EAGAIN) /* another process holds a lease on the file: wait until it gives it up */
        fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return co_fail(CO_EIO, "open %s: %m", path);
    if (fstat(fd, st) != 0 || (!S_ISFIFO(st->st_mode) && fcntl(fd, F_SETFL, 0) != 0)) {
        co_err err = co_fail(CO_EIO, "stat %s: %m", path);
        close(fd);
        return err;
    }
    *out = fd;
    return CO_OK;
}

co_err co_fs_read(char **out, size_t *len, const char *path, size_t limit)
{
    char *buf = NULL;
    size_t got = 0;
    struct stat st;
    int fd = -1;
    co_err err = open_to_read(&fd, &st, path);

    if (err)
        return err;
    if (S_ISREG(st.st_mode) && (uint64_t)st.st_size > limit) {
        err = too_long(path, limit);
        goto out;
    }

    /* one byte more than the file has, so that the read which finds the end needs no larger buffer */
    size_t room = (S_ISREG(st.st_mode) ? (size_t)st.st_size : 4095) + 1;
    buf = co_alloc(room + 1);
    err = buf ? read_fd(&buf, &got, room, fd, path, limit) : co_fail_in(CO_ENOMEM, "read %s", path);
    if (!err && got == 0 && S_ISFIFO(st.st_mode))
        err = co_fail(CO_EIO, "%s is a pipe and nobody writes into it", path);
    if (err)
        goto out;
    *out = buf;
    if (len)
        *len = got;
    buf = NULL; /* now *out's */
out:
    co_free(buf);
    close(fd);
    return err;
}

co_err co_fs_write_all(int fd, const void *bytes, size_t len, const char *path_for_message)
{
    const char *p = bytes;

    while (len) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return co_fail(CO_EIO, "write %s: %m", path_for_message);
        p += n;
        len -= (size_t)n;
    }
    return CO_OK;
}

/* The folder that `path` is in: "a/b" -> "a", "b" -> ".", "/b" -> "/". NULL if memory is out. */
static char *folder_of(const char *path)
{
    char *dir = co_strdup(path);
    char *slash = dir ? strrchr(dir, '/') : NULL;

    if (!dir)
        return NULL;
    if (slash) {
        slash[slash == dir] = '\0';
        return dir;
    }
    co_free(dir);
    return co_strdup(".");
}

/* Creates a new file "PATH.tmp-PID-N". A process on another host of a shared disk may have our pid; N avoids
 * the clash. */
static co_err open_temporary(int *fd, char **tmp, const char *path, mode_t mode)
{
    static atomic_uint turn;

    for (int tries = 0; tries < 100; tries++) {
        char *name = co_sprintf("%s.tmp-%d-%u", path, (int)getpid(), atomic_fetch_add(&turn, 1));
        if (!name)
            return CO_ENOMEM;
        *fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (*fd >= 0) {
            *tmp = name;
            return CO_OK;
        }
        co_err err = co_fail(CO_EIO, "create %s: %m", name);
        bool taken = errno == EEXIST;
        co_free(name);
        if (!taken)
            return err;
    }
    return co_fail(CO_EIO, "create %s: a hundred of its temporary files exist already; remove %s.tmp-*", path,
                   path);
}

static co_err write_atomic(const char *path, const void *bytes, size_t len, mode_t mode, bool synced)
{
    char *tmp = NULL, *dir = folder_of(path);
    int fd = -1;
    co_err err = dir ? open_temporary(&fd, &tmp, path, mode) : CO_ENOMEM;

    if (err)
        goto out;
    err = co_fs_write_all(fd, bytes, len, tmp);
    if (!err && synced && fsync(fd) != 0)
        err = co_fail(CO_EIO, "fsync %s: %m", tmp);
    if (close(fd) != 0 && !err)
        err = co_fail(CO_EIO, "close %s: %m", tmp);
    if (!err && rename(tmp, path) != 0)
        err = co_fail(CO_EIO, "rename %s to %s: %m", tmp, path);
    if (err)
        unlink(tmp);
    else if (synced)
        err = co_fs_sync_dir(dir);
out:
    co_free(tmp);
    co_free(dir);
    return err;
}

co_err co_fs_write_atomic(const char *path, const void *bytes, size_t len)
{
    return write_atomic(path, bytes, len, 0666, true);
}

co_err co_fs_write_private(const char *path, const void *bytes, size_t len)
{
    return write_atomic(path, bytes, len, 0600, true);
}

co_err co_fs_write_lightly(const char *path, const void *bytes, size_t len)
{
    return write_atomic(path, bytes, len, 0666, false);
}

co_err co_fs_sync(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    co_err err = CO_OK;

    if (fd < 0)
        return co_fail(CO_EIO, "open %s: %m", path);
    if (fsync(fd) != 0)
        err = co_fail(CO_EIO, "fsync %s: %m", path);
    close(fd);
    return err;
}

co_err co_fs_open_log(int *fd, const char *path)
{
    struct stat st;
    co_err err = CO_OK;
    int at = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);

    if (at < 0 && errno == ELOOP)
        err = co_fail(CO_EINPUT, "%s is a link; a run writes into its own folder only: remove the link", path);
    else if (at < 0)
        err = co_fail(CO_EIO, "open %s: %m", path);
    else if (fstat(at, &st) != 0 || !S_ISREG(st.st_mode))
        err = co_fail(CO_EINPUT, "%s is not a regular file: remove it", path);
    if (!err)
        *fd = at;
    else if (at >= 0)
        close(at);
    return err;
}

co_err co_fs_sync_dir(const char *path)
{
    co_err err = CO_OK;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return co_fail(CO_EIO, "open folder %s: %m", path);
    /* EINVAL: some network file systems have no fsync for folders and need none */
    if (fsync(fd) != 0 && errno != EINVAL)
        err = co_fail(CO_EIO, "fsync folder %s: %m", path);
    close(fd);
    return err;
}

static co_err make_one(const char *path)
{
    if (mkdir(path, 0777) == 0 || (errno == EEXIST && co_fs_is_dir(path)))
        return CO_OK;
    return co_fail(CO_EIO, "mkdir %s: %m", path);
}

co_err co_fs_mkdirs(const char *path)
{
    co_err err = CO_OK;
    char *p = co_strdup(path);

    if (!p)
        return CO_ENOMEM;
    for (char *s = p + 1; p[0] && *s && !err; s++) {
        if (*s != '/')
            continue;
        *s = '\0';
        err = make_one(p);
        *s = '/';
    }
    if (!err)
        err = make_one(p);
    co_free(p);
    return err;
}

bool co_fs_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

bool co_fs_is_dir(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Appends a copy of `name` to the array, whose capacity doubles when it is full. */
static co_err add_name(char ***names, size_t *n, size_t *room, const char *name)
{
    if (*n == *room) {
        size_t more = *room ? *room * 2 : 16;
        char **p = co_realloc(*names, more * sizeof *p);
        if (!p)
            return CO_ENOMEM;
        *names = p;
        *room = more;
    }
    (*names)[*n] = co_strdup(name);
    if (!(*names)[*n])
        return CO_ENOMEM;
    ++*n;
    return CO_OK;
}

co_err next_entry(const char **name, DIR *dir, const char *path)
{
    struct dirent *entry;

    do {
        errno = 0;
        entry = readdir(dir);
    } while (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
    if (!entry && errno)
        return co_fail(CO_EIO, "read folder %s: %m", path);
    *name = entry ? entry->d_name : NULL;
    return CO_OK;
}

co_err co_fs_list(char ***names, size_t *n, const char *path)
{
    char **list = co_alloc(0); /* an empty folder gives an array too */
    size_t count = 0, room = 0;
    co_err err = list ? CO_OK : CO_ENOMEM;
    DIR *dir = list ? opendir(path) : NULL;

    if (list && !dir)
        err = co_fail(CO_EIO, "open folder %s: %m", path);
    for (const char *name; !err && !(err = next_entry(&name, dir, path)) && name;)
        err = add_name(&list, &count, &room, name);
    if (dir)
        closedir(dir);
    if (err) {
        co_fs_list_free(list, count);
        return err;
    }
    qsort(list, count, sizeof *list, by_bytes);
    *names = list;
    *n = count;
    return CO_OK;
}

void co_fs_list_free(char **names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        co_free(names[i]);
    co_free(names);
}
