/* tensor.h -- dtypes and shapes. Tensors here are always dense and row-major; a transpose is a copy. */
#ifndef CO_TENSOR_TENSOR_H
#define CO_TENSOR_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CO_MAX_DIMS 6

/* The names are the ones that safetensors uses. */
#define CO_DTYPES(X)                                                                                         \
    X(F32, 4)                                                                                                \
    X(F64, 8)                                                                                                \
    X(I32, 4)                                                                                                \
    X(I64, 8)                                                                                                \
    X(U8, 1)                                                                                                 \
    X(U32, 4)

typedef enum {
#define X(name, size) CO_##name,
    CO_DTYPES(X)
#undef X
        CO_DTYPE_COUNT
} co_dtype;

typedef struct co_shape {
    int nd; /* 0: a scalar, one element */
    int64_t d[CO_MAX_DIMS];
} co_shape;

size_t co_dtype_size(co_dtype t);
const char *co_dtype_name(co_dtype t); /* "F32" */
bool co_dtype_parse(co_dtype *out, const char *s);

#define CO_SHAPE(...) ((co_shape){(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}})
#define CO_SCALAR     ((co_shape){0, {0}})

int64_t co_shape_count(const co_shape *s); /* elements; 1 for a scalar */
bool co_shape_eq(const co_shape *a, const co_shape *b);
/* Writes "[8,64,3072]" into buf and returns buf; always NUL-terminated. */
const char *co_shape_text(char *buf, size_t size, const co_shape *s);
/* Elements times element size, with overflow checks. False if the result exceeds 2^62 or a dimension is
 * negative. */
bool co_shape_bytes(size_t *out, const co_shape *s, co_dtype t);

#endif
