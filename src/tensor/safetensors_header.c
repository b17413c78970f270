/* safetensors_header.c -- parses the header of a .safetensors file and checks every rule of the format.
 *
 *     | N: u64 little-endian | N bytes of JSON, "{" first | tensor bytes ...................... |
 *     0                      8                           8+N                              file end
 *
 * Rules, each with its own message: N <= 100,000,000 and inside the file; the header begins with '{' and is
 * one object without duplicate keys; a tensor has a known dtype, whole non-negative dimensions, and end -
 * begin = elements * bits / 8 without overflow; in order of offset the tensors begin at 0, leave no gap, and
 * end where the file ends. Unknown keys inside a tensor's entry are ignored, as in the reference reader.
 * Unlike the reference reader we refuse more than CO_MAX_DIMS dimensions and an entry of more than MAX_ENTRY
 * bytes.
 *
 * The header (at most 100 MB) is parsed member by member, which keeps memory within a few times its length. A
 * single json_t of it could take 40 times its length.
 */
#include "tensor/safetensors_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"

enum { MAX_HEADER = 100000000, MAX_ENTRY = 65536 };

/* A header during parsing: the text and the current position. */
typedef struct cursor {
    const char *bytes; /* [len] */
    size_t len, at;
    const char *what;
} cursor;

/* Every dtype of the format, including those that we can list but not read. */
static const struct {
    const char *name;
    int bits;
} known[] = {
    {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
    {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
    {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
    {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64},
};

int co_st_dtype_bits(const char *name)
{
    for (size_t i = 0; i < CO_COUNT(known); i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].bits;
    return 0;
}

/* Reads the length word and checks it against the limit and the file. */
co_err st_parse_length(uint64_t *out, const char *bytes, uint64_t file_len, const char *what)
{
    uint64_t n = 0;

    for (int i = ST_LENGTH - 1; i >= 0; i--)
        n = n << 8 | (unsigned char)bytes[i];
    if (n > MAX_HEADER)
        return co_fail(CO_EFORMAT,
                       "%s: header of %" PRIu64 " bytes, more than the 100,000,000 that safetensors allows"
                       " (is it a safetensors file?)",
                       what, n);
    if (n > file_len - ST_LENGTH)
        return co_fail(CO_EFORMAT,
                       "%s: header of %" PRIu64 " bytes in a file of %" PRIu64
                       ": cut short (is the download complete?)",
                       what, n, file_len);
    *out = n;
    return CO_OK;
}

static co_err parse_shape(co_st_tensor *tensor, const json_t *shape, const char *what)
{
    size_t nd = json_array_size(shape);

    if (!json_is_array(shape))
        return co_fail(CO_EFORMAT, "%s: tensor %s has no shape", what, tensor->name);
    if (nd > CO_MAX_DIMS)
        return co_fail(CO_EFORMAT, "%s: tensor %s has %zu dimensions; at most %d are supported", what,
                       tensor->name, nd, CO_MAX_DIMS);
    for (size_t i = 0; i < nd; i++) {
        const json_t *d = json_array_get(shape, i);
        if (!json_is_integer(d) || json_integer_value(d) < 0)
            return co_fail(CO_EFORMAT, "%s: tensor %s: dimension %zu is not a whole number", what,
                           tensor->name, i);
        tensor->shape.d[i] = json_integer_value(d);
    }
    tensor->shape.nd = (int)nd;
    return CO_OK;
}

static co_err parse_dtype(co_st_tensor *tensor, const char *dtype, const char *what)
{
    if (!dtype || co_st_dtype_bits(dtype) == 0)
        return co_fail(CO_EFORMAT, "%s: tensor %s: dtype '%.32s' is not one of safetensors", what,
                       tensor->name, dtype ? dtype : "");
    snprintf(tensor->dtype_name, sizeof tensor->dtype_name, "%s", dtype);
    if (!co_dtype_parse(&tensor->dtype, dtype))
        tensor->dtype = CO_DTYPE_COUNT;
    return CO_OK;
}

/* Checks begin and end against dtype and shape. */
static co_err check_length(const co_st_tensor *tensor, const char *what)
{
    uint64_t bits = 1;
    bool fits = true;
    char shape[160];

    for (int i = 0; i < tensor->shape.nd; i++)
        fits = fits && !__builtin_mul_overflow(bits, (uint64_t)tensor->shape.d[i], &bits);
    fits = fits && !__builtin_mul_overflow(bits, (uint64_t)co_st_dtype_bits(tensor->dtype_name), &bits);
    co_shape_text(shape, sizeof shape, &tensor->shape);
    if (!fits)
        return co_fail(CO_EFORMAT, "%s: tensor %s: the size of %s %s overflows", what, tensor->name,
                       tensor->dtype_name, shape);
    if (bits % 8 != 0)
        return co_fail(CO_EFORMAT, "%s: tensor %s: %s %s is not a whole number of bytes", what, tensor->name,
                       tensor->dtype_name, shape);
    if (bits / 8 != tensor->len)
        return co_fail(CO_EFORMAT, "%s: tensor %s: %s %s is %" PRIu64 " bytes, data_offsets span %" PRIu64,
                       what, tensor->name, tensor->dtype_name, shape, bits / 8, tensor->len);
    return CO_OK;
}

static co_err parse_tensor(co_st_file *f, co_st_tensor *t, const json_t *v, uint64_t base)
{
    const json_t *span = json_object_get(v, "data_offsets");
    const json_t *begin = json_array_get(span, 0), *end = json_array_get(span, 1);

    if (!json_is_object(v))
        return co_fail(CO_EFORMAT, "%s: tensor %s is not described by an object", f->what, t->name);
    CO_TRY(parse_dtype(t, co_json_str(v, "dtype"), f->what));
    CO_TRY(parse_shape(t, json_object_get(v, "shape"), f->what));
    if (json_array_size(span) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
        json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin))
        return co_fail(CO_EFORMAT, "%s: tensor %s: data_offsets are not [begin, end]", f->what, t->name);
    t->offset = base + (uint64_t)json_integer_value(begin); /* base < 2^27, begin < 2^63 */
    t->len = (uint64_t)(json_integer_value(end) - json_integer_value(begin));
    return check_length(t, f->what);
}

/* ---- the header, member by member ---- */

static char next_char(cursor *c) /* the next character that is not white space; NUL at the end */
{
    while (c->at < c->len && c->bytes[c->at] && strchr(" \t\r\n", c->bytes[c->at]))
        c->at++;
    return c->at < c->len ? c->bytes[c->at] : 0;
}

static co_err expect(cursor *c, char want)
{
    if (next_char(c) != want)
        return co_fail(CO_EFORMAT, "%s: not valid JSON: '%c' expected at byte %zu of the header", c->what,
                       want, c->at);
    c->at++;
    return CO_OK;
}

/* Copies a string into the pool. Most strings are plain printable ASCII and need no JSON parser. */
static co_err take_string(const char **out, cursor *cur, co_pool *pool)
{
    json_t *v = NULL;

    if (next_char(cur) != '"')
        return co_fail(CO_EFORMAT, "%s: not valid JSON: a string was expected at byte %zu of the header",
                       cur->what, cur->at);
    size_t end = cur->at + 1;
    while (end < cur->len && cur->bytes[end] >= ' ' && cur->bytes[end] < 0x7f && cur->bytes[end] != '"' &&
           cur->bytes[end] != '\\')
        end++;
    if (end < cur->len && cur->bytes[end] == '"') {
        *out = co_pool_strn(pool, cur->bytes + cur->at + 1, end - cur->at - 1);
        cur->at = end + 1;
        return *out ? CO_OK : CO_ENOMEM;
    }
    CO_TRY(co_json_parse_at(&v, &cur->at, cur->bytes, cur->len, cur->what));
    *out = co_pool_str(pool, json_string_value(v));
    json_decref(v);
    return *out ? CO_OK : CO_ENOMEM;
}

/* Makes room for one more element; capacities are powers of two. */
static co_err grow(void **array, int n, size_t size)
{
    if (n & (n - 1))
        return CO_OK;
    void *p = co_realloc(*array, (n ? 2 * (size_t)n : 1) * size);
    if (!p)
        return CO_ENOMEM;
    *array = p;
    return CO_OK;
}

static co_err take_meta(co_st_file *f, cursor *c, const char *key)
{
    CO_TRY(grow((void **)&f->meta, f->n_meta, sizeof *f->meta));
    if (next_char(c) != '"')
        return co_fail(CO_EFORMAT, "%s: __metadata__ '%s' is not a string", f->what, key);
    meta_pair *m = &f->meta[f->n_meta];
    m->key = key;
    CO_TRY(take_string(&m->value, c, &f->pool));
    f->n_meta++;
    return CO_OK;
}

static co_err take_tensor(co_st_file *file, cursor *cur, const char *name)
{
    bool cut = cur->len - cur->at > MAX_ENTRY;
    json_t *v = NULL;

    CO_TRY(grow((void **)&file->tensor, file->n, sizeof *file->tensor));
    co_err err = co_json_parse_at(&v, &cur->at, cur->bytes, cut ? cur->at + MAX_ENTRY : cur->len, file->what);
    if (err == CO_EFORMAT && cut)
        return co_fail(CO_EFORMAT, "%s: tensor %s: its entry is not valid JSON, or is longer than %d bytes",
                       file->what, name, MAX_ENTRY);
    if (err)
        return err;
    co_st_tensor *tensor = &file->tensor[file->n++];
    *tensor = (co_st_tensor){.name = name};
    err = parse_tensor(file, tensor, v, ST_LENGTH + cur->len);
    json_decref(v);
    return err;
}

typedef co_err (*take_member)(co_st_file *f, cursor *c, const char *key);

/* Parses an object: calls take() for each member, with the cursor at its value. */
static co_err each_member(co_st_file *f, cursor *c, take_member take)
{
    CO_TRY(expect(c, '{'));
    if (next_char(c) == '}')
        return expect(c, '}');
    for (;;) {
        const char *key;
        CO_TRY(take_string(&key, c, &f->pool));
        CO_TRY(expect(c, ':'));
        CO_TRY(take(f, c, key));
        if (next_char(c) != ',')
            return expect(c, '}');
        c->at++;
    }
}

static co_err take_top(co_st_file *f, cursor *c, const char *key)
{
    if (strcmp(key, "__metadata__") != 0)
        return take_tensor(f, c, key);
    if (f->has_meta)
        return co_fail(CO_EFORMAT, "%s: duplicate __metadata__", f->what);
    f->has_meta = true;
    if (next_char(c) != '{')
        return co_fail(CO_EFORMAT, "%s: __metadata__ is not an object", f->what);
    return each_member(f, c, take_meta);
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

static int key_order(const void *a, const void *b)
{
    return strcmp(((const meta_pair *)a)->key, ((const meta_pair *)b)->key);
}

/* Checks that there is no gap and no overlap, and that the last tensor ends where the file ends. */
static co_err check_tiling(const co_st_file *file, uint64_t base, uint64_t file_len)
{
    uint64_t at = base;

    for (int i = 0; i < file->n; i++) {
        const co_st_tensor *tensor = &file->tensor[i];
        if (tensor->offset != at)
            return co_fail(CO_EFORMAT,
                           "%s: tensor %s begins at byte %" PRIu64
                           " of the data, the one before ends at %" PRIu64 ": %s",
                           file->what, tensor->name, tensor->offset - base, at - base,
                           tensor->offset < at ? "they overlap" : "a hole");
        at += tensor->len;
    }
    if (at != file_len)
        return co_fail(CO_EFORMAT, "%s: the header describes %" PRIu64 " bytes, the file has %" PRIu64 ": %s",
                       file->what, at, file_len, at > file_len ? "cut short" : "extra bytes at the end");
    return CO_OK;
}

static co_err sort_names(co_st_file *file)
{
    file->by_name = co_array((size_t)file->n, sizeof *file->by_name);
    if (!file->by_name)
        return CO_ENOMEM;
    for (int i = 0; i < file->n; i++)
        file->by_name[i] = &file->tensor[i];
    qsort(file->by_name, (size_t)file->n, sizeof *file->by_name, name_order);
    for (int i = 1; i < file->n; i++)
        if (strcmp(file->by_name[i - 1]->name, file->by_name[i]->name) == 0)
            return co_fail(CO_EFORMAT, "%s: duplicate tensor %s", file->what, file->by_name[i]->name);
    if (file->n_meta > 1)
        qsort(file->meta, (size_t)file->n_meta, sizeof *file->meta, key_order);
    for (int i = 1; i < file->n_meta; i++)
        if (strcmp(file->meta[i - 1].key, file->meta[i].key) == 0)
            return co_fail(CO_EFORMAT, "%s: duplicate __metadata__ '%s'", file->what, file->meta[i].key);
    return CO_OK;
}

static co_err parse_header(co_st_file *f, cursor *c, uint64_t file_len)
{
    uint64_t base = ST_LENGTH + c->len;

    CO_TRY(each_member(f, c, take_top));
    if (next_char(c) || c->at < c->len)
        return co_fail(CO_EFORMAT, "%s: not valid JSON: the header goes on after its object, at byte %zu",
                       f->what, c->at);
    if (f->n > 1)
        qsort(f->tensor, (size_t)f->n, sizeof *f->tensor, offset_order);
    CO_TRY(sort_names(f));
    return check_tiling(f, base, file_len);
}

void co_st_close(co_st_file *f)
{
    if (!f)
        return;
    if (f->fd >= 0)
        close(f->fd);
    co_free(f->meta);
    co_free(f->tensor);
    co_free(f->by_name);
    co_pool_fini(&f->pool);
    co_free(f);
}

co_err co_st_parse(co_st_file **out, const char *bytes, size_t len, uint64_t file_len, const char *what)
{
    uint64_t n = 0;

    if (len < ST_LENGTH || file_len < ST_LENGTH)
        return co_fail(CO_EFORMAT, "%s: %" PRIu64 " bytes, shorter than any safetensors file", what, file_len);
    CO_TRY(st_parse_length(&n, bytes, file_len, what));
    if (n > len - ST_LENGTH)
        return co_fail(CO_EFORMAT, "%s: the header is cut short", what);
    if (n == 0 || bytes[ST_LENGTH] != '{')
        return co_fail(CO_EFORMAT, "%s: the header does not begin with '{' (is it a safetensors file?)", what);

    co_err err = CO_ENOMEM;
    co_st_file *file = co_zalloc(sizeof *file);
    if (file) {
        file->fd = -1;
        file->what = co_pool_str(&file->pool, what);
        if (file->what)
            err = parse_header(file, &(cursor){bytes + ST_LENGTH, n, 0, what}, file_len);
    }
    if (err)
        co_st_close(file);
    else
        *out = file;
    return err;
}
