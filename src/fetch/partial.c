/* partial.c -- a file that is not whole yet.
 *
 * PATH.part has the bytes so far. It is locked while somebody writes it, so two downloads of one file do not
 * mix. PATH.part.from has two lines, the address and the ETag of those bytes. Both stay when the program is
 * killed.
 */
#include "fetch/fetch_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/str.h"

static void take_line(char *out, size_t size, const char **at)
{
    size_t n = strcspn(*at, "\n");

    snprintf(out, size, "%.*s", n < size ? (int)n : 0, *at);
    *at += n + ((*at)[n] == '\n');
}

static void read_note(partial *p)
{
    char *text = NULL;
    size_t len;

    if (co_fs_read(&text, &len, p->note, FETCH_URL + FETCH_ETAG + 2) == CO_OK) {
        const char *at = text;
        take_line(p->url, sizeof p->url, &at);
        take_line(p->etag, sizeof p->etag, &at);
    }
    co_free(text);
    co_errclear();
}

static co_err lock_it(partial *p)
{
    struct stat st, there;

    if (flock(p->fd, LOCK_EX | LOCK_NB) != 0)
        return errno == EWOULDBLOCK
                   ? co_fail(CO_EINPUT, "another process is downloading %s: wait for it, then try again",
                             p->path)
                   : co_fail(CO_EIO, "lock %s: %m", p->path);
    if (fstat(p->fd, &st) != 0)
        return co_fail(CO_EIO, "stat %s: %m", p->path);
    if (!S_ISREG(st.st_mode))
        return co_fail(CO_EINPUT, "%s is not a regular file: remove it", p->path);
    if (stat(p->path, &there) != 0 || there.st_ino != st.st_ino) /* finished between our open and our lock */
        return co_fail(CO_EINPUT, "another process has just downloaded %s: try again", p->path);
    p->len = (uint64_t)st.st_size;
    return CO_OK;
}

co_err partial_open(partial *p, const char *path, bool anew)
{
    *p = (partial){.fd = -1};
    if (snprintf(p->path, sizeof p->path, "%s.part", path) >= (int)sizeof p->path ||
        snprintf(p->note, sizeof p->note, "%s.part.from", path) >= (int)sizeof p->note)
        return co_fail(CO_EINPUT, "the path %.200s... is too long", path);
    p->fd = open(p->path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (p->fd < 0)
        return co_fail(CO_EIO, "create %s: %m", p->path);
    co_err err = lock_it(p);
    if (!err && anew)
        err = partial_restart(p);
    if (!err)
        read_note(p);
    if (err)
        partial_close(p);
    return err;
}

co_err partial_restart(partial *p)
{
    if (ftruncate(p->fd, 0) != 0)
        return co_fail(CO_EIO, "truncate %s: %m", p->path);
    unlink(p->note);
    p->len = 0;
    p->url[0] = p->etag[0] = '\0';
    return CO_OK;
}

co_err partial_came_from(partial *p, const char *url, const char *etag)
{
    co_str text = {0};

    if (strcmp(p->url, url) == 0 && strcmp(p->etag, etag) == 0)
        return CO_OK;
    co_str_addf(&text, "%s\n%s\n", url, etag);
    co_err err = co_str_err(&text);
    if (!err)
        err = co_fs_write_lightly(p->note, text.p, text.len);
    co_str_fini(&text);
    snprintf(p->url, sizeof p->url, "%s", url);
    snprintf(p->etag, sizeof p->etag, "%s", etag);
    return err;
}

co_err partial_add(partial *p, const void *bytes, size_t len)
{
    const char *at = bytes;

    while (len > 0) {
        ssize_t n = pwrite(p->fd, at, len, (off_t)p->len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return co_fail(CO_EIO, "write %s: %m", p->path);
        at += n;
        len -= (size_t)n;
        p->len += (uint64_t)n;
    }
    return CO_OK;
}

co_err partial_needs(const partial *p, uint64_t bytes)
{
    struct statvfs fs;

    if (fstatvfs(p->fd, &fs) != 0)
        return CO_OK; /* not known: writing will tell */
    uint64_t free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (free_bytes >= bytes)
        return CO_OK;
    return co_fail(CO_EIO,
                   "%s needs %llu bytes more, %llu are free on its disk: make room, or give another folder",
                   p->path, (unsigned long long)bytes, (unsigned long long)free_bytes);
}

co_err partial_finish(partial *p, const char *path)
{
    if (fsync(p->fd) != 0)
        return co_fail(CO_EIO, "sync %s: %m", p->path);
    if (rename(p->path, path) != 0)
        return co_fail(CO_EIO, "rename %s to %s: %m", p->path, path);
    unlink(p->note);
    partial_close(p);
    return CO_OK;
}

void partial_discard(partial *p)
{
    unlink(p->path);
    unlink(p->note);
}

void partial_close(partial *p)
{
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
}
