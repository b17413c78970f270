/* packs.h -- writing small packed files in tests. */
#ifndef TESTS_DATA_PACKS_H
#define TESTS_DATA_PACKS_H

#include <fcntl.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "harness.h"

static inline void put_file(const char *path, const void *bytes, size_t len)
{
    FILE *f = fopen(path, "we");
    CHECK(f && fwrite(bytes, 1, len, f) == len && fclose(f) == 0, "write %s: %m", path);
}

/* The bytes packed; the caller's. */
static inline uint8_t *pack_xz(const void *bytes, size_t len, size_t *packed_len)
{
    size_t room = lzma_stream_buffer_bound(len);
    uint8_t *out = malloc(room);
    *packed_len = 0;
    CHECK(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC64, NULL, bytes, len, out, packed_len, room) == LZMA_OK,
          "xz of %zu bytes", len);
    return out;
}

static inline uint8_t *pack_gz(const void *bytes, size_t len, size_t *packed_len)
{
    z_stream z = {0};
    CHECK(deflateInit2(&z, 1, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK, "deflateInit2");
    size_t room = deflateBound(&z, len);
    uint8_t *out = malloc(room);
    z.next_in = (Bytef *)(uintptr_t)bytes;
    z.avail_in = (uInt)len;
    z.next_out = out;
    z.avail_out = (uInt)room;
    CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END, "gzip of %zu bytes", len);
    *packed_len = z.total_out;
    deflateEnd(&z);
    return out;
}

#endif
