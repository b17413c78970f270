/* fuzz_vocabulary.c -- any bytes as the characters of a text, as a checkpoint holds them, and as a line to
 * continue. One that is accepted is written as it was understood, and gives a line only tokens that it
 * has. */
#include <stdlib.h>
#include <string.h>

#include "data/text_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* A set of one split only: those of data.c, without its table of all sets. */
uint32_t split_start(const co_dataset *d, co_split s)
{
    (void)d;
    (void)s;
    return 0;
}

void split_permute(uint32_t *p, uint32_t n)
{
    (void)p;
    (void)n;
}

static void use(const co_dataset *v, const char *line)
{
    enum { ROOM = 1 << 16 };
    static int32_t x[ROOM], offsets[2];
    co_dataset *own;

    if (co_lines_open(&own, v, &line, 1, 1)) {
        if (!*co_errmsg())
            abort();
        return;
    }
    int n = own->length(own, CO_SPLIT_TEST, 0);
    if (n < 1 || n > own->io.max_len || n > ROOM)
        abort();
    own->fill(own, CO_SPLIT_TEST, &(uint32_t){0}, (co_slice_shape){.n = 1}, &(co_draw){0},
              &(co_slice_dst){.x = x, .offsets = offsets});
    for (int i = 0; i < n; i++)
        if (x[i] < 0 || x[i] >= own->io.classes)
            abort();
    own->close(own);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    co_dataset *v = NULL;
    co_str again = {0};

    if (text_open_vocabulary(&v, (const char *)bytes, len)) {
        if (v || !*co_errmsg())
            abort(); /* refused, but written or without a word */
        return 0;
    }
    v->vocabulary(v, &again);
    if (co_str_err(&again))
        abort();
    use(v, "ab a");
    use(v, co_str_text(&again));
    co_str_fini(&again);
    v->close(v);
    return 0;
}
