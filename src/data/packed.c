/* packed.c -- the bytes of a file in order, whether it is plain, xz (liblzma) or gzip (zlib).
 *
 * The end of the file's name decides which it is. The file is read in pieces of 256 KiB and unpacked straight
 * into the caller's memory, so only one piece and the decoder are in memory. The decoders check the checksums
 * at the end of the file. A file that stops early is reported as cut short; bytes after its end are refused.
 *
 * Cost: xz about 20 MB/s of pictures, gzip 150 MB/s.
 */
#include "data/images_int.h"

#include <errno.h>
#include <inttypes.h>
#include <lzma.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/alloc.h"
#include "data/file_int.h"

enum { PIECE = 256 << 10, OVERRUN = 1 << 20, XZ_MEMORY = 256 << 20 };
/* A packed file of n bytes may unpack to UNPACKED_LEAST + UNPACKED_TIMES * n bytes. Pictures hardly pack at
 * all; tar headers and BMP files do. */
static const uint64_t UNPACKED_LEAST = 64 << 20, UNPACKED_TIMES = 50;

typedef enum { PLAIN, XZ, GZ } packing;

struct packed {
    packing how;
    int fd;            /* -1: all bytes are in `in` */
    bool drained;      /* nothing will follow what is in `in` */
    bool ended;        /* nothing is left to unpack */
    uint64_t file_len; /* of the packed file */
    uint64_t made;     /* bytes that came out so far */
    uint64_t most;     /* bytes that may come out; UINT64_MAX for a plain file */
    const uint8_t *in; /* read and not yet unpacked */
    size_t in_len;
    lzma_stream xz;
    z_stream gz;
    char *path;
    uint8_t piece[]; /* [PIECE], or nothing */
};

/* --- memory of the decoders ----------------------------------------------------------------------------- */

static void *xz_take(void *unused, size_t n, size_t size)
{
    size_t total;

    return __builtin_mul_overflow(n, size, &total) ? NULL : co_alloc(total);
}

static void *gz_take(void *unused, unsigned n, unsigned size)
{
    return co_array(n, size);
}

static void give(void *unused, void *p)
{
    co_free(p);
}

static const lzma_allocator xz_memory = {xz_take, give, NULL};

/* --- opening -------------------------------------------------------------------------------------------- */

static bool ends_in(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);

    return n >= m && strcmp(name + n - m, end) == 0;
}

static co_err start_decoder(packed *p)
{
    if (p->how == XZ) {
        p->xz.allocator = &xz_memory;
        if (lzma_stream_decoder(&p->xz, XZ_MEMORY, LZMA_CONCATENATED) != LZMA_OK)
            return co_fail(CO_ENOMEM, "%s: no memory to unpack it", p->path);
    } else if (p->how == GZ) {
        p->gz.zalloc = gz_take;
        p->gz.zfree = give;
        if (inflateInit2(&p->gz, 16 + MAX_WBITS) != Z_OK)
            return co_fail(CO_ENOMEM, "%s: no memory to unpack it", p->path);
    }
    return CO_OK;
}

static co_err make(packed **out, const char *name, size_t room)
{
    packed *p = co_alloc(sizeof *p + room);

    if (!p)
        return CO_ENOMEM;
    *p = (packed){.fd = -1, .xz = LZMA_STREAM_INIT};
    p->how = ends_in(name, ".xz") ? XZ : ends_in(name, ".gz") ? GZ : PLAIN;
    p->path = co_strdup(name);
    co_err err = p->path ? start_decoder(p) : CO_ENOMEM;
    if (err) {
        packed_close(p);
        return err;
    }
    *out = p;
    return CO_OK;
}

co_err packed_open(packed **out, const char *path)
{
    packed *p;

    CO_TRY(make(&p, path, PIECE));
    p->fd = file_open(path);
    struct stat st;
    if (p->fd < 0 || fstat(p->fd, &st) != 0) {
        packed_close(p);
        return CO_EINPUT;
    }
    p->file_len = (uint64_t)st.st_size;
    p->most = p->how == PLAIN ? UINT64_MAX : UNPACKED_LEAST + UNPACKED_TIMES * p->file_len;
    *out = p;
    return CO_OK;
}

co_err packed_of_bytes(packed **out, const void *bytes, size_t len, const char *name)
{
    CO_TRY(make(out, name, 0));
    (*out)->in = bytes;
    (*out)->in_len = len;
    (*out)->drained = true;
    (*out)->file_len = len;
    (*out)->most = (*out)->how == PLAIN ? UINT64_MAX : UNPACKED_LEAST + UNPACKED_TIMES * (uint64_t)len;
    return CO_OK;
}

void packed_limit(packed *p, uint64_t most)
{
    p->most = p->how == PLAIN ? p->most : most;
}

bool packed_is_over(const packed *p)
{
    return p->made > p->most;
}

const char *packed_path(const packed *p)
{
    return p->path;
}

void packed_close(packed *p)
{
    if (!p)
        return;
    if (p->how == XZ)
        lzma_end(&p->xz);
    if (p->how == GZ && p->gz.state)
        inflateEnd(&p->gz);
    if (p->fd >= 0)
        close(p->fd);
    co_free(p->path);
    co_free(p);
}

/* --- reading -------------------------------------------------------------------------------------------- */

/* At most `room` bytes of the file; *got = 0 at its end. */
static co_err read_some(packed *p, void *to, size_t room, size_t *got)
{
    ssize_t n;

    do
        n = read(p->fd, to, room);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return co_fail(CO_EINPUT, "read %s: %m", p->path);
    *got = (size_t)n;
    p->drained = n == 0;
    return CO_OK;
}

/* Makes sure that there is something to unpack, unless the file is at its end. */
static co_err refill(packed *p)
{
    if (p->in_len > 0 || p->drained)
        return CO_OK;
    p->in = p->piece;
    return read_some(p, p->piece, PIECE, &p->in_len);
}

static co_err cut_short(const packed *p)
{
    return co_fail(CO_EINPUT, "%s is cut short: is the download complete?", p->path);
}

static co_err damaged(const packed *p, const char *kind)
{
    return co_fail(CO_EINPUT, "%s is not %s file, or is damaged: fetch it again", p->path, kind);
}

static co_err too_much(const packed *p)
{
    char is[32], most[32];

    return co_fail(CO_EINPUT,
                   "%s: its %s bytes unpack to more than %s, the limit: is it the right file? If it is, "
                   "unpack it yourself",
                   p->path, with_commas(is, p->file_len), with_commas(most, p->most));
}

/* The three below give at least one byte, unless that is the end or a failure. */
static co_err read_plain(packed *p, void *to, size_t want, size_t *got)
{
    if (p->fd >= 0) {
        CO_TRY(read_some(p, to, want, got));
    } else {
        *got = want < p->in_len ? want : p->in_len;
        memcpy(to, p->in, *got);
        p->in += *got;
        p->in_len -= *got;
    }
    p->ended = *got == 0;
    return CO_OK;
}

static co_err read_xz(packed *p, void *to, size_t want, size_t *got)
{
    p->xz.next_out = to;
    p->xz.avail_out = want;
    while (!p->ended && p->xz.avail_out == want) {
        CO_TRY(refill(p));
        p->xz.next_in = p->in;
        p->xz.avail_in = p->in_len;
        lzma_ret rc = lzma_code(&p->xz, p->drained ? LZMA_FINISH : LZMA_RUN);
        p->in = p->xz.next_in;
        p->in_len = p->xz.avail_in;
        p->ended = rc == LZMA_STREAM_END;
        if (rc == LZMA_BUF_ERROR)
            return cut_short(p);
        if (rc == LZMA_MEM_ERROR)
            return co_fail(CO_ENOMEM, "%s: no memory to unpack it", p->path);
        if (rc == LZMA_MEMLIMIT_ERROR)
            return co_fail(CO_EINPUT, "%s: needs more than 256 MiB to unpack; pack it with xz -9 or less",
                           p->path);
        if (rc != LZMA_OK && rc != LZMA_STREAM_END)
            return damaged(p, "an xz");
    }
    *got = want - p->xz.avail_out;
    return CO_OK;
}

/* A gzip file may be several, one after the other. */
static co_err gz_member_ends(packed *p)
{
    CO_TRY(refill(p));
    p->ended = p->in_len == 0;
    inflateReset(&p->gz);
    return CO_OK;
}

static co_err read_gz(packed *p, void *to, size_t want, size_t *got)
{
    uInt room = want < OVERRUN ? (uInt)want : OVERRUN; /* zlib counts in unsigned */

    p->gz.next_out = to;
    p->gz.avail_out = room;
    while (!p->ended && p->gz.avail_out == room) {
        CO_TRY(refill(p));
        uInt give_in = p->in_len < OVERRUN ? (uInt)p->in_len : OVERRUN;
        p->gz.next_in = (Bytef *)(uintptr_t)p->in;
        p->gz.avail_in = give_in;
        int rc = inflate(&p->gz, Z_NO_FLUSH);
        size_t used = give_in - p->gz.avail_in;
        p->in += used;
        p->in_len -= used;
        if (rc == Z_STREAM_END)
            CO_TRY(gz_member_ends(p));
        else if (rc == Z_BUF_ERROR && p->drained && p->in_len == 0)
            return cut_short(p);
        else if (rc == Z_MEM_ERROR)
            return co_fail(CO_ENOMEM, "%s: no memory to unpack it", p->path);
        else if (rc != Z_OK && rc != Z_BUF_ERROR)
            return damaged(p, "a gzip");
    }
    *got = room - p->gz.avail_out;
    return CO_OK;
}

co_err packed_read(packed *p, void *to, size_t want, size_t *got)
{
    static co_err (*const read_as[])(packed *, void *, size_t, size_t *) = {read_plain, read_xz, read_gz};

    *got = 0;
    while (*got < want && !p->ended) {
        size_t n;
        CO_TRY(read_as[p->how](p, (uint8_t *)to + *got, want - *got, &n));
        *got += n;
        p->made += n;
        if (packed_is_over(p))
            return too_much(p);
    }
    return CO_OK;
}

co_err packed_skip(packed *p, uint64_t n)
{
    uint8_t waste[16384];
    size_t got;

    if (p->how == PLAIN && p->fd >= 0 && n > sizeof waste && n <= INT64_MAX)
        return lseek(p->fd, (off_t)n, SEEK_CUR) < 0 ? co_fail(CO_EINPUT, "seek in %s: %m", p->path) : CO_OK;
    for (size_t want; n > 0; n -= got) {
        want = n < sizeof waste ? (size_t)n : sizeof waste;
        CO_TRY(packed_read(p, waste, want, &got));
        if (got < want)
            break;
    }
    return CO_OK;
}

/* How many bytes are left, counted to OVERRUN. */
static co_err count_rest(packed *p, size_t *n)
{
    uint8_t waste[4096];
    size_t got = sizeof waste;

    for (*n = 0; got == sizeof waste && *n < OVERRUN; *n += got)
        CO_TRY(packed_read(p, waste, sizeof waste, &got));
    return CO_OK;
}

co_err packed_exactly(packed *p, void *to, size_t want, size_t before)
{
    size_t got, more = 0;
    char is[32], should[32];

    CO_TRY(packed_read(p, to, want, &got));
    if (got == want)
        CO_TRY(count_rest(p, &more));
    if (got + more == want)
        return CO_OK;
    return co_fail(CO_EINPUT, "%s: %s%s bytes%s, not %s: is %s?", p->path,
                   more >= OVERRUN ? "more than " : "", with_commas(is, before + got + more),
                   p->how == PLAIN ? "" : " unpacked", with_commas(should, before + want),
                   got < want ? "the download complete" : "it the right file");
}

const char *with_commas(char out[32], uint64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, n), at = 0;

    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = 0;
    return out;
}
