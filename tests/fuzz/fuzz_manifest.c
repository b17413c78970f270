/* co_ckpt_parse_manifest over any bytes: as they are, and closed with the right self_sha256, without which
 * nothing would get past the hash.
 *
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Isrc tests/fuzz/fuzz_manifest.c
 *         src/base/X.c src/tensor/X.c src/ckpt/X.c -ljansson -lcrypto -lm -o fuzz       (X: every file)
 *     ./fuzz -max_total_time=30 -max_len=4096 CORPUS tests/fuzz/seeds/manifest
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "ckpt/ckpt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_with(const char *text, size_t len)
{
    co_ckpt_meta m = {0};

    if (co_ckpt_parse_manifest(&m, text, len, "fuzz") != CO_OK)
        return;
    if (m.step < 0 || strlen(m.model) >= sizeof m.model || strlen(m.weights_sha256) != 64 ||
        (m.extra && !json_is_object(m.extra)))
        abort(); /* what was accepted must be safe to use */
    co_ckpt_meta_fini(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char end[] = ",\n  \"self_sha256\": \""
                              "0000000000000000000000000000000000000000000000000000000000000000\"\n}\n";
    size_t len = size + sizeof end - 1;
    char hex[65], *text = malloc(len);

    try_with((const char *)data, size);
    memcpy(text, data, size);
    memcpy(text + size, end, sizeof end - 1);
    co_sha256_of(text, len, hex);
    memcpy(text + len - 4 - 64, hex, 64);
    try_with(text, len);
    free(text);
    return 0;
}
