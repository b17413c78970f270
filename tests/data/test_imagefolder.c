/* Layouts of image folders: what each means, and what is refused. Pictures are greys, so a sample tells which
 * it is. */
#include "data/folder_int.h"
#include "data/greys.h"

static const char *const pets[] = {"cat", "dog", "eel", NULL};

static co_err try_folder(const char *dir)
{
    return try_as("imagefolder", dir);
}

static co_dataset *open_folder(const char *dir)
{
    return open_as("imagefolder", dir);
}

TEST(folders_train_val_and_test_are_the_splits_and_labels_are_sorted_folder_names)
{
    put_classes("d/train", pets, 4);
    put_classes("d/val", pets, 2);
    put_classes("d/test", pets, 3);
    co_dataset *d = open_folder("d");
    check_counts(d, 12, 6, 9);
    CHECK(d->io.classes == 3 && strcmp(d->class_name(d, 1), "dog") == 0, "classes");
    CHECK(check_split(d, CO_SPLIT_TRAIN) == 0xf000f000full, "train");
    CHECK(check_split(d, CO_SPLIT_VAL) == 0x300030003ull, "val");
    CHECK(check_split(d, CO_SPLIT_TEST) == 0x700070007ull, "test");
    for (uint32_t i = 0, grey; i < 12; i++) /* by class, then by name */
        CHECK(fill_one(d, CO_SPLIT_TRAIN, i, (int *)&grey) == (int)i / 4 && grey == 10 + 20 * (i / 4) + i % 4,
              "%u", i);
    CHECK(d->stop_on_bad && d->check(d, CO_SPLIT_TRAIN, 0) == CO_OK, "check");
    co_dataset_close(d);
}

TEST(without_a_folder_val_it_is_taken_out_of_train)
{
    put_classes("d/train", pets, 10);
    co_dataset *d = open_folder("d");
    check_counts(d, 27, 3, 0);
    uint64_t train = check_split(d, CO_SPLIT_TRAIN), val = check_split(d, CO_SPLIT_VAL);
    CHECK((train & val) == 0 && (train | val) == 0x3ff03ff03ffull, "%llx %llx", (long long)train,
          (long long)val);
    co_dataset_close(d);
}

TEST(class_folders_alone_are_split_three_ways_by_one_permutation)
{
    co_dataset *d, *again;

    put_classes("d", pets, 10);
    d = open_folder("d");
    check_counts(d, 24, 3, 3);
    uint64_t train = check_split(d, CO_SPLIT_TRAIN), val = check_split(d, CO_SPLIT_VAL);
    uint64_t tested = check_split(d, CO_SPLIT_TEST);
    CHECK(!(train & val) && !(train & tested) && !(val & tested) && (train | val | tested) == 0x3ff03ff03ffull,
          "overlap");
    again = open_folder("d");
    CHECK(check_split(again, CO_SPLIT_VAL) == val && strcmp(d->fingerprint, again->fingerprint) == 0,
          "not the same");
    co_dataset_close(again);
    CHECK_OK(set_try(&again, "imagefolder", "dir", "d", "val_fraction", "0.5", "test_fraction", "0",
                     (char *)NULL));
    check_counts(again, 15, 15, 0);
    co_dataset_close(again);
    co_dataset_close(d);
}

/* torchvision: for each class its folders sorted, then in each its files sorted. */
TEST(samples_have_the_order_of_torchvisions_imagefolder)
{
    static const char *const order[] = {"d/train/a/y.jpg",     "d/train/a/x/c.jpg", "d/train/a/x-b/3.jpg",
                                        "d/train/a/x/b/9.jpg", "d/train/a-b/1.jpg", "d/train/b/0.jpg"};
    int grey, n = CO_COUNT(order);

    for (int i = n; i-- > 0;)
        put_jpeg(order[i], 8, 8, 10 + i);
    put_classes("d/val", (const char *const[]){"a", "a-b", "b", NULL}, 1);
    co_dataset *d = open_folder("d");
    check_counts(d, (uint32_t)n, 3, 0);
    for (int i = 0; i < n; i++) {
        int label = fill_one(d, CO_SPLIT_TRAIN, (uint32_t)i, &grey);
        CHECK(grey == 10 + i && label == (i < 4 ? 0 : i - 3), "%d is grey %d of class %d", i, grey, label);
    }
    co_dataset_close(d);
}

TEST(folders_that_could_mean_two_things_are_refused_with_what_was_found)
{
    CHECK_FAILS(try_folder("nowhere"), CO_EINPUT, "data.dir: nowhere: No such file");
    CHECK_FAILS(set_try(&(co_dataset *){NULL}, "imagefolder", (char *)NULL), CO_EINPUT,
                "needs data.dir=FOLDER");
    sh("mkdir e && mkdir -p w/a && : >w/a/1.webp && : >z.zip");
    CHECK_FAILS(try_folder("e"), CO_EINPUT,
                "e has no pictures (.jpg .jpeg .png .webp .bmp .gif): e/train/CLASS/*.jpg or");
    CHECK_FAILS(try_folder("w"), CO_EINPUT, "w has one class, the folder a");
    CHECK_FAILS(try_folder("z.zip"), CO_EINPUT,
                "neither a folder nor a .tar, .tar.xz or .tar.gz archive, nor a .pack: unzip it");
    put_classes("one", (const char *const[]){"cat", NULL}, 3);
    CHECK_FAILS(try_folder("one"), CO_EINPUT, "one has one class, the folder cat: two are the least");
    put_jpeg("flat/a.jpg", 8, 8, 1);
    CHECK_FAILS(try_folder("flat"), CO_EINPUT, "flat has 1 pictures that are in no class folder");
    put_classes("d/train", pets, 2);
    put_jpeg("d/train/stray.jpg", 8, 8, 1);
    CHECK_FAILS(try_folder("d"), CO_EINPUT, "d/train has 1 pictures that are in no class folder: put those");
    CHECK(unlink("d/train/stray.jpg") == 0, "%m");
    put_classes("d/val", (const char *const[]){"cat", "dog", "emu", NULL}, 1);
    CHECK_FAILS(try_folder("d"), CO_EINPUT, "d/val has a class folder emu, d/train has none");
    sh("rm -r d/val/emu");
    CHECK_FAILS(try_folder("d"), CO_EINPUT, "d/train has a class folder eel, d/val has none");
    sh("mkdir d/val/eel");
    CHECK_FAILS(try_folder("d"), CO_EINPUT,
                "d/val/eel has no pictures (.jpg .jpeg .png .webp .bmp .gif): fill it or remove it");
    sh("rm -r d/val && mkdir d/val");
    CHECK_FAILS(try_folder("d"), CO_EINPUT, "d/val has no pictures");
    put_jpeg("d/val/a.jpg", 8, 8, 1);
    CHECK_FAILS(try_folder("d"), CO_EINPUT,
                "d/val has pictures that are in no class folder (1), and no val_anno");
    sh("mv d/train d/training");
    CHECK_FAILS(try_folder("d"), CO_EINPUT, "d has a folder val but no folder train");
    put_classes("few", pets, 1);
    CHECK_FAILS(
        set_try(&(co_dataset *){NULL}, "imagefolder", "dir", "few", "test_fraction", "0.9", (char *)NULL),
        CO_EINPUT, "few has 3 pictures to train on, too few to take 3 out");
}

TEST(hidden_files_and_other_files_are_passed_over_and_links_followed_once)
{
    put_classes("real", pets, 3);
    sh("mkdir -p d/train && for c in cat dog eel; do ln -s ../../real/$c d/train/$c; done && ln -s .. "
       "d/train/cat/loop &&"
       " : >d/train/cat/.hidden.jpg && : >d/train/dog/notes.txt && mkdir d/.git d/train/__MACOSX && cp -r "
       "real d/.git/");
    put_classes("d/val", pets, 1);
    /* real/cat/loop leads to real: dog and eel in there are more pictures of cat, but cat is not entered
     * again */
    co_dataset *d = open_folder("d");
    check_counts(d, 15, 3, 0);
    co_dataset_close(d);
    CHECK(unlink("real/cat/loop") == 0, "%m");
    d = open_folder("d");
    check_counts(d, 9, 3, 0);
    CHECK(check_split(d, CO_SPLIT_TRAIN) == 0x700070007ull, "labels");
    co_dataset_close(d);
}

TEST(an_archive_is_the_same_set_as_its_folder_packed_or_not_in_memory_or_not)
{
    static const char *const where[] = {"t.tar",    "t.tar.gz", "t.tar.xz", "within",
                                        "long.tar", "gnu.tar",  NULL};
    char plain[65];
    co_dataset *d;

    put_tiny();
    d = open_as("tinyimagenet", "t");
    memcpy(plain, d->fingerprint, sizeof plain);
    co_dataset_close(d);
    sh("tar -cf t.tar t && tar -czf t.tar.gz ./t && tar -cJf t.tar.xz t && mkdir within && cp t.tar.xz "
       "within &&"
       " n=$(printf %0120d 0) && mkdir -p l/$n/$n && cp -r t l/$n/$n/ && tar --format=pax -cf long.tar -C l "
       ". &&"
       " tar --format=gnu -cf gnu.tar -C l .");
    for (int i = 0; where[i]; i++)
        for (int memory = 0; memory < 2; memory++) {
            CHECK_OK(set_try(&d, "tinyimagenet", "dir", where[i], "normalize", "none", "cache_mb",
                             memory ? "64" : "0", (char *)NULL));
            CHECK(strcmp(d->fingerprint, plain) == 0, "%s differs", where[i]);
            CHECK(check_split(d, CO_SPLIT_TRAIN) == 0x700070007ull, "%s", where[i]);
            CHECK(check_split(d, CO_SPLIT_VAL) == 0x100010001ull, "%s", where[i]);
            co_dataset_close(d);
        }
    CHECK_OK(set_try(&d, "tinyimagenet", "dir", "t", "normalize", "none", "cache_mb", "0", (char *)NULL));
    CHECK(strcmp(d->fingerprint, plain) == 0 && check_split(d, CO_SPLIT_VAL) == 0x100010001ull, "on disk");
    co_dataset_close(d);
    CHECK(truncate("t.tar", 5000) == 0 && truncate("t.tar.xz", 500) == 0, "%m");
    CHECK_FAILS(try_as("tinyimagenet", "t.tar"), CO_EINPUT, "t.tar: the archive: it ends in the middle");
    CHECK_FAILS(try_as("tinyimagenet", "t.tar.xz"), CO_EINPUT, "t.tar.xz is cut short");
}

TEST(the_fingerprint_follows_bytes_names_and_labels_but_not_dates)
{
    char was[65], moved[65];
    co_dataset *d;

    put_classes("d/train", pets, 2);
    put_classes("d/val", pets, 1);
    d = open_folder("d");
    memcpy(was, d->fingerprint, sizeof was);
    co_dataset_close(d);
    sh("touch -d 2001-01-01 d/train/cat/0.jpg");
    d = open_folder("d");
    CHECK(strcmp(d->fingerprint, was) == 0, "a date");
    co_dataset_close(d);
    sh("mv d/train/cat/0.jpg d/train/dog/7.jpg");
    d = open_folder("d");
    memcpy(moved, d->fingerprint, sizeof moved);
    CHECK(strcmp(moved, was) != 0, "a label");
    co_dataset_close(d);
    put_jpeg("d/val/eel/0.jpg", 8, 8, 51);
    d = open_folder("d");
    CHECK(strcmp(d->fingerprint, moved) != 0 && strcmp(d->fingerprint, was) != 0, "a picture");
    co_dataset_close(d);
}

/* Five sparse files of 250 MiB: more than what is hashed whole.
 * The places that are read are less than 5 MiB apart. */
TEST(the_fingerprint_of_a_set_too_large_to_be_hashed_follows_a_sample_of_its_bytes)
{
    co_dataset *d;
    char before[65];

    put_classes("d/train", pets, 1);
    put_classes("d/val", pets, 1);
    sh("for i in 1 2 3 4 5; do truncate -s 250M d/train/cat/big$i.jpg; done");
    for (int i = 0; i < 3; i++) {
        CHECK_OK(set_try(&d, "imagefolder", "dir", "d", "crop", "8", (char *)NULL));
        bool same = strcmp(before, d->fingerprint) == 0;
        CHECK(i != 1 || same, "another fingerprint of the same bytes");
        CHECK(i != 2 || !same, "5 MiB of other bytes were not noticed");
        snprintf(before, sizeof before, "%s", d->fingerprint);
        co_dataset_close(d);
        if (i == 1)
            sh("head -c 5M /dev/urandom | dd of=d/train/cat/big3.jpg bs=1M seek=100 conv=notrunc "
               "status=none");
    }
}

static void sample_of(char out[65], const char *dir, uint64_t in_memory)
{
    listing l = {.fd = -1};
    folder_index x = {0};
    co_sha256 h;

    CHECK_OK(listing_open(&l, dir, in_memory));
    CHECK_OK(folder_index_make(&x, &l, &(folder_rules){0}, 0.1, 0.1));
    co_sha256_init(&h);
    folder_sample_bytes(&h, &l, x.samples, x.count[0] + x.count[1] + x.count[2]);
    co_sha256_hex(&h, out);
    folder_index_fini(&x);
    listing_close(&l);
}

TEST(a_sample_of_the_bytes_is_the_same_in_memory_on_disk_and_in_an_archive)
{
    char here[4][65];

    put_classes("d/train", pets, 30);
    put_classes("d/val", pets, 2);
    sh("yes | head -c 300000 >> d/train/cat/3.jpg; tar -cf t.tar d");
    sample_of(here[0], "d", 0);
    sample_of(here[1], "d", 64 << 20);
    sample_of(here[2], "t.tar", 0);
    sample_of(here[3], "t.tar", 64 << 20);
    for (int i = 1; i < 4; i++)
        CHECK(strcmp(here[0], here[i]) == 0, "%d: %s %s", i, here[0], here[i]);
    sh("printf x | dd of=d/train/cat/3.jpg bs=1 seek=100000 conv=notrunc status=none");
    sample_of(here[1], "d", 0);
    CHECK(strcmp(here[0], here[1]) != 0, "a byte of a file that is in the sample");
}

TEST(pictures_of_one_size_keep_it_others_become_imagenets)
{
    co_dataset *d;

    put_classes("d", pets, 4);
    put_jpeg("d/cat/9.jpg", 20, 10, 100);
    CHECK_OK(set_try(&d, "imagefolder", "dir", "d", (char *)NULL));
    CHECK(co_shape_eq(&d->io.x, &CO_SHAPE(3, 224, 224)), "not ImageNet's size");
    co_dataset_close(d);
    CHECK_OK(set_try(&d, "imagefolder", "dir", "d", "resize", "12x16", (char *)NULL));
    CHECK(co_shape_eq(&d->io.x, &CO_SHAPE(3, 12, 16)), "not that of data.resize");
    co_dataset_close(d);
    CHECK_OK(set_try(&d, "imagefolder", "dir", "d", "crop", "6", (char *)NULL));
    CHECK(co_shape_eq(&d->io.x, &CO_SHAPE(3, 6, 6)), "not that of data.crop");
    co_dataset_close(d);
    CHECK_FAILS(set_try(&d, "imagefolder", "dir", "d", "resize", "12", (char *)NULL), CO_EINPUT,
                "data.crop=SIZE");
}

/* More pictures than are looked at, one of another size, seen or not: the same set in memory and on disk. */
TEST(whether_pictures_are_in_memory_does_not_decide_their_size)
{
    put_classes("d", pets, 140);
    for (int odd = 0; odd < 8; odd++) {
        co_dataset *in_memory, *on_disk;
        char path[32];
        snprintf(path, sizeof path, "d/dog/%d.jpg", odd);
        put_jpeg(path, 20, 10, 100);
        CHECK_OK(set_try(&in_memory, "imagefolder", "dir", "d", (char *)NULL));
        CHECK_OK(set_try(&on_disk, "imagefolder", "dir", "d", "cache_mb", "0", (char *)NULL));
        CHECK(co_shape_eq(&in_memory->io.x, &on_disk->io.x) &&
                  strcmp(in_memory->fingerprint, on_disk->fingerprint) == 0,
              "%s: another size, another set", path);
        co_dataset_close(in_memory);
        co_dataset_close(on_disk);
        put_jpeg(path, 8, 8, 100);
    }
}

static co_err open_small(void *ctx)
{
    return try_as("tinyimagenet", ctx);
}

/* Files with holes may claim any size: a sum that wraps round would seem to fit into memory. */
TEST(sizes_that_add_up_to_too_much_do_not_wrap_round)
{
    listing l = {.fd = -1};

    CHECK_OK(listing_take(&l, "a/1.png", ENTRY_UNREAD, INT64_MAX));
    CHECK_OK(listing_take(&l, "a/2.png", ENTRY_UNREAD, INT64_MAX));
    CHECK_OK(listing_take(&l, "a/3.png", ENTRY_UNREAD, 100));
    CHECK(l.n == 3 && l.bytes == UINT64_MAX, "%llu bytes", (unsigned long long)l.bytes);
    listing_close(&l);
}

TEST(imagefolder_says_so_when_memory_is_out)
{
    put_tiny();
    sh("tar -czf t.tar.gz t");
    test_each_alloc_fails(open_small, "t");
    setenv("COHORT_CACHE", "cache", 1);
    test_each_alloc_fails(open_small, "t.tar.gz");
    setenv("COHORT_CACHE", "/dev/null/none", 1);
    test_each_alloc_fails(open_small, "t.tar.gz");
}

static void copy_golden(const char *name, const char *to)
{
    make_way(to);
    test_run r = test_sh("cp %s '%s'", test_repo(name), to);
    CHECK(r.status == 0, "%s", r.out);
    free(r.out);
}

TEST(webp_bmp_and_gif_files_are_pictures_and_other_formats_are_counted_by_kind)
{
    co_dataset *d;
    float x[3 * 16 * 16];
    int32_t y;

    copy_golden("tests/data/pictures/webp-lossy.webp", "f/train/cat/a.webp");
    copy_golden("tests/data/pictures/bmp-palette.bmp", "f/train/cat/b.BMP");
    copy_golden("tests/data/pictures/gif-frames.gif", "f/train/dog/c.gif");
    copy_golden("tests/data/pictures/png-rgb.png", "f/train/dog/d.png");
    put_text("f/train/dog/e.tiff", "II*");
    put_text("f/train/dog/f.tiff", "II*");
    put_text("f/train/dog/g.heic", "....");
    CHECK_OK(set_try(&d, "imagefolder", "dir", "f", "resize", "16x16", (char *)NULL));
    CHECK(d->count[0] + d->count[1] == 4, "%u + %u", d->count[0], d->count[1]);
    for (uint32_t i = 0; i < d->count[0]; i++)
        CHECK(d->fill(d, CO_SPLIT_TRAIN, &i, (co_slice_shape){1, 0}, &(co_draw){0},
                      &(co_slice_dst){.x = x, .y = &y}) == 0,
              "%s", d->file(d, CO_SPLIT_TRAIN, i));
    co_dataset_close(d);
    test_run r = test_sh("$COHORT train data=imagefolder data.dir=f data.resize=8x8 model=mlp run.dir=r "
                         "trainer.max_steps=1 trainer.devices=1");
    CHECK(r.status == 0 && test_contains(r.out, "unsupported format: 2 .tiff files, 1 .heic file"), "%s",
          r.out);
    free(r.out);
    sh("rm f/train/*/*.webp f/train/*/*.BMP f/train/*/*.gif f/train/*/*.png");
    CHECK(set_try(&d, "imagefolder", "dir", "f", (char *)NULL) == CO_EINPUT &&
              test_contains(co_errmsg(), "unsupported format: 2 .tiff files"),
          "%s", co_errmsg());
}
