/* The sets of small pictures with transforms: the same samples for any number of loader threads, the plain
 * ones as ever. */
#include "data/packs.h"
#include "data/sets.h"

#include <math.h>

#include "base/alloc.h"
#include "base/hash.h"

/* --- CIFAR-10: rows 0..NOISY-1 of the first file are noise and labelled 1 to 9, all else is black and labelled 0  */

enum { ROW = 3073, NUMBERS = 3072, NOISY = 200, SLICE = 16, JOBS = 24, DEPTH = 4 };

struct slot {
    float x[SLICE * NUMBERS], lam[SLICE];
    int32_t y[SLICE], y2[SLICE];
};

struct feed {
    uint32_t ids[NOISY]; /* samples that are not black */
    uint32_t n;
};

static void put_cifar(void)
{
    char path[64];
    uint64_t state = 5;

    for (int f = 0; f < 6; f++) {
        snprintf(path, sizeof path, f < 5 ? "data_batch_%d.bin" : "test_batch.bin", f + 1);
        put_file(path, "", 0);
        CHECK(truncate(path, ROW * 10000L) == 0, "%m");
    }
    uint8_t *rows = malloc(NOISY * ROW);
    for (int i = 0; i < NOISY * ROW; i++)
        rows[i] = (uint8_t)(i % ROW ? test_u32(&state) : 1 + test_u32(&state) % 9);
    FILE *f = fopen("data_batch_1.bin", "r+e");
    CHECK(f && fwrite(rows, ROW, NOISY, f) == NOISY && fclose(f) == 0, "%m");
    free(rows);
}

static void find_noisy(struct feed *f, const co_dataset *d)
{
    int32_t y;

    for (uint32_t id = 0; id < d->count[CO_SPLIT_TRAIN]; id++) {
        d->fill(d, CO_SPLIT_TRAIN, &id, (co_slice_shape){1, 0}, &(co_draw){0}, &(co_slice_dst){.y = &y});
        if (y)
            f->ids[f->n++] = id;
    }
    CHECK(f->n > NOISY / 2, "%u", f->n);
}

static bool next_slice(void *ctx, uint64_t index, co_load *job)
{
    struct feed *f = ctx;

    job->split = CO_SPLIT_TRAIN;
    job->shape.n = SLICE;
    job->draw = (co_draw){.seed = 11, .epoch = (uint32_t)(index / 8), .augment = true};
    for (int i = 0; i < SLICE; i++)
        job->ids[i] = f->ids[(index * SLICE + (uint64_t)i) % f->n];
    return index < JOBS;
}

static void in_slot(void *ctx, void *buffer, co_load *job)
{
    struct slot *s = buffer;
    job->dst = (co_slice_dst){.x = s->x, .y = s->y, .y2 = s->y2, .lam = s->lam};
}

static uint64_t hash_of(const co_dataset *d, struct feed *f, int threads)
{
    struct slot *ring = aligned_alloc(64, DEPTH * (sizeof *ring + 63) / 64 * 64);
    co_loader *l;
    uint64_t hash = 0, index = 0;
    void *buffer;

    CHECK_OK(co_loader_start(&l, &(co_loader_spec){d, threads, threads ? DEPTH : 1, (char *)ring,
                                                   sizeof *ring, 0, next_slice, in_slot, f}));
    for (; co_loader_get(l, index, &buffer); index++)
        hash = co_fnv1a64((uint64_t[2]){hash, co_fnv1a64(buffer, sizeof(struct slot))}, 2 * sizeof hash);
    CHECK(index == JOBS, "ended at %d", (int)index);
    CHECK(co_loader_times(l).augment_ns > 0, "the time of augmentation is not counted");
    co_loader_stop(l);
    free(ring);
    return hash;
}

TEST(cifar_padded_cropped_flipped_and_mixed_is_the_same_for_any_number_of_loader_threads)
{
    co_dataset *d;
    struct feed f = {.n = 0};
    static float x[2][NUMBERS];

    put_cifar();
    CHECK_OK(
        set_try(&d, "cifar10", "dir", ".", "augment", "cifar", "mixup", "0.2", "cutmix", "1", (char *)NULL));
    CHECK(d->io.mix && co_shape_eq(&d->io.x, &CO_SHAPE(3, 32, 32)), "io");
    find_noisy(&f, d);
    uint64_t want = hash_of(d, &f, 0);
    CHECK(hash_of(d, &f, 1) == want && hash_of(d, &f, 3) == want, "other samples");
    for (uint32_t k = 0; k < 2; k++) { /* in evaluation, and in training: alone, it is mixed with itself */
        d->fill(d, CO_SPLIT_TRAIN, f.ids, (co_slice_shape){1, 0}, &(co_draw){.augment = k},
                &(co_slice_dst){.x = x[k]});
        CHECK(x[k][NUMBERS / 2] > -3 && x[k][NUMBERS / 2] < 3, "%g", (double)x[k][NUMBERS / 2]);
    }
    CHECK(memcmp(x[0], x[1], sizeof x[0]) != 0, "nothing was varied");
    co_dataset_close(d);
}

/* --- MNIST ---------------------------------------------------------------------------------------------- */

enum { PIXELS = 784, ROWS = 12 };

static void put_idx(const char *path, const char *head, size_t head_len, size_t each)
{
    uint8_t b[16 + ROWS * PIXELS];

    memcpy(b, head, head_len);
    for (size_t i = 0; i < ROWS * each; i++)
        b[head_len + i] = (uint8_t)(each == 1 ? i % 10 : i * 7 / 3);
    put_file(path, b, head_len + ROWS * each);
}

static void put_mnist(void)
{
    static const char pictures[16] = {0, 0, 8, 3, 0, 0, 0, ROWS, 0, 0, 0, 28, 0, 0, 0, 28};
    static const char labels[8] = {0, 0, 8, 1, 0, 0, 0, ROWS};

    put_idx("train-images-idx3-ubyte", pictures, sizeof pictures, PIXELS);
    put_idx("t10k-images-idx3-ubyte", pictures, sizeof pictures, PIXELS);
    put_idx("train-labels-idx1-ubyte", labels, sizeof labels, 1);
    put_idx("t10k-labels-idx1-ubyte", labels, sizeof labels, 1);
}

TEST(mnist_keeps_its_fingerprint_without_transforms_and_gets_another_with_them)
{
    static const char *const keys[] = {"flip", "crop", "resize", "erase", "normalize", "mixup"};
    static const char *const values[] = {"true", "20", "20", "0.5", "none", "1"};
    /* by the program before it had transforms */
    static const char made_before[] = "6fbc1e66dc9aeb420a57a425b6cedf8acbc845a55bf5f0bafae37ba21f77fd3a";
    char plain[65];
    co_dataset *d;

    put_mnist();
    CHECK_OK(set_try(&d, "mnist", "dir", ".", (char *)NULL));
    memcpy(plain, d->fingerprint, sizeof plain);
    CHECK(strcmp(plain, made_before) == 0, "%s", plain);
    CHECK(!d->io.mix, "mix");
    co_dataset_close(d);
    for (size_t i = 0; i < CO_COUNT(keys); i++) {
        CHECK_OK(set_try(&d, "mnist", "dir", ".", keys[i], values[i], (char *)NULL));
        CHECK(strcmp(d->fingerprint, plain) != 0, "%s changes nothing", keys[i]);
        co_dataset_close(d);
    }
    CHECK_FAILS(set_try(&d, "mnist", "dir", ".", "crop", "40", (char *)NULL), CO_EINPUT,
                "data.crop=40: larger");
}

TEST(mnist_resized_and_cropped_has_the_shape_it_says)
{
    static float x[2][20 * 24];
    co_dataset *d;

    put_mnist();
    CHECK_OK(
        set_try(&d, "mnist", "dir", ".", "resize", "24", "crop", "20x24", "normalize", "none", (char *)NULL));
    CHECK(co_shape_eq(&d->io.x, &CO_SHAPE(1, 20, 24)), "shape");
    for (uint32_t id = 0; id < 3; id++)
        for (int k = 0; k < 2; k++) {
            d->fill(d, CO_SPLIT_TEST, &id, (co_slice_shape){1, 0}, &(co_draw){.augment = k},
                    &(co_slice_dst){.x = x[k]});
            for (int i = 0; i < 20 * 24; i++)
                CHECK(x[k][i] >= 0 && x[k][i] <= 1, "%g", (double)x[k][i]);
        }
    co_dataset_close(d);
}
