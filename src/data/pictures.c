/* pictures.c -- picture files of the user's own as a data set: what `cohort predict RUN FILE...` predicts.
 *
 * They become samples of the split `test`, without labels, in the order given; a folder is searched to any
 * depth, in the order of names. Each goes through the evaluation transform of another set, the one that a run
 * was trained on. If all pictures of that set have one size, a picture of another size is resized until it
 * covers that size, and its middle is taken. For a set in grey, colours become grey as Pillow's convert("L")
 * does it.
 */
#include "data/pictures_int.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "data/file_int.h"
#include "data/folder_int.h"

struct pictures {
    co_dataset base;
    const co_dataset *like; /* borrowed */
    co_pool pool;
    const char **path; /* [n] */
    uint32_t n, room;
};

bool co_picture_named(const char *name)
{
    return picture_named(name) || unsupported_named(name) >= 0;
}

/* --- one sample ----------------------------------------------------------------------------------------- */

static const uint8_t *read_whole(const char *path, size_t *len, char why[WHY_LEN])
{
    struct stat st;
    int fd = file_open(path), errno_was = errno;
    uint8_t *room = NULL;
    ssize_t got = -1;

    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size <= PICTURE_FILE_MOST) {
        room = scratch_get(SCRATCH_FILE, (size_t)st.st_size + 1);
        got = pread(fd, room, (size_t)st.st_size, 0);
        snprintf(why, WHY_LEN, "it changed while it was read");
        *len = (size_t)st.st_size;
    } else if (fd >= 0)
        snprintf(why, WHY_LEN, "more than 256 MiB");
    else if (file_check_regular(path) == CO_OK)
        snprintf(why, WHY_LEN, "%s", strerror(errno_was)); /* the caller names the file */
    else
        snprintf(why, WHY_LEN, "not a regular file");
    if (fd >= 0)
        close(fd);
    return got >= 0 && (size_t)got == *len ? room : NULL;
}

/* Pillow's arithmetic: ITU-R 601-2 in 16 bits. In place: a pixel is read before it is overwritten. */
static picture to_grey(picture p)
{
    uint8_t *to = (uint8_t *)(uintptr_t)p.bytes;

    for (uint32_t y = 0; y < p.height; y++) {
        const uint8_t *rgb = p.bytes + y * p.stride;
        for (uint32_t x = 0; x < p.width; x++, rgb += 3)
            *to++ = (uint8_t)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
    }
    return (picture){p.bytes, p.height, p.width, 1, p.width, p.reduced_by, p.full_height, p.full_width};
}

static bool decode(const struct pictures *set, uint32_t id, picture *p, char why[WHY_LEN])
{
    const picture_use *use = set->like->pictures;
    size_t len = 0;
    const uint8_t *bytes = read_whole(set->path[id], &len, why);

    if (!bytes || !picture_decode_for(p, bytes, len, use->how, &(co_draw){0}, id, why))
        return false;
    bool fits = !use->height || (picture_full_height(p) == use->height && picture_full_width(p) == use->width);
    if (!fits && p->reduced_by && !picture_decode(p, bytes, len, MOST_PIXELS, why))
        return false; /* transform_fit wants the whole picture */
    if (use->how->planes == 1)
        *p = to_grey(*p);
    if (!fits)
        *p = transform_fit(*p, use->height, use->width);
    return true;
}

static int fill(const co_dataset *d, co_split s, const uint32_t *id, co_slice_shape shape,
                const co_draw *draw, const co_slice_dst *dst)
{
    const struct pictures *set = (const struct pictures *)d;
    const transform *how = set->like->pictures->how;
    float *x = dst->x;   /* [n,planes,height,width] */
    int32_t *y = dst->y; /* [n] */
    char why[WHY_LEN];
    int bad = 0;

    for (int i = 0; i < shape.n; i++) {
        picture p;
        bool good = decode(set, id[i], &p, why);
        if (x && good)
            transform_apply(x + (size_t)i * how->numbers, how, p, NULL);
        else if (x)
            memset(x + (size_t)i * how->numbers, 0, how->numbers * sizeof *x);
        if (y)
            y[i] = good ? CO_NO_LABEL : CO_IGNORE;
        if (dst->ids)
            dst->ids[i] = id[i];
        bad += !good;
    }
    return bad;
}

static co_err check(const co_dataset *d, co_split s, uint32_t id)
{
    const struct pictures *set = (const struct pictures *)d;
    char why[WHY_LEN] = "";
    picture p;

    return decode(set, id, &p, why) ? CO_OK : co_fail(CO_EINPUT, "%s: %s", set->path[id], why);
}

static const char *file(const co_dataset *d, co_split s, uint32_t id)
{
    return ((const struct pictures *)d)->path[id];
}

static const char *class_name(const co_dataset *d, int64_t label)
{
    const co_dataset *like = ((const struct pictures *)d)->like;

    return like->class_name ? like->class_name(like, label) : NULL;
}

/* --- opening -------------------------------------------------------------------------------------------- */

static void shut(co_dataset *d)
{
    struct pictures *set = (struct pictures *)d;

    co_free(set->path);
    co_pool_fini(&set->pool);
    co_free(set);
}

static co_err add(struct pictures *set, const char *path)
{
    if (set->n == set->room) {
        const char **more = co_realloc(set->path, (set->room + 64) * 2 * sizeof *more);
        if (!more)
            return CO_ENOMEM;
        set->room = (set->room + 64) * 2;
        set->path = more;
    }
    set->path[set->n] = path;
    set->n += path != NULL;
    return path ? CO_OK : CO_ENOMEM;
}

static co_err add_folder(struct pictures *set, const char *folder)
{
    int len = (int)strlen(folder);
    listing l = {.fd = -1, .root = co_strdup(folder)};
    co_err err = l.root ? listing_walk(&l) : CO_ENOMEM;
    uint32_t before = set->n;
    char kinds[256];

    while (len > 0 && folder[len - 1] == '/') /* "holiday/" */
        len--;
    for (size_t i = 0; i < l.n && !err; i++)
        if (l.entries[i].kind == ENTRY_PICTURE) {
            const char *path = listing_path(&l, l.entries[i].path);
            err = add(set, co_pool_printf(&set->pool, "%.*s/%s", len, folder, path));
        }
    if (!err && set->n == before)
        err = co_fail(CO_EINPUT, "%s has no pictures (" PICTURE_ENDINGS ")%s%s", folder,
                      *listing_unsupported(&l, kinds) ? "; unsupported format: " : "", kinds);
    listing_close(&l);
    return err;
}

co_err co_pictures_open(co_dataset **out, const co_dataset *like, const char *const *paths, int n)
{
    if (!like->pictures)
        return co_fail(CO_EINPUT, "data=%s is no set of pictures: its model cannot predict picture files",
                       like->def->name);
    struct pictures *set = co_zalloc(sizeof *set);
    co_err err = set ? CO_OK : CO_ENOMEM;

    for (int i = 0; i < n && !err; i++) {
        if (co_fs_is_dir(paths[i]))
            err = add_folder(set, paths[i]);
        else
            err = add(set, co_pool_str(&set->pool, paths[i]));
    }
    if (err) {
        if (set)
            shut(&set->base);
        return err;
    }
    set->like = like;
    set->base = (co_dataset){.def = like->def,
                             .io = like->io,
                             .count = {[CO_SPLIT_TEST] = set->n},
                             .fill = fill,
                             .check = check,
                             .file = file,
                             .class_name = class_name,
                             .close = shut};
    *out = &set->base;
    return CO_OK;
}

/* Six digits: mean and std are typed with four or fewer, and float arithmetic has blurred the rest. */
static double six_digits(double x)
{
    return round(x * 1e6) / 1e6;
}

bool co_pictures_use(const co_dataset *d, co_picture_use *out)
{
    const transform *how = d->pictures ? d->pictures->how : NULL;

    if (!how)
        return false;
    *out = (co_picture_use){.planes = (int)how->planes, .crop_share = 1};
    for (int k = 0; k < out->planes; k++) {
        double std = 1 / ((double)how->value[k][255] - (double)how->value[k][0]);
        out->std[k] = six_digits(std);
        out->mean[k] = six_digits(-(double)how->value[k][0] * std);
    }
    if (how->resize_short && how->crops)
        out->crop_share = six_digits((double)how->height / how->resize_short);
    return true;
}
