/* The made-up files here are sparse: 30 MB of zeros are a valid batch, each picture black and labelled 0.
 *
 * What is known of the real set is checked if it is there: $COHORT_DATA, or ../shared/data beside the
 * repository, with a folder cifar10. */
#include "data/packs.h"
#include "data/sets.h"
#include "data/real.h"

#include "base/fs.h"

enum { ROW = 3073, PIXELS = 3072, BATCH = 10000 };

static const char *const names[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                    "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};

static void put_zeros(const char *path, off_t len)
{
    put_file(path, "", 0);
    CHECK(truncate(path, len) == 0, "%m");
}

static void poke(const char *path, long at, int byte)
{
    FILE *f = fopen(path, "r+e");
    CHECK(f && fseek(f, at, SEEK_SET) == 0 && fputc(byte, f) == byte && fclose(f) == 0, "%s: %m", path);
}

/* Batch f's row 100 f is labelled f + 1, with f + 10 as its first red and 20 f as its last blue. */
static void put_cifar10(const char *dir)
{
    char path[256];

    for (int f = 0; f < 6; f++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[f]);
        put_zeros(path, ROW * BATCH);
        poke(path, 100L * f * ROW, f + 1);
        poke(path, 100L * f * ROW + 1, f + 10);
        poke(path, 100L * f * ROW + PIXELS, 20 * f);
    }
}

static void put_cifar100(void)
{
    put_zeros("train.bin", 50000 * 3074);
    put_zeros("test.bin", 10000 * 3074);
}

static co_err try_set(const char *name, const char *dir)
{
    co_dataset *d = NULL;
    co_err err = set_try(&d, name, "dir", dir, (char *)NULL);
    co_dataset_close(d);
    return err;
}

static float scaled(int byte, float mean, float std)
{
    return ((float)byte / 255.0f - mean) / std;
}

TEST(cifar10_gives_the_pictures_of_all_six_files_with_their_labels)
{
    static float x[PIXELS];
    co_dataset *d;
    int seen[6] = {0}, black = 0;
    int32_t y;

    put_cifar10(".");
    CHECK_OK(set_try(&d, "cifar10", "dir", ".", (char *)NULL));
    CHECK(d->count[0] == 45000 && d->count[1] == 5000 && d->count[2] == 10000, "%u %u %u", d->count[0],
          d->count[1], d->count[2]);
    CHECK(d->io.classes == 10 && co_shape_eq(&d->io.x, &CO_SHAPE(3, 32, 32)), "not [3,32,32] of 10");
    for (int s = 0; s < CO_SPLIT_COUNT; s++)
        for (uint32_t id = 0; id < d->count[s]; id++) {
            d->fill(d, (co_split)s, &id, (co_slice_shape){1, 0}, &(co_draw){0}, &(co_slice_dst){.y = &y});
            black += y == 0;
            if (y == 0)
                continue;
            int f = y - 1;
            CHECK(f < 6 && (f == 5) == (s == CO_SPLIT_TEST) && (f < 5 || id == 500), "label %d", y);
            seen[f]++;
            d->fill(d, (co_split)s, &id, (co_slice_shape){1, 0}, &(co_draw){0}, &(co_slice_dst){.x = x});
            CHECK(x[0] == scaled(f + 10, 0.4914f, 0.2470f) && x[1] == scaled(0, 0.4914f, 0.2470f), "red");
            CHECK(x[1024] == scaled(0, 0.4822f, 0.2435f), "green");
            CHECK(x[3071] == scaled(20 * f, 0.4465f, 0.2616f), "blue");
        }
    for (int f = 0; f < 6; f++)
        CHECK(seen[f] == 1, "%s: %d", names[f], seen[f]);
    CHECK(black == 60000 - 6, "%d", black);
    CHECK(strcmp(d->class_name(d, 0), "airplane") == 0 && strcmp(d->class_name(d, 9), "truck") == 0 &&
              !d->class_name(d, 10),
          "the names are wrong");
    co_dataset_close(d);
}

TEST(cifar10_is_the_same_set_plain_packed_in_its_folder_and_in_its_archive)
{
    static char plain[65];
    co_dataset *d;
    char *bytes;
    size_t len, packed_len;
    test_run r = test_sh("mkdir -p x/cifar-10-batches-bin y z");

    setenv("COHORT_CACHE", "/dev/null/none", 1); /* as it is where nothing can be kept */
    free(r.out);
    put_cifar10("x/cifar-10-batches-bin");
    CHECK_OK(set_try(&d, "cifar10", "dir", "x", (char *)NULL));
    memcpy(plain, d->fingerprint, sizeof plain);
    co_dataset_close(d);
    CHECK_OK(co_fs_read(&bytes, &len, "x/cifar-10-batches-bin/data_batch_3.bin", ROW * BATCH));
    uint8_t *packed = pack_xz(bytes, len, &packed_len);
    put_file("y/data_batch_3.bin.xz", packed, packed_len);
    free(packed);
    free(bytes);
    r = test_sh("cd x && GZIP=-1 tar -czf ../z/cifar-10-binary.tar.gz cifar-10-batches-bin && cd .. &&"
                " rm x/*/data_batch_3.bin && mv x/*/*.bin y");
    CHECK(r.status == 0, "%s", r.out);
    free(r.out);
    for (const char *const *dir = (const char *const[]){"y", "z", NULL}; *dir; dir++) {
        CHECK_OK(set_try(&d, "cifar10", "dir", *dir, (char *)NULL));
        CHECK(strcmp(d->fingerprint, plain) == 0, "%s differs", *dir);
        co_dataset_close(d);
    }
    CHECK(truncate("z/cifar-10-binary.tar.gz", 100000) == 0, "%m");
    CHECK_FAILS(try_set("cifar10", "z"), CO_EINPUT, "cifar-10-binary.tar.gz is cut short");
    r = test_sh("cd y && rm data_batch_3.bin.xz && tar -czf ../z/cifar-10-binary.tar.gz test_batch.bin");
    free(r.out);
    CHECK_FAILS(try_set("cifar10", "z"), CO_EINPUT, "cifar-10-binary.tar.gz has no data_batch_1.bin");
    r = test_sh("cd y && printf abc >test_batch.bin && tar -czf ../z/cifar-10-binary.tar.gz test_batch.bin");
    free(r.out);
    CHECK_FAILS(try_set("cifar10", "z"), CO_EINPUT, "tar.gz: test_batch.bin: 3 bytes, not 30,730,000");
}

TEST(a_cifar10_file_that_is_missing_cut_too_long_or_damaged_is_refused_by_name)
{
    put_cifar10(".");
    CHECK(truncate(names[2], ROW * BATCH - 1) == 0, "%m");
    CHECK_FAILS(try_set("cifar10", "."), CO_EINPUT,
                "data_batch_3.bin: 30,729,999 bytes, not 30,730,000: is the download complete?");
    CHECK(truncate(names[2], ROW * BATCH + 1) == 0, "%m");
    CHECK_FAILS(try_set("cifar10", "."), CO_EINPUT, "30,730,001 bytes, not 30,730,000: is it the right file?");
    CHECK(truncate(names[2], ROW * BATCH) == 0 && truncate(names[5], 0) == 0, "%m");
    CHECK_FAILS(try_set("cifar10", "."), CO_EINPUT, "test_batch.bin: 0 bytes, not 30,730,000");
    CHECK(truncate(names[5], ROW * BATCH) == 0, "%m");
    poke(names[3], 9999L * ROW, 10);
    CHECK_FAILS(try_set("cifar10", "."), CO_EINPUT,
                "data_batch_4.bin: picture 9999 has label 10; 0 to 9 are right: the file is damaged");
    CHECK(unlink(names[3]) == 0, "%m");
    CHECK_FAILS(try_set("cifar10", "."), CO_EINPUT, "./data_batch_4.bin is missing (plain, .xz or .gz)");
    put_file("data_batch_4.bin.xz", "garbage, garbage", 16);
    CHECK_FAILS(try_set("cifar10", "."), CO_EINPUT, "data_batch_4.bin.xz is not an xz file, or is damaged");
}

TEST(a_folder_without_cifar_says_what_was_looked_for)
{
    co_dataset *d = NULL;
    test_run r = test_sh("mkdir e && mkdir -p p/cifar-10-batches-py && : >file");

    free(r.out);
    CHECK_FAILS(try_set("cifar10", "e"), CO_EINPUT, "e has neither data_batch_1.bin (plain, .xz or .gz), nor");
    CHECK_FAILS(try_set("cifar10", "p"), CO_EINPUT, "has the version for Python; the binary version is needed");
    CHECK_FAILS(try_set("cifar100", "p"), CO_EINPUT, "cifar-100-binary.tar.gz");
    CHECK_FAILS(try_set("cifar10", "file"), CO_EINPUT, "data.dir: file: not a folder");
    CHECK_FAILS(try_set("cifar10", "nowhere"), CO_EINPUT, "data.dir: nowhere: No such file");
    CHECK_FAILS(try_set("cifar10", "nowhere"), CO_EINPUT, "cohort data get cifar10 downloads it");
    CHECK_FAILS(set_try(&d, "cifar10", (char *)NULL), CO_EINPUT, "data=cifar10 needs data.dir=FOLDER");
}

TEST(cifar100_uses_the_fine_label_and_checks_both)
{
    co_dataset *d;
    int32_t y;

    put_cifar100();
    poke("test.bin", 7 * 3074, 19);
    poke("test.bin", 7 * 3074 + 1, 99);
    CHECK_OK(set_try(&d, "cifar100", "dir", ".", (char *)NULL));
    d->fill(d, CO_SPLIT_TEST, &(uint32_t){7}, (co_slice_shape){1, 0}, &(co_draw){0}, &(co_slice_dst){.y = &y});
    CHECK(y == 99 && d->io.classes == 100, "label %d of %lld", y, (long long)d->io.classes);
    co_dataset_close(d);
    poke("train.bin", 49999L * 3074 + 1, 100);
    CHECK_FAILS(try_set("cifar100", "."), CO_EINPUT,
                "train.bin: picture 49999 has label 100; 0 to 99 are right");
    poke("train.bin", 3 * 3074, 20);
    CHECK_FAILS(try_set("cifar100", "."), CO_EINPUT, "train.bin: picture 3 has label 20; 0 to 19 are right");
}

static co_err try_cifar100(void *ctx)
{
    return try_set("cifar100", ".");
}

TEST(cifar_says_so_when_memory_is_out)
{
    put_cifar100();
    test_each_alloc_fails(try_cifar100, NULL);
}

/* --- the real set --------------------------------------------------------------------------------------- */

static const char *real_cifar10(void)
{
    static char path[4096];
    const char *data = getenv("COHORT_DATA");

    snprintf(path, sizeof path, "%s/cifar10", data ? data : test_repo("../shared/data"));
    if (!co_fs_is_dir(path))
        test_skip("no %s: set COHORT_DATA to a folder with cifar10/ in it", path);
    return path;
}

/* Normalised over all 50,000 pictures to train on, means are 0 and standard deviations 1 but for rounding. */
static void check_moments(const co_dataset *d)
{
    static float x[PIXELS];
    double sum[3] = {0}, squares[3] = {0}, n = 50000.0 * 1024;
    int32_t y;

    for (int s = 0; s < CO_SPLIT_TEST; s++)
        for (uint32_t id = 0; id < d->count[s]; id++) {
            d->fill(d, (co_split)s, &id, (co_slice_shape){1, 0}, &(co_draw){0},
                    &(co_slice_dst){x, &y, NULL, NULL});
            for (int p = 0; p < PIXELS; p++) {
                sum[p / 1024] += (double)x[p];
                squares[p / 1024] += (double)x[p] * (double)x[p];
            }
        }
    for (int c = 0; c < 3; c++) {
        double mean = sum[c] / n, variance = squares[c] / n - mean * mean;
        CHECK(mean > -5e-4 && mean < 5e-4 && variance > 0.999 && variance < 1.001, "plane %d: mean %g var %g",
              c, mean, variance);
    }
}

TEST_WITHIN(the_real_cifar10_has_the_moments_and_classes_it_is_known_for, 120)
{
    const char *dir = real_cifar10();
    co_dataset *d;
    int per_class[10] = {0};
    int32_t y;

    keep_cache();
    CHECK_OK(set_try(&d, "cifar10", "dir", dir, (char *)NULL));
    for (uint32_t id = 0; id < d->count[CO_SPLIT_TEST]; id++) {
        d->fill(d, CO_SPLIT_TEST, &id, (co_slice_shape){1, 0}, &(co_draw){0}, &(co_slice_dst){.y = &y});
        per_class[y]++;
    }
    for (int c = 0; c < 10; c++)
        CHECK(per_class[c] == 1000, "class %d has %d", c, per_class[c]);
    check_moments(d);
    CHECK(strcmp(d->fingerprint, "5140e7124e42b23ee6a4fdc29ecc25138b9092409f8ffbe08c746353ebad7bf5") == 0,
          "fingerprint %s", d->fingerprint);
    co_dataset_close(d);
}
