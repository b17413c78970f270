/* fuzz_idx.c -- any bytes as an idx file, plain and gzipped; what is accepted is read to the byte. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/images_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void try_as(const uint8_t *bytes, size_t len, const char *name, bool pictures)
{
    packed *p;
    uint32_t n = 0;

    if (packed_of_bytes(&p, bytes, len, name))
        abort();
    if (idx_head(p, pictures, &n)) {
        if (n || !*co_errmsg())
            abort(); /* refused, but written or without a word */
    } else {
        if (n < 1 || n > IDX_MOST)
            abort();
        size_t want = n * (size_t)(pictures ? IDX_SIDE * IDX_SIDE : 1);
        uint8_t *to = co_alloc(want);
        bool whole = packed_exactly(p, to, want, idx_head_len(pictures)) == CO_OK;
        if (strcmp(name, "plain") == 0 && whole != (len == idx_head_len(pictures) + want))
            abort();
        co_free(to);
    }
    packed_close(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    try_as(bytes, len, "plain", true);
    try_as(bytes, len, "plain", false);
    try_as(bytes, len, "packed.gz", true);
    try_as(bytes, len, "packed.gz", false);
    try_as(bytes, len, "packed.xz", false);
    return 0;
}
