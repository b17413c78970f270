/* fuzz_pack.c -- any bytes as head and index of a pack;
 * the hash of the index is put right, or none would pass it. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "data/pack_int.h"

enum { AT_LEN = 40, AT_HASH = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void try_it(const uint8_t *bytes, size_t len)
{
    pack p;

    if (pack_index(&p, bytes, len, len, "fuzz.pack")) {
        if (!*co_errmsg())
            abort(); /* refused without a word */
        return;
    }
    for (uint64_t i = 0; i < p.n; i++) {
        uint64_t at, size;
        const char *path = pack_file(&p, i, &at, &size);
        if (at > len || size > len - at || path < p.names || path + strlen(path) >= p.names + p.names_len)
            abort(); /* outside of the file */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    char hash[65];
    pack p;

    try_it(bytes, len);
    if (len < PACK_HEAD)
        return 0;
    uint8_t *fixed = malloc(len);
    memcpy(fixed, bytes, len);
    memcpy(fixed, PACK_MAGIC, 8);
    co_le_put(fixed + 8, PACK_VERSION, 8);
    co_le_put(fixed + AT_LEN, len, 8);
    if (pack_head(&p, fixed, len, "fuzz.pack") == CO_OK && pack_index_end(&p) <= len) {
        co_sha256_of(fixed + PACK_HEAD, (size_t)(pack_index_end(&p) - PACK_HEAD), hash);
        memcpy(fixed + AT_HASH, hash, 64);
    }
    try_it(fixed, len);
    free(fixed);
    return 0;
}
