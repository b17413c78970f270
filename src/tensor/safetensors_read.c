/* safetensors_read.c -- a .safetensors file, believed only after every rule of the format was checked.
 *
 *     | N: u64 little-endian | N bytes of JSON, "{" first | tensor bytes ...................... |
 *     0                      8                           8+N                              file end
 *
 * Rules, each with its own message: N <= 100,000,000 and inside the file; the header begins with '{' and is one
 * object without double keys; a tensor has a known dtype, whole non-negative dimensions, and
 * end - begin = elements * bits / 8 without overflow; in order of offset the tensors begin at 0, abut, and end
 * where the file ends. Unknown keys inside a tensor's entry are passed over, as the reference reader does.
 * What we refuse beyond it: more than CO_MAX_DIMS dimensions.
 *
 * The header is read whole (at most 100 MB), tensor bytes only when asked for, by pread: nothing is mapped, so
 * a file that shrinks is an error message and not SIGBUS.
 */
#include "tensor/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json.h"

enum { LENGTH = 8, MAX_HEADER = 100000000 };

struct co_st_file {
    co_pool pool; /* names and what */
    const char *what;
    co_st_tensor *tensor; /* [n] in order of offset */
    const co_st_tensor **by_name;
    int n;
    json_t *meta; /* NULL if there is none */
    int fd;       /* -1 if parsed from memory */
};

/* Every dtype of the format, also those that we can only list. */
static const struct {
    const char *name;
    int bits;
} known[] = {
    {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
    {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
    {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
    {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64},
};

static int dtype_bits(const char *name)
{
    for (size_t i = 0; i < CO_COUNT(known); i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].bits;
    return 0;
}

/* The length word, checked against what there is. */
static co_err parse_length(uint64_t *out, const char *bytes, uint64_t file_len, const char *what)
{
    uint64_t n = 0;

    for (int i = LENGTH - 1; i >= 0; i--)
        n = n << 8 | (unsigned char)bytes[i];
    if (n > MAX_HEADER)
        return co_fail(CO_EFORMAT,
                       "%s: header of %" PRIu64 " bytes, more than the 100,000,000 that safetensors allows"
                       " (is it a safetensors file?)",
                       what, n);
    if (n > file_len - LENGTH)
        return co_fail(CO_EFORMAT,
                       "%s: header of %" PRIu64 " bytes in a file of %" PRIu64
                       ": cut short (is the download complete?)",
                       what, n, file_len);
    *out = n;
    return CO_OK;
}

static co_err parse_shape(co_st_tensor *t, const json_t *shape, const char *what)
{
    size_t nd = json_array_size(shape);

    if (!json_is_array(shape))
        return co_fail(CO_EFORMAT, "%s: tensor %s has no shape", what, t->name);
    if (nd > CO_MAX_DIMS)
        return co_fail(CO_EFORMAT, "%s: tensor %s has %zu dimensions; at most %d are supported", what,
                       t->name, nd, CO_MAX_DIMS);
    for (size_t i = 0; i < nd; i++) {
        const json_t *d = json_array_get(shape, i);
        if (!json_is_integer(d) || json_integer_value(d) < 0)
            return co_fail(CO_EFORMAT, "%s: tensor %s: dimension %zu is not a whole number", what, t->name, i);
        t->shape.d[i] = json_integer_value(d);
    }
    t->shape.nd = (int)nd;
    return CO_OK;
}

static co_err parse_dtype(co_st_tensor *t, const char *dtype, const char *what)
{
    if (!dtype || dtype_bits(dtype) == 0)
        return co_fail(CO_EFORMAT, "%s: tensor %s: dtype '%.32s' is not one of safetensors", what, t->name,
                       dtype ? dtype : "");
    snprintf(t->dtype_name, sizeof t->dtype_name, "%s", dtype);
    if (!co_dtype_parse(&t->dtype, dtype))
        t->dtype = CO_DTYPE_COUNT;
    return CO_OK;
}

/* Do begin and end agree with dtype and shape? */
static co_err check_length(const co_st_tensor *t, const char *what)
{
    uint64_t bits = 1;
    bool fits = true;
    char shape[160];

    for (int i = 0; i < t->shape.nd; i++)
        fits = fits && !__builtin_mul_overflow(bits, (uint64_t)t->shape.d[i], &bits);
    fits = fits && !__builtin_mul_overflow(bits, (uint64_t)dtype_bits(t->dtype_name), &bits);
    co_shape_text(shape, sizeof shape, &t->shape);
    if (!fits)
        return co_fail(CO_EFORMAT, "%s: tensor %s: the size of %s %s overflows", what, t->name, t->dtype_name,
                       shape);
    if (bits % 8 != 0)
        return co_fail(CO_EFORMAT, "%s: tensor %s: %s %s is not a whole number of bytes", what, t->name,
                       t->dtype_name, shape);
    if (bits / 8 != t->len)
        return co_fail(CO_EFORMAT, "%s: tensor %s: %s %s is %" PRIu64 " bytes, data_offsets span %" PRIu64,
                       what, t->name, t->dtype_name, shape, bits / 8, t->len);
    return CO_OK;
}

static co_err parse_tensor(co_st_file *f, co_st_tensor *t, const char *name, const json_t *v, uint64_t base)
{
    const json_t *span = json_object_get(v, "data_offsets");
    const json_t *begin = json_array_get(span, 0), *end = json_array_get(span, 1);

    t->name = co_pool_str(&f->pool, name);
    if (!t->name)
        return CO_ENOMEM;
    if (!json_is_object(v))
        return co_fail(CO_EFORMAT, "%s: tensor %s is not described by an object", f->what, name);
    CO_TRY(parse_dtype(t, co_json_str(v, "dtype"), f->what));
    CO_TRY(parse_shape(t, json_object_get(v, "shape"), f->what));
    if (json_array_size(span) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
        json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin))
        return co_fail(CO_EFORMAT, "%s: tensor %s: data_offsets are not [begin, end]", f->what, name);
    t->offset = base + (uint64_t)json_integer_value(begin); /* base < 2^27, begin < 2^63 */
    t->len = (uint64_t)(json_integer_value(end) - json_integer_value(begin));
    return check_length(t, f->what);
}

static co_err parse_meta(co_st_file *f, json_t *meta)
{
    const char *key;
    json_t *v;

    if (!json_is_object(meta))
        return co_fail(CO_EFORMAT, "%s: __metadata__ is not an object", f->what);
    json_object_foreach(meta, key, v)
    {
        if (!json_is_string(v))
            return co_fail(CO_EFORMAT, "%s: __metadata__ '%s' is not a string", f->what, key);
    }
    f->meta = json_incref(meta);
    return CO_OK;
}

static int offset_order(const void *a, const void *b)
{
    const co_st_tensor *x = a, *y = b;

    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    if (x->len != y->len)
        return x->len < y->len ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int name_order(const void *a, const void *b)
{
    return strcmp((*(const co_st_tensor *const *)a)->name, (*(const co_st_tensor *const *)b)->name);
}

/* No hole, no overlap, and the last tensor ends where the file ends. */
static co_err check_tiling(const co_st_file *f, uint64_t base, uint64_t file_len)
{
    uint64_t at = base;

    for (int i = 0; i < f->n; i++) {
        const co_st_tensor *t = &f->tensor[i];
        if (t->offset != at)
            return co_fail(CO_EFORMAT,
                           "%s: tensor %s begins at byte %" PRIu64
                           " of the data, the one before ends at %" PRIu64 ": %s",
                           f->what, t->name, t->offset - base, at - base,
                           t->offset < at ? "they overlap" : "a hole");
        at += t->len;
    }
    if (at != file_len)
        return co_fail(CO_EFORMAT, "%s: the header describes %" PRIu64 " bytes, the file has %" PRIu64 ": %s",
                       f->what, at, file_len, at > file_len ? "cut short" : "bytes too many at the end");
    return CO_OK;
}

static co_err parse_header(co_st_file *f, json_t *root, uint64_t base, uint64_t file_len)
{
    const char *key;
    json_t *v;
    size_t room = json_object_size(root);

    f->tensor = co_array(room, sizeof *f->tensor);
    f->by_name = co_array(room, sizeof *f->by_name);
    if (!f->tensor || !f->by_name)
        return CO_ENOMEM;
    json_object_foreach(root, key, v)
    {
        if (strcmp(key, "__metadata__") == 0) {
            CO_TRY(parse_meta(f, v));
            continue;
        }
        CO_TRY(parse_tensor(f, &f->tensor[f->n], key, v, base));
        f->n++;
    }
    qsort(f->tensor, (size_t)f->n, sizeof *f->tensor, offset_order);
    CO_TRY(check_tiling(f, base, file_len));
    for (int i = 0; i < f->n; i++)
        f->by_name[i] = &f->tensor[i];
    qsort(f->by_name, (size_t)f->n, sizeof *f->by_name, name_order);
    return CO_OK;
}

co_err co_st_parse(co_st_file **out, const char *bytes, size_t len, uint64_t file_len, const char *what)
{
    uint64_t n = 0;
    json_t *root = NULL;

    if (len < LENGTH || file_len < LENGTH)
        return co_fail(CO_EFORMAT, "%s: %" PRIu64 " bytes, shorter than any safetensors file", what, file_len);
    CO_TRY(parse_length(&n, bytes, file_len, what));
    if (n > len - LENGTH)
        return co_fail(CO_EFORMAT, "%s: the header is cut short", what);
    if (n == 0 || bytes[LENGTH] != '{')
        return co_fail(CO_EFORMAT, "%s: the header does not begin with '{' (is it a safetensors file?)", what);
    CO_TRY(co_json_parse(&root, bytes + LENGTH, n, what));

    co_err err = CO_ENOMEM;
    co_st_file *f = co_zalloc(sizeof *f);
    if (f) {
        f->fd = -1;
        f->what = co_pool_str(&f->pool, what);
        if (f->what)
            err = parse_header(f, root, LENGTH + n, file_len);
    }
    json_decref(root);
    if (err)
        co_st_close(f);
    else
        *out = f;
    return err;
}

/* All of [at, at + len) or an error. */
static co_err read_at(int fd, void *dst, size_t len, uint64_t at, const char *path)
{
    char *p = dst;

    while (len > 0) {
        ssize_t got = pread(fd, p, len, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return co_fail(CO_EIO, "read %s: %m", path);
        if (got == 0)
            return co_fail(CO_EFORMAT, "%s: became shorter while it was read", path);
        p += got;
        at += (uint64_t)got;
        len -= (size_t)got;
    }
    return CO_OK;
}

co_err co_st_open(co_st_file **out, const char *path)
{
    char word[LENGTH], *bytes = NULL;
    uint64_t n = 0;
    struct stat st;
    co_err err;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe by that name must not hang us */

    if (fd < 0)
        return co_fail(CO_EIO, "open %s: %m", path);
    if (fstat(fd, &st) != 0) {
        err = co_fail(CO_EIO, "stat %s: %m", path);
    } else if (!S_ISREG(st.st_mode)) {
        err = co_fail(CO_EIO, "%s is not a file", path);
    } else if (st.st_size < LENGTH) {
        err = co_fail(CO_EFORMAT, "%s: %lld bytes, shorter than any safetensors file", path,
                      (long long)st.st_size);
    } else {
        err = read_at(fd, word, sizeof word, 0, path);
        if (!err)
            err = parse_length(&n, word, (uint64_t)st.st_size, path);
        if (!err && !(bytes = co_alloc(LENGTH + n)))
            err = CO_ENOMEM;
        if (!err)
            err = read_at(fd, bytes, LENGTH + n, 0, path);
        if (!err)
            err = co_st_parse(out, bytes, LENGTH + n, (uint64_t)st.st_size, path);
    }
    co_free(bytes);
    if (err)
        close(fd);
    else
        (*out)->fd = fd;
    return err;
}

int co_st_count(const co_st_file *f)
{
    return f->n;
}

const co_st_tensor *co_st_at(const co_st_file *f, int i)
{
    return i >= 0 && i < f->n ? &f->tensor[i] : NULL;
}

const co_st_tensor *co_st_find(const co_st_file *f, const char *name)
{
    int lo = 0, hi = f->n;

    while (lo < hi) {
        int mid = lo + (hi - lo) / 2, order = strcmp(name, f->by_name[mid]->name);
        if (order == 0)
            return f->by_name[mid];
        if (order < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

const co_st_tensor *co_st_by_name(const co_st_file *f, int i)
{
    return i >= 0 && i < f->n ? f->by_name[i] : NULL;
}

const char *co_st_meta(const co_st_file *f, const char *key)
{
    return f->meta ? co_json_str(f->meta, key) : NULL;
}

co_err co_st_read(co_st_file *f, const co_st_tensor *t, uint64_t from, void *dst, size_t len)
{
    if (f->fd < 0)
        return co_fail(CO_EINPUT, "%s: only its header is here", f->what);
    if (t->dtype == CO_DTYPE_COUNT)
        return co_fail(CO_EINPUT, "%s: tensor %s is %s, which cannot be computed with here (convert it to F32)",
                       f->what, t->name, t->dtype_name);
    if (from > t->len || len > t->len - from)
        return co_fail(CO_EINPUT, "%s: tensor %s has %" PRIu64 " bytes; %zu from %" PRIu64 " were asked for",
                       f->what, t->name, t->len, len, from);
    return read_at(f->fd, dst, len, t->offset + from, f->what);
}

void co_st_close(co_st_file *f)
{
    if (!f)
        return;
    if (f->fd >= 0)
        close(f->fd);
    json_decref(f->meta);
    co_free(f->tensor);
    co_free(f->by_name);
    co_pool_fini(&f->pool);
    co_free(f);
}
