#include "data/sets.h"

#include <math.h>

#include "base/alloc.h"

enum { ALL = 1797 };

struct image {
    float x[64];
    int32_t y;
};

/* Every image of the set, split after split. */
static void read_all(struct image *out)
{
    co_dataset *d = set_open("digits");
    for (int s = 0; s < CO_SPLIT_COUNT; s++)
        for (uint32_t id = 0; id < d->count[s]; id++, out++) {
            int64_t ids = -1;
            d->fill(d, (co_split)s, &id, (co_slice_shape){1, 0}, &(co_draw){0},
                    &(co_slice_dst){out->x, &out->y, &ids, NULL});
            CHECK(ids == (int64_t)id, "ids[0] = %lld", (long long)ids);
        }
    co_dataset_close(d);
}

TEST(digits_are_1797_images_of_8x8_in_ten_classes)
{
    co_dataset *d = set_open("digits");
    co_shape want = CO_SHAPE(1, 8, 8);

    CHECK(d->count[CO_SPLIT_TRAIN] == 1437, "%u", d->count[CO_SPLIT_TRAIN]);
    CHECK(d->count[CO_SPLIT_VAL] == 180, "%u", d->count[CO_SPLIT_VAL]);
    CHECK(d->count[CO_SPLIT_TEST] == 180, "%u", d->count[CO_SPLIT_TEST]);
    CHECK(d->io.task == CO_TASK_CLASSIFY && d->io.classes == 10, "%lld classes", (long long)d->io.classes);
    CHECK(memcmp(&d->io.x, &want, sizeof want) == 0, "of %d dimensions", d->io.x.nd);
    CHECK(strlen(d->fingerprint) == 64, "\"%s\"", d->fingerprint);
    CHECK(strcmp(d->def->name, "digits") == 0, "%s", d->def->name);
    CHECK(!d->length && !d->decode, "digits have no length");
    co_dataset_close(d);
}

TEST(the_splits_of_digits_hold_every_image_once_and_the_labels_known_of_the_set)
{
    static const int want[10] = {178, 182, 177, 183, 181, 182, 181, 179, 174, 180};
    static struct image all[ALL];
    int seen[10] = {0};
    double sum = 0, squares = 0;

    read_all(all);
    for (int i = 0; i < ALL; i++) {
        CHECK(all[i].y >= 0 && all[i].y < 10, "label %d", all[i].y);
        seen[all[i].y]++;
        for (int p = 0; p < 64; p++) {
            sum += all[i].x[p];
            squares += (double)all[i].x[p] * all[i].x[p];
        }
    }
    for (int c = 0; c < 10; c++)
        CHECK(seen[c] == want[c], "%d images of %d, not %d", want[c], c, seen[c]);
    CHECK(fabs(sum / ALL / 64) < 1e-3 && fabs(squares / ALL / 64 - 1) < 1e-3, "mean %g, mean square %g",
          sum / ALL / 64, squares / ALL / 64);
}

/* The set's first row, a zero. It must be somewhere, once, pixel for pixel. */
TEST(a_known_image_of_the_digits_is_there_as_it_should_be)
{
    static const uint8_t zero[64] = {0, 0, 5,  13, 9,  1,  0, 0, 0, 0, 13, 15, 10, 15, 5, 0,
                                     0, 3, 15, 2,  0,  11, 8, 0, 0, 4, 12, 0,  0,  8,  8, 0,
                                     0, 5, 8,  0,  0,  9,  8, 0, 0, 4, 11, 0,  1,  12, 7, 0,
                                     0, 2, 14, 5,  10, 12, 0, 0, 0, 0, 6,  13, 10, 0,  0, 0};
    static struct image all[ALL];
    int found = 0;

    read_all(all);
    for (int i = 0; i < ALL; i++) {
        int same = 0;
        for (int p = 0; p < 64; p++)
            same += all[i].x[p] == ((float)zero[p] / 16.0f - 0.3053f) / 0.3760f;
        found += same == 64 && all[i].y == 0;
    }
    CHECK(found == 1, "found %d times", found);
}

TEST(a_split_of_digits_is_a_fair_draw)
{
    co_dataset *d = set_open("digits");
    int seen[10] = {0};

    for (uint32_t id = 0; id < d->count[CO_SPLIT_VAL]; id++) {
        int32_t y;
        d->fill(d, CO_SPLIT_VAL, &id, (co_slice_shape){1, 0}, &(co_draw){0}, &(co_slice_dst){.y = &y});
        seen[y]++;
    }
    for (int c = 0; c < 10; c++) /* 18 on average; the file itself runs through writers */
        CHECK(seen[c] >= 6 && seen[c] <= 32, "%d images of a %d in 180", seen[c], c);
    co_dataset_close(d);
}

/* docs/formats/order.md: the first training samples are rows 735, 433, 1166 and 971 of the set. */
TEST(the_splits_of_digits_are_those_written_down)
{
    static const uint8_t top[4][8] = {{0, 0, 6, 9, 11, 9, 0, 0},
                                      {0, 0, 0, 5, 16, 8, 0, 0},
                                      {0, 0, 9, 16, 15, 3, 0, 0},
                                      {0, 0, 5, 15, 14, 3, 0, 0}};
    static const int label[4] = {3, 1, 9, 9};
    static struct image all[ALL];

    read_all(all);
    for (int i = 0; i < 4; i++) {
        CHECK(all[i].y == label[i], "sample %d is a %d, not a %d", i, all[i].y, label[i]);
        for (int p = 0; p < 8; p++)
            CHECK(all[i].x[p] == ((float)top[i][p] / 16.0f - 0.3053f) / 0.3760f, "sample %d, pixel %d", i, p);
    }
}

static co_err open_digits(void *ctx)
{
    co_dataset *d = NULL;
    co_err err = set_try(&d, "digits", (char *)NULL);
    co_dataset_close(d);
    return err;
}

TEST(digits_say_so_when_memory_is_out)
{
    test_each_alloc_fails(open_digits, NULL);
}

TEST(a_data_set_is_found_by_its_name_only)
{
    CHECK(!co_dataset_find("digit") && !co_dataset_find(""), "found");
    for (int i = 0; co_datasets[i]; i++)
        CHECK(co_dataset_find(co_datasets[i]->name) == co_datasets[i], "%s", co_datasets[i]->name);
    co_dataset_close(NULL);
}
