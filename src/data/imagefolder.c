/* imagefolder.c -- picture files in folders, one folder for each class: a set of the user's own, or one of
 * those in folder_sets.c.
 *
 * Files stay compressed: in memory, once for all ranks of the host, if all of them fit data.cache_mb; else on
 * disk, and each is read when it is needed. The thread that fills a slice decodes its pictures (decode.c) and
 * applies the set's transform.
 *
 * The size of a sample is data.crop, or follows from data.resize. With neither: that of the pictures if all
 * have the same; if not, they are taken as ImageNet's are (crop 224 out of 256; random resized crop and flip
 * in training). The sizes of PROBED pictures, evenly spread, decide this, in memory or not: data.cache_mb
 * must not decide what a sample is. A picture that was not probed and has another size is a bad sample, and
 * its message says which key to give.
 *
 * A file that cannot be decoded is a bad sample. It is one in every epoch and in every rank, because its
 * bytes alone decide that.
 */
#include "data/decode_int.h"
#include "data/folder_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/doc.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "data/file_int.h"
#include "data/pictures_int.h"

enum { PROBED = 256, PROBE_LEN = 256 << 10 };
static const uint64_t CONTENT_HASHED =
    1u << 30; /* bytes of pictures up to which the fingerprint covers them all; above it, a sample of them */

static const co_option options[] = {
    FOLDER_DIR(
        "folder with train/CLASS/*.jpg (and val, test), or CLASS/*.jpg; or a .tar, .tar.xz, .tar.gz of one"),
    {"val_fraction", CO_OPT_FLOAT, offsetof(struct folder_cfg, val_fraction), "0.1",
     "part of the pictures to validate on, where there is no folder val; at least one", .min = 0, .max = 0.9},
    {"test_fraction", CO_OPT_FLOAT, offsetof(struct folder_cfg, test_fraction), "0.1",
     "part of the pictures to test on, where there is no folder train; 0: none", .min = 0, .max = 0.9},
    FOLDER_OPTIONS,
    {0},
};

struct imagefolder {
    co_dataset base;
    listing files;
    folder_index index;
    transform how;
    uint32_t fixed_h, fixed_w; /* no other size can be a sample; 0: any can */
    picture_use use;
    seen seen;    /* hashes of the files that were read, by sample */
    bool content; /* the fingerprint covers every byte of the files */
};

static const sample *sample_of(const struct imagefolder *set, co_split s, uint32_t id)
{
    return &set->index.samples[split_start(&set->base, s) + id];
}

/* --- one sample ----------------------------------------------------------------------------------------- */

/* Was the file there at open, so that nobody knows now which bits it would give? One that may not be read
 * (EACCES) could not be read then either. */
static bool is_lost(const listing *l, const sample *e, int error)
{
    bool was_there = !l->block && e->size > 0 && e->size <= PICTURE_FILE_MOST;

    return was_there && error != EACCES && error != EPERM;
}

/* The file's bytes. NULL with the reason if it cannot be read now, or could not when the set was opened:
 * *gone becomes CO_EIO if it was there at open, CO_EFORMAT if it had other bytes when it was read first. */
static const uint8_t *read_sample(const struct imagefolder *set, const sample *e, co_err *gone,
                                  char why[WHY_LEN])
{
    const listing *l = &set->files;
    bool in_memory = l->block && e->at != ENTRY_UNREAD;
    void *room =
        in_memory || e->size > PICTURE_FILE_MOST ? NULL : scratch_get(SCRATCH_FILE, (size_t)e->size + 1);
    const uint8_t *bytes = listing_read(l, e->at, e->size, e->path, room);

    if (!bytes) {
        int error = errno;
        snprintf(why, WHY_LEN, "%s", co_errmsg());
        *gone = is_lost(l, e, error) ? CO_EIO : *gone;
    } else if (!in_memory && !seen_same(&set->seen, (uint32_t)(e - set->index.samples), bytes, e->size)) {
        snprintf(why, WHY_LEN, "its bytes are not those that were read before: the file was changed");
        *gone = CO_EFORMAT;
        bytes = NULL;
    } else if (l->block && !in_memory) {
        snprintf(why, WHY_LEN, "it could not be read when the set was opened");
        bytes = NULL;
    }
    return bytes;
}

static bool decode_sample(picture *p, const struct imagefolder *set, const sample *e, const uint8_t *bytes,
                          const co_draw *draw, uint32_t id, char why[WHY_LEN])
{
    if (!bytes || !picture_decode_for(p, bytes, e->size, &set->how, draw, id, why))
        return false;
    uint32_t height = picture_full_height(p), width = picture_full_width(p);
    if (set->fixed_h && (height != set->fixed_h || width != set->fixed_w)) {
        snprintf(why, WHY_LEN, "%ux%u pixels where others have %ux%u: give data.crop or data.resize=HxW",
                 width, height, set->fixed_w, set->fixed_h);
        return false;
    }
    return true;
}

static int fill(const co_dataset *d, co_split s, const uint32_t *id, co_slice_shape shape,
                const co_draw *draw, const co_slice_dst *dst)
{
    const struct imagefolder *set = (const struct imagefolder *)d;
    float *x = dst->x;   /* [n,3,height,width] */
    int32_t *y = dst->y; /* [n] */
    co_fill_times t = {0};
    char why[WHY_LEN];
    int bad = 0;
    co_err gone = CO_OK;
    uint64_t t0 = co_now_ns(), t1;

    for (int i = 0; i < shape.n; i++) {
        const sample *e = sample_of(set, s, id[i]);
        picture p;
        struct drawn drawn;
        const uint8_t *bytes = read_sample(set, e, &gone, why);
        t.read_ns += (t1 = co_now_ns()) - t0;
        co_stage_lap(draw->stages, CO_STAGE_READ);
        bool good = decode_sample(&p, set, e, bytes, draw, id[i], why);
        t.decode_ns += (t0 = co_now_ns()) - t1;
        co_stage_lap(draw->stages, CO_STAGE_DECODE);
        if (x && good) {
            bool vary = transform_draw(&drawn, &set->how, draw, id[i], picture_full_height(&p),
                                       picture_full_width(&p));
            co_stage_lap(draw->stages, CO_STAGE_DRAW);
            transform_apply_timed(x + (size_t)i * set->how.numbers, &set->how, p, vary ? &drawn : NULL,
                                  draw->stages);
        } else if (x) {
            memset(x + (size_t)i * set->how.numbers, 0, set->how.numbers * sizeof *x);
        }
        if (y)
            y[i] = good ? (int32_t)e->label : CO_IGNORE;
        if (dst->ids)
            dst->ids[i] = id[i];
        bad += !good;
        t.augment_ns += (t1 = co_now_ns()) - t0;
        t0 = t1;
        co_stage_lap(draw->stages, CO_STAGE_FILL);
    }
    transform_mix(&set->how, draw, id, shape.n, dst);
    co_stage_lap(draw->stages, set->how.mix ? CO_STAGE_MIX : CO_STAGE_FILL);
    t.augment_ns += co_now_ns() - t0;
    if (draw->times) {
        draw->times->read_ns += t.read_ns;
        draw->times->decode_ns += t.decode_ns;
        draw->times->augment_ns += t.augment_ns;
    }
    return gone ? -1 : bad;
}

static co_err check(const co_dataset *d, co_split s, uint32_t id)
{
    const struct imagefolder *set = (const struct imagefolder *)d;
    const sample *e = sample_of(set, s, id);
    char why[WHY_LEN] = "";
    picture p;
    co_err gone = CO_OK;

    if (decode_sample(&p, set, e, read_sample(set, e, &gone, why), &(co_draw){0}, id, why))
        return CO_OK;
    return co_fail(gone ? gone : CO_EINPUT, "%s/%s: %s", set->files.root, listing_path(&set->files, e->path),
                   why);
}

static const char *file(const co_dataset *d, co_split s, uint32_t id)
{
    const struct imagefolder *set = (const struct imagefolder *)d;

    return listing_path(&set->files, sample_of(set, s, id)->path);
}

static void count_classes(const co_dataset *d, co_split s, uint32_t *per_class)
{
    const sample *first = ((const struct imagefolder *)d)->index.samples + split_start(d, s);

    for (uint32_t id = 0; id < d->count[s]; id++)
        per_class[first[id].label]++;
}

static const char *class_name(const co_dataset *d, int64_t label)
{
    const folder_index *x = &((const struct imagefolder *)d)->index;

    if (label < 0 || label >= x->n_classes)
        return NULL;
    return x->titles ? x->titles[label] : x->classes[label];
}

/* --- opening -------------------------------------------------------------------------------------------- */

static uint32_t total(const struct imagefolder *set)
{
    return set->index.count[0] + set->index.count[1] + set->index.count[2];
}

/* The size of all probed pictures whose head can be read, or of the first of them; *h = 0 if they differ, or
 * there are none. */
static co_err common_size(const struct imagefolder *set, bool first, uint32_t *h, uint32_t *w)
{
    uint32_t n = total(set), probes = n < PROBED ? n : PROBED;
    uint8_t *room = co_alloc(PROBE_LEN);

    *h = *w = 0;
    if (!room)
        return CO_ENOMEM;
    for (uint32_t i = 0; i < probes; i++) {
        const sample *e = &set->index.samples[(uint64_t)i * n / probes];
        size_t len = e->size > PROBE_LEN ? PROBE_LEN : e->size;
        uint32_t high, wide;
        if (set->files.block && e->at == ENTRY_UNREAD)
            continue;
        const uint8_t *bytes = listing_read(&set->files, e->at, len, e->path, room);
        if (!bytes || !picture_size(bytes, len, &high, &wide))
            continue;
        if (*h && (*h != high || *w != wide)) {
            *h = *w = 0;
            break;
        }
        *h = high;
        *w = wide;
        if (first)
            break;
    }
    co_free(room);
    return CO_OK;
}

static bool is_set(const char *text)
{
    return text && *text;
}

/* *as_imagenet: sizes differ, and no key says which size a sample has. */
static co_err choose_transform(struct imagefolder *set, const struct transform_cfg *given,
                               const folder_set *row, bool *as_imagenet)
{
    static char imagenet_crop[] = "224";
    struct transform_cfg c = *given;
    uint32_t h, w;

    CO_TRY(common_size(set, row->one_size, &h, &w));
    *as_imagenet = (!h || row->is_imagenet) && !is_set(c.crop) && !is_set(c.resize) &&
                   c.augment != TRANSFORM_AUGMENT_CIFAR;
    if (*as_imagenet) {
        c.crop = imagenet_crop;
        c.augment = TRANSFORM_AUGMENT_IMAGENET;
    }
    CO_TRY(transform_init(&set->how, &c, h, w, 3, row->mean, row->std));
    if (!set->how.crops && !set->how.resize_h) {
        set->fixed_h = h;
        set->fixed_w = w;
    }
    return CO_OK;
}

/* Of names, sizes, labels, splits and transform; and of the files themselves: of all bytes if there are no
 * more than CONTENT_HASHED, else of a sample of them. */
static co_err fingerprint(struct imagefolder *set)
{
    const folder_index *x = &set->index;
    bool content = set->content = set->files.bytes <= CONTENT_HASHED;
    char says[512], how[512];
    size_t most = 1;
    co_sha256 h;

    for (uint32_t i = 0; content && !set->files.block && i < total(set); i++) {
        size_t size = x->samples[i].size;
        most = size > most && size <= PICTURE_FILE_MOST ? size : most;
    }
    uint8_t *room = co_alloc(most);
    if (!room)
        return CO_ENOMEM;
    transform_says(&set->how, how);
    snprintf(says, sizeof says, "imagefolder 1 n=%u,%u,%u classes=%u size=%ux%u content=%d\n", x->count[0],
             x->count[1], x->count[2], x->n_classes, set->how.height, set->how.width, content);
    co_sha256_init(&h);
    co_sha256_add(&h, says, strlen(says));
    co_sha256_add(&h, how, strlen(how));
    co_sha256_add(&h, set->how.value, sizeof set->how.value);
    for (uint32_t c = 0; c < x->n_classes; c++)
        co_sha256_add(&h, x->classes[c], strlen(x->classes[c]) + 1);
    for (uint32_t i = 0; i < total(set); i++) {
        const sample *e = &x->samples[i];
        const char *path = listing_path(&set->files, e->path) + x->base_len;
        uint32_t facts[2] = {e->size, e->label};
        co_sha256_add(&h, path, strlen(path) + 1);
        co_sha256_add(&h, facts, sizeof facts);
        bool unread = set->files.block && e->at == ENTRY_UNREAD;
        const uint8_t *bytes =
            content && !unread ? listing_read(&set->files, e->at, e->size, e->path, room) : NULL;
        if (bytes)
            co_sha256_add(&h, bytes, e->size);
        if (bytes)
            seen_same(&set->seen, i, bytes, e->size); /* the first reading */
    }
    if (!content)
        folder_sample_bytes(&h, &set->files, x->samples, total(set));
    co_sha256_hex(&h, set->base.fingerprint);
    co_free(room);
    return CO_OK;
}

static void shut(co_dataset *d)
{
    struct imagefolder *set = (struct imagefolder *)d;

    seen_fini(&set->seen);
    folder_index_fini(&set->index);
    listing_close(&set->files);
    co_free(set);
}

/* What the fingerprint does not cover is compared from run to run by the hashes of the files. */
static co_err remember(co_dataset *d, const char *path)
{
    struct imagefolder *set = (struct imagefolder *)d;
    uint32_t differs, n = total(set);

    if (set->content)
        return CO_OK;
    for (uint32_t i = 0; set->files.block && i < n; i++) {
        const sample *e = &set->index.samples[i];
        if (e->at != ENTRY_UNREAD)
            seen_same(&set->seen, i, set->files.block + e->at, e->size);
    }
    CO_TRY(seen_keep(&set->seen, path, d->fingerprint, &differs));
    if (differs == n)
        return CO_OK;
    return co_fail(
        CO_EINPUT,
        "%s/%s: its bytes are not those that this run read before: the file was changed. Put it back, or "
        "start a new run",
        set->files.root, listing_path(&set->files, set->index.samples[differs].path));
}

static co_err make(struct imagefolder *set, const folder_set *row, const struct folder_cfg *c)
{
    bool as_imagenet;
    char kinds[256];

    CO_TRY(listing_open(&set->files, c->dir, (uint64_t)c->cache_mb << 20));
    CO_TRY(folder_index_make(&set->index, &set->files, &row->rules, c->val_fraction, c->test_fraction));
    CO_TRY(choose_transform(set, &c->pictures, row, &as_imagenet));
    set->how.reduced = c->decode == DECODE_REDUCED;
    set->base = (co_dataset){
        .io = {.task = CO_TASK_CLASSIFY, .classes = set->index.n_classes},
        .fill = fill,
        .check = check,
        .file = file,
        .stop_on_bad = c->on_error == ON_ERROR_STOP,
        .count_classes = count_classes,
        .class_name = class_name,
        .shared_bytes = set->files.block_bytes,
        .remember = remember,
        .close = shut,
    };
    if (!set->files.block || set->files.bytes > CONTENT_HASHED)
        CO_TRY(seen_init(&set->seen, total(set)));
    as_imagenet = as_imagenet && !row->is_imagenet;
    snprintf(set->base.note, sizeof set->base.note, "%s%s%s",
             as_imagenet
                 ? "pictures of different sizes: taken as ImageNet's, 224x224 (data.resize=64x64 would be "
                   "smaller and faster)"
                 : "",
             as_imagenet && set->how.reduced ? "; " : "",
             set->how.reduced ? "JPEG files are decoded at reduced size" : "");
    memcpy(set->base.count, set->index.count, sizeof set->base.count);
    set->use = (picture_use){&set->how, set->fixed_h, set->fixed_w, true};
    set->base.pictures = &set->use;
    transform_io(&set->how, &set->base.io);
    if (*listing_unsupported(&set->files, kinds))
        co_log_say(CO_LOG_WARN, "data.dir: %s: unsupported format: %s left out (%s are read)",
                   set->files.root, kinds, PICTURE_ENDINGS);
    if (set->files.passed_over)
        co_log_say(CO_LOG_INFO, "data.dir: %s: %llu files that are not pictures were passed over, such as %s",
                   set->files.root, (unsigned long long)set->files.passed_over,
                   listing_path(&set->files, set->files.passed_path));
    return fingerprint(set);
}

co_err folder_set_open(co_dataset **out, const co_dataset_def *def, const void *cfg)
{
    const struct folder_cfg *c = cfg;
    const folder_set *row = (const folder_set *)def;
    char doc[PATH_MAX];

    if (!is_set(c->dir))
        return co_fail(CO_EINPUT, "data=%s needs data.dir=FOLDER with %s (%s says how)", def->name,
                       row->expects, co_doc(doc, "data.md"));
    struct imagefolder *set = co_zalloc(sizeof *set);
    if (!set)
        return CO_ENOMEM;
    set->files.fd = -1;
    co_err err = make(set, row, c);
    if (err) {
        shut(&set->base);
        return co_fail_in(err, "data=%s", def->name);
    }
    *out = &set->base;
    return CO_OK;
}

const folder_set imagefolder_set = {
    .def = {.name = "imagefolder",
            .help =
                "JPEG, PNG, WebP, BMP and GIF files in a folder for each class; ImageNet's mean and std are "
                "taken out",
            .options = options,
            .cfg_size = sizeof(struct folder_cfg),
            .open_row = folder_set_open},
    .expects = "a folder for each class",
    .mean = imagenet_mean,
    .std = imagenet_std,
};
