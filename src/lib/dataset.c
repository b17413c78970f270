/* dataset.c -- a data set that the program defines: the program's `fill` writes one sample, ours writes a
 * slice of samples.
 *
 * The output of `fill` is checked like the bytes of a file: a class or token that does not exist would be an
 * index out of bounds later. A sample with a bad class or token, or one that `fill` refuses, becomes x = 0, y
 * = COHORT_IGNORE. If the program gives no fingerprint, it is made from the shape, the counts and up to
 * PROBES plain samples of each split, evenly spread.
 */
#include "lib/lib_int.h"

#include <limits.h>
#include <string.h>

#include "base/hash.h"

enum { PROBES = 1024, STACK_BYTES = 4096 };

struct theirs {
    co_dataset base;
    const cohort_dataset *def;
    void *self;
    size_t x_count, y_count; /* elements of a sample's x and y; TOKENS: max_len each */
};

static const struct theirs *theirs_of(const co_dataset *d)
{
    return (const struct theirs *)d;
}

static int length(const co_dataset *d, co_split s, uint32_t id)
{
    const struct theirs *t = theirs_of(d);
    int n = t->def->length(t->self, (cohort_split)s, id);

    return n < 1 ? 1 : n > d->io.max_len ? (int)d->io.max_len : n;
}

static bool are_classes(const int32_t *y, size_t n, int64_t classes, bool ignore_too)
{
    for (size_t i = 0; i < n; i++)
        if ((y[i] < 0 || y[i] >= classes) && !(ignore_too && y[i] == CO_IGNORE))
            return false;
    return true;
}

/* Writes one sample to x and y. TOKENS: it has `own` tokens. Returns false if it cannot be read. */
static bool fill_one(const struct theirs *t, co_split s, uint32_t id, const cohort_draw *draw, size_t own,
                     void *x, void *y)
{
    const co_io *io = &t->base.io;
    bool tokens = io->task == CO_TASK_LM, good;

    good = t->def->fill(t->self, (cohort_split)s, id, draw, x, y) == 0;
    if (good && tokens)
        good = are_classes(x, own, io->classes, false) && are_classes(y, own, io->classes, true);
    else if (good && io->task == CO_TASK_CLASSIFY)
        good = are_classes(y, 1, io->classes, true);
    if (good)
        return true;
    memset(x, 0, (tokens ? own : t->x_count) * 4);
    if (io->task == CO_TASK_REGRESS)
        memset(y, 0, t->y_count * 4);
    for (size_t i = 0; io->task != CO_TASK_REGRESS && i < (tokens ? own : 1); i++)
        ((int32_t *)y)[i] = CO_IGNORE;
    return false;
}

/* Prediction needs no y, but fill writes one. */
static int fill(const co_dataset *d, co_split s, const uint32_t *id, co_slice_shape shape,
                const co_draw *draw, const co_slice_dst *dst)
{
    const struct theirs *t = theirs_of(d);
    bool tokens = d->io.task == CO_TASK_LM;
    size_t y_most = t->y_count;
    cohort_draw how = {
        .seed = draw ? draw->seed : 0, .epoch = draw ? draw->epoch : 0, .augment = draw && draw->augment};
    char here[STACK_BYTES];
    char *spare = dst->y ? NULL : y_most * 4 <= sizeof here ? here : co_alloc(y_most * 4);
    int bad = 0;

    CO_ASSERT(dst->x && (dst->y || spare), "x is always wanted, and y has a place");
    for (size_t i = 0; i < (size_t)shape.n; i++) {
        size_t own = tokens ? (size_t)length(d, s, id[i]) : 0;
        size_t x_at = tokens ? (size_t)dst->offsets[i] : i * t->x_count;
        size_t y_at = tokens ? (size_t)dst->offsets[i] : i * t->y_count;
        bad += !fill_one(t, s, id[i], &how, own, (char *)dst->x + x_at * 4,
                         dst->y ? (char *)dst->y + y_at * 4 : spare);
        if (dst->ids)
            dst->ids[i] = id[i];
    }
    if (spare != here)
        co_free(spare);
    return bad;
}

/* Writes one plain sample to the caller's memory, x first. */
static bool read_plain(const struct theirs *t, co_split s, uint32_t id, char *buffer)
{
    size_t own = t->base.length ? (size_t)length(&t->base, s, id) : 0;
    cohort_draw plain = {0};

    memset(buffer, 0, (t->x_count + t->y_count) * 4); /* a sample of tokens may be shorter */
    return fill_one(t, s, id, &plain, own, buffer, buffer + t->x_count * 4);
}

static co_err check(const co_dataset *d, co_split s, uint32_t id)
{
    const struct theirs *t = theirs_of(d);
    char *buffer = co_array(t->x_count + t->y_count, 4);

    if (!buffer)
        return CO_ENOMEM;
    co_errclear();
    co_err err = CO_OK;
    if (!read_plain(t, s, id, buffer))
        err = co_fail_in(co_errmsg()[0] ? CO_EINPUT
                                        : co_fail(CO_EINPUT, "its class or a token does not exist, or "
                                                             "fill() refused it"),
                         "data set %s: sample %u", t->def->name, id);
    co_free(buffer);
    return err;
}

static co_err fingerprint(struct theirs *t)
{
    co_sha256 h;
    char *buffer = co_array(t->x_count + t->y_count, 4);
    int64_t head[] = {t->base.io.task, t->base.io.classes, t->base.io.y_width, t->base.io.max_len,
                      (int64_t)t->x_count};

    if (!buffer)
        return CO_ENOMEM;
    co_sha256_init(&h);
    co_sha256_add(&h, t->def->name, strlen(t->def->name) + 1);
    co_sha256_add(&h, head, sizeof head);
    co_sha256_add(&h, t->base.count, sizeof t->base.count);
    for (int s = 0; s < CO_SPLIT_COUNT; s++) {
        uint64_t count = t->base.count[s], n = count < PROBES ? count : PROBES;
        for (uint64_t i = 0; i < n; i++) {
            (void)read_plain(t, (co_split)s, (uint32_t)(i * count / n), buffer);
            co_sha256_add(&h, buffer, (t->x_count + t->y_count) * 4);
        }
    }
    co_sha256_hex(&h, t->base.fingerprint);
    co_free(buffer);
    return CO_OK;
}

static void shut(co_dataset *d)
{
    struct theirs *t = (struct theirs *)d;

    if (t->def->close)
        t->def->close(t->self);
    co_free(t);
}

static const char *class_name(const co_dataset *d, int64_t label)
{
    const struct theirs *t = theirs_of(d);

    return t->def->class_name(t->self, label);
}

static const char *const splits[COHORT_SPLITS] = {"train", "val", "test"};

/* Checks what `open` filled in, before it is used. */
static co_err check_samples(const char *name, const cohort_dataset *def, const cohort_samples *s)
{
    co_shape x = shape_in(s->x);
    size_t bytes;

    for (int i = 0; i < COHORT_SPLITS; i++)
        if (s->count[i] < 1 || s->count[i] > UINT32_MAX)
            return co_fail(CO_EINPUT, "data set %s: %lld samples in %s: each split needs 1 to 2^32 - 1", name,
                           (long long)s->count[i], splits[i]);
    if (s->task < COHORT_CLASSIFY || s->task > COHORT_TOKENS)
        return co_fail(CO_EINPUT, "data set %s: %d is not a task of cohort.h", name, (int)s->task);
    if (s->task != COHORT_TOKENS && (x.nd < 0 || !co_shape_bytes(&bytes, &x, CO_F32) || bytes < 4))
        return co_fail(CO_EINPUT, "data set %s: samples.x is not a shape of one number or more", name);
    if (s->task != COHORT_REGRESS && (s->classes < 1 || s->classes > INT_MAX))
        return co_fail(CO_EINPUT, "data set %s: samples.classes is %lld", name, (long long)s->classes);
    if (s->task == COHORT_REGRESS && (s->y_width < 1 || s->y_width > INT_MAX))
        return co_fail(CO_EINPUT, "data set %s: samples.y_width is %lld", name, (long long)s->y_width);
    if (s->task == COHORT_TOKENS && (s->max_len < 1 || s->max_len > 1 << 20 || !def->length))
        return co_fail(CO_EINPUT, "data set %s: tokens need samples.max_len (1 to 1048576) and length()", name);
    if (s->fingerprint[0] && strspn(s->fingerprint, "0123456789abcdef") != 64)
        return co_fail(CO_EINPUT, "data set %s: samples.fingerprint is not 64 hex digits", name);
    return CO_OK;
}

/* A longer sample would be written past its end. All lengths are needed anyway, to order the samples. */
static co_err check_lengths(const struct theirs *t, int64_t most)
{
    for (int s = 0; s < CO_SPLIT_COUNT; s++)
        for (uint32_t id = 0; id < t->base.count[s]; id++) {
            int n = t->def->length(t->self, (cohort_split)s, id);
            if (n < 1 || n > most)
                return co_fail(CO_EINPUT, "data set %s: length() of sample %u of %s is %d; 1 to %lld can be",
                               t->def->name, id, splits[s], n, (long long)most);
        }
    return CO_OK;
}

static void take_samples(struct theirs *t, const cohort_samples *s)
{
    bool tokens = s->task == COHORT_TOKENS;
    int64_t max_len = tokens ? s->max_len : 0;
    co_shape x = tokens ? CO_SCALAR : shape_in(s->x);

    t->base.io = (co_io){.task = (co_task)s->task,
                         .x = x,
                         .classes = s->task == COHORT_REGRESS ? 0 : s->classes,
                         .y_width = s->task == COHORT_REGRESS ? s->y_width : 0,
                         .max_len = max_len};
    for (int i = 0; i < COHORT_SPLITS; i++)
        t->base.count[i] = (uint32_t)s->count[i];
    t->base.fill = fill;
    t->base.length = tokens ? length : NULL;
    t->base.check = check;
    t->base.stop_on_bad = t->base.needs_every_sample = s->task == COHORT_REGRESS;
    t->base.class_name = t->def->class_name ? class_name : NULL;
    t->base.close = shut;
    t->x_count = tokens ? (size_t)max_len : (size_t)co_shape_count(&x);
    t->y_count = tokens ? (size_t)max_len : s->task == COHORT_REGRESS ? (size_t)s->y_width : 1;
    memcpy(t->base.fingerprint, s->fingerprint, sizeof t->base.fingerprint);
}

co_err dataset_open(co_dataset **out, const co_dataset_def *def, const void *cfg)
{
    const cohort_dataset *d = ((const lib_dataset *)def)->theirs;
    struct theirs *t = co_zalloc(sizeof *t);
    cohort_samples samples = {0};

    if (!t)
        return CO_ENOMEM;
    t->def = d;
    co_errclear();
    co_err err = (co_err)d->open(&samples, cfg);
    if (err) {
        co_free(t);
        return co_fail_in(co_errmsg()[0] ? err : co_fail(err, "open() failed; cohort_fail can say why"),
                          "data set %s", d->name);
    }
    t->self = samples.self;
    err = check_samples(d->name, d, &samples);
    if (!err)
        take_samples(t, &samples);
    if (!err && t->base.length)
        err = check_lengths(t, samples.max_len);
    if (!err && !samples.fingerprint[0])
        err = fingerprint(t);
    if (err) {
        shut(&t->base);
        return err;
    }
    *out = &t->base;
    return CO_OK;
}
