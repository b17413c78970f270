/* folder_sets.c -- the known sets of pictures in folders: Tiny ImageNet, CINIC-10, ImageNet.
 *
 * A set is a row: what its folders must look like, its normalisation, its size. imagefolder.c does the rest.
 * Where the folders are not those of the set, opening fails and says what is missing, so that nobody trains
 * on a part of it.
 *
 *     tinyimagenet   train/WNID/images/X.JPEG  val/images/X.JPEG  val/val_annotations.txt  wnids.txt
 *     words.txt
 *     cinic10        train/CLASS/X.png         valid/CLASS/X.png  test/CLASS/X.png
 *     imagenet       train/WNID/X.JPEG         val/WNID/X.JPEG    words.txt or LOC_synset_mapping.txt
 */
#include "data/folder_int.h"

#include <stdio.h>

#include "base/fs.h"

bool co_dataset_is_tiny_imagenet(const char *dir)
{
    char text[4096], pictures[4096];

    return snprintf(text, sizeof text, "%s/val/val_annotations.txt", dir) < (int)sizeof text &&
           snprintf(pictures, sizeof pictures, "%s/val/images", dir) < (int)sizeof pictures &&
           co_fs_exists(text) && co_fs_is_dir(pictures);
}

static const co_option tinyimagenet_options[] = {
    FOLDER_DIR(
        "the folder tiny-imagenet-200 as it comes (train/, val/, wnids.txt, words.txt); or a .tar, .tar.xz, "
        ".tar.gz of it"),
    FOLDER_OPTIONS,
    {0},
};

static const co_option cinic10_options[] = {
    FOLDER_DIR("folder with CINIC-10's train/, valid/ and test/; or its .tar.gz"),
    FOLDER_OPTIONS,
    {0},
};

static const co_option imagenet_options[] = {
    FOLDER_DIR("folder with train/CLASS/*.JPEG and val/CLASS/*.JPEG; or a .tar, .tar.xz, .tar.gz of it"),
    FOLDER_OPTIONS,
    {0},
};

static const char *const cinic10_classes[] = {"airplane", "automobile", "bird", "cat",   "deer", "dog",
                                              "frog",     "horse",      "ship", "truck", NULL};

const folder_set tinyimagenet_set = {
    .def = {.name = "tinyimagenet",
            .help =
                "Tiny ImageNet as it comes: 3x64x64, val labelled by val_annotations.txt; mean 0.4802 0.4481 "
                "0.3975 and std 0.2770 0.2691 0.2821 are taken out",
            .options = tinyimagenet_options,
            .cfg_size = sizeof(struct folder_cfg),
            .open_row = folder_set_open},
    .rules = {.annotated = true,
              .has_parts = true,
              .make_classes = "it is part of tiny-imagenet-200.zip, put it back"},
    .expects = "Tiny ImageNet's train/ and val/",
    .mean = tinyimagenet_mean,
    .std = tinyimagenet_std,
    .one_size = true,
};

const folder_set cinic10_set = {
    .def =
        {.name = "cinic10",
         .help =
             "CINIC-10: 270,000 pictures of CIFAR-10's classes, 3x32x32; mean 0.4789 0.4723 0.4305 and std "
             "0.2421 0.2383 0.2587 are taken out",
         .options = cinic10_options,
         .cfg_size = sizeof(struct folder_cfg),
         .open_row = folder_set_open},
    .rules = {.has_parts = true, .classes = cinic10_classes},
    .expects = "CINIC-10's train/, valid/ and test/",
    .mean = cinic10_mean,
    .std = cinic10_std,
    .one_size = true,
};

const folder_set imagenet_set = {
    .def =
        {.name = "imagenet",
         .help =
             "ImageNet's folders train/ and val/, as 224x224 unless data.crop or data.resize says otherwise; "
             "mean 0.485 0.456 0.406 and std 0.229 0.224 0.225 are taken out",
         .options = imagenet_options,
         .cfg_size = sizeof(struct folder_cfg),
         .open_row = folder_set_open},
    .rules = {.has_parts = true,
              .make_classes =
                  "ImageNet's val comes so; the script valprep.sh that PyTorch's example names moves each "
                  "file into the folder of its class"},
    .expects = "ImageNet's train/CLASS/ and val/CLASS/",
    .mean = imagenet_mean,
    .std = imagenet_std,
    .is_imagenet = true,
};
