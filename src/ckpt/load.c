/* load.c -- reading a checkpoint back: first every byte is checked, then the model is compared, then it
 * loads.
 *
 * Verifying reads each file once for its SHA-256, and the weights a second time, in name order, for
 * weights_sha256. Loading reads them a third time. If the file fits in memory, the last two come from the
 * page cache. The state is not changed before manifest, hashes, headers, names, dtypes and shapes have been
 * found right. Only a disk that fails during the third pass can leave the state half-loaded, and that is
 * reported.
 */
#include "ckpt/ckpt_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "tensor/safetensors.h"

enum { PIECE = 1 << 20 };

/* --- verify -------------------------------------------------------------------------------------------- */

static co_err check_file(const char *dir, const struct manifest_file *f)
{
    char hex[65];
    struct stat st;
    char *path = co_sprintf("%s/%s", dir, f->name);
    co_err err = CO_OK;

    if (!path)
        return CO_ENOMEM;
    if (stat(path, &st) != 0)
        err = errno == ENOENT ? co_fail(CO_EFORMAT, "%s: missing", f->name)
                              : co_fail(CO_EIO, "stat %s: %m", path);
    else if (!S_ISREG(st.st_mode))
        err = co_fail(CO_EFORMAT, "%s: not a file", f->name);
    else if ((uint64_t)st.st_size != f->bytes)
        err = co_fail(CO_EFORMAT, "%s: %lld bytes, the manifest says %" PRIu64 " (altered or torn)", f->name,
                      (long long)st.st_size, f->bytes);
    else
        err = co_sha256_of_file(path, hex, NULL);
    if (!err && strcmp(hex, f->sha256) != 0)
        err = co_fail(CO_EFORMAT, "%s: SHA-256 differs from the manifest (altered or torn)", f->name);
    co_free(path);
    return err;
}

co_err open_file(co_st_file **out, const char *dir, const char *name)
{
    char *path = co_sprintf("%s/%s", dir, name);
    co_err err = path ? co_st_open(out, path) : CO_ENOMEM;

    co_free(path);
    return err;
}

static co_err hash_tensor(co_sha256 *h, co_st_file *f, const co_st_tensor *t, unsigned char *piece)
{
    co_layout_sha256_head(h, t->name, t->dtype_name, &t->shape);
    for (uint64_t at = 0; at < t->len; at += PIECE) {
        size_t n = t->len - at < PIECE ? (size_t)(t->len - at) : PIECE;
        CO_TRY(co_st_read(f, t, at, piece, n));
        co_sha256_add(h, piece, n);
    }
    return CO_OK;
}

co_err hash_weights(co_st_file *f, char hex[65])
{
    co_sha256 h;
    unsigned char *piece = co_alloc(PIECE);
    co_err err = piece ? CO_OK : CO_ENOMEM;

    co_sha256_init(&h);
    for (int i = 0; i < co_st_count(f) && !err; i++)
        err = hash_tensor(&h, f, co_st_by_name(f, i), piece);
    co_sha256_hex(&h, hex);
    co_free(piece);
    return err;
}

/* weights_sha256 from the file, against the manifest's. */
static co_err check_weights(co_st_file *f, const char *want)
{
    char hex[65];
    co_err err = hash_weights(f, hex);

    if (!err && strcmp(hex, want) != 0)
        err = co_fail(CO_EFORMAT, MODEL_FILE ": weights_sha256 differs from the manifest");
    return err;
}

static bool is_safetensors(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot && strcmp(dot, ".safetensors") == 0;
}

co_err verify(struct manifest *out, const char *path)
{
    struct manifest m = {0};
    co_err err = manifest_read(&m, path);

    for (int i = 0; i < m.n && !err; i++) {
        co_st_file *f = NULL;
        err = check_file(path, &m.file[i]);
        if (!err && is_safetensors(m.file[i].name))
            err = open_file(&f, path, m.file[i].name);
        if (!err && strcmp(m.file[i].name, MODEL_FILE) == 0)
            err = check_weights(f, m.meta.weights_sha256);
        co_st_close(f);
    }
    if (err)
        manifest_fini(&m);
    else
        *out = m;
    return err;
}

co_err co_ckpt_examine(const char *path)
{
    struct manifest m = {0};
    co_err err = verify(&m, path);

    manifest_fini(&m);
    return err;
}

co_err co_ckpt_verify(const char *path)
{
    co_err err = co_ckpt_examine(path);

    return err ? co_fail_in(err, "checkpoint %s", path) : CO_OK;
}

/* --- load ---------------------------------------------------------------------------------------------- */

/* One tensor that must be in the file, and where its bytes go. */
struct want {
    const char *name;
    const co_entry *e;
    float *dst; /* [e->shape]; NULL: only compared */
};

static co_err compare(const struct want *w, const co_st_tensor *t)
{
    char there[160], here[160];

    if (strcmp(t->dtype_name, co_dtype_name(w->e->dtype)) != 0)
        return co_fail(CO_EINPUT, "tensor %s is %s there, %s here", w->name, t->dtype_name,
                       co_dtype_name(w->e->dtype));
    if (!co_shape_eq(&t->shape, &w->e->shape))
        return co_fail(CO_EINPUT, "tensor %s is %s there, %s here", w->name,
                       co_shape_text(there, sizeof there, &t->shape),
                       co_shape_text(here, sizeof here, &w->e->shape));
    return CO_OK;
}

/* The first difference in name order; both sides are sorted by name. */
static co_err match(const struct want *want, int n, const co_st_file *f)
{
    for (int i = 0, k = 0; i < n || k < co_st_count(f);) {
        const co_st_tensor *t = co_st_by_name(f, k);
        int order = i == n ? 1 : !t ? -1 : strcmp(want[i].name, t->name);
        if (order < 0)
            return co_fail(CO_EINPUT, "tensor %s is not in it", want[i].name);
        if (order > 0)
            return co_fail(CO_EINPUT, "tensor %s is in it, but not here", t->name);
        CO_TRY(compare(&want[i], t));
        i++;
        k++;
    }
    return CO_OK;
}

static co_err read_all(const struct want *want, int n, co_st_file *f)
{
    for (int i = 0; i < n; i++) {
        const co_st_tensor *t = co_st_find(f, want[i].name);
        if (want[i].dst) /* t->len is e->count elements: match() has checked that */
            CO_TRY(co_st_read(f, t, 0, want[i].dst, t->len));
    }
    return CO_OK;
}

static int want_order(const void *a, const void *b)
{
    return strcmp(((const struct want *)a)->name, ((const struct want *)b)->name);
}

static struct want *want_model(int *n, const co_layout *layout, float *state)
{
    struct want *w = co_array((size_t)layout->n, sizeof *w);

    *n = w ? layout->n : 0;
    for (int i = 0; i < *n; i++)
        w[i] = (struct want){layout->entry[i].name, &layout->entry[i],
                             state ? state + layout->entry[i].offset : NULL};
    if (w)
        qsort(w, (size_t)*n, sizeof *w, want_order);
    return w;
}

static struct want *want_optim(int *n, const co_layout *layout, int moments, const char *const *moment_names,
                               float *const *moment, co_pool *names)
{
    struct want *w = co_array((size_t)layout->n * (size_t)moments, sizeof *w);

    *n = 0;
    for (int k = 0; w && k < moments; k++) {
        for (int i = 0; i < layout->n; i++) {
            const co_entry *e = &layout->entry[i];
            if (!moment_covers(moment_names[k], e))
                continue;
            const char *name = co_pool_printf(names, "%s.%s", moment_names[k], e->name);
            if (!name) {
                co_free(w);
                return NULL;
            }
            w[(*n)++] = (struct want){name, e, moment && moment[k] ? moment[k] + e->offset : NULL};
        }
    }
    if (w)
        qsort(w, (size_t)*n, sizeof *w, want_order);
    return w;
}

/* Both files open and matching, then both are read, unless state is NULL. Padding and whatever has no
 * moment become zero. */
static co_err load_files(const char *path, const co_layout *layout, float *state, int moments,
                         const char *const *moment_names, float *const *moment)
{
    co_pool names = {0};
    co_st_file *model = NULL, *optim = NULL;
    int n_model = 0, n_optim = 0;
    struct want *w_model = want_model(&n_model, layout, state);
    struct want *w_optim = want_optim(&n_optim, layout, moments, moment_names, moment, &names);
    co_err err = w_model && w_optim ? open_file(&model, path, MODEL_FILE) : CO_ENOMEM;

    if (!err && (err = match(w_model, n_model, model)) != CO_OK)
        co_fail_in(err, "checkpoint %s is of another model", path);
    if (!err && n_optim > 0) {
        err = open_file(&optim, path, OPTIM_FILE);
        if (!err && (err = match(w_optim, n_optim, optim)) != CO_OK)
            co_fail_in(err, "checkpoint %s is of another optimiser", path);
    }
    if (!err && state) {
        memset(state, 0, layout->count * sizeof *state);
        for (int k = 0; k < moments; k++)
            if (moment[k])
                memset(moment[k], 0, layout->count * sizeof *moment[k]);
        err = read_all(w_model, n_model, model);
    }
    if (!err && state && optim)
        err = read_all(w_optim, n_optim, optim);
    co_st_close(model);
    co_st_close(optim);
    co_free(w_model);
    co_free(w_optim);
    co_pool_fini(&names);
    return err;
}

static co_err needs_optim(const char *path, const struct manifest *m, int moments,
                          const char *const *moment_names)
{
    if (moments == 0 || manifest_find(m, OPTIM_FILE))
        return CO_OK;
    return co_fail(CO_EINPUT,
                   "checkpoint %s has no " OPTIM_FILE
                   ": it was saved without %s; choose the optimiser it was "
                   "made with",
                   path, moment_names[0]);
}

co_err co_ckpt_fits(const char *path, const co_layout *layout, int moments, const char *const *moment_names)
{
    struct manifest m = {0};
    co_err err = manifest_read(&m, path);

    if (err)
        return co_fail_in(err, "checkpoint %s", path);
    err = needs_optim(path, &m, moments, moment_names);
    manifest_fini(&m);
    return err ? err : load_files(path, layout, NULL, moments, moment_names, NULL);
}

co_err co_ckpt_load(const char *path, const co_layout *layout, float *state, int moments,
                    const char *const *moment_names, float *const *moment, co_ckpt_meta *meta)
{
    struct manifest m = {0};
    co_err err = verify(&m, path);

    if (err)
        return co_fail_in(err, "checkpoint %s", path);
    err = needs_optim(path, &m, moments, moment_names);
    if (!err)
        err = load_files(path, layout, state, moments, moment_names, moment);
    if (!err && meta) {
        *meta = m.meta;
        m.meta.extra = NULL; /* now *meta's */
    }
    manifest_fini(&m);
    return err;
}
