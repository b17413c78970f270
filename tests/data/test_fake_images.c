/* Made-up pictures: a function of id and seed alone, every class there, and a class told by its pattern. */
#include "data/sets.h"

#include "base/alloc.h"

enum { N = 64, SIZE = 8, NUMBERS = 3 * SIZE * SIZE };

static co_dataset *open_pictures(const char *seed)
{
    co_dataset *d;

    CHECK_OK(set_try(&d, "fake_images", "n", "64", "size", "8", "classes", "3", "seed", seed, (char *)NULL));
    return d;
}

static void fill_some(const co_dataset *d, co_split s, const uint32_t *ids, int n, float *x, int32_t *y)
{
    d->fill(d, s, ids, (co_slice_shape){.n = n}, &(co_draw){0}, &(co_slice_dst){.x = x, .y = y});
}

TEST(a_fake_picture_depends_on_its_id_and_the_seed_and_not_on_its_neighbours)
{
    static float all[8 * NUMBERS], one[NUMBERS];
    co_dataset *d = open_pictures("1"), *e = open_pictures("2");
    const uint32_t ids[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    int32_t y[8], y1;

    CHECK(d->io.task == CO_TASK_CLASSIFY && d->io.classes == 3 && d->count[CO_SPLIT_VAL] == N / 8, "io");
    fill_some(d, CO_SPLIT_TRAIN, ids, 8, all, y);
    fill_some(d, CO_SPLIT_TRAIN, ids + 5, 1, one, &y1);
    CHECK(memcmp(one, all + 5 * NUMBERS, sizeof one) == 0 && y1 == y[5],
          "picture 5 differs when it comes alone");
    fill_some(e, CO_SPLIT_TRAIN, ids + 5, 1, one, &y1);
    CHECK(memcmp(one, all + 5 * NUMBERS, sizeof one) != 0, "another seed gave the same picture");
    fill_some(d, CO_SPLIT_TEST, ids + 5, 1, one, &y1);
    CHECK(memcmp(one, all + 5 * NUMBERS, sizeof one) != 0, "a test picture is one to train on");
    CHECK(strcmp(d->fingerprint, e->fingerprint) != 0, "one fingerprint for two sets");
    co_dataset_close(d);
    co_dataset_close(e);
}

/* The mean picture of a class is nearer to its other half than to any other class's: it can be learnt. */
TEST(classes_of_fake_pictures_can_be_told_apart)
{
    static float x[N * NUMBERS], mean[2][3][NUMBERS];
    uint32_t ids[N];
    int32_t y[N], count[2][3] = {{0}};
    co_dataset *d = open_pictures("1");

    for (uint32_t i = 0; i < N; i++)
        ids[i] = i;
    fill_some(d, CO_SPLIT_TRAIN, ids, N, x, y);
    for (int i = 0; i < N; i++) {
        CHECK(y[i] >= 0 && y[i] < 3, "label %d", y[i]);
        count[i % 2][y[i]]++;
        for (int k = 0; k < NUMBERS; k++)
            mean[i % 2][y[i]][k] += x[i * NUMBERS + k];
    }
    for (int a = 0; a < 3; a++) {
        double nearest = 1e30;
        int who = -1;
        for (int b = 0; b < 3; b++) {
            double far = 0;
            CHECK(count[0][a] && count[1][b], "a class is missing");
            for (int k = 0; k < NUMBERS; k++) {
                double t = mean[0][a][k] / (float)count[0][a] - mean[1][b][k] / (float)count[1][b];
                far += t * t;
            }
            if (far < nearest) {
                nearest = far;
                who = b;
            }
        }
        CHECK(who == a, "class %d looks like class %d", a, who);
    }
    co_dataset_close(d);
}

static co_err try_pictures(void *ctx)
{
    co_dataset *d;
    co_err err = set_try(&d, "fake_images", (char *)NULL);

    if (!err)
        co_dataset_close(d);
    return err;
}

TEST(fake_pictures_say_so_when_memory_is_out)
{
    test_each_alloc_fails(try_pictures, NULL);
}

TEST(mirror_images_are_filled_beside_the_pictures)
{
    static float x[2 * NUMBERS], mirrored[2 * NUMBERS];
    co_dataset *d = open_pictures("1");
    const uint32_t ids[2] = {3, 9};

    co_dataset_fill(d, CO_SPLIT_VAL, ids, (co_slice_shape){.n = 2}, &(co_draw){0},
                    &(co_slice_dst){.x = x, .mirror = mirrored});
    for (int i = 0; i < 2 * NUMBERS; i++)
        CHECK(mirrored[i] == x[i / SIZE * SIZE + SIZE - 1 - i % SIZE], "[%d] is %g", i, (double)mirrored[i]);
    CHECK(memcmp(x, mirrored, sizeof x) != 0, "the pictures are symmetric");
    co_dataset_close(d);
}
