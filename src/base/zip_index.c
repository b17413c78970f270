/* zip_index.c -- finds the entries of a zip archive.
 *
 *     | local header, name, extra | bytes | ... | central directory | zip64 end, locator | end record |
 *
 * The end record is the last 22 bytes: archives with a comment are refused, so a file that was cut short is
 * noticed at once. If the zip64 records are there, they must agree with the end record. The central directory
 * must end where the end records begin. Each entry must be stored or deflated, its local header must name it,
 * and its bytes must lie before the central directory. All numbers are compared with the file's length before
 * they are used.
 *
 * Memory: one co_zip_entry and one name per entry. Nothing is mapped: a file that shrinks gives an error, no
 * signal.
 */
#include "base/zip_int.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"

enum {
    END_LEN = 22,
    LOCATOR_LEN = 20,
    END64_LEN = 56,
    CENTRAL_LEN = 46,
    LOCAL_LEN = 30,
    MOST_DIRECTORY = 256 << 20, /* bytes */
    MADE_BY_UNIX = 3
};

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

static co_err broken(const co_zip_file *zip, const char *why)
{
    return co_fail(CO_EFORMAT, "%s: not a whole zip archive: %s (is the download complete?)", zip->what, why);
}

/* --- the end records ------------------------------------------------------------------------------------ */
/* Where the central directory is. */
struct directory {
    uint64_t at, len, entries, end; /* end: of the directory; where the end records begin */
};

/* A number of the 16- or 32-bit record, which may say "see the 64-bit record" by having all bits set. */
static bool agrees(uint64_t narrow, uint64_t all_bits, uint64_t wide)
{
    return narrow == all_bits || narrow == wide;
}

static co_err read_end64(const co_zip_file *zip, const uint8_t *end, uint64_t locator_at, struct directory *dir)
{
    uint8_t locator[LOCATOR_LEN], rec[END64_LEN];

    CO_TRY(zip_read_at(zip, locator_at, locator, sizeof locator));
    uint64_t at = u64(locator + 8);
    bool one_disk = u32(locator + 4) == 0 && u32(locator + 16) <= 1;
    if (!one_disk || locator_at < END64_LEN || at != locator_at - END64_LEN)
        return broken(zip, "its zip64 locator is wrong");
    CO_TRY(zip_read_at(zip, at, rec, sizeof rec));
    if (memcmp(rec, "PK\6\6", 4) != 0 || u64(rec + 4) != END64_LEN - 12 || u32(rec + 16) != 0 ||
        u32(rec + 20) != 0 || u64(rec + 24) != u64(rec + 32))
        return broken(zip, "its zip64 end record is wrong");
    *dir = (struct directory){.at = u64(rec + 48), .len = u64(rec + 40), .entries = u64(rec + 32), .end = at};
    if (!agrees(u16(end + 10), 0xffff, dir->entries) || !agrees(u32(end + 12), 0xffffffff, dir->len) ||
        !agrees(u32(end + 16), 0xffffffff, dir->at))
        return broken(zip, "its two end records differ");
    return CO_OK;
}

static co_err read_end(const co_zip_file *zip, struct directory *dir)
{
    uint8_t end[END_LEN], mark[4] = {0};

    if (zip->len < END_LEN)
        return broken(zip, "it is too short");
    CO_TRY(zip_read_at(zip, zip->len - END_LEN, end, sizeof end));
    if (memcmp(end, "PK\5\6", 4) != 0 || u16(end + 20) != 0)
        return broken(zip, "it does not end with an end record");
    if (u16(end + 4) != 0 || u16(end + 6) != 0 || u16(end + 8) != u16(end + 10))
        return broken(zip, "it is one of several parts");
    uint64_t end_at = zip->len - END_LEN;
    if (end_at >= LOCATOR_LEN)
        CO_TRY(zip_read_at(zip, end_at - LOCATOR_LEN, mark, sizeof mark));
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

/* --- the central directory ------------------------------------------------------------------------------ */
/* Numbers that do not fit 32 bits are in the extra field of kind 1, in this order. */
static co_err widen(const co_zip_file *zip, const uint8_t *extra, size_t len, uint64_t *packed,
                    uint64_t *size, uint64_t *at)
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
static co_err read_local(const co_zip_file *zip, co_zip_entry *entry, uint64_t at, uint64_t directory_at)
{
    uint8_t local[LOCAL_LEN];
    size_t name_len = strlen(entry->name);
    char name[256];

    CO_TRY(zip_read_at(zip, at, local, sizeof local));
    if (memcmp(local, "PK\3\4", 4) != 0 || u16(local + 26) != name_len ||
        u16(local + 8) != (uint64_t)entry->method)
        return broken(zip, "an entry is not where the directory says");
    /* shorter than `name`: read_entry has checked */
    CO_TRY(zip_read_at(zip, at + LOCAL_LEN, name, name_len));
    if (memcmp(name, entry->name, name_len) != 0)
        return broken(zip, "an entry has another name than in the directory");
    entry->offset = at + LOCAL_LEN + name_len + u16(local + 28); /* at < 2^63: inside the file */
    if (entry->offset > directory_at || entry->packed > directory_at - entry->offset)
        return co_fail(CO_EFORMAT, "%s: entry %s ends after the archive", zip->what, entry->name);
    return CO_OK;
}

/* Reads the entry at rec[0..left) of the directory; *used: its length. */
static co_err read_entry(co_zip_file *zip, co_zip_entry *entry, const uint8_t *rec, size_t left, size_t *used,
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
    entry->method = (int)u16(rec + 10);
    if (entry->method != CO_ZIP_STORED && entry->method != CO_ZIP_DEFLATED)
        return co_fail(CO_EFORMAT,
                       "%s: entry %s is compressed by method %d; stored (0) and deflated (8) are known",
                       zip->what, entry->name, entry->method);
    if (entry->method == CO_ZIP_STORED && packed != size)
        return broken(zip, "a stored entry has two lengths");
    entry->packed = packed;
    entry->is_link = rec[5] == MADE_BY_UNIX && S_ISLNK((mode_t)u16(rec + 40));
    entry->len = size;
    entry->crc = (uint32_t)u32(rec + 16);
    return read_local(zip, entry, at, directory_at);
}

int zip_name_order(const void *a, const void *b)
{
    return strcmp(((const co_zip_entry *)a)->name, ((const co_zip_entry *)b)->name);
}

static co_err read_directory(co_zip_file *zip, const struct directory *dir, const uint8_t *bytes)
{
    size_t at = 0, used = 0;

    for (; zip->n < (int)dir->entries; zip->n++, at += used)
        CO_TRY(read_entry(zip, &zip->entry[zip->n], bytes + at, (size_t)dir->len - at, &used, dir->at));
    if (at != dir->len)
        return broken(zip, "its directory has more entries than it says");
    qsort(zip->entry, (size_t)zip->n, sizeof *zip->entry, zip_name_order);
    for (int i = 1; i < zip->n; i++)
        if (strcmp(zip->entry[i - 1].name, zip->entry[i].name) == 0)
            return co_fail(CO_EFORMAT, "%s: two entries are called %s", zip->what, zip->entry[i].name);
    return CO_OK;
}

co_err zip_read_index(co_zip_file *zip)
{
    struct directory dir = {0};

    CO_TRY(read_end(zip, &dir));
    uint8_t *bytes = co_alloc((size_t)dir.len);
    zip->entry = co_array((size_t)dir.entries, sizeof *zip->entry);
    co_err err = bytes && zip->entry ? zip_read_at(zip, dir.at, bytes, (size_t)dir.len) : CO_ENOMEM;
    if (!err)
        err = read_directory(zip, &dir, bytes);
    co_free(bytes);
    return err;
}
