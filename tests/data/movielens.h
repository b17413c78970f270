/* movielens.h -- what the tests of ratings share. */
#ifndef TESTS_DATA_MOVIELENS_H
#define TESTS_DATA_MOVIELENS_H

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "data/data.h"
#include "harness.h"

struct rated {
    int32_t user, item;
    float stars;
};

/* All samples: those to train on, to validate on, to test on. */
static inline void rated_all(const co_dataset *d, struct rated *out)
{
    for (int s = 0; s < CO_SPLIT_COUNT; s++)
        for (uint32_t id = 0; id < d->count[s]; id++, out++)
            d->fill(d, (co_split)s, &id, (co_slice_shape){1, 0}, &(co_draw){0},
                    &(co_slice_dst){.x = &out->user, .items = &out->item, .y = &out->stars});
}

static inline void put_text(const char *path, const char *text)
{
    char folder[256];

    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = 0;
    CHECK_OK(co_fs_mkdirs(folder));
    CHECK_OK(co_fs_write_atomic(path, text, strlen(text)));
}

/* ml-latest-small: in $COHORT_DATA, or in ../shared/data beside the repository. Without it the test is
 * skipped. */
static inline const char *real_movielens(void)
{
    static char path[4096];
    const char *data = getenv("COHORT_DATA");

    snprintf(path, sizeof path, "%s/ml-latest-small", data ? data : test_repo("../shared/data"));
    if (!co_fs_is_dir(path))
        test_skip("no %s: set COHORT_DATA to a folder with ml-latest-small/ in it", path);
    return path;
}

#endif
