/* layouts.c -- which data set a folder holds, by the names in it. A new layout is a row;
 * the first that fits counts. */
#include "data/check.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "data/decode_int.h"
#include "data/file_int.h"
#include "data/pack_int.h"
#include "data/pairs_int.h"

/* One of the names (separated by blanks) is in dir, as it is or packed. */
static bool has_any(const char *dir, const char *names)
{
    static const char *const ends[] = {"", ".xz", ".gz"};
    char path[4096];

    for (const char *at = names; *at;) {
        int len = (int)strcspn(at, " ");
        for (size_t i = 0; i < CO_COUNT(ends); i++)
            if (snprintf(path, sizeof path, "%s/%.*s%s", dir, len, at, ends[i]) < (int)sizeof path &&
                co_fs_exists(path))
                return true;
        at += len + (at[len] == ' ');
    }
    return false;
}

static bool ends_in(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);

    return n >= m && strcasecmp(name + n - m, end) == 0;
}

static bool is_cifar10(const char *dir)
{
    return has_any(dir, "data_batch_1.bin test_batch.bin cifar-10-batches-bin cifar-10-binary.tar.gz");
}

static bool is_cifar100(const char *dir)
{
    return has_any(dir, "cifar-100-binary cifar-100-binary.tar.gz") ||
           (has_any(dir, "train.bin") && has_any(dir, "test.bin"));
}

static bool is_mnist(const char *dir)
{
    return has_any(dir, "train-images-idx3-ubyte t10k-images-idx3-ubyte MNIST/raw/train-images-idx3-ubyte");
}

static bool is_movielens(const char *dir)
{
    return has_any(dir, "ratings.csv ratings.dat u.data");
}

static bool is_cinic10(const char *dir)
{
    return has_any(dir, "train/airplane") && has_any(dir, "train/truck") && has_any(dir, "valid val");
}

/* How many names of the folder `fits` takes, and how many there are; hidden ones do not count. */
static size_t count_names(const char *dir, bool (*fits)(const char *dir, const char *name), size_t *all)
{
    DIR *d = opendir(dir);
    size_t n = 0;

    *all = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.') {
            n += fits(dir, e->d_name);
            ++*all;
        }
    if (d)
        closedir(d);
    return n;
}

static bool is_wnid(const char *dir, const char *name)
{
    (void)dir;
    return strlen(name) == 9 && name[0] == 'n' && strspn(name + 1, "0123456789") == 8;
}

/* All class folders have names such as n01440764. */
static bool is_imagenet(const char *dir)
{
    char path[4096];
    size_t all;

    return snprintf(path, sizeof path, "%s/train", dir) < (int)sizeof path && has_any(dir, "val") &&
           count_names(path, is_wnid, &all) == all && all > 0;
}

static bool is_text(const char *dir)
{
    return !co_fs_is_dir(dir) && (ends_in(dir, ".txt") || ends_in(dir, ".text") || ends_in(dir, ".md"));
}

static bool is_digits(const char *dir)
{
    return has_any(dir, "digits.csv");
}

static bool is_archive(const char *name)
{
    return ends_in(name, ".tar") || ends_in(name, ".tar.gz") || ends_in(name, ".tar.xz");
}

static bool is_of_pictures(const char *dir, const char *name)
{
    char path[4096];

    return picture_named(name) || is_archive(name) ||
           (snprintf(path, sizeof path, "%s/%s", dir, name) < (int)sizeof path && co_fs_is_dir(path));
}

/* An archive, or any folder with folders, pictures or archives in it. */
static bool is_imagefolder(const char *dir)
{
    size_t all;

    return co_fs_is_dir(dir) ? count_names(dir, is_of_pictures, &all) > 0 : is_archive(dir);
}

static const struct {
    co_data_layout layout;
    bool (*fits)(const char *dir);
} layouts[] = {
    {{"tinyimagenet", "Tiny ImageNet"}, co_dataset_is_tiny_imagenet},
    {{"cifar10", "CIFAR-10"}, is_cifar10},
    {{"cifar100", "CIFAR-100"}, is_cifar100},
    {{"mnist", "MNIST"}, is_mnist},
    {{"movielens", "MovieLens"}, is_movielens},
    {{"digits", "UCI digits (inside the program: data=digits needs no folder)"}, is_digits},
    {{"cinic10", "CINIC-10"}, is_cinic10},
    {{"imagenet", "ImageNet"}, is_imagenet},
    {{"text", "text"}, is_text},
    {{"pairs", "pairs of sentences"}, pairs_fit},
    {{"imagefolder", "image folder"}, is_imagefolder},
};

/* A pack says itself what it is made of. */
static const char *pack_set(const char *path, char set[PACK_SET_LEN + 1])
{
    uint8_t head[PACK_HEAD];
    struct stat st;
    pack p;
    int fd = pack_named(path) ? file_open(path) : -1;
    bool good = fd >= 0 && fstat(fd, &st) == 0 && pread(fd, head, PACK_HEAD, 0) == PACK_HEAD &&
                pack_head(&p, head, (uint64_t)st.st_size, path) == CO_OK;

    if (fd >= 0)
        close(fd);
    co_errclear();
    snprintf(set, PACK_SET_LEN + 1, "%s", good ? p.set : "imagefolder");
    return set;
}

const co_data_layout *co_data_recognise(const char *dir)
{
    char set[PACK_SET_LEN + 1];

    if (pack_named(dir) && !co_fs_is_dir(dir) && co_fs_exists(dir))
        for (size_t i = 0; i < CO_COUNT(layouts); i++)
            if (strcmp(layouts[i].layout.data, pack_set(dir, set)) == 0)
                return &layouts[i].layout;
    for (size_t i = 0; i < CO_COUNT(layouts); i++)
        if (layouts[i].fits(dir))
            return &layouts[i].layout;
    return NULL;
}

const char *co_data_layouts(char out[256])
{
    int at = 0;

    for (size_t i = 0; i < CO_COUNT(layouts) && at < 220; i++)
        at += snprintf(out + at, 256 - (size_t)at, "%s%s", i ? ", " : "", layouts[i].layout.data);
    return out;
}
