/* data.c -- the table of data sets. A new one is a file and a row here. */
#include "data/data.h"
#include "data/check_int.h"
#include "data/data_int.h"
#include "data/folder_int.h"

#include <stdio.h>
#include <string.h>

#include "base/rng.h"

enum { SPLIT_SEED = 42 };

const co_dataset_def *const co_datasets[] = {
    &digits_def,
    &fake_def,
    &fake_images_def,
    &fake_ratings_def,
    &movielens_def,
    &pairs_def,
    &text_def,
    &cifar10_def,
    &cifar100_def,
    &mnist_def,
    &imagefolder_set.def,
    &tinyimagenet_set.def,
    &cinic10_set.def,
    &imagenet_set.def,
    NULL,
};

const co_dataset_def *co_dataset_find(const char *name)
{
    for (int i = 0; co_datasets[i]; i++)
        if (strcmp(co_datasets[i]->name, name) == 0)
            return co_datasets[i];
    return NULL;
}

/* The folder or file that the keys name. */
static void note_place(co_dataset *d, const void *cfg)
{
    for (const co_option *row = d->def->options; row && row->key; row++) {
        const char *path = row->type == CO_OPT_STR ? *(char *const *)((const char *)cfg + row->offset) : NULL;
        if (row->path && path && (strcmp(row->key, "dir") == 0 || strcmp(row->key, "path") == 0))
            snprintf(d->place, sizeof d->place, "%s", path);
    }
}

co_err co_dataset_open(co_dataset **out, const co_dataset_def *def, const void *cfg)
{
    co_dataset *d;
    co_fds before;

    co_fds_open_now(&before);
    CO_TRY(def->open_row ? def->open_row(&d, def, cfg) : def->open(&d, cfg));
    d->def = def;
    co_fds_open_now(&d->fds);
    co_fds_subtract(&d->fds, &before);
    note_place(d, cfg);
    co_err err = quick_check(d);
    if (err) {
        co_dataset_close(d);
        return co_fail_in(err, "data=%s", def->name);
    }
    *out = d;
    return CO_OK;
}

void co_dataset_close(co_dataset *d)
{
    if (d)
        d->close(d);
}

co_slice_shape co_slice_of(const co_dataset *d, co_split s, const uint32_t *ids, int n)
{
    co_slice_shape shape = {.n = n};

    for (int i = 0; d->length && i < n; i++)
        shape.tokens += d->length(d, s, ids[i]);
    for (int i = 0; d->target_length && i < n; i++)
        shape.targets += d->target_length(d, s, ids[i]);
    return shape;
}

int co_sample_weight(const co_dataset *d, co_split s, uint32_t id)
{
    if (!d->length)
        return 1;
    return d->length(d, s, id) + (d->target_length ? d->target_length(d, s, id) : 0);
}

static void set_offsets(int32_t *offsets, int room, const co_dataset *d, co_split s, const uint32_t *ids,
                        int n, int (*length)(const co_dataset *d, co_split s, uint32_t id))
{
    if (!offsets)
        return;
    CO_ASSERT(length && n <= room, "there is room for the offsets of a slice");
    offsets[0] = 0;
    for (int i = 0; i < room; i++)
        offsets[i + 1] = offsets[i] + (i < n ? length(d, s, ids[i]) : 0);
}

/* Left and right of n pictures [c,h,w] swapped. */
static void mirror(float *to, const float *from, const co_shape *x, int n)
{
    int64_t width = x->d[2], rows = n * x->d[0] * x->d[1];

    for (int64_t r = 0; r < rows; r++, from += width)
        for (int64_t i = width; i-- > 0;)
            *to++ = from[i];
}

int co_dataset_fill(const co_dataset *d, co_split s, const uint32_t *ids, co_slice_shape shape,
                    const co_draw *draw, const co_slice_dst *dst)
{
    set_offsets(dst->offsets, dst->room, d, s, ids, shape.n, d->length);
    set_offsets(dst->y_offsets, dst->room, d, s, ids, shape.n, d->target_length);
    int bad = d->fill(d, s, ids, shape, draw, dst);
    if (dst->mirror)
        mirror(dst->mirror, dst->x, &d->io.x, shape.n);
    return bad;
}

void split_permute(uint32_t *p, uint32_t n)
{
    co_rng_permute(p, n, co_rng_key_make(SPLIT_SEED, CO_RNG_SPLIT), 0);
}

uint32_t split_start(const co_dataset *d, co_split s)
{
    uint32_t start = 0;

    for (int i = 0; i < (int)s; i++)
        start += d->count[i];
    return start;
}

co_err co_dataset_lost(void)
{
    return co_fail(
        CO_EIO, "a file of the data could be read before and cannot be read now: is the disk still there?");
}
