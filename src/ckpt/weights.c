/* weights.c -- weights in and out. In: a file with the model's outside names, such as a PyTorch state dict
 * saved by safetensors.torch.save_file or by torch.save, or the model file of a checkpoint.
 *
 * Strict, like load_state_dict(strict=True): the file has every tensor of the model and no other, each with
 * the same shape and dtype. Tensors that are not to be loaded (a head for other classes) are named by
 * `skip`; none is left out by guess. Tables of sinusoids, which the model computes, may be there
 * (computed.c). Only a position embedding may have another size (resample.c). All names, dtypes and shapes
 * are compared before the state is changed.
 */
#include "ckpt/ckpt_int.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/str.h"
#include "tensor/safetensors.h"

enum { PIECE = 1 << 20, FEW_LAYERS = 4 };

/* --- what is left out ----------------------------------------------------------------------------------- */
/* Does one of the patterns, separated by commas, match? `list` may be NULL. */
static bool skipped(const char *list, const char *name)
{
    for (const char *at = list; at && *at; at += strspn(at, ",")) {
        char one[256];
        size_t n = strcspn(at, ",");
        memcpy(one, at, n); /* check_skip has checked the length */
        one[n] = '\0';
        if (fnmatch(one, name, 0) == 0)
            return true;
        at += n;
    }
    return false;
}

static bool matches_any(const char *pattern, const co_layout *l, const weights_file *f)
{
    for (int i = 0; i < l->n; i++)
        if (fnmatch(pattern, l->entry[i].name, 0) == 0)
            return true;
    for (int i = 0; i < weights_count(f); i++)
        if (fnmatch(pattern, weights_at(f, i)->name, 0) == 0)
            return true;
    return false;
}

/* A pattern that matches nothing is a mistake. */
static co_err check_skip(const char *list, const co_layout *l, const weights_file *f)
{
    for (const char *at = list; at && *at; at += strspn(at, ",")) {
        char one[256];
        size_t n = strcspn(at, ",");
        if (n >= sizeof one)
            return co_fail(CO_EINPUT, "weights_skip: a pattern of %zu bytes is too long", n);
        memcpy(one, at, n);
        one[n] = '\0';
        if (!matches_any(one, l, f))
            return co_fail(CO_EINPUT,
                           "weights_skip: no tensor is called \"%s\", neither in the model nor in the file",
                           one);
        at += n;
    }
    return CO_OK;
}

/* --- comparing ------------------------------------------------------------------------------------------ */
static co_err compare(const co_entry *e, const co_st_tensor *t)
{
    char there[160], here[160];
    const char *dtype = co_dtype_name(e->dtype);

    if (!co_shape_eq(&t->shape, &e->shape) && !resample_side(e, &t->shape)) {
        return co_fail(CO_EINPUT, "tensor %s is %s there, %s here", e->name,
                       co_shape_text(there, sizeof there, &t->shape),
                       co_shape_text(here, sizeof here, &e->shape));
    }
    if (strcmp(t->dtype_name, dtype) != 0)
        return co_fail(
            CO_EINPUT,
            "tensor %s is %s there, %s here: nothing is converted in silence; save it as %s (in PyTorch: %s)",
            e->name, t->dtype_name, dtype, dtype, e->dtype == CO_F32 ? "model.float()" : "tensor.long()");
    return CO_OK;
}

/* The first difference in name order. Tensors to skip are left out on both sides. idx: the model's entries
 * by name. */
static co_err match(const co_layout *l, const int *idx, const weights_file *f, const char *skip)
{
    for (int i = 0, k = 0; i < l->n || k < weights_count(f);) {
        const co_entry *e = i < l->n ? &l->entry[idx[i]] : NULL;
        const co_st_tensor *t = weights_at(f, k);
        if (e && skipped(skip, e->name)) {
            i++;
            continue;
        }
        if (t && skipped(skip, t->name)) {
            k++;
            continue;
        }
        int order = !e ? 1 : !t ? -1 : strcmp(e->name, t->name);
        /* num_batches_tracked: PyTorch does not need it either */
        if (order < 0 && e->kind == CO_KIND_COUNTER) {
            i++;
            continue;
        }
        if (order < 0)
            return co_fail(CO_EINPUT, "tensor %s of the model is not in it", e->name);
        if (order > 0 && weights_is_computed(t->name)) {
            k++;
            continue;
        }
        if (order > 0)
            return co_fail(CO_EINPUT, "tensor %s is in it, but not in the model", t->name);
        CO_TRY(compare(e, t));
        i++;
        k++;
    }
    return CO_OK;
}

/* Adds to the list of patterns every layer with a tensor of another shape. False: there are too many. */
static bool add_other_layers(co_str *list, int *added, const co_layout *l, const weights_file *f)
{
    *added = 0;
    for (int i = 0; i < l->n; i++) {
        const co_entry *e = &l->entry[i];
        const co_st_tensor *t = skipped(list->p, e->name) ? NULL : weights_find(f, e->name);
        if (!t || co_shape_eq(&t->shape, &e->shape) || resample_side(e, &t->shape))
            continue;
        const char *dot = strrchr(e->name, '.');
        int len = dot ? (int)(dot - e->name) : (int)strlen(e->name);
        if (++*added > FEW_LAYERS || len > 200)
            return false;
        co_str_addf(list, "%s%.*s%s", list->len ? "," : "", len, e->name, dot ? ".*" : "");
        if (co_str_err(list))
            return false;
    }
    return *added > 0;
}

/* `err` says that the weights do not fit. If they do without a few layers, adds the weights_skip for these. */
static co_err suggest_skip(const co_layout *l, const int *idx, const weights_file *f, const char *skip,
                           co_err err)
{
    co_str list = {0};
    char *why = co_sprintf("%s", co_errmsg()); /* a copy: comparing again replaces it */
    int added;

    if (skip)
        co_str_add(&list, skip);
    if (why && err == CO_EINPUT && add_other_layers(&list, &added, l, f) && match(l, idx, f, list.p) == CO_OK)
        err = co_fail(err, "%s; weights_skip=\"%s\" lets %s start anew", why, list.p,
                      added == 1 ? "it" : "them");
    else if (why)
        err = co_fail(err, "%s", why);
    co_free(why);
    co_str_fini(&list);
    return err;
}

static co_err read_resampled(weights_file *f, const co_st_tensor *t, const co_entry *e, int64_t side, float *dst)
{
    float *whole = co_alloc(t->len); /* [1, 1 + side * side, d] */
    co_err err = whole ? weights_read(f, t, whole) : CO_ENOMEM;

    if (!err)
        err = resample(dst, e, whole, side);
    co_free(whole);
    return err;
}

static co_err read_into(const co_layout *l, weights_file *f, const char *skip, float *state)
{
    for (int i = 0; i < l->n; i++) {
        const co_entry *e = &l->entry[i];
        const co_st_tensor *t = skipped(skip, e->name) ? NULL : weights_find(f, e->name);
        int64_t side = t ? resample_side(e, &t->shape) : 0;
        /* The tensor is as long as the entry: match() has checked that. */
        if (side)
            CO_TRY(read_resampled(f, t, e, side, state + e->offset));
        else if (t)
            CO_TRY(weights_read(f, t, state + e->offset));
    }
    return CO_OK;
}

co_err co_weights_load(const char *path, const co_layout *layout, const char *skip, float *state)
{
    weights_file *f = NULL;
    int *idx = co_layout_by_name(layout);
    co_err err = idx ? weights_open(&f, path) : CO_ENOMEM;

    if (!err)
        err = check_skip(skip, layout, f);
    if (!err && (err = match(layout, idx, f, skip)) != CO_OK) {
        err = suggest_skip(layout, idx, f, skip, err);
        co_fail_in(err, "weights of %s do not fit the model", path);
    }
    if (!err && state)
        err = weights_check(f);
    if (!err && state && (err = weights_check_computed(f)) != CO_OK)
        co_fail_in(err, "weights of %s do not fit the model", path);
    if (!err && state)
        err = read_into(layout, f, skip, state);
    weights_close(f);
    co_free(idx);
    return err;
}

co_err co_weights_note(char *text, size_t size, const char *path, const co_layout *layout, const char *skip)
{
    weights_file *f = NULL;

    text[0] = '\0';
    CO_TRY(weights_open(&f, path));
    for (int i = 0; i < layout->n; i++) {
        const co_entry *e = &layout->entry[i];
        const co_st_tensor *t = skipped(skip, e->name) ? NULL : weights_find(f, e->name);
        int64_t side = t ? resample_side(e, &t->shape) : 0;
        if (side)
            snprintf(text, size, "%s is resampled from %lldx%lld to %lldx%lld patches", e->name,
                     (long long)side, (long long)side, (long long)e->grid[0], (long long)e->grid[1]);
    }
    weights_close(f);
    return CO_OK;
}

/* --- a head of another size ----------------------------------------------------------------------------- */
/* Length of the name of the layer that an entry belongs to: 2 of "fc.weight". */
static int layer_len(const co_entry *e)
{
    const char *dot = strrchr(e->name, '.');

    return dot ? (int)(dot - e->name) : 0;
}

/* Alike but for the first dimension, the outputs? */
static bool other_outputs(const co_shape *a, const co_shape *b)
{
    co_shape same = *a;

    if (a->nd == 0 || a->nd != b->nd)
        return false;
    same.d[0] = b->d[0];
    return a->d[0] != b->d[0] && co_shape_eq(&same, b);
}

/* Compares the tensors of one layer. *found, *other: how many are in the file, how many have other
 * outputs. */
static void compare_layer(const co_layout *l, const weights_file *f, const co_entry *last, int *found,
                          int *other, co_new_head *out)
{
    int len = layer_len(last);

    for (int i = 0; i < l->n; i++) {
        const co_entry *e = &l->entry[i];
        const co_st_tensor *t = layer_len(e) == len && strncmp(e->name, last->name, (size_t)len) == 0
                                    ? weights_find(f, e->name)
                                    : NULL;
        if (!t)
            continue;
        (*found)++;
        if (!other_outputs(&t->shape, &e->shape))
            continue;
        if ((*other)++ == 0) {
            co_shape_text(out->there, sizeof out->there, &t->shape);
            co_shape_text(out->here, sizeof out->here, &e->shape);
        }
    }
}

co_err co_weights_head(const char *path, const co_layout *layout, co_new_head *out)
{
    weights_file *f = NULL;
    const co_entry *last = NULL;
    int found = 0, other = 0;

    *out = (co_new_head){0};
    for (int i = 0; i < layout->n; i++)
        if (layout->entry[i].kind == CO_KIND_PARAM)
            last = &layout->entry[i];
    if (!last || layer_len(last) == 0 || layer_len(last) > 128)
        return CO_OK;
    CO_TRY(weights_open(&f, path));
    compare_layer(layout, f, last, &found, &other, out);
    if (found == 0 || other > 0)
        snprintf(out->skip, sizeof out->skip, "%.*s.*", layer_len(last), last->name);
    weights_close(f);
    return CO_OK;
}

/* --- out ------------------------------------------------------------------------------------------------ */
/* Where each tensor of the exported file comes from. */
struct export
{
    co_st_file *model, *optim; /* optim: NULL unless the average is asked for */
};

static co_err open_export(struct export *x, const char *ckpt, bool average)
{
    char *path = co_sprintf("%s/" MODEL_FILE, ckpt);
    co_err err = path ? co_st_open(&x->model, path) : CO_ENOMEM;

    co_free(path);
    if (err || !average)
        return err;
    path = co_sprintf("%s/" OPTIM_FILE, ckpt);
    err = !path ? CO_ENOMEM : co_fs_exists(path) ? co_st_open(&x->optim, path) : CO_OK;
    co_free(path);
    for (int i = 0; x->optim && i < co_st_count(x->optim); i++)
        if (strncmp(co_st_at(x->optim, i)->name, CO_CKPT_AVERAGE ".", sizeof CO_CKPT_AVERAGE) == 0)
            return err;
    return err ? err
               : co_fail(CO_EINPUT, "checkpoint %s holds no average of the weights: the run had no optim.ema",
                         ckpt);
}

/* The average's tensor where there is one, else the model's. */
static const co_st_tensor *tensor_of(const struct export *x, const co_st_tensor *t, co_st_file **in)
{
    char name[1024];

    *in = x->model;
    if (!x->optim || snprintf(name, sizeof name, CO_CKPT_AVERAGE ".%s", t->name) >= (int)sizeof name)
        return t;
    const co_st_tensor *mean = co_st_find(x->optim, name);
    if (!mean || mean->len != t->len)
        return t;
    *in = x->optim;
    return mean;
}

static co_err copy_tensor(co_st_writer *w, co_st_file *in, const co_st_tensor *t, unsigned char *piece)
{
    for (uint64_t at = 0; at < t->len; at += PIECE) {
        size_t n = t->len - at < PIECE ? (size_t)(t->len - at) : PIECE;
        CO_TRY(co_st_read(in, t, at, piece, n));
        CO_TRY(co_st_write(w, piece, n));
    }
    return CO_OK;
}

static co_err write_export(const struct export *x, const char *to)
{
    int n = co_st_count(x->model);
    co_st_tensor *tensor = co_array((size_t)n, sizeof *tensor);
    unsigned char *piece = co_alloc(PIECE);
    co_st_writer *w = NULL;
    co_err err = tensor && piece ? CO_OK : CO_ENOMEM;

    for (int i = 0; i < n && !err; i++)
        tensor[i] = *co_st_at(x->model, i);
    if (!err)
        err = co_st_create(&w, to, tensor, n, NULL);
    for (int i = 0; i < n && !err; i++) {
        co_st_file *in;
        const co_st_tensor *t = tensor_of(x, &tensor[i], &in);
        err = copy_tensor(w, in, t, piece);
    }
    err = co_st_end(w, err);
    co_free(piece);
    co_free(tensor);
    return err;
}

co_err co_weights_export(const char *ckpt, const char *to, bool average)
{
    struct manifest m = {0};
    struct export x = {0};
    co_err err = verify(&m, ckpt);

    if (err)
        return co_fail_in(err, "checkpoint %s", ckpt);
    err = open_export(&x, ckpt,
                      average && m.meta.applied > 0); /* before the first step the average is the weights */
    if (!err)
        err = write_export(&x, to);
    co_st_close(x.model);
    co_st_close(x.optim);
    manifest_fini(&m);
    return err;
}
