/* greys.h -- sets of grey pictures in tests: a sample's grey tells which picture it is. */
#ifndef TESTS_DATA_GREYS_H
#define TESTS_DATA_GREYS_H

#include "data/pictures.h"

static inline co_err try_as(const char *name, const char *dir)
{
    co_dataset *d = NULL;
    co_err err = set_try(&d, name, "dir", dir, (char *)NULL);
    co_dataset_close(d);
    return err;
}

static inline co_dataset *open_as(const char *name, const char *dir)
{
    co_dataset *d = NULL;
    CHECK_OK(set_try(&d, name, "dir", dir, "normalize", "none", (char *)NULL));
    return d;
}

/* A Tiny ImageNet of three classes, in the folder t. */
static inline void put_tiny(void)
{
    put_classes("t/train", (const char *const[]){"n01/images", "n02/images", "n03/images", NULL}, 3);
    put_jpeg("t/val/images/val_0.JPEG", 8, 8, 50);
    put_jpeg("t/val/images/val_1.JPEG", 8, 8, 10);
    put_jpeg("t/val/images/val_2.JPEG", 8, 8, 30);
    put_text("t/val/val_annotations.txt",
             "val_0.JPEG\tn03\t0\t0\t7\t7\nval_1.JPEG\tn01\t0\t0\t7\t7\r\nval_2.JPEG\tn02\t1\t1\t7\t7\n");
    put_text("t/wnids.txt", "n03\nn01\nn02\n");
    put_text("t/words.txt", "n00\tnothing\nn01\tgoldfish, Carassius auratus\nn03\tkoala\n");
    put_text("t/train/n01/n01_boxes.txt", "n01_0.JPEG\t0\t0\t7\t7\n");
    put_jpeg("t/test/images/test_0.JPEG", 8, 8, 50);
}

/* Label and grey of a sample of 8 x 8. */
static inline int fill_one(const co_dataset *d, co_split s, uint32_t id, int *grey)
{
    float x[3 * 8 * 8];
    int32_t y;

    CHECK(co_shape_eq(&d->io.x, &CO_SHAPE(3, 8, 8)), "not [3,8,8]");
    CHECK(d->fill(d, s, &id, (co_slice_shape){1, 0}, &(co_draw){0}, &(co_slice_dst){.x = x, .y = &y}) == 0,
          "bad");
    *grey = (int)(x[0] * 255.0f + 0.5f);
    return y;
}

/* Each sample's grey must be that of its label, near 10 + 20 label + 0..9; returns a bit for each picture
 * seen. */
static inline uint64_t check_split(const co_dataset *d, co_split s)
{
    uint64_t seen = 0;

    for (uint32_t id = 0; id < d->count[s]; id++) {
        int grey, y = fill_one(d, s, id, &grey);
        int i = grey - 10 - 20 * y;
        CHECK(y >= 0 && y < d->io.classes && i >= 0 && i < 16, "label %d, grey %d", y, grey);
        CHECK(!(seen & 1ull << (16 * y + i)), "label %d, grey %d twice", y, grey);
        seen |= 1ull << (16 * y + i);
    }
    return seen;
}

static inline void check_counts(const co_dataset *d, uint32_t n_train, uint32_t n_val, uint32_t n_test)
{
    CHECK(d->count[0] == n_train && d->count[1] == n_val && d->count[2] == n_test, "%u %u %u", d->count[0],
          d->count[1], d->count[2]);
}

#endif
