/* archive.c -- the folder that an archive is unpacked into: checks names, keeps limits, writes files. */
#include "data/archive_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/fs.h"

/* SYNC_EACH: so many files are synced one by one; with more, the whole file system is, once. */
enum { MOST_NAME = 1000, TELL_EVERY = 4096, SYNC_EACH = 32 };

static bool ends_in(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);

    return n >= m && strcasecmp(name + n - m, end) == 0;
}

bool archive_name_is_safe(const char *name)
{
    size_t len = strlen(name);

    if (len == 0 || len > MOST_NAME)
        return false;
    for (const char *at = name; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f || *at == '\\')
            return false;
    for (const char *at = name;;) {
        size_t n = strcspn(at, "/");
        if (n == 0 || n > 255 || (n == 1 && at[0] == '.') || (n == 2 && at[0] == '.' && at[1] == '.'))
            return false;
        if (!at[n])
            return true;
        at += n + 1;
    }
}

/* Makes the folders of out->path below out->into. */
static co_err make_folders(outbox *out)
{
    char *slash = strrchr(out->path, '/');

    *slash = '\0';
    co_err err = co_fs_is_dir(out->path) ? CO_OK : co_fs_mkdirs(out->path);
    *slash = '/';
    return err;
}

co_err outbox_begin(outbox *out, const char *name)
{
    if (!archive_name_is_safe(name)) {
        char shown[100];
        size_t n = 0;
        for (; name[n] && n < sizeof shown - 1; n++)
            shown[n] = (unsigned char)name[n] < 0x20 || name[n] == 0x7f ? '?' : name[n];
        shown[n] = '\0';
        return co_fail(CO_EFORMAT,
                       "%s: a file in it is called \"%s\", which may lead out of the folder: refused",
                       out->archive, shown);
    }
    if (out->facts.files >= out->limits->most_files)
        return co_fail(CO_EFORMAT, "%s: more than %llu files in it: refused", out->archive,
                       (unsigned long long)out->limits->most_files);
    if (snprintf(out->path, sizeof out->path, "%s/%s", out->into, name) >= (int)sizeof out->path)
        return co_fail(CO_EINPUT, "%s: the path of %s is too long", out->into, name);
    CO_TRY(make_folders(out));
    out->fd = open(out->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (out->fd < 0)
        return errno == EEXIST ? co_fail(CO_EFORMAT, "%s: two files in it are called %s", out->archive, name)
                               : co_fail(CO_EIO, "create %s: %m", out->path);
    out->facts.files++;
    return CO_OK;
}

co_err outbox_put(void *ctx, const void *bytes, size_t len)
{
    outbox *out = ctx;

    if (len > out->limits->most_bytes - out->facts.bytes)
        return co_fail(CO_EFORMAT, "%s: it unpacks to more than %llu bytes: refused", out->archive,
                       (unsigned long long)out->limits->most_bytes);
    out->facts.bytes += len;
    return co_fs_write_all(out->fd, bytes, len, out->path);
}

co_err outbox_end(outbox *out)
{
    int fd = out->fd;

    out->fd = -1;
    if (out->facts.files <= SYNC_EACH && fsync(fd) != 0) {
        co_fail(CO_EIO, "sync %s: %m", out->path);
        close(fd);
        return CO_EIO;
    }
    if (close(fd) != 0)
        return co_fail(CO_EIO, "close %s: %m", out->path);
    if (out->limits->tell && out->facts.files % TELL_EVERY == 0)
        out->limits->tell(out->limits->ctx, out->facts.files, out->facts.bytes);
    return CO_OK;
}

static co_err sync_all(const outbox *out)
{
    if (out->facts.files <= SYNC_EACH)
        return CO_OK;
    int fd = open(out->into, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    co_err err = fd < 0 || syncfs(fd) != 0 ? co_fail(CO_EIO, "sync %s: %m", out->into) : CO_OK;
    if (fd >= 0)
        close(fd);
    return err;
}

co_err co_archive_unpack(co_archive_facts *out, const char *archive, const char *into,
                         const co_archive_limits *limits)
{
    outbox to = {.archive = archive, .into = into, .limits = limits, .fd = -1};
    bool zip = ends_in(archive, ".zip");

    if (!zip && !ends_in(archive, ".tar") && !ends_in(archive, ".tar.gz") && !ends_in(archive, ".tar.xz"))
        return co_fail(CO_EINPUT, "%s: only .zip, .tar, .tar.gz and .tar.xz are unpacked", archive);
    co_err err = zip ? unpack_zip(&to) : unpack_tar(&to);
    if (to.fd >= 0)
        close(to.fd);
    if (!err)
        err = sync_all(&to);
    if (!err)
        *out = to.facts;
    return err;
}
