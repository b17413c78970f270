#include "data/packs.h"
#include "data/sets.h"

enum { PIXELS = 784, TRAIN = 20, TEST_N = 6 };

static void put_u32(uint8_t *at, uint32_t x)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(x >> (24 - 8 * i));
}

/* Picture i has byte (i + p) % 256 at p, and label i % 10. Packed if the name ends in .gz. */
static void put_pictures(const char *path, uint32_t n)
{
    size_t len = 16 + (size_t)n * PIXELS, packed_len;
    uint8_t *b = calloc(1, len);
    memcpy(b, "\0\0\x08\x03", 4);
    put_u32(b + 4, n);
    put_u32(b + 8, 28);
    put_u32(b + 12, 28);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t p = 0; p < PIXELS; p++)
            b[16 + i * PIXELS + p] = (uint8_t)(i + p);
    uint8_t *packed = pack_gz(b, len, &packed_len);
    bool gz = strstr(path, ".gz");
    put_file(path, gz ? packed : b, gz ? packed_len : len);
    free(packed);
    free(b);
}

static void put_labels(const char *path, uint32_t n)
{
    uint8_t b[8 + 100] = "\0\0\x08\x01";
    size_t packed_len;

    put_u32(b + 4, n);
    for (uint32_t i = 0; i < n; i++)
        b[8 + i] = (uint8_t)(i % 10);
    uint8_t *packed = pack_gz(b, 8 + n, &packed_len);
    bool gz = strstr(path, ".gz");
    put_file(path, gz ? packed : b, gz ? packed_len : 8 + n);
    free(packed);
}

static void put_set(const char *dir, const char *end)
{
    char path[256];

    snprintf(path, sizeof path, "%s/train-images-idx3-ubyte%s", dir, end);
    put_pictures(path, TRAIN);
    snprintf(path, sizeof path, "%s/t10k-images-idx3-ubyte%s", dir, end);
    put_pictures(path, TEST_N);
    snprintf(path, sizeof path, "%s/train-labels-idx1-ubyte%s", dir, end);
    put_labels(path, TRAIN);
    snprintf(path, sizeof path, "%s/t10k-labels-idx1-ubyte%s", dir, end);
    put_labels(path, TEST_N);
}

static co_err try_dir(void *dir)
{
    co_dataset *d = NULL;
    co_err err = set_try(&d, "mnist", "dir", dir, (char *)NULL);
    co_dataset_close(d);
    return err;
}

/* Checks one sample, and which row of the files it is. */
static uint32_t row_of(const co_dataset *d, co_split s, uint32_t id)
{
    float x[PIXELS];
    int32_t y;
    int64_t ids;

    d->fill(d, s, &id, (co_slice_shape){1, 0}, &(co_draw){0}, &(co_slice_dst){x, &y, &ids, NULL});
    CHECK(ids == (int64_t)id, "ids %lld", (long long)ids);
    for (uint32_t row = 0; row < TRAIN; row++)
        if (x[0] == ((float)row / 255.0f - 0.1307f) / 0.3081f) {
            CHECK(y == (int32_t)(row % 10), "row %u has label %d", row, y);
            for (uint32_t p = 0; p < PIXELS; p++)
                CHECK(x[p] == ((float)((row + p) % 256) / 255.0f - 0.1307f) / 0.3081f, "row %u, pixel %u",
                      row, p);
            return row;
        }
    CHECK(false, "x[0] = %g", (double)x[0]);
    return 0;
}

TEST(mnist_gives_every_picture_once_with_its_label)
{
    co_dataset *d;
    int seen[TRAIN] = {0};

    put_set(".", "");
    CHECK_OK(set_try(&d, "mnist", "dir", ".", (char *)NULL));
    CHECK(d->count[0] == TRAIN - 2 && d->count[1] == 2 && d->count[2] == TEST_N, "%u %u %u", d->count[0],
          d->count[1], d->count[2]);
    CHECK(d->io.task == CO_TASK_CLASSIFY && d->io.classes == 10 && co_shape_eq(&d->io.x, &CO_SHAPE(1, 28, 28)),
          "not [1,28,28] of 10");
    for (int s = 0; s < CO_SPLIT_TEST; s++)
        for (uint32_t id = 0; id < d->count[s]; id++)
            seen[row_of(d, (co_split)s, id)]++;
    for (int i = 0; i < TRAIN; i++)
        CHECK(seen[i] == 1, "row %d seen %d times", i, seen[i]);
    for (uint32_t id = 0; id < TEST_N; id++)
        CHECK(row_of(d, CO_SPLIT_TEST, id) == id, "test sample %u", id);
    d->fill(d, CO_SPLIT_VAL, &(uint32_t){1}, (co_slice_shape){1, 0}, &(co_draw){0}, &(co_slice_dst){0});
    co_dataset_close(d);
}

TEST(mnist_is_the_same_set_plain_packed_and_where_torchvision_puts_it)
{
    co_dataset *a, *b, *c;

    CHECK(mkdir("a", 0777) == 0 && mkdir("b", 0777) == 0 && mkdir("b/MNIST", 0777) == 0 &&
              mkdir("b/MNIST/raw", 0777) == 0,
          "%m");
    put_set("a", "");
    put_set("b/MNIST/raw", ".gz");
    CHECK_OK(set_try(&a, "mnist", "dir", "a", (char *)NULL));
    CHECK_OK(set_try(&b, "mnist", "dir", "b", (char *)NULL));
    CHECK_OK(set_try(&c, "mnist", "dir", "b", "val_fraction", "0.2", (char *)NULL));
    CHECK(strcmp(a->fingerprint, b->fingerprint) == 0, "%s and %s", a->fingerprint, b->fingerprint);
    CHECK(strcmp(a->fingerprint, c->fingerprint) != 0, "another split, the same fingerprint");
    co_dataset_close(a);
    co_dataset_close(b);
    co_dataset_close(c);
}

/* Writes `n` bytes at `at` of a good file, tries, and puts the file right again. */
static void refused(const char *name, long at, const char *bytes, size_t n, const char *words)
{
    FILE *f = fopen(name, "r+e");
    CHECK(f && fseek(f, at, SEEK_SET) == 0 && fwrite(bytes, 1, n, f) == n && fclose(f) == 0, "%m");
    CHECK_FAILS(try_dir("."), CO_EINPUT, words);
    put_set(".", "");
}

TEST(an_idx_file_with_a_wrong_head_is_refused_by_name)
{
    static const char pictures[] = "train-images-idx3-ubyte", labels[] = "t10k-labels-idx1-ubyte";

    put_set(".", "");
    CHECK_OK(try_dir("."));
    refused(pictures, 0, "\1", 1, "train-images-idx3-ubyte begins with 01000803");
    refused(pictures, 1, "\1", 1, "begins with 00010803");
    refused(pictures, 2, "\x0d", 1, "begins with 00000d03, an idx file of pictures with 00000803");
    refused(pictures, 3, "\1", 1, "begins with 00000801");
    refused(labels, 3, "\3", 1,
            "t10k-labels-idx1-ubyte begins with 00000803, an idx file of labels with 00000801");
    refused(pictures, 8, "\0\0\0\x1d", 4, "pictures of 29x28, not 28x28");
    refused(pictures, 12, "\1\0\0\x1c", 4, "pictures of 28x16777244");
    refused(pictures, 4, "\0\0\0\0", 4, "claims 0 pictures");
    refused(pictures, 4, "\xff\xff\xff\xff", 4, "claims 4294967295 pictures; 1 to 250000 are taken");
    refused(pictures, 4, "\0\0\0\x15", 4, "15,696 bytes, not 16,480: is the download complete?");
    refused(pictures, 4, "\0\0\0\x13", 4, "15,696 bytes, not 14,912: is it the right file?");
    refused(pictures, 4, "\0\0\0\1", 4, "has 1 picture; one to train on");
    refused(labels, 4, "\0\0\0\7", 4, "has 7 labels for 6 pictures: the files do not belong together");
    refused(labels, 8 + 5, "\x0a", 1, "t10k-labels-idx1-ubyte: label 5 is 10; 0 to 9 are right");
    CHECK_OK(try_dir("."));
}

TEST(an_idx_file_cut_anywhere_is_refused_by_name)
{
    put_set(".", "");
    for (long cut = 0; cut < 16; cut++) {
        CHECK(truncate("t10k-images-idx3-ubyte", cut) == 0, "%m");
        CHECK_FAILS(try_dir("."), CO_EINPUT, "shorter than its head of 16");
    }
    put_set(".", "");
    CHECK(truncate("train-labels-idx1-ubyte", 8 + TRAIN - 1) == 0, "%m");
    CHECK_FAILS(try_dir("."), CO_EINPUT,
                "train-labels-idx1-ubyte: 27 bytes, not 28: is the download complete?");
    put_set(".", "");
    CHECK(unlink("t10k-labels-idx1-ubyte") == 0, "%m");
    CHECK_FAILS(try_dir("."), CO_EINPUT, "data.dir: . has no t10k-labels-idx1-ubyte, plain or .gz");
    CHECK_FAILS(try_dir("no/folder"), CO_EINPUT, "data.dir: no/folder: No such file or directory");
    CHECK_FAILS(try_dir("no/folder"), CO_EINPUT,
                "(train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and "
                "t10k-labels-idx1-ubyte, each plain or .gz)");
    CHECK_FAILS(try_dir("train-images-idx3-ubyte"), CO_EINPUT, "not a folder");
    co_dataset *d = NULL;
    CHECK_FAILS(set_try(&d, "mnist", (char *)NULL), CO_EINPUT, "data=mnist needs data.dir=FOLDER");
}

TEST(mnist_says_so_when_memory_is_out)
{
    put_set(".", ".gz");
    test_each_alloc_fails(try_dir, ".");
}
