/* zip.c -- finds the entries of a zip archive and reads their bytes.
 *
 *     | local header, name, extra | bytes | ... | central directory | zip64 end, locator | end record |
 *
 * The end record is the last 22 bytes: archives with a comment are refused, so a file that was cut short is
 * noticed at once. If the zip64 records are there, they must agree with the end record. The central directory
 * must end where the end records begin. Each entry must be stored, its local header must name it, and its bytes
 * must lie before the central directory. All numbers are compared with the file's length before they are used.
 *
 * Memory: one zip_entry and one name per entry. Nothing is mapped: a file that shrinks gives an error, no signal.
 */
#include "ckpt/zip_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/bytes.h"

enum {
    END_LEN = 22,
    LOCATOR_LEN = 20,
    END64_LEN = 56,
    CENTRAL_LEN = 46,
    LOCAL_LEN = 30,
    PIECE = 1 << 16,
    MOST_DIRECTORY = 256 << 20 /* bytes */
};

/* --- bytes ----------------------------------------------------------------------------------------------- */
static co_err read_at(const zip_file *zip, uint64_t at, void *dst, size_t len)
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

static uint64_t u16(const uint8_t *at)
{
    return co_le_get(at, 2);
}

static uint64_t u32(const uint8_t *at)
{
    return co_le_get(at, 4);
}

static uint64_t u64(const uint8_t *at)
{
    return co_le_get(at, 8);
}

static co_err broken(const zip_file *zip, const char *why)
{
    return co_fail(CO_EFORMAT, "%s: not a whole zip archive: %s (is the download complete?)", zip->what, why);
}

/* --- the end records -------------------------------------------------------------------------------------- */
/* Where the central directory is. */
struct directory {
    uint64_t at, len, entries, end; /* end: of the directory; where the end records begin */
};

/* A number of the 16- or 32-bit record, which may say "see the 64-bit record" by having all bits set. */
static bool agrees(uint64_t narrow, uint64_t all_bits, uint64_t wide)
{
    return narrow == all_bits || narrow == wide;
}

static co_err read_end64(const zip_file *zip, const uint8_t *end, uint64_t locator_at, struct directory *dir)
{
    uint8_t locator[LOCATOR_LEN], rec[END64_LEN];

    CO_TRY(read_at(zip, locator_at, locator, sizeof locator));
    uint64_t at = u64(locator + 8);
    if (u32(locator + 4) != 0 || u32(locator + 16) > 1 || locator_at < END64_LEN || at != locator_at - END64_LEN)
        return broken(zip, "its zip64 locator is wrong");
    CO_TRY(read_at(zip, at, rec, sizeof rec));
    if (memcmp(rec, "PK\6\6", 4) != 0 || u64(rec + 4) != END64_LEN - 12 || u32(rec + 16) != 0 ||
        u32(rec + 20) != 0 || u64(rec + 24) != u64(rec + 32))
        return broken(zip, "its zip64 end record is wrong");
    *dir = (struct directory){.at = u64(rec + 48), .len = u64(rec + 40), .entries = u64(rec + 32), .end = at};
    if (!agrees(u16(end + 10), 0xffff, dir->entries) || !agrees(u32(end + 12), 0xffffffff, dir->len) ||
        !agrees(u32(end + 16), 0xffffffff, dir->at))
        return broken(zip, "its two end records differ");
    return CO_OK;
}

static co_err read_end(const zip_file *zip, struct directory *dir)
{
    uint8_t end[END_LEN], mark[4] = {0};

    if (zip->len < END_LEN)
        return broken(zip, "it is too short");
    CO_TRY(read_at(zip, zip->len - END_LEN, end, sizeof end));
    if (memcmp(end, "PK\5\6", 4) != 0 || u16(end + 20) != 0)
        return broken(zip, "it does not end with an end record");
    if (u16(end + 4) != 0 || u16(end + 6) != 0 || u16(end + 8) != u16(end + 10))
        return broken(zip, "it is one of several parts");
    uint64_t end_at = zip->len - END_LEN;
    if (end_at >= LOCATOR_LEN)
        CO_TRY(read_at(zip, end_at - LOCATOR_LEN, mark, sizeof mark));
    if (memcmp(mark, "PK\6\7", 4) == 0)
        CO_TRY(read_end64(zip, end, end_at - LOCATOR_LEN, dir));
    else
        *dir = (struct directory){
            .at = u32(end + 16), .len = u32(end + 12), .entries = u16(end + 10), .end = end_at};
    if (dir->len > MOST_DIRECTORY || dir->len > dir->end || dir->at != dir->end - dir->len)
        return broken(zip, "its directory is not before its end record");
    if (dir->entries > dir->len / CENTRAL_LEN)
        return broken(zip, "its directory is too short for its entries");
    return CO_OK;
}

/* --- the central directory -------------------------------------------------------------------------------- */
/* Numbers that do not fit 32 bits are in the extra field of kind 1, in this order. */
static co_err widen(const zip_file *zip, const uint8_t *extra, size_t len, uint64_t *packed, uint64_t *size,
                    uint64_t *at)
{
    uint64_t *const wide[] = {size, packed, at};

    for (size_t i = 0; i + 4 <= len;) {
        size_t n = (size_t)u16(extra + i + 2), k = i + 4;
        if (n > len - k)
            return broken(zip, "an extra field is cut short");
        for (size_t w = 0; u16(extra + i) == 1 && w < CO_COUNT(wide); w++) {
            if (*wide[w] != 0xffffffff)
                continue;
            if (k + 8 > i + 4 + n)
                return broken(zip, "a zip64 field is cut short");
            *wide[w] = u64(extra + k);
            k += 8;
        }
        i += 4 + n;
    }
    return CO_OK;
}

/* The local header says once more what the entry is called, and where its bytes begin. */
static co_err read_local(const zip_file *zip, zip_entry *entry, uint64_t at, uint64_t directory_at)
{
    uint8_t local[LOCAL_LEN];
    size_t name_len = strlen(entry->name);
    char name[256];

    CO_TRY(read_at(zip, at, local, sizeof local));
    if (memcmp(local, "PK\3\4", 4) != 0 || u16(local + 26) != name_len || u16(local + 8) != 0)
        return broken(zip, "an entry is not where the directory says");
    CO_TRY(read_at(zip, at + LOCAL_LEN, name, name_len)); /* shorter than `name`: read_entry has checked */
    if (memcmp(name, entry->name, name_len) != 0)
        return broken(zip, "an entry has another name than in the directory");
    entry->offset = at + LOCAL_LEN + name_len + u16(local + 28); /* at < 2^63: inside the file */
    if (entry->offset > directory_at || entry->len > directory_at - entry->offset)
        return co_fail(CO_EFORMAT, "%s: entry %s ends after the archive", zip->what, entry->name);
    return CO_OK;
}

/* Reads the entry at rec[0..left) of the directory; *used: its length. */
static co_err read_entry(zip_file *zip, zip_entry *entry, const uint8_t *rec, size_t left, size_t *used,
                         uint64_t directory_at)
{
    if (left < CENTRAL_LEN || memcmp(rec, "PK\1\2", 4) != 0)
        return broken(zip, "its directory is damaged");
    size_t name_len = (size_t)u16(rec + 28), extra_len = (size_t)u16(rec + 30);
    uint64_t packed = u32(rec + 20), size = u32(rec + 24), at = u32(rec + 42);

    *used = CENTRAL_LEN + name_len + extra_len + (size_t)u16(rec + 32);
    if (*used > left)
        return broken(zip, "its directory is cut short");
    const char *name = (const char *)rec + CENTRAL_LEN;
    if (name_len == 0 || name_len > 255 || memchr(name, 0, name_len))
        return broken(zip, "an entry has no usable name");
    if (!(entry->name = co_pool_strn(&zip->pool, name, name_len)))
        return CO_ENOMEM;
    CO_TRY(widen(zip, rec + CENTRAL_LEN + name_len, extra_len, &packed, &size, &at));
    if (u16(rec + 8) & 1)
        return co_fail(CO_EFORMAT, "%s: entry %s is encrypted", zip->what, entry->name);
    if (u16(rec + 10) != 0 || packed != size)
        return co_fail(CO_EFORMAT, "%s: entry %s is compressed; torch.save stores entries as they are",
                       zip->what, entry->name);
    entry->len = size;
    entry->crc = (uint32_t)u32(rec + 16);
    return read_local(zip, entry, at, directory_at);
}

static int name_order(const void *a, const void *b)
{
    return strcmp(((const zip_entry *)a)->name, ((const zip_entry *)b)->name);
}

static co_err read_directory(zip_file *zip, const struct directory *dir, const uint8_t *bytes)
{
    size_t at = 0, used = 0;

    for (; zip->n < (int)dir->entries; zip->n++, at += used)
        CO_TRY(read_entry(zip, &zip->entry[zip->n], bytes + at, (size_t)dir->len - at, &used, dir->at));
    if (at != dir->len)
        return broken(zip, "its directory has more entries than it says");
    qsort(zip->entry, (size_t)zip->n, sizeof *zip->entry, name_order);
    for (int i = 1; i < zip->n; i++)
        if (strcmp(zip->entry[i - 1].name, zip->entry[i].name) == 0)
            return co_fail(CO_EFORMAT, "%s: two entries are called %s", zip->what, zip->entry[i].name);
    return CO_OK;
}

static co_err read_archive(zip_file *zip)
{
    struct directory dir = {0};

    CO_TRY(read_end(zip, &dir));
    uint8_t *bytes = co_alloc((size_t)dir.len);
    zip->entry = co_array((size_t)dir.entries, sizeof *zip->entry);
    co_err err = bytes && zip->entry ? read_at(zip, dir.at, bytes, (size_t)dir.len) : CO_ENOMEM;
    if (!err)
        err = read_directory(zip, &dir, bytes);
    co_free(bytes);
    return err;
}

/* --- the door --------------------------------------------------------------------------------------------- */
co_err zip_parse(zip_file *zip, const void *bytes, size_t len, const char *what)
{
    *zip = (zip_file){.fd = -1, .mem = bytes, .len = len};
    zip->what = co_pool_str(&zip->pool, what);
    return zip->what ? read_archive(zip) : CO_ENOMEM;
}

co_err zip_open(zip_file *zip, const char *path)
{
    struct stat st;

    *zip = (zip_file){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)}; /* a FIFO must not make it wait */
    if (zip->fd < 0)
        return co_fail(CO_EIO, "open %s: %m", path);
    if (!(zip->what = co_pool_str(&zip->pool, path)))
        return CO_ENOMEM;
    if (fstat(zip->fd, &st) != 0)
        return co_fail(CO_EIO, "stat %s: %m", path);
    if (!S_ISREG(st.st_mode))
        return co_fail(CO_EIO, "%s is not a regular file", path);
    zip->len = (uint64_t)st.st_size;
    return read_archive(zip);
}

void zip_close(zip_file *zip)
{
    if (zip->fd >= 0)
        close(zip->fd);
    co_free(zip->entry);
    co_pool_fini(&zip->pool);
    *zip = (zip_file){.fd = -1};
}

zip_entry *zip_find(const zip_file *zip, const char *name)
{
    zip_entry key = {.name = name};

    return zip->n ? bsearch(&key, zip->entry, (size_t)zip->n, sizeof key, name_order) : NULL;
}

co_err zip_read(const zip_file *zip, const zip_entry *entry, uint64_t from, void *dst, size_t len)
{
    CO_ASSERT(from <= entry->len && len <= entry->len - from, "a read inside the entry");
    return read_at(zip, entry->offset + from, dst, len);
}

co_err zip_check(const zip_file *zip, zip_entry *entry)
{
    uint8_t piece[PIECE];
    uLong crc = crc32(0, NULL, 0);

    if (entry->checked)
        return CO_OK;
    for (uint64_t at = 0; at < entry->len; at += PIECE) {
        size_t n = entry->len - at < PIECE ? (size_t)(entry->len - at) : PIECE;
        CO_TRY(zip_read(zip, entry, at, piece, n));
        crc = crc32(crc, piece, (uInt)n);
    }
    if ((uint32_t)crc != entry->crc)
        return co_fail(
            CO_EFORMAT,
            "%s: entry %s is damaged: its CRC is %08lx, the directory says %08x (a file saved with "
            "set_crc32_options(False) has no CRC: save it again without)",
            zip->what, entry->name, crc, entry->crc);
    entry->checked = true;
    return CO_OK;
}
