/* The known sets of pictures in folders: what each takes, and a row for each way in which its files can be
 * wrong. */
#include "data/greys.h"

static const char *const cinic[] = {"airplane", "automobile", "bird", "cat",   "deer", "dog",
                                    "frog",     "horse",      "ship", "truck", NULL};
static const char *const wnids[] = {"n01440764", "n01443537", NULL};

static void put_cinic(void)
{
    put_classes("c/train", cinic, 2);
    put_classes("c/valid", cinic, 1);
    put_classes("c/test", cinic, 1);
}

static void put_imagenet(void)
{
    put_classes("i/train", wnids, 3);
    put_classes("i/val", wnids, 1);
    put_text("i/LOC_synset_mapping.txt",
             "n01440764 tench, Tinca tinca\nn01443537 goldfish, Carassius auratus\n");
}

TEST(tiny_imagenets_flat_val_is_labelled_by_its_annotations)
{
    put_tiny();
    co_dataset *d = open_as("tinyimagenet", "t");
    check_counts(d, 9, 3, 0);
    CHECK(d->io.classes == 3, "%d classes", (int)d->io.classes);
    CHECK(check_split(d, CO_SPLIT_TRAIN) == 0x700070007ull && check_split(d, CO_SPLIT_VAL) == 0x100010001ull,
          "labels");
    CHECK(strcmp(d->class_name(d, 0), "goldfish") == 0 && strcmp(d->class_name(d, 1), "n02") == 0, "names");
    CHECK(!d->class_name(d, 3) && !d->class_name(d, -1), "a class that is not");
    co_dataset_close(d);
}

/* What the usual scripts make of val/: class folders, the text left where it was, or not. */
TEST(a_tiny_imagenet_whose_val_was_put_into_class_folders_is_the_same_set)
{
    put_tiny();
    sh("cd t/val && for p in 0:n03 1:n01 2:n02; do mkdir -p ${p#*:}/images && mv images/val_${p%:*}.JPEG "
       "${p#*:}/images/;"
       " done && rmdir images");
    for (int without = 0; without < 2; without++) {
        if (without)
            sh("rm t/val/val_annotations.txt");
        for (int plain = 0; plain < 2; plain++) {
            co_dataset *d = open_as(plain ? "imagefolder" : "tinyimagenet", "t");
            check_counts(d, 9, 3, 0);
            CHECK(check_split(d, CO_SPLIT_VAL) == 0x100010001ull, "labels");
            co_dataset_close(d);
        }
    }
}

TEST(cinic10_has_its_ten_classes_and_its_own_normalisation)
{
    co_dataset *d, *same;

    put_cinic();
    CHECK_OK(set_try(&d, "cinic10", "dir", "c", (char *)NULL));
    check_counts(d, 20, 10, 10);
    CHECK(d->io.classes == 10 && strcmp(d->class_name(d, 9), "truck") == 0, "classes");
    CHECK_OK(set_try(&same, "imagefolder", "dir", "c", "normalize", "cinic10", (char *)NULL));
    CHECK(strcmp(d->fingerprint, same->fingerprint) == 0,
          "another normalisation than data.normalize=cinic10");
    co_dataset_close(same);
    co_dataset_close(d);
}

TEST(imagenet_is_224_by_its_recipe_and_takes_class_names_from_kaggles_file)
{
    co_dataset *d;

    put_imagenet();
    CHECK_OK(set_try(&d, "imagenet", "dir", "i", (char *)NULL));
    check_counts(d, 6, 2, 0);
    CHECK(co_shape_eq(&d->io.x, &CO_SHAPE(3, 224, 224)), "not [3,224,224]");
    CHECK(strcmp(d->class_name(d, 0), "tench") == 0 && strcmp(d->class_name(d, 1), "goldfish") == 0, "%s",
          d->class_name(d, 0));
    co_dataset_close(d);
    CHECK_OK(set_try(&d, "imagenet", "dir", "i", "crop", "8", (char *)NULL));
    CHECK(co_shape_eq(&d->io.x, &CO_SHAPE(3, 8, 8)), "not [3,8,8]");
    co_dataset_close(d);
}

/* Each row starts from a good set, breaks it by a line of shell, and says what the message must have. */
static const struct bad {
    const char *set, *dir, *line, *says;
} bads[] = {
    {"tinyimagenet", "e", "mkdir e", "e has no pictures"},
    {"tinyimagenet", "t", "rm -r t/val", "t has no folder val: is the download complete?"},
    {"tinyimagenet", "t", "rm t/val/val_annotations.txt",
     "no val_annotations.txt that says their classes: it is part of"},
    {"tinyimagenet", "t", "rm -r t/train", "t has a folder val but no folder train"},
    {"tinyimagenet", "t", "mv t/train t/n0 && rm -r t/val t/test",
     "t has no folder train: train/ and val/ are expected"},
    {"tinyimagenet", "t", "rm -r t/train/n02", "val_2.JPEG is of class n02, which has no folder to train on"},
    {"tinyimagenet", "t", "rm t/train/n02/images/*", "t/train/n02 has no pictures"},
    {"tinyimagenet", "t", "echo n07 >>t/wnids.txt",
     "t/wnids.txt lists the class n07, which has no folder to train on"},
    {"tinyimagenet", "t", "echo n01 >t/wnids.txt",
     "t/wnids.txt does not list the class n02, which has a folder"},
    {"tinyimagenet", "t", "printf 'val_0.JPEG\\tn03\\nval_1.JPEG\\tn07\\n' >t/val/val_annotations.txt",
     "val_1.JPEG is of class n07, which has no folder to train on"},
    {"tinyimagenet", "t", "printf 'val_0.JPEG\\tn03\\nval_1.JPEG\\tn01\\n' >t/val/val_annotations.txt",
     "t/val: val_annotations.txt does not say the class of images/val_2.JPEG"},
    {"tinyimagenet", "t", "printf 'val_0.JPEG\\tn03\\nval_0.JPEG\\tn01\\n' >t/val/val_annotations.txt",
     "val_annotations.txt has val_0.JPEG twice"},
    {"tinyimagenet", "t", "printf 'val_3.JPEG\\tn03\\n' >>t/val/val_annotations.txt",
     "t/val has 3 pictures, and its val_annotations.txt 4: is it complete?"},
    {"tinyimagenet", "t", ": >t/val/val_annotations.txt",
     "val_annotations.txt does not say the class of images/val_0.JPEG"},
    {"tinyimagenet", "t", "sed -i 's/n0[0-9]/n01/' t/val/val_annotations.txt",
     "all 3 pictures of t/val are of class n01 by its val_annotations.txt: accuracy would mean nothing"},
    {"imagefolder", "t", ":",
     "As an image folder it would be one class, and val accuracy noise: use data=tinyimagenet"},
    {"imagenet", "t", ":", "use data=tinyimagenet"},
    {"cinic10", "e", "mkdir e", "e has no pictures"},
    {"cinic10", "c", "rm -r c/train/ship", "c/train has no class folder ship: is the download complete?"},
    {"cinic10", "c", "cp -r c/train/ship c/train/boat",
     "c/train has a class folder boat, which is no class of this set"},
    {"cinic10", "c", "rm -r c/valid", "c has no folder val: is the download complete?"},
    {"cinic10", "c", "rm -r c/valid/ship", "c/train has a class folder ship, c/valid has none"},
    {"cinic10", "c", "rm c/valid/ship/*", "c/valid/ship has no pictures"},
    {"cinic10", "t", ":", "t/train has no class folder airplane"},
    {"imagenet", "e", "mkdir e", "e has no pictures"},
    {"imagenet", "i", "rm -r i/val", "i has no folder val: is the download complete?"},
    {"imagenet", "i",
     "mv i/val/n01440764/0.jpg i/val/a.jpg && mv i/val/n01443537/0.jpg i/val/b.jpg && rmdir i/val/n*",
     "valprep.sh"},
    {"imagenet", "i", "rm -r i/val/n01440764", "i/train has a class folder n01440764, i/val has none"},
    {"imagenet", "i/train", ":", "i/train has no folder train: train/ and val/ are expected"},
    {"imagenet", "nowhere", ":", "nowhere: No such file"},
};

TEST(each_set_of_folders_refuses_each_bad_input_with_a_sentence)
{
    for (size_t i = 0; i < CO_COUNT(bads); i++) {
        const struct bad *b = &bads[i];
        sh("rm -rf t c i e");
        put_tiny();
        put_cinic();
        put_imagenet();
        sh(b->line);
        co_err err = try_as(b->set, b->dir);
        CHECK(err == CO_EINPUT && test_contains(co_errmsg(), b->says), "%s after %s: \"%s\", wanted \"%s\"",
              b->set, b->line, err ? co_errmsg() : "opened", b->says);
        char begin[64];
        snprintf(begin, sizeof begin, "data=%s: ", b->set);
        CHECK(strncmp(co_errmsg(), begin, strlen(begin)) == 0, "%s", co_errmsg());
    }
}

TEST(a_corrupt_picture_of_any_set_of_folders_is_a_bad_sample_that_is_named)
{
    static const char *const sets[][3] = {{"tinyimagenet", "t", "t/train/n01/images/0.jpg"},
                                          {"cinic10", "c", "c/train/airplane/0.jpg"},
                                          {"imagenet", "i", "i/train/n01440764/0.jpg"}};

    put_tiny();
    put_cinic();
    put_imagenet();
    for (size_t i = 0; i < CO_COUNT(sets); i++) {
        co_dataset *d;
        CHECK(truncate(sets[i][2], 100) == 0, "%m");
        CHECK_OK(set_try(&d, sets[i][0], "dir", sets[i][1], "crop", "8", (char *)NULL));
        CHECK_FAILS(d->check(d, CO_SPLIT_TRAIN, 0), CO_EINPUT, sets[i][2]);
        co_dataset_close(d);
    }
}

TEST(a_picture_of_another_size_is_a_bad_sample_of_a_set_whose_pictures_have_one_size)
{
    co_dataset *d;

    put_tiny();
    put_jpeg("t/train/n02/images/1.jpg", 16, 8, 30);
    d = open_as("tinyimagenet", "t");
    CHECK(co_shape_eq(&d->io.x, &CO_SHAPE(3, 8, 8)), "not [3,8,8]");
    CHECK_FAILS(d->check(d, CO_SPLIT_TRAIN, 4), CO_EINPUT, "images/1.jpg: 16x8 pixels where others have 8x8");
    co_dataset_close(d);
}
