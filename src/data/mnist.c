/* mnist.c -- handwritten digits of 28x28, and whatever else comes in files of the same names: Fashion-MNIST,
 * KMNIST.
 *
 * Source: Y. LeCun, C. Cortes, C. Burges, The MNIST database of handwritten digits. Four idx files (idx.c),
 * each plain or .gz, in data.dir or in data.dir/MNIST/raw, where torchvision puts them. MNIST has 60,000
 * pictures to train on and 10,000 to test on; the files' own heads say how many there are. Mean and standard
 * deviation are MNIST's, for the relatives too.
 */
#include "data/images_int.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/fs.h"

enum { CLASSES = 10, PIXELS = IDX_SIDE * IDX_SIDE };

static const images_spec mnist = {
    "mnist", 1, IDX_SIDE, IDX_SIDE, CLASSES, .stride = PIXELS, .mean = {0.1307f}, .std = {0.3081f}};

/* Opens data.dir's file of this name at the end of its head. */
static co_err open_file(packed **out, uint32_t *n, const char *dir, const char *name, bool pictures)
{
    static const char *const forms[] = {"%s/%s", "%s/%s.gz", "%s/MNIST/raw/%s", "%s/MNIST/raw/%s.gz"};
    bool found = false;

    for (size_t i = 0; i < CO_COUNT(forms) && !found; i++) {
        char *path = co_sprintf(forms[i], dir, name);
        if (!path)
            return CO_ENOMEM;
        found = co_fs_exists(path);
        co_err err = found ? packed_open(out, path) : CO_OK;
        co_free(path);
        CO_TRY(err);
    }
    if (!found)
        return co_fail(CO_EINPUT,
                       "data.dir: %s has no %s, plain or .gz, nor has its MNIST/raw "
                       "(cohort data get mnist downloads it)",
                       dir, name);
    co_err err = idx_head(*out, pictures, n);
    if (err) {
        packed_close(*out);
        *out = NULL;
    }
    return err;
}

/* Reads the labels of rows [first, first + n). */
static co_err read_labels(images *im, uint32_t first, uint32_t n, const char *dir, const char *name)
{
    packed *p = NULL;
    uint32_t labels;
    uint8_t *bytes = co_alloc(n);
    co_err err = bytes ? open_file(&p, &labels, dir, name, false) : CO_ENOMEM;

    if (!err && labels != n)
        err = co_fail(CO_EINPUT, "%s has %u labels for %u pictures: the files do not belong together",
                      packed_path(p), labels, n);
    if (!err)
        err = packed_exactly(p, bytes, n, idx_head_len(false));
    for (uint32_t i = 0; i < n && !err; i++) {
        if (bytes[i] >= CLASSES)
            err = co_fail(CO_EINPUT, "%s: label %u is %d; 0 to 9 are right: the file is damaged",
                          packed_path(p), i, bytes[i]);
        im->label[first + i] = bytes[i];
    }
    packed_close(p);
    co_free(bytes);
    return err;
}

/* The heads are read first: they give the number of pictures, and so the memory needed. */
static co_err read_set(images **im, packed *in[2], const struct images_cfg *c)
{
    images_spec spec = mnist;
    const char *dir = c->dir;

    CO_TRY(open_file(&in[0], &spec.n_train, dir, "train-images-idx3-ubyte", true));
    CO_TRY(open_file(&in[1], &spec.n_test, dir, "t10k-images-idx3-ubyte", true));
    if (spec.n_train < 2)
        return co_fail(CO_EINPUT, "%s has 1 picture; one to train on and one to validate on are needed",
                       packed_path(in[0]));
    CO_TRY(images_new(im, &spec, c));
    size_t train = (size_t)spec.n_train * PIXELS;
    CO_TRY(packed_exactly(in[0], (*im)->bytes, train, idx_head_len(true)));
    CO_TRY(packed_exactly(in[1], (*im)->bytes + train, (size_t)spec.n_test * PIXELS, idx_head_len(true)));
    CO_TRY(read_labels(*im, 0, spec.n_train, dir, "train-labels-idx1-ubyte"));
    return read_labels(*im, spec.n_train, spec.n_test, dir, "t10k-labels-idx1-ubyte");
}

static co_err open_mnist(co_dataset **out, const void *cfg)
{
    const struct images_cfg *c = cfg;
    images *im = NULL;
    packed *in[2] = {0};

    CO_TRY(images_check_dir("mnist",
                            "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and "
                            "t10k-labels-idx1-ubyte, each plain or .gz",
                            c));
    co_err err = read_set(&im, in, c);
    packed_close(in[0]);
    packed_close(in[1]);
    if (err) {
        images_free(im);
        return co_fail_in(err, "data=mnist");
    }
    images_finish(im, c->val_fraction);
    *out = &im->base;
    return CO_OK;
}

const co_dataset_def mnist_def = {
    .name = "mnist",
    .help = "handwritten digits of 28x28, from idx files; mean 0.1307 and std 0.3081 are taken out",
    .options = images_options,
    .cfg_size = sizeof(struct images_cfg),
    .open = open_mnist,
};
