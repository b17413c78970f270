/* torch.c -- the tensors of a file of torch.save.
 *
 * The file's value is the state dict itself, or a dict that holds it under a usual name, as Lightning and
 * most training scripts write. What wraps a model puts a prefix in front of all names ("model.", "module.");
 * a prefix that every tensor has is taken off.
 *
 * A tensor is a view of a storage: an offset, sizes and strides, all in elements. Before any is used: sizes
 * and strides are not negative, the last element that they reach lies inside the storage, and the storage
 * inside its entry. A tensor may not have more elements than its storage, and all tensors together not more
 * than MOST_TIMES the bytes of the file: a small file cannot ask for much memory.
 */
#include "ckpt/torch_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "ckpt/pickle_int.h"

enum { MOST_PICKLE = 32 << 20, MOST_TIMES = 64, MOST_NAME = 1000 };

struct tensor {
    co_st_tensor t; /* first: torch_read gets a pointer to it */
    co_zip_entry *entry;
    int element_size;
    bool contiguous;
    uint64_t first, span; /* elements of the storage: where it begins, how many it reaches over */
    int64_t stride[CO_MAX_DIMS];
};

struct torch_file {
    co_zip_file zip;
    co_pool pool;
    struct tensor *tensor; /* [n] in bytewise name order */
    int n;
    char folder[256]; /* the archive's only folder: "NAME" of NAME/data.pkl */
    co_import_facts facts;
};

/* --- the archive ---------------------------------------------------------------------------------------- */
static co_err check_stored(const co_zip_file *zip)
{
    for (int i = 0; i < zip->n; i++)
        if (zip->entry[i].method != CO_ZIP_STORED)
            return co_fail(CO_EFORMAT, "%s: entry %s is compressed; torch.save stores entries as they are",
                           zip->what, zip->entry[i].name);
    return CO_OK;
}

static co_err check_crc(const co_zip_file *zip, co_zip_entry *entry)
{
    co_err err = co_zip_check(zip, entry);

    return err == CO_EFORMAT ? co_fail(err,
                                       "%s (a file saved with set_crc32_options(False) has no CRC: save it "
                                       "again without)",
                                       co_errmsg())
                             : err;
}

static co_zip_entry *entry_of(const torch_file *f, const char *name)
{
    char path[600];

    snprintf(path, sizeof path, "%s/%.300s", f->folder, name);
    return co_zip_find(&f->zip, path);
}

static co_err find_folder(torch_file *f)
{
    for (int i = 0; i < f->zip.n; i++) {
        const char *name = f->zip.entry[i].name, *slash = strchr(name, '/');
        if (slash && strcmp(slash, "/data.pkl") == 0) {
            snprintf(f->folder, sizeof f->folder, "%.*s", (int)(slash - name), name);
            return CO_OK;
        }
    }
    return co_fail(CO_EINPUT, "%s is a zip archive, but not one of torch.save: it has no data.pkl",
                   f->zip.what);
}

static co_err check_byte_order(torch_file *f)
{
    co_zip_entry *entry = entry_of(f, "byteorder");
    char order[6];

    if (!entry) /* before torch 2.0: little */
        return CO_OK;
    CO_TRY(check_crc(&f->zip, entry));
    if (entry->len == sizeof order)
        CO_TRY(co_zip_read(&f->zip, entry, 0, order, sizeof order));
    return entry->len == sizeof order && memcmp(order, "little", sizeof order) == 0
               ? CO_OK
               : co_fail(CO_EINPUT, "%s was saved on a big-endian machine, which is not supported",
                         f->zip.what);
}

/* The bytes of data.pkl, in the pool. */
static co_err read_pickle(torch_file *f, void **bytes, size_t *len)
{
    co_zip_entry *entry = entry_of(f, "data.pkl");

    if (!entry || entry->len > MOST_PICKLE)
        return co_fail(CO_EINPUT, "%s: its pickle has %llu bytes; at most %d are read", f->zip.what,
                       entry ? (unsigned long long)entry->len : 0ull, MOST_PICKLE);
    CO_TRY(check_crc(&f->zip, entry));
    *len = (size_t)entry->len;
    if (!(*bytes = co_pool_alloc(&f->pool, *len)))
        return CO_ENOMEM;
    return co_zip_read(&f->zip, entry, 0, *bytes, *len);
}

/* --- the state dict ------------------------------------------------------------------------------------- */
static int count_tensors(const pickle_value *dict)
{
    int n = 0;

    for (size_t i = 1; dict && dict->kind == PICKLE_DICT && i < dict->n; i += 2)
        n += dict->item[i]->kind == PICKLE_TENSOR;
    return n;
}

static co_err find_state_dict(torch_file *f, const pickle_value **out, const pickle_value *root)
{
    static const char *const holders[] = {
        "state_dict", "model_state_dict", "model_state", "MODEL_STATE",   "model",
        "net",        "module",           "weights",     "state_dict_ema"};

    for (size_t i = 0; i < CO_COUNT(holders); i++) {
        const pickle_value *held = pickle_get(root, holders[i]);
        if (count_tensors(held) == 0)
            continue;
        snprintf(f->facts.held_by, sizeof f->facts.held_by, "%s", holders[i]);
        *out = held;
        return CO_OK;
    }
    *out = root;
    return count_tensors(root)
               ? CO_OK
               : co_fail(CO_EINPUT,
                         "%s holds no state dict: neither is it a dict of tensors, nor has it one "
                         "called state_dict or model_state_dict or model; in Python: "
                         "torch.save(model.state_dict(), \"model.pth\")",
                         f->zip.what);
}

/* --- one tensor ----------------------------------------------------------------------------------------- */
static co_err wrong(const torch_file *f, const struct tensor *x, const char *why)
{
    return co_fail(CO_EFORMAT, "%s: tensor %s %s", f->zip.what, x->t.name, why);
}

static co_err read_sizes(const torch_file *f, struct tensor *x, const pickle_value *v)
{
    const pickle_value *size = v->tensor.size, *stride = v->tensor.stride;

    if (size->n > CO_MAX_DIMS || stride->n != size->n)
        return co_fail(CO_EINPUT, "%s: tensor %s has %zu dimensions and %zu strides; at most %d are supported",
                       f->zip.what, x->t.name, size->n, stride->n, CO_MAX_DIMS);
    x->t.shape.nd = (int)size->n;
    for (size_t i = 0; i < size->n; i++) {
        if (size->item[i]->kind != PICKLE_INT || stride->item[i]->kind != PICKLE_INT ||
            size->item[i]->number < 0 || stride->item[i]->number < 0)
            return wrong(f, x, "has sizes or strides that are no numbers, or negative");
        x->t.shape.d[i] = size->item[i]->number;
        x->stride[i] = stride->item[i]->number;
    }
    return CO_OK;
}

/* *last: the last element of the storage that the tensor reaches. False: more than 2^63. */
static bool reach(const struct tensor *x, int64_t offset, int64_t *last)
{
    *last = offset;
    for (int i = 0; i < x->t.shape.nd; i++) {
        int64_t step;
        if (__builtin_mul_overflow(x->t.shape.d[i] - 1, x->stride[i], &step) ||
            __builtin_add_overflow(*last, step, last))
            return false;
    }
    return true;
}

static bool count_elements(const struct tensor *x, int64_t *count)
{
    *count = 1;
    for (int i = 0; i < x->t.shape.nd; i++)
        if (x->t.shape.d[i] == 0) {
            *count = 0;
            return true;
        }
    for (int i = 0; i < x->t.shape.nd; i++)
        if (__builtin_mul_overflow(*count, x->t.shape.d[i], count))
            return false;
    return true;
}

static bool is_contiguous(const struct tensor *x)
{
    int64_t want = 1;

    for (int i = x->t.shape.nd - 1; i >= 0; i--) {
        if (x->t.shape.d[i] != 1 && x->stride[i] != want)
            return false;
        want *= x->t.shape.d[i]; /* a product of sizes: count_elements has checked it */
    }
    return true;
}

/* Where the tensor's elements are: checks every number of it. */
static co_err place(const torch_file *f, struct tensor *x, const pickle_value *v)
{
    const pickle_value *storage = v->tensor.storage;
    int64_t offset = v->tensor.offset->number, count, last;
    char name[320];

    CO_TRY(read_sizes(f, x, v));
    x->element_size = storage->storage.element_size;
    snprintf(x->t.dtype_name, sizeof x->t.dtype_name, "%s", storage->storage.dtype);
    if (!co_dtype_parse(&x->t.dtype, x->t.dtype_name))
        x->t.dtype = CO_DTYPE_COUNT;
    if (!count_elements(x, &count))
        return wrong(f, x, "has a size that overflows");
    if (count == 0) {
        x->contiguous = true;
        return CO_OK;
    }
    if (offset < 0 || !reach(x, offset, &last) || last >= storage->storage.elements)
        return wrong(f, x, "reaches past the end of its storage");
    if (count > storage->storage.elements)
        return wrong(f, x, "repeats elements of its storage (expand): save a copy of it, x.contiguous()");
    snprintf(name, sizeof name, "data/%.300s", storage->storage.key);
    x->entry = entry_of(f, name);
    if (!x->entry)
        return wrong(f, x, "has a storage that is not in the file");
    if ((uint64_t)storage->storage.elements > x->entry->len / (unsigned)x->element_size)
        return wrong(f, x, "has a storage that is longer than its entry in the file");
    x->first = (uint64_t)offset;
    x->span = (uint64_t)(last - offset) + 1;
    x->contiguous = is_contiguous(x);
    x->t.len = (uint64_t)count * (unsigned)x->element_size; /* at most the length of the entry */
    return CO_OK;
}

/* --- all tensors ---------------------------------------------------------------------------------------- */
static int name_order(const void *a, const void *b)
{
    return strcmp(((const struct tensor *)a)->t.name, ((const struct tensor *)b)->t.name);
}

static bool usable_name(const pickle_value *key)
{
    return key->kind == PICKLE_TEXT && key->len > 0 && key->len <= MOST_NAME &&
           strlen(key->text) == key->len && co_utf8_valid(key->text);
}

static co_err take_tensors(torch_file *f, const pickle_value *dict, const char *prefix)
{
    uint64_t bytes = 0;
    size_t skip = prefix ? strlen(prefix) : 0;

    f->tensor = co_array((size_t)count_tensors(dict), sizeof *f->tensor);
    if (!f->tensor)
        return CO_ENOMEM;
    for (size_t i = 0; i + 1 < dict->n; i += 2) {
        const pickle_value *key = dict->item[i], *v = dict->item[i + 1];
        bool wanted = v->kind == PICKLE_TENSOR &&
                      (!skip || (key->kind == PICKLE_TEXT && strncmp(key->text, prefix, skip) == 0));
        if (!wanted) {
            f->facts.left_out++;
            continue;
        }
        if (!usable_name(key) || key->len == skip)
            return co_fail(CO_EFORMAT, "%s: a tensor has no name, or one that is not text", f->zip.what);
        struct tensor *x = &f->tensor[f->n++];
        x->t.name = key->text + skip;
        CO_TRY(place(f, x, v));
        bytes += x->t.len; /* each is at most the length of the file, and there are fewer than 2^25 */
        if (bytes / MOST_TIMES > f->zip.len)
            return wrong(f, x, "is one of too many that share a storage");
    }
    if (f->n == 0)
        return co_fail(CO_EINPUT, "%s has no tensor whose name begins with \"%s\"", f->zip.what, prefix);
    f->facts.tensors = f->n;
    f->facts.bytes = bytes;
    return CO_OK;
}

/* Takes a known prefix off all names, if all have it; more than once: "module.model.". */
static void strip_prefixes(torch_file *f)
{
    static const char *const wrappers[] = {"module.", "_orig_mod.", "model.", "net."};

    for (size_t w = 0; w < CO_COUNT(wrappers); w++) {
        size_t len = strlen(wrappers[w]), used = strlen(f->facts.prefix);
        bool all = used + len < sizeof f->facts.prefix;
        for (int i = 0; i < f->n && all; i++)
            all = strncmp(f->tensor[i].t.name, wrappers[w], len) == 0 && f->tensor[i].t.name[len];
        if (!all)
            continue;
        for (int i = 0; i < f->n; i++)
            f->tensor[i].t.name += len;
        memcpy(f->facts.prefix + used, wrappers[w], len + 1);
        w = (size_t)-1; /* from the beginning; the names are shorter each time, so it ends */
    }
}

static co_err sort_tensors(torch_file *f)
{
    qsort(f->tensor, (size_t)f->n, sizeof *f->tensor, name_order);
    for (int i = 1; i < f->n; i++)
        if (strcmp(f->tensor[i - 1].t.name, f->tensor[i].t.name) == 0)
            return wrong(f, &f->tensor[i], "is in it twice");
    return CO_OK;
}

static co_err read_file(torch_file *f, const co_import_how *how)
{
    const pickle_value *root = NULL, *dict = NULL;
    void *bytes = NULL;
    size_t len = 0;

    CO_TRY(check_stored(&f->zip));
    CO_TRY(find_folder(f));
    CO_TRY(check_byte_order(f));
    CO_TRY(read_pickle(f, &bytes, &len));
    CO_TRY(pickle_parse(&root, &f->pool, bytes, len, f->zip.what, how && how->drop_objects));
    CO_TRY(find_state_dict(f, &dict, root));
    CO_TRY(take_tensors(f, dict, how ? how->prefix : NULL));
    if (how && how->prefix)
        snprintf(f->facts.prefix, sizeof f->facts.prefix, "%s", how->prefix);
    else
        strip_prefixes(f);
    return sort_tensors(f);
}

/* --- the door ------------------------------------------------------------------------------------------- */
static co_err finish(torch_file **out, torch_file *f, co_err err, const co_import_how *how)
{
    if (!err)
        err = read_file(f, how);
    if (err)
        torch_close(f);
    else
        *out = f;
    return err;
}

co_err torch_open(torch_file **out, const char *path, const co_import_how *how)
{
    torch_file *f = co_zalloc(sizeof *f);

    return f ? finish(out, f, co_zip_open(&f->zip, path), how) : CO_ENOMEM;
}

co_err torch_parse(torch_file **out, const void *bytes, size_t len, const char *what, const co_import_how *how)
{
    torch_file *f = co_zalloc(sizeof *f);

    return f ? finish(out, f, co_zip_parse(&f->zip, bytes, len, what), how) : CO_ENOMEM;
}

void torch_close(torch_file *f)
{
    if (!f)
        return;
    co_zip_close(&f->zip);
    co_pool_fini(&f->pool);
    co_free(f->tensor);
    co_free(f);
}

int torch_count(const torch_file *f)
{
    return f->n;
}

const co_st_tensor *torch_at(const torch_file *f, int i)
{
    return i >= 0 && i < f->n ? &f->tensor[i].t : NULL;
}

const co_import_facts *torch_facts(const torch_file *f)
{
    return &f->facts;
}

co_err torch_check(torch_file *f)
{
    for (int i = 0; i < f->n; i++)
        if (f->tensor[i].entry)
            CO_TRY(check_crc(&f->zip, f->tensor[i].entry));
    return CO_OK;
}

/* Copies the elements one by one in row-major order; `from` has the `span` elements that the tensor
 * reaches. */
static void gather(const struct tensor *x, const uint8_t *from, uint8_t *to)
{
    int64_t index[CO_MAX_DIMS] = {0};
    size_t size = (size_t)x->element_size;
    int nd = x->t.shape.nd;

    for (uint64_t done = 0; done < x->t.len; done += size) {
        int64_t at = 0;
        for (int i = 0; i < nd; i++)
            at += index[i] * x->stride[i];
        memcpy(to + done, from + (size_t)at * size, size);
        for (int i = nd - 1; i >= 0 && ++index[i] == x->t.shape.d[i]; i--)
            index[i] = 0;
    }
}

co_err torch_read(const torch_file *f, const co_st_tensor *t, void *dst)
{
    const struct tensor *x = (const struct tensor *)t;
    size_t size = (size_t)x->element_size;

    if (t->len == 0)
        return CO_OK;
    if (x->contiguous)
        return co_zip_read(&f->zip, x->entry, x->first * size, dst, (size_t)t->len);
    uint8_t *span = co_alloc((size_t)x->span * size);
    co_err err =
        span ? co_zip_read(&f->zip, x->entry, x->first * size, span, (size_t)x->span * size) : CO_ENOMEM;
    if (!err)
        gather(x, span, dst);
    co_free(span);
    return err;
}
