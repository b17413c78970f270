/* What workers print, in pieces: bars, movements of the cursor, colours, sequences that are cut off. */
#include <stdint.h>
#include <stdlib.h>

#include "term/term.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take(void *ctx, const char *text, size_t len)
{
    volatile char sum = 0;

    if (len > CO_LINE_MOST)
        abort();
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\n' || text[i] == '\r')
            abort();
        sum ^= text[i];
    }
    ++*(size_t *)ctx;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t n = 0, newlines = 0, piece = size ? 1 + data[0] % 16 : 1;
    co_lines l = {0};

    for (size_t at = 0; at < size; at += piece) {
        size_t len = size - at < piece ? size - at : piece;
        co_lines_feed(&l, (const char *)data + at, len, take, &n);
        if (data[at] % 8 == 0)
            co_lines_settle(&l, data[at] % 16 ? UINT64_MAX : 0, take, &n);
    }
    for (size_t i = 0; i < size; i++)
        newlines += data[i] == '\n';
    co_lines_end(&l, take, &n);
    co_lines_fini(&l);
    if (n > newlines + CO_ROWS_MOST + size / CO_LINE_MOST + 1)
        abort(); /* lines out of nothing */
    return 0;
}
