/* safetensors.h -- reading and writing .safetensors, with every rule of the reference reader enforced.
 *
 * The writer streams: declare all tensors, then write their bytes in the declared order, in pieces of any
 * size. The reader trusts nothing: it checks the header's length, the JSON, duplicate keys, that the offsets
 * tile the file exactly, and that sizes match shapes.
 *
 *     co_st_writer *w;
 *     CO_TRY(co_st_create(&w, path, tensors, n, metadata));
 *     CO_TRY(co_st_write(w, bytes, len)); ...
 *     CO_TRY(co_st_finish(w, sha_hex, &file_len));
 *
 *     co_st_file *f;
 *     CO_TRY(co_st_open(&f, path));
 *     const co_st_tensor *t = co_st_find(f, "fc.weight");
 *     CO_TRY(co_st_read(f, t, 0, dst, t->len));
 */
#ifndef CO_TENSOR_SAFETENSORS_H
#define CO_TENSOR_SAFETENSORS_H

#include <jansson.h>

#include "base/err.h"
#include "tensor/tensor.h"

typedef struct co_st_writer co_st_writer;
typedef struct co_st_file co_st_file;

typedef struct co_st_tensor {
    const char *name;
    char dtype_name[12];
    co_dtype dtype; /* CO_DTYPE_COUNT: a dtype that we can list but not read */
    co_shape shape;
    uint64_t offset; /* from the start of the file */
    uint64_t len;    /* bytes */
} co_st_tensor;

int co_st_dtype_bits(const char *dtype_name); /* of an element; 0: safetensors has no such dtype */

/* Declares n tensors by name, dtype and shape; ignores their other fields, except that dtype CO_DTYPE_COUNT
 * means the dtype called dtype_name, which must have whole bytes. `metadata` is an object of strings
 * (borrowed, NULL for none); "format":"pt" is added to it. Creates `path` (O_EXCL). */
co_err co_st_create(co_st_writer **out, const char *path, const co_st_tensor *tensors, int n, json_t *metadata);
co_err co_st_write(co_st_writer *w, const void *bytes, size_t len);
/* Checks that every declared byte was written, fsyncs, closes and frees w. On failure it frees w and removes
 * the file. hex: SHA-256 of the file. */
co_err co_st_finish(co_st_writer *w, char hex[65], uint64_t *file_len);
void co_st_abort(co_st_writer *w); /* closes and unlinks; NULL is fine */
/* Finishes the file, or gives it up if there was an error, which is returned. */
co_err co_st_end(co_st_writer *w, co_err err);

co_err co_st_open(co_st_file **out, const char *path);
/* Parses the beginning of a file from memory: at least up to the end of the header. For fuzzing, and for
 * files that do not come from disk. `file_len` is the claimed length of the whole file. */
co_err co_st_parse(co_st_file **out, const char *bytes, size_t len, uint64_t file_len, const char *what);
int co_st_count(const co_st_file *f);
const co_st_tensor *co_st_at(const co_st_file *f, int i);      /* in order of offset */
const co_st_tensor *co_st_by_name(const co_st_file *f, int i); /* in bytewise name order */
const co_st_tensor *co_st_find(const co_st_file *f, const char *name);
const char *co_st_meta(const co_st_file *f, const char *key); /* NULL if absent */
co_err co_st_read(co_st_file *f, const co_st_tensor *t, uint64_t from, void *dst, size_t len);
void co_st_close(co_st_file *f); /* NULL is fine */

#endif
