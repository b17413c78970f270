/* zips.h -- zip archives made in memory, deflated or stored, with wrong facts where a test wants them. */
#ifndef TESTS_DATA_ZIPS_H
#define TESTS_DATA_ZIPS_H

#include <string.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/fs.h"
#include "harness.h"

enum { ZIP_ROOM = 1 << 20 };
typedef struct zipper {
    uint8_t bytes[ZIP_ROOM], directory[ZIP_ROOM];
    size_t n, dir_n;
    int entries;
} zipper;

typedef struct zip_lie {
    uint32_t mode; /* of Unix; 0: not said */
    uint32_t len;  /* unpacked length in the directory; 0: the true one */
    bool stored;
    int method; /* written instead of the true one; 0: the true one */
} zip_lie;

static inline void zip_add(zipper *z, const char *name, const void *bytes, size_t len, zip_lie lie)
{
    static uint8_t packed[ZIP_ROOM];
    size_t name_len = strlen(name), packed_len = len;
    uint8_t *at = z->bytes + z->n, *dir = z->directory + z->dir_n;

    memcpy(packed, bytes, len);
    if (!lie.stored) {
        z_stream s = {.next_in = (uint8_t *)(uintptr_t)bytes,
                      .avail_in = (uInt)len,
                      .next_out = packed,
                      .avail_out = ZIP_ROOM};
        CHECK(deflateInit2(&s, 9, Z_DEFLATED, -MAX_WBITS, 8, 0) == Z_OK && deflate(&s, Z_FINISH) == Z_STREAM_END,
              "zlib");
        packed_len = s.total_out;
        deflateEnd(&s);
    }
    uint8_t facts[26]; /* from "version needed" to the name's length, as both headers have it */
    memset(facts, 0, sizeof facts);
    co_le_put(facts, 20, 2);
    co_le_put(facts + 4, lie.method ? (uint64_t)lie.method : lie.stored ? 0 : 8, 2);
    co_le_put(facts + 10, crc32(0, bytes, (uInt)len), 4);
    co_le_put(facts + 14, packed_len, 4);
    co_le_put(facts + 18, lie.len ? lie.len : len, 4);
    co_le_put(facts + 22, name_len, 2);
    memcpy(at, "PK\3\4", 4);
    memcpy(at + 4, facts, 26);
    memcpy(at + 30, name, name_len);
    memcpy(at + 30 + name_len, packed, packed_len);
    memset(dir, 0, 46);
    memcpy(dir, "PK\1\2", 4);
    co_le_put(dir + 4, lie.mode ? 3 << 8 | 20 : 20, 2);
    memcpy(dir + 6, facts, 26);
    co_le_put(dir + 38, (uint64_t)lie.mode << 16, 4);
    co_le_put(dir + 42, z->n, 4);
    memcpy(dir + 46, name, name_len);
    z->n += 30 + name_len + packed_len;
    z->dir_n += 46 + name_len;
    z->entries++;
}

static inline void zip_text(zipper *z, const char *name, const char *text)
{
    zip_add(z, name, text, strlen(text), (zip_lie){0});
}

static inline void zip_write(zipper *z, const char *path)
{
    uint8_t end[22] = "PK\5\6";
    size_t at = z->n;

    co_le_put(end + 8, (uint64_t)z->entries, 2);
    co_le_put(end + 10, (uint64_t)z->entries, 2);
    co_le_put(end + 12, z->dir_n, 4);
    co_le_put(end + 16, at, 4);
    memcpy(z->bytes + z->n, z->directory, z->dir_n);
    memcpy(z->bytes + z->n + z->dir_n, end, sizeof end);
    z->n += z->dir_n + sizeof end;
    CHECK_OK(co_fs_write_lightly(path, z->bytes, z->n));
}

#endif
