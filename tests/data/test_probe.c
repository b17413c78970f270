/* What hosts compare of decoding and augmenting: hashes of built-in pictures. */
#include "base/alloc.h"
#include "base/clock.h"
#include "data/pictures.h"

enum { FACTS_MOST = 8 };

typedef struct facts {
    int n;
    char what[FACTS_MOST][64], hash[FACTS_MOST][65];
} facts;

static void take(void *ctx, const char *what, const char *hash)
{
    facts *f = ctx;

    CHECK(f->n < FACTS_MOST, "too many");
    snprintf(f->what[f->n], sizeof f->what[0], "%s", what);
    snprintf(f->hash[f->n++], sizeof f->hash[0], "%s", hash);
}

static facts probe(const co_dataset *d)
{
    facts f = {0};

    CHECK_OK(co_dataset_probe(d, take, &f));
    return f;
}

/* Of a folder of pictures, with one key more than the crop. */
static facts probe_folder(const char *key, const char *value)
{
    co_dataset *d;

    if (key)
        CHECK_OK(set_try(&d, "imagefolder", "dir", "d", "crop", "6", key, value, (char *)NULL));
    else
        CHECK_OK(set_try(&d, "imagefolder", "dir", "d", "crop", "6", (char *)NULL));
    facts f = probe(d);
    co_dataset_close(d);
    return f;
}

static void put_folder(void)
{
    static const char *const pets[] = {"cat", "dog", NULL};

    put_classes("d/train", pets, 2);
    put_classes("d/val", pets, 1);
}

/* Pillow's pixels of the same files are the oracle; four bytes with the size stand before them. */
TEST(the_probe_of_decoding_is_a_hash_of_pillows_pixels)
{
    static const struct {
        const char *library, *pixels;
    } rows[] = {{"libjpeg", "jpeg-420.rgb"}, {"libpng", "png-rgb.rgb"}, {"libwebp", "webp-lossy.rgb"}};

    put_folder();
    facts f = probe_folder(NULL, NULL);
    CHECK(f.n == CO_COUNT(rows) + 1, "%d facts", f.n);
    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        test_run r = test_sh("tail -c +5 %s/%s | sha256sum", test_repo("tests/data/pictures"), rows[i].pixels);
        CHECK(strncmp(f.what[i], rows[i].library, strlen(rows[i].library)) == 0, "%s", f.what[i]);
        CHECK(strlen(f.hash[i]) == 16 && strncmp(r.out, f.hash[i], 16) == 0, "%s: %s, Pillow %s", f.what[i],
              f.hash[i], r.out);
        free(r.out);
    }
    CHECK(strstr(f.what[f.n - 1], "augmenting"), "%s", f.what[f.n - 1]);
}

TEST(the_probe_is_the_same_every_time_and_depends_on_every_transform)
{
    static const char *const keys[][2] = {
        {"augment", "imagenet"},
        {"resize", "7"},
        {"pad", "2"},
        {"random_resized_crop", "true"},
        {"flip", "0.01"},
        {"erase", "0.001"},
        {"brightness", "1"},
        {"contrast", "1"},
        {"saturation", "1"},
        {"hue", "0.1"},
        {"mixup", "0.2"},
        {"cutmix", "1"},
        {"normalize", "none"},
        {"scale", "0.5:0.6"},
        {"trivial_augment", "true"},
    };

    put_folder();
    facts plain = probe_folder(NULL, NULL);
    for (size_t i = 0; i < CO_COUNT(keys); i++) {
        const char *key = keys[i][0];
        facts one = probe_folder(key, keys[i][1]), again = probe_folder(key, keys[i][1]);
        CHECK(memcmp(&one, &again, sizeof one) == 0, "data.%s: another hash the second time", key);
        bool same = strcmp(one.hash[3], plain.hash[3]) == 0;
        bool idle = strcmp(key, "scale") == 0; /* without random_resized_crop */
        CHECK(same == idle, "data.%s: %s", key, same ? "the probe does not use it" : "it has an effect");
        for (int k = 0; k < 3; k++)
            CHECK(strcmp(one.hash[k], plain.hash[k]) == 0, "data.%s changes the decoding", key);
    }
}

TEST(the_probe_of_reduced_pictures_has_a_hash_of_their_decoding_more)
{
    put_folder();
    facts full = probe_folder("decode", "full"), reduced = probe_folder("decode", "reduced");
    CHECK(full.n == 4 && reduced.n == 5 && test_contains(reduced.what[3], "at reduced size"), "%d, %d facts",
          full.n, reduced.n);
    for (int i = 0; i < 5; i++)
        if (i != 3)
            CHECK(strcmp(full.hash[i - (i > 3)], reduced.hash[i]) == 0, "%s differs", reduced.what[i]);
}

TEST(sets_that_neither_decode_nor_augment_have_no_probe)
{
    static const char *const names[] = {"digits", "fake", "fake_images", "fake_ratings", "text"};

    for (size_t i = 0; i < CO_COUNT(names); i++) {
        co_dataset *d = set_open(names[i]);
        CHECK(probe(d).n == 0, "%s", names[i]);
        co_dataset_close(d);
    }
}

/* Samples of 1024 x 1024 cost no more than small ones. */
TEST(a_probe_takes_a_few_milliseconds)
{
    co_dataset *d;
    uint64_t best = UINT64_MAX;

    put_folder();
    CHECK_OK(set_try(&d, "imagefolder", "dir", "d", "crop", "1024", "augment", "imagenet", "trivial_augment",
                     "true", "hue", "0.1", "mixup", "1", "cutmix", "1", (char *)NULL));
    for (int i = 0; i < 5; i++) {
        uint64_t began = co_now_ns();
        probe(d);
        uint64_t took = co_now_ns() - began;
        best = took < best ? took : best;
    }
    co_dataset_close(d);
    test_note("%.2f ms", (double)best * 1e-6);
#ifndef __SANITIZE_ADDRESS__
    CHECK(best < UINT64_C(50000000), "%.1f ms", (double)best * 1e-6);
#endif
}

TEST(a_probe_says_so_when_memory_is_out)
{
    co_dataset *d;
    facts f = {0};

    put_folder();
    CHECK_OK(set_try(&d, "imagefolder", "dir", "d", (char *)NULL));
    probe(d); /* scratch memory is there */
    co_alloc_fail_at(1);
    co_err err = co_dataset_probe(d, take, &f);
    co_alloc_fail_at(0);
    CHECK(err == CO_ENOMEM, "%d", (int)err);
    co_dataset_close(d);
}
