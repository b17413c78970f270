/* Samples that cannot be read: counted, named, and the same for everybody. */
#include "data/pictures.h"

#include <pthread.h>
#include <sys/wait.h>

#include "base/alloc.h"

enum { SIDE = 8, NUMBERS = 3 * SIDE * SIDE, N = 40, SLICE = 5 };

static const char *const pets[] = {"cat", "dog", NULL};

static void copy_picture(const char *name, const char *to)
{
    char *bytes, path[256];
    size_t len;

    snprintf(path, sizeof path, "tests/data/pictures/%s", name);
    CHECK_OK(co_fs_read(&bytes, &len, test_repo(path), 1 << 20));
    put_file(to, bytes, len);
    free(bytes);
}

/* 40 pictures to train on, of which five are damaged, each in its own way. */
static void put_damaged(void)
{
    put_classes("d/train", pets, N / 2);
    put_classes("d/val", pets, 1);
    CHECK(truncate("d/train/cat/3.jpg", 300) == 0, "%m");
    CHECK(truncate("d/train/cat/7.jpg", 0) == 0, "%m");
    put_file("d/train/dog/2.jpg", "\xff\xd8\xff garbage that begins like a JPEG", 35);
    put_file("d/train/dog/5.jpg", "not even that", 13);
    sh("rm d/train/dog/9.jpg && ln -s nowhere d/train/dog/9.jpg");
}

static co_dataset *open_skipping(const char *cache_mb)
{
    co_dataset *d;
    CHECK_OK(set_try(&d, "imagefolder", "dir", "d", "on_error", "skip", "flip", "true", "mixup", "0.2",
                     "cache_mb", cache_mb, (char *)NULL));
    CHECK(!d->stop_on_bad && d->count[0] == N, "%u", d->count[0]);
    return d;
}

struct filled {
    float x[N][NUMBERS], lam[N];
    int32_t y[N], y2[N];
    int bad;
};

static void fill_slices(const co_dataset *d, struct filled *f, int first, int step)
{
    co_draw draw = {.seed = 1, .epoch = 3, .augment = true};

    for (int i = first * SLICE; i < N; i += step * SLICE) {
        uint32_t ids[SLICE];
        for (int k = 0; k < SLICE; k++)
            ids[k] = (uint32_t)((i + k) * 7 % N);
        f->bad += d->fill(d, CO_SPLIT_TRAIN, ids, (co_slice_shape){SLICE, 0}, &draw,
                          &(co_slice_dst){.x = f->x[i], .y = f->y + i, .y2 = f->y2 + i, .lam = f->lam + i});
    }
}

struct worker {
    const co_dataset *d;
    struct filled *f;
    int first, step, bad;
};

static void *fill_some(void *arg)
{
    struct worker *w = arg;
    struct filled *mine = calloc(1, sizeof *mine);

    fill_slices(w->d, mine, w->first, w->step);
    for (int i = 0; i < N; i++)
        if (i / SLICE % w->step == w->first) {
            memcpy(w->f->x[i], mine->x[i], sizeof mine->x[i]);
            w->f->y[i] = mine->y[i];
            w->f->y2[i] = mine->y2[i];
            w->f->lam[i] = mine->lam[i];
        }
    w->bad = mine->bad;
    free(mine);
    return NULL;
}

static struct filled *fill_by(const co_dataset *d, int threads)
{
    struct filled *f = calloc(1, sizeof *f);
    struct worker w[8];
    pthread_t t[8];

    for (int i = 0; i < threads; i++) {
        w[i] = (struct worker){d, f, i, threads, 0};
        CHECK(pthread_create(&t[i], NULL, fill_some, &w[i]) == 0, "thread");
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(t[i], NULL);
        f->bad += w[i].bad;
    }
    return f;
}

TEST(bad_samples_are_zero_ignored_and_counted_the_same_by_any_threads_tsan)
{
    put_damaged();
    co_dataset *d = open_skipping("64");
    struct filled *one = fill_by(d, 1);

    CHECK(one->bad == 5, "%d bad", one->bad);
    for (int i = 0; i < N; i++)
        CHECK((one->y[i] == CO_IGNORE) == (one->y2[i] == CO_IGNORE) || one->y[i] >= 0, "sample %d", i);
    for (int threads = 2; threads <= 5; threads += 3) {
        struct filled *many = fill_by(d, threads);
        CHECK(memcmp(one, many, sizeof *one) == 0, "%d threads give other bits", threads);
        free(many);
    }
    co_dataset *on_disk = open_skipping("0");
    struct filled *other = fill_by(on_disk, 2);
    CHECK(memcmp(one, other, sizeof *one) == 0, "files on disk give other bits");
    CHECK(strcmp(d->fingerprint, on_disk->fingerprint) == 0, "fingerprint");
    co_dataset_close(on_disk);
    co_dataset_close(d);
    free(other);
    free(one);
}

TEST(a_bad_sample_is_named_with_its_reason)
{
    static const struct {
        uint32_t id;
        const char *says;
    } want[] = {{13, "d/train/cat/3.jpg: "},
                {17, "d/train/cat/7.jpg: the file is empty"},
                {N / 2 + 12, "d/train/dog/2.jpg: "},
                {N / 2 + 15, "d/train/dog/5.jpg: unsupported format: it begins with 0x6e6f"},
                {N - 1, "d/train/dog/9.jpg: open d/train/dog/9.jpg: No such file"}};
    float x[NUMBERS];
    int32_t y;

    put_damaged();
    for (int on_disk = 0; on_disk < 2; on_disk++) {
        co_dataset *d = open_skipping(on_disk ? "0" : "64");
        uint32_t bad = 0;
        for (uint32_t id = 0; id < N; id++) {
            x[0] = x[NUMBERS - 1] = 1;
            int n = d->fill(d, CO_SPLIT_TRAIN, &id, (co_slice_shape){1, 0}, &(co_draw){0},
                            &(co_slice_dst){.x = x, .y = &y});
            CHECK(n == (y == CO_IGNORE) && n == (d->check(d, CO_SPLIT_TRAIN, id) != CO_OK), "sample %u", id);
            if (n == 0)
                continue;
            CHECK(x[0] == 0 && x[NUMBERS - 1] == 0, "sample %u is not zero", id);
            CHECK(bad < CO_COUNT(want) && want[bad].id == id, "sample %u: %s", id, co_errmsg());
            CHECK_FAILS(d->check(d, CO_SPLIT_TRAIN, id), CO_EINPUT, want[bad].says);
            bad++;
        }
        CHECK(bad == CO_COUNT(want), "%u", bad);
        co_dataset_close(d);
    }
}

TEST(a_png_named_jpg_is_a_png_and_a_picture_of_another_size_is_named)
{
    co_dataset *d;
    int32_t y;

    put_classes("d/train", pets, 2);
    put_classes("d/val", pets, 1);
    copy_picture("png-rgb.png", "d/train/cat/0.jpg");
    CHECK_OK(set_try(&d, "imagefolder", "dir", "d", "crop", "8", (char *)NULL));
    CHECK(d->fill(d, CO_SPLIT_TRAIN, &(uint32_t){0}, (co_slice_shape){1, 0}, &(co_draw){0},
                  &(co_slice_dst){.y = &y}) == 0 &&
              y == 0,
          "%s", d->check(d, CO_SPLIT_TRAIN, 0) ? co_errmsg() : "");
    co_dataset_close(d);
    /* Sizes are taken from 256 pictures, evenly spread: of 302 that leaves out the seventh. */
    put_classes("d/train", pets, 150);
    copy_picture("png-rgb.png", "d/train/cat/103.jpg");
    CHECK_OK(set_try(&d, "imagefolder", "dir", "d", (char *)NULL));
    CHECK_FAILS(d->check(d, CO_SPLIT_TRAIN, 6), CO_EINPUT,
                "d/train/cat/103.jpg: 35x24 pixels where others have 8x8");
    co_dataset_close(d);
}

static int fill_one(const co_dataset *d, uint32_t id)
{
    float x[NUMBERS];

    return d->fill(d, CO_SPLIT_TRAIN, &id, (co_slice_shape){1, 0}, &(co_draw){0}, &(co_slice_dst){.x = x});
}

/* Of the same length, so that nothing but the bytes differs. */
static void replace_picture(const char *path)
{
    struct stat st;

    CHECK(stat(path, &st) == 0, "%m");
    put_jpeg(path, 8, 8, 200);
    CHECK(truncate(path, st.st_size) == 0, "%m");
}

TEST(a_file_on_disk_that_is_replaced_by_one_of_the_same_length_is_noticed)
{
    co_dataset *d;

    put_classes("d/train", pets, 2);
    put_classes("d/val", pets, 1);
    CHECK(truncate("d/train/cat/1.jpg", 1000) == 0, "%m");
    CHECK_OK(set_try(&d, "imagefolder", "dir", "d", "cache_mb", "0", "on_error", "skip", (char *)NULL));
    CHECK(fill_one(d, 1) == 0, "as it was");
    replace_picture("d/train/cat/1.jpg");
    CHECK(fill_one(d, 1) < 0, "not noticed");
    CHECK_FAILS(d->check(d, CO_SPLIT_TRAIN, 1), CO_EFORMAT, "d/train/cat/1.jpg: its bytes are not those");
    CHECK(fill_one(d, 0) == 0, "the others are as they were");
    sh("rm d/train/cat/0.jpg");
    CHECK(fill_one(d, 0) < 0, "a file that is gone");
    CHECK_FAILS(d->check(d, CO_SPLIT_TRAIN, 0), CO_EIO, "d/train/cat/0.jpg");
    co_dataset_close(d);
}

/* A sparse file makes the set larger than what the fingerprint covers; it is a bad sample and nothing
 * else. */
static co_dataset *open_large(void)
{
    co_dataset *d;

    CHECK_OK(set_try(&d, "imagefolder", "dir", "d", "on_error", "skip", "crop", "8", (char *)NULL));
    return d;
}

TEST(a_file_that_is_replaced_between_two_parts_of_a_run_is_noticed)
{
    put_classes("d/train", pets, 2);
    put_classes("d/val", pets, 1);
    sh("truncate -s 2G d/train/cat/huge.jpg");
    co_dataset *d = open_large();
    CHECK_OK(d->remember(d, "seen.bin"));
    pid_t child = fork(); /* what a rank reads, all know */
    if (child == 0)
        _exit(fill_one(d, 1));
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "%d", status);
    co_dataset_close(d);
    replace_picture("d/train/cat/0.jpg"); /* nobody has read it */
    d = open_large();
    CHECK_OK(d->remember(d, "seen.bin"));
    CHECK(fill_one(d, 0) == 0 && fill_one(d, 1) == 0, "what was not read may change");
    co_dataset_close(d);
    replace_picture("d/train/cat/1.jpg");
    d = open_large();
    CHECK_OK(d->remember(d, "seen.bin"));
    CHECK(fill_one(d, 1) < 0, "not noticed");
    CHECK_FAILS(d->check(d, CO_SPLIT_TRAIN, 1), CO_EFORMAT, "d/train/cat/1.jpg: its bytes are not those");
    co_dataset_close(d);
    sh("rm seen.bin");
    d = open_large();
    CHECK_OK(d->remember(d, "seen.bin"));
    CHECK(fill_one(d, 1) == 0, "a new run takes the files as they are");
    co_dataset_close(d);
    sh("printf garbage > seen.bin");
    d = open_large();
    CHECK_OK(d->remember(d, "seen.bin"));
    CHECK(fill_one(d, 1) == 0, "a damaged table is made anew");
    co_dataset_close(d);
}

TEST(fill_tells_reading_decoding_and_augmenting_apart)
{
    co_fill_times t = {0};
    uint32_t ids[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    float x[8 * NUMBERS];

    put_classes("d/train", pets, 8);
    put_classes("d/val", pets, 1);
    co_dataset *d;
    CHECK_OK(set_try(&d, "imagefolder", "dir", "d", "cache_mb", "0", (char *)NULL));
    d->fill(d, CO_SPLIT_TRAIN, ids, (co_slice_shape){8, 0}, &(co_draw){.times = &t}, &(co_slice_dst){.x = x});
    CHECK(t.read_ns > 0 && t.decode_ns > 0 && t.augment_ns > 0, "%llu %llu %llu",
          (unsigned long long)t.read_ns, (unsigned long long)t.decode_ns, (unsigned long long)t.augment_ns);
    co_dataset_close(d);
}

TEST(a_warm_fill_allocates_nothing_for_jpeg_or_png)
{
    uint32_t ids[4] = {0, 1, 2, 3};
    static float x[4 * 3 * 16 * 16];

    put_classes("d/train", pets, 4);
    put_classes("d/val", pets, 1);
    copy_picture("png-rgb.png", "d/train/cat/1.jpg");
    copy_picture("png-palette.png", "d/train/cat/2.jpg");
    for (int on_disk = 0; on_disk < 2; on_disk++) {
        co_dataset *d;
        CHECK_OK(set_try(&d, "imagefolder", "dir", "d", "resize", "20", "crop", "16", "random_resized_crop",
                         "true", "cache_mb", on_disk ? "0" : "64", (char *)NULL));
        uint64_t before = 0;
        for (uint32_t epoch = 0; epoch < 20; epoch++) {
            before = epoch == 10 ? co_alloc_count() : before;
            CHECK(d->fill(d, CO_SPLIT_TRAIN, ids, (co_slice_shape){4, 0},
                          &(co_draw){.epoch = epoch, .augment = true}, &(co_slice_dst){.x = x}) == 0,
                  "bad");
        }
        CHECK(co_alloc_count() == before, "%llu allocations", (unsigned long long)(co_alloc_count() - before));
        co_dataset_close(d);
    }
}
