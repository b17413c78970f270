/* fuzz_tar.c -- any bytes as a tar archive. The checksum of the first head is put right, or few would pass
 * it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/images_int.h"

enum { BLOCK = 512, SUM = 148, SUM_LEN = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void walk(const uint8_t *bytes, size_t len)
{
    packed *p;
    bool more = true;
    size_t files = 0;

    if (packed_of_bytes(&p, bytes, len, "fuzz.tar"))
        abort();
    tar t = {.in = p};
    while (tar_next(&t, &more) == CO_OK && more) {
        if (++files > len / BLOCK || strlen(t.name) >= sizeof t.name)
            abort();
        if (t.size <= len) {
            uint8_t *to = co_alloc((size_t)t.size);
            co_err err = tar_read(&t, to);
            co_free(to);
            if (err)
                break;
        }
    }
    packed_close(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    walk(bytes, len);
    if (len < BLOCK)
        return 0;
    uint8_t *fixed = malloc(len);
    unsigned sum = 0;
    char text[SUM_LEN];
    memcpy(fixed, bytes, len);
    memset(fixed + SUM, ' ', SUM_LEN);
    for (int i = 0; i < BLOCK; i++)
        sum += fixed[i];
    snprintf(text, sizeof text, "%06o", sum);
    memcpy(fixed + SUM, text, SUM_LEN);
    walk(fixed, len);
    free(fixed);
    return 0;
}
