/* cifar.c -- CIFAR-10 and CIFAR-100: 50,000 + 10,000 pictures of 3x32x32, from the official binary files.
 *
 * Source: A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009,
 * https://www.cs.toronto.edu/~kriz/cifar.html, "binary version". The files have no head:
 *
 *     CIFAR-10     label                 1,024 red  1,024 green  1,024 blue     3,073 bytes a picture
 *     CIFAR-100    20 coarse, 100 fine   the same                               3,074; the fine label is used
 *
 * They lie in data.dir or in the folder that the archive unpacks to, each plain, .xz or .gz; or the archive
 * itself lies in data.dir. What is unpacked is kept on disk (cache.c), and all of it in memory (184 MB).
 * Means and standard deviations are those of the training part, to four places.
 */
#include "data/cache_int.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "data/cifar_int.h"

enum { MOST_FILES = 6, PIXELS = 3 * 32 * 32, TRAIN = 50000, TEST = 10000 };

struct cifar {
    images_spec spec;
    const char *folder, *archive; /* the archive, and the folder that it makes */
    const char *(*class_name)(const co_dataset *d, int64_t label); /* NULL: classes have numbers alone */
    const char *py_folder, *py_archive; /* the version for Python, which people take by mistake */
    int n_files;                        /* the last one is to test on */
    struct {
        const char *name;
        uint32_t rows;
    } files[MOST_FILES];
};

/* As in batches.meta.txt, which lies beside the files. The order is part of the format. */
static const char *const names10[] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                      "dog",      "frog",       "horse", "ship", "truck"};

static const char *name10(const co_dataset *d, int64_t label)
{
    (void)d;
    return label >= 0 && label < (int64_t)CO_COUNT(names10) ? names10[label] : NULL;
}

static const struct cifar cifar10 = {
    .spec = {"cifar10",
             3,
             32,
             32,
             10,
             TRAIN,
             TEST,
             1 + PIXELS,
             1,
             {0.4914f, 0.4822f, 0.4465f}, /* mean, std */
             {0.2470f, 0.2435f, 0.2616f}},
    .folder = "cifar-10-batches-bin",
    .archive = "cifar-10-binary.tar.gz",
    .class_name = name10,
    .py_folder = "cifar-10-batches-py",
    .py_archive = "cifar-10-python.tar.gz",
    .n_files = 6,
    .files = {{"data_batch_1.bin", 10000},
              {"data_batch_2.bin", 10000},
              {"data_batch_3.bin", 10000},
              {"data_batch_4.bin", 10000},
              {"data_batch_5.bin", 10000},
              {"test_batch.bin", TEST}},
};

static const struct cifar cifar100 = {
    .spec = {"cifar100",
             3,
             32,
             32,
             100,
             TRAIN,
             TEST,
             2 + PIXELS,
             2,
             {0.5071f, 0.4865f, 0.4409f},
             {0.2673f, 0.2564f, 0.2762f}},
    .folder = "cifar-100-binary",
    .archive = "cifar-100-binary.tar.gz",
    .py_folder = "cifar-100-python",
    .py_archive = "cifar-100-python.tar.gz",
    .n_files = 2,
    .files = {{"train.bin", TRAIN}, {"test.bin", TEST}},
};

static size_t file_len(const struct cifar *set, int f)
{
    return set->files[f].rows * set->spec.stride;
}

/* --- finding -------------------------------------------------------------------------------------------- */

/* dir/name, or packed beside it; false if there is neither. */
static bool find_file(char out[4096], const char *dir, const char *name)
{
    static const char *const ends[] = {"", ".xz", ".gz"};

    for (size_t i = 0; i < CO_COUNT(ends); i++) {
        int n = snprintf(out, 4096, "%s/%s%s", dir, name, ends[i]);
        if (n < 4096 && co_fs_exists(out))
            return true;
    }
    return false;
}

static bool is_in(const char *dir, const char *name)
{
    char path[4096];

    return snprintf(path, sizeof path, "%s/%s", dir, name) < (int)sizeof path && co_fs_exists(path);
}

static co_err nothing_there(const struct cifar *set, const char *dir)
{
    if (is_in(dir, set->py_folder) || is_in(dir, set->py_archive))
        return co_fail(CO_EINPUT,
                       "data.dir: %s has the version for Python; the binary version is needed, %s from"
                       " https://www.cs.toronto.edu/~kriz/cifar.html",
                       dir, set->archive);
    return co_fail(CO_EINPUT,
                   "data.dir: %s has neither %s (plain, .xz or .gz), nor the folder %s, nor %s: get the"
                   " last from https://www.cs.toronto.edu/~kriz/cifar.html%s",
                   dir, set->files[0].name, set->folder, set->archive,
                   set == &cifar10 ? " (cohort data get cifar10)" : "");
}

/* The folder of the files: data.dir itself, or the one within it that has any. False: none has. */
static bool find_folder(char out[4096], const struct cifar *set, const char *dir)
{
    char path[4096];

    for (int within = 0; within < 2; within++) {
        int n = snprintf(out, 4096, "%s%s%s", dir, within ? "/" : "", within ? set->folder : "");
        for (int f = 0; n < 4096 && f < set->n_files; f++)
            if (find_file(path, out, set->files[f].name))
                return true;
    }
    return false;
}

/* --- reading -------------------------------------------------------------------------------------------- */

static co_err read_files(images *im, const struct cifar *set, const char *folder)
{
    struct unpack_job *jobs = co_array((size_t)set->n_files, sizeof *jobs);
    uint8_t *to = im->bytes;
    co_err err = jobs ? CO_OK : CO_ENOMEM;

    for (int f = 0; f < set->n_files && !err; f++) {
        jobs[f].to = to;
        jobs[f].want = file_len(set, f);
        to += jobs[f].want;
        if (!find_file(jobs[f].path, folder, set->files[f].name))
            err = co_fail(CO_EINPUT, "%s/%s is missing (plain, .xz or .gz)", folder, set->files[f].name);
    }
    if (!err)
        err = unpack_all(jobs, set->n_files);
    co_free(jobs);
    return err;
}

/* Takes the file in hand if it is one of the set's. */
static co_err take_member(tar *t, uint8_t *bytes, const struct cifar *set, bool have[MOST_FILES])
{
    const char *slash = strrchr(t->name, '/'), *name = slash ? slash + 1 : t->name;
    size_t at = 0;
    char is[32], should[32];

    for (int f = 0; f < set->n_files; at += file_len(set, f++)) {
        if (strcmp(name, set->files[f].name) != 0)
            continue;
        if (have[f])
            return co_fail(CO_EINPUT, "%s has %s twice", packed_path(t->in), name);
        if (t->size != file_len(set, f))
            return co_fail(CO_EINPUT, "%s: %s: %s bytes, not %s", packed_path(t->in), name,
                           with_commas(is, t->size), with_commas(should, file_len(set, f)));
        have[f] = true;
        return tar_read(t, bytes + at);
    }
    return CO_OK;
}

/* Its files, and some room for headers and for files that are not read. */
static uint64_t archive_most(const struct cifar *set)
{
    uint64_t most = 16 << 20;

    for (int f = 0; f < set->n_files; f++)
        most += file_len(set, f);
    return most;
}

static co_err read_members(images *im, const struct cifar *set, const char *path)
{
    bool have[MOST_FILES] = {0}, more = true;
    tar t = {0};
    co_err err = packed_open(&t.in, path);

    if (!err)
        packed_limit(t.in, archive_most(set));
    while (!err && more) {
        err = tar_next(&t, &more);
        if (!err && more)
            err = take_member(&t, im->bytes, set, have);
    }
    for (int f = 0; f < set->n_files && !err; f++)
        if (!have[f])
            err = co_fail(CO_EINPUT, "%s has no %s", path, set->files[f].name);
    packed_close(t.in);
    return err;
}

/* From the cache if possible. If the archive is damaged, reading the archive itself gives the message. */
static co_err read_archive(images *im, const struct cifar *set, const char *path)
{
    char plain[4096];

    CO_TRY(cache_plain(plain, path, archive_most(set)));
    co_err err = *plain ? read_members(im, set, plain) : CO_EINPUT;
    return err == CO_OK || err == CO_ENOMEM ? err : read_members(im, set, path);
}

static co_err take_labels(images *im, const struct cifar *set)
{
    const uint8_t *row = im->bytes;
    uint16_t *label = im->label;
    cifar_rows rows = {
        .stride = set->spec.stride, .skip = (int)set->spec.skip, .classes = (int)set->spec.classes};

    for (int f = 0; f < set->n_files; f++) {
        CO_TRY(cifar_labels(label, row, set->files[f].rows, &rows, set->files[f].name));
        label += set->files[f].rows;
        row += file_len(set, f);
    }
    return CO_OK;
}

static co_err read_set(images *im, const struct cifar *set, const char *dir)
{
    char path[4096];

    if (find_folder(path, set, dir))
        return read_files(im, set, path);
    if (!is_in(dir, set->archive))
        return nothing_there(set, dir);
    snprintf(path, sizeof path, "%s/%s", dir, set->archive);
    return read_archive(im, set, path);
}

static co_err open_set(co_dataset **out, const struct cifar *set, const struct images_cfg *c)
{
    images *im;

    CO_TRY(images_check_dir(set->spec.name, NULL, c));
    CO_TRY(images_new(&im, &set->spec, c));
    co_err err = read_set(im, set, c->dir);
    if (!err)
        err = take_labels(im, set);
    if (err) {
        images_free(im);
        return co_fail_in(err, "data=%s", set->spec.name);
    }
    images_finish(im, c->val_fraction);
    im->base.class_name = set->class_name;
    *out = &im->base;
    return CO_OK;
}

static co_err open_cifar10(co_dataset **out, const void *cfg)
{
    return open_set(out, &cifar10, cfg);
}

static co_err open_cifar100(co_dataset **out, const void *cfg)
{
    return open_set(out, &cifar100, cfg);
}

const co_dataset_def cifar10_def = {
    .name = "cifar10",
    .help = "60,000 pictures of 10 things, 3x32x32, from the binary files; mean 0.4914 0.4822 0.4465 and std"
            " 0.2470 0.2435 0.2616 are taken out",
    .options = images_options,
    .cfg_size = sizeof(struct images_cfg),
    .open = open_cifar10,
};

const co_dataset_def cifar100_def = {
    .name = "cifar100",
    .help = "60,000 pictures of 100 things, 3x32x32, from the binary files; mean 0.5071 0.4865 0.4409 and std"
            " 0.2673 0.2564 0.2762 are taken out",
    .options = images_options,
    .cfg_size = sizeof(struct images_cfg),
    .open = open_cifar100,
};
