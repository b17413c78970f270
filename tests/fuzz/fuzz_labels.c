/* fuzz_labels.c -- any bytes as val_annotations.txt, wnids.txt and words.txt of three classes. */
#include <stdlib.h>
#include <string.h>

#include "data/folder_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static const uint8_t *text;

/* What folder_labels.c needs of a listing. */
const uint8_t *listing_read(const listing *l, uint64_t at, uint64_t size, uint32_t path, void *room)
{
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const char *const classes[] = {"n01", "n02", "n03"};
    char root[] = "fuzz", names[] = "text";
    listing l = {.root = root, .names = names, .fd = -1};
    entry e = {.size = len};
    const char *titles[3];
    co_pool pool = {0};
    labels t;

    text = bytes;
    if (labels_open(&t, &l, &e, classes, 3) == CO_OK) {
        for (size_t i = 0; i < t.n; i++)
            if (t.rows[i].label > 2 || labels_find(&t, t.rows[i].name) != &t.rows[i])
                abort();
        labels_close(&t);
    }
    wnids_check(&l, &e, classes, 3);
    if (titles_read(titles, &l, &e, classes, 3, &pool) == CO_OK)
        for (int i = 0; i < 3; i++)
            if (!titles[i] || memchr(titles[i], ',', strlen(titles[i])))
                abort();
    co_pool_fini(&pool);
    return 0;
}
