/* zip.c -- opens a zip archive and gives the bytes of its entries. zip_index.c finds the entries. */
#include "base/zip_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { PIECE = 1 << 16 };

co_err zip_read_at(const co_zip_file *zip, uint64_t at, void *dst, size_t len)
{
    uint8_t *to = dst;

    if (at > zip->len || len > zip->len - at)
        return co_fail(CO_EFORMAT, "%s: cut short (is the download complete?)", zip->what);
    if (zip->mem) {
        memcpy(dst, zip->mem + at, len);
        return CO_OK;
    }
    while (len > 0) {
        ssize_t got = pread(zip->fd, to, len, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return co_fail(CO_EIO, "read %s: %m", zip->what);
        if (got == 0)
            return co_fail(CO_EFORMAT, "%s became shorter while we read it", zip->what);
        to += got;
        at += (uint64_t)got;
        len -= (size_t)got;
    }
    return CO_OK;
}

co_err co_zip_parse(co_zip_file *zip, const void *bytes, size_t len, const char *what)
{
    *zip = (co_zip_file){.fd = -1, .mem = bytes, .len = len};
    zip->what = co_pool_str(&zip->pool, what);
    return zip->what ? zip_read_index(zip) : CO_ENOMEM;
}

co_err co_zip_open(co_zip_file *zip, const char *path)
{
    struct stat st;

    /* O_NONBLOCK: a FIFO must not make it wait. */
    *zip = (co_zip_file){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (zip->fd < 0)
        return co_fail(CO_EIO, "open %s: %m", path);
    if (!(zip->what = co_pool_str(&zip->pool, path)))
        return CO_ENOMEM;
    if (fstat(zip->fd, &st) != 0)
        return co_fail(CO_EIO, "stat %s: %m", path);
    if (!S_ISREG(st.st_mode))
        return co_fail(CO_EIO, "%s is not a regular file", path);
    zip->len = (uint64_t)st.st_size;
    return zip_read_index(zip);
}

void co_zip_close(co_zip_file *zip)
{
    if (zip->fd >= 0)
        close(zip->fd);
    co_free(zip->entry);
    co_pool_fini(&zip->pool);
    *zip = (co_zip_file){.fd = -1};
}

co_zip_entry *co_zip_find(const co_zip_file *zip, const char *name)
{
    co_zip_entry key = {.name = name};

    return zip->n ? bsearch(&key, zip->entry, (size_t)zip->n, sizeof key, zip_name_order) : NULL;
}

/* --- unpacking ------------------------------------------------------------------------------------------ */
struct outlet {
    const co_zip_file *zip;
    const co_zip_entry *entry;
    co_err (*put)(void *ctx, const void *bytes, size_t len); /* NULL: only the CRC is wanted */
    void *ctx;
    uint64_t done;
    uLong crc;
};

static co_err hand_over(struct outlet *out, const uint8_t *bytes, size_t len)
{
    if (len > out->entry->len - out->done)
        return co_fail(CO_EFORMAT, "%s: entry %s unpacks to more than the %llu bytes that the directory says",
                       out->zip->what, out->entry->name, (unsigned long long)out->entry->len);
    out->done += len;
    out->crc = crc32(out->crc, bytes, (uInt)len);
    return out->put ? out->put(out->ctx, bytes, len) : CO_OK;
}

/* The packed bytes, piece by piece; *n = 0 at their end. */
static co_err next_piece(const struct outlet *out, uint64_t *at, uint8_t piece[PIECE], size_t *n)
{
    uint64_t left = out->entry->packed - *at;

    *n = left < PIECE ? (size_t)left : PIECE;
    CO_TRY(zip_read_at(out->zip, out->entry->offset + *at, piece, *n));
    *at += *n;
    return CO_OK;
}

static co_err copy_stored(struct outlet *out)
{
    uint8_t piece[PIECE];
    uint64_t at = 0;

    for (size_t n;;) {
        CO_TRY(next_piece(out, &at, piece, &n));
        if (!n)
            return CO_OK;
        CO_TRY(hand_over(out, piece, n));
    }
}

static void *take(void *unused, unsigned n, unsigned size)
{
    return co_array(n, size);
}

static void give(void *unused, void *p)
{
    co_free(p);
}

static co_err inflate_all(struct outlet *out, z_stream *z)
{
    uint8_t in[PIECE], piece[PIECE];
    uint64_t at = 0;
    int rc = Z_OK;

    while (rc != Z_STREAM_END) {
        if (z->avail_in == 0) {
            size_t n;
            CO_TRY(next_piece(out, &at, in, &n));
            if (n == 0)
                break;
            z->next_in = in;
            z->avail_in = (uInt)n;
        }
        z->next_out = piece;
        z->avail_out = PIECE;
        rc = inflate(z, Z_NO_FLUSH);
        if (rc == Z_MEM_ERROR)
            return co_fail(CO_ENOMEM, "%s: no memory to unpack it", out->zip->what);
        if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
            break;
        CO_TRY(hand_over(out, piece, PIECE - z->avail_out));
    }
    if (rc == Z_STREAM_END && z->avail_in == 0 && at == out->entry->packed)
        return CO_OK;
    return co_fail(CO_EFORMAT, "%s: entry %s is damaged (is the download complete?)", out->zip->what,
                   out->entry->name);
}

static co_err copy_deflated(struct outlet *out)
{
    z_stream z = {.zalloc = take, .zfree = give};

    if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
        return co_fail(CO_ENOMEM, "%s: no memory to unpack it", out->zip->what);
    co_err err = inflate_all(out, &z);
    inflateEnd(&z);
    return err;
}

co_err co_zip_unpack(const co_zip_file *zip, const co_zip_entry *entry,
                     co_err (*put)(void *ctx, const void *bytes, size_t len), void *ctx)
{
    struct outlet out = {.zip = zip, .entry = entry, .put = put, .ctx = ctx, .crc = crc32(0, NULL, 0)};

    CO_TRY(entry->method == CO_ZIP_STORED ? copy_stored(&out) : copy_deflated(&out));
    if (out.done == entry->len && (uint32_t)out.crc == entry->crc)
        return CO_OK;
    return co_fail(
        CO_EFORMAT,
        "%s: entry %s is damaged: %llu bytes with the CRC %08lx, the directory says %llu with %08x", zip->what,
        entry->name, (unsigned long long)out.done, out.crc, (unsigned long long)entry->len, entry->crc);
}

co_err co_zip_check(const co_zip_file *zip, co_zip_entry *entry)
{
    CO_ASSERT(entry->method == CO_ZIP_STORED, "a stored entry");
    if (!entry->checked)
        CO_TRY(co_zip_unpack(zip, entry, NULL, NULL));
    entry->checked = true;
    return CO_OK;
}

co_err co_zip_read(const co_zip_file *zip, const co_zip_entry *entry, uint64_t from, void *dst, size_t len)
{
    CO_ASSERT(entry->method == CO_ZIP_STORED, "a stored entry");
    CO_ASSERT(from <= entry->len && len <= entry->len - from, "a read inside the entry");
    return zip_read_at(zip, entry->offset + from, dst, len);
}
