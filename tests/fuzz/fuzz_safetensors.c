/* co_st_parse over any bytes. The claimed length of the file comes from the header itself half of the time,
 * so that the fuzzer gets past the last check.
 *
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Isrc tests/fuzz/fuzz_safetensors.c
 *         src/base/X.c src/tensor/X.c -ljansson -lcrypto -lm -o fuzz       (X: every file)
 *     ./fuzz -max_total_time=30 -max_len=4096 CORPUS tests/fuzz/seeds/safetensors
 */
#include <stdlib.h>
#include <string.h>

#include "tensor/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_with(const uint8_t *data, size_t size, uint64_t file_len)
{
    co_st_file *f = NULL;

    if (co_st_parse(&f, (const char *)data, size, file_len, "fuzz") != CO_OK)
        return;
    uint64_t at = 0;
    for (int i = 0; i < co_st_count(f); i++) {
        const co_st_tensor *t = co_st_at(f, i);
        if (t->offset < at || t->len > file_len || t->offset > file_len - t->len || co_st_find(f, t->name) != t)
            abort(); /* what was accepted must be safe to use */
        at = t->offset + t->len;
    }
    co_st_close(f);
}

/* Where the tensors end, taken from the text without parsing: the largest number in it. */
static uint64_t largest(const uint8_t *data, size_t size)
{
    uint64_t most = 0, x = 0;

    for (size_t i = 8; i < size; i++) {
        x = data[i] >= '0' && data[i] <= '9' && x < (1u << 30) ? 10 * x + (uint64_t)(data[i] - '0') : 0;
        most = x > most ? x : most;
    }
    return most;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t n = 0;

    try_with(data, size, size);
    if (size < 8)
        return 0;
    memcpy(&n, data, 8);
    if (n < size)
        try_with(data, size, 8 + n + largest(data, size));
    uint8_t *fixed = malloc(size); /* the same header with the right length word */
    memcpy(fixed, data, size);
    memcpy(fixed, &(uint64_t){size - 8}, 8);
    try_with(fixed, size, size + largest(data, size));
    free(fixed);
    return 0;
}
