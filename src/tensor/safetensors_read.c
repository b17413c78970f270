/* safetensors_read.c -- opens a .safetensors file, finds its tensors by name or position, and reads their
 * bytes.
 *
 * Opening reads and checks the header (safetensors_header.c). Tensor bytes are read by pread when a caller
 * needs them. Nothing is mapped, so a file that shrinks causes an error message instead of SIGBUS.
 */
#include "tensor/safetensors_int.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads all of [at, at + len), or fails. */
static co_err read_at(int fd, void *dst, size_t len, uint64_t at, const char *path)
{
    char *p = dst;

    while (len > 0) {
        ssize_t got = pread(fd, p, len, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return co_fail(CO_EIO, "read %s: %m", path);
        if (got == 0)
            return co_fail(CO_EFORMAT, "%s became shorter while we read it", path);
        p += got;
        at += (uint64_t)got;
        len -= (size_t)got;
    }
    return CO_OK;
}

co_err co_st_open(co_st_file **out, const char *path)
{
    char word[ST_LENGTH], *bytes = NULL;
    uint64_t n = 0;
    struct stat st;
    co_err err;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* O_NONBLOCK: opening a FIFO must not hang */

    if (fd < 0)
        return co_fail(CO_EIO, "open %s: %m", path);
    if (fstat(fd, &st) != 0) {
        err = co_fail(CO_EIO, "stat %s: %m", path);
    } else if (!S_ISREG(st.st_mode)) {
        err = co_fail(CO_EIO, "%s is not a regular file", path);
    } else if (st.st_size < ST_LENGTH) {
        err = co_fail(CO_EFORMAT, "%s: %lld bytes, shorter than any safetensors file", path,
                      (long long)st.st_size);
    } else {
        err = read_at(fd, word, sizeof word, 0, path);
        if (!err)
            err = st_parse_length(&n, word, (uint64_t)st.st_size, path);
        if (!err && !(bytes = co_alloc(ST_LENGTH + n)))
            err = CO_ENOMEM;
        if (!err)
            err = read_at(fd, bytes, ST_LENGTH + n, 0, path);
        if (!err)
            err = co_st_parse(out, bytes, ST_LENGTH + n, (uint64_t)st.st_size, path);
    }
    co_free(bytes);
    if (err)
        close(fd);
    else
        (*out)->fd = fd;
    return err;
}

int co_st_count(const co_st_file *f)
{
    return f->n;
}

const co_st_tensor *co_st_at(const co_st_file *f, int i)
{
    return i >= 0 && i < f->n ? &f->tensor[i] : NULL;
}

const co_st_tensor *co_st_find(const co_st_file *f, const char *name)
{
    int lo = 0, hi = f->n;

    while (lo < hi) {
        int mid = lo + (hi - lo) / 2, order = strcmp(name, f->by_name[mid]->name);
        if (order == 0)
            return f->by_name[mid];
        if (order < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

const co_st_tensor *co_st_by_name(const co_st_file *f, int i)
{
    return i >= 0 && i < f->n ? f->by_name[i] : NULL;
}

const char *co_st_meta(const co_st_file *f, const char *key)
{
    int lo = 0, hi = f->n_meta;

    while (lo < hi) {
        int mid = lo + (hi - lo) / 2, order = strcmp(key, f->meta[mid].key);
        if (order == 0)
            return f->meta[mid].value;
        if (order < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

co_err co_st_read(co_st_file *f, const co_st_tensor *t, uint64_t from, void *dst, size_t len)
{
    if (f->fd < 0)
        return co_fail(CO_EINPUT, "%s: tensor bytes are not available: only the header was loaded", f->what);
    if (t->dtype == CO_DTYPE_COUNT)
        return co_fail(CO_EINPUT, "%s: tensor %s is %s, a dtype that cohort cannot read (convert it to F32)",
                       f->what, t->name, t->dtype_name);
    if (from > t->len || len > t->len - from)
        return co_fail(CO_EINPUT, "%s: tensor %s has %" PRIu64 " bytes; cannot read %zu from byte %" PRIu64,
                       f->what, t->name, t->len, len, from);
    return read_at(f->fd, dst, len, t->offset + from, f->what);
}
