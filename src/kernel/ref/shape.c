/* shape.c -- moving elements of any dtype: copy, transpose, concat, slice, pad, and fill.
 *
 * Along an axis a tensor is `outer` blocks, one after the other, each of d[axis] * inner elements; concat,
 * slice and pad copy parts of blocks. Threads divide the blocks; in transpose they divide the rows of the
 * output. */
#include "kernel/ref/real.h"

#include <string.h>

static size_t element_size(const co_arg *a)
{
    return a->dtype == CO_F32 ? sizeof(real) : co_dtype_size(a->dtype);
}

static int64_t outer(const co_arg *a, int axis)
{
    return dims_product(&a->shape, 0, axis);
}

/* Bytes of one block along `axis`. */
static size_t block_size(const co_arg *a, int axis)
{
    return (size_t)dims_product(&a->shape, axis, CO_MAX_DIMS) * element_size(a);
}

/* Bytes in a block before index `start` of the axis. */
static size_t bytes_before(const co_arg *a, int axis, int64_t start)
{
    return (size_t)(start * dims_product(&a->shape, axis + 1, CO_MAX_DIMS)) * element_size(a);
}

static void fill(const co_call *c)
{
    real *y = c->out[0].p, value = c->attr->value;
    int64_t lo, hi;

    co_share(co_shape_count(&c->out[0].shape), c->ith, c->nth, &lo, &hi);
    for (int64_t i = lo; i < hi; i++)
        y[i] = value;
}

static void copy(const co_call *c)
{
    const char *x = c->in[0].p;
    char *y = c->out[0].p;
    size_t size = element_size(&c->in[0]);
    int64_t lo, hi;

    co_share(co_shape_count(&c->out[0].shape), c->ith, c->nth, &lo, &hi);
    memcpy(y + (size_t)lo * size, x + (size_t)lo * size, (size_t)(hi - lo) * size);
}

/* y[j] = x[j * stride], elements of `size` bytes */
static void gather(char *y, const char *x, int64_t n, int64_t stride, size_t size)
{
    if (stride == 1)
        memcpy(y, x, (size_t)n * size);
    else if (size == 4)
        for (int64_t j = 0; j < n; j++)
            memcpy(y + j * 4, x + j * stride * 4, 4);
    else
        for (int64_t j = 0; j < n; j++)
            memcpy(y + (size_t)j * size, x + (size_t)(j * stride) * size, size);
}

static void transpose(const co_call *c)
{
    const char *x = c->in[0].p;
    char *y = c->out[0].p;
    const co_shape *xs = &c->in[0].shape, *ys = &c->out[0].shape;
    size_t size = element_size(&c->in[0]);
    int64_t n = shape_last(ys), step[CO_MAX_DIMS] = {1}, lo, hi; /* step in x of each dimension of y */

    for (int i = 0; i < xs->nd; i++)
        step[i] = dims_product(xs, c->attr->perm[i] + 1, xs->nd);
    co_share(shape_rows(ys), c->ith, c->nth, &lo, &hi);
    for (int64_t r = lo; r < hi; r++) {
        int64_t at = 0, rest = r;
        for (int i = ys->nd - 2; i >= 0; i--) {
            at += rest % ys->d[i] * step[i];
            rest /= ys->d[i];
        }
        gather(y + (size_t)(r * n) * size, x + (size_t)at * size, n, step[ys->nd > 0 ? ys->nd - 1 : 0], size);
    }
}

static void concat(const co_call *c)
{
    int axis = c->attr->axis;
    size_t whole = block_size(&c->out[0], axis), at = 0;
    int64_t lo, hi;

    co_share(outer(&c->out[0], axis), c->ith, c->nth, &lo, &hi);
    for (int i = 0; i < c->n_in; i++) {
        size_t part = block_size(&c->in[i], axis);
        for (int64_t o = lo; o < hi; o++)
            memcpy((char *)c->out[0].p + (size_t)o * whole + at, (const char *)c->in[i].p + (size_t)o * part,
                   part);
        at += part;
    }
}

static void slice(const co_call *c)
{
    int axis = c->attr->axis;
    size_t whole = block_size(&c->in[0], axis), part = block_size(&c->out[0], axis);
    size_t at = bytes_before(&c->in[0], axis, c->attr->start);
    int64_t lo, hi;

    co_share(outer(&c->out[0], axis), c->ith, c->nth, &lo, &hi);
    for (int64_t o = lo; o < hi; o++)
        memcpy((char *)c->out[0].p + (size_t)o * part, (const char *)c->in[0].p + (size_t)o * whole + at, part);
}

static void pad(const co_call *c)
{
    int axis = c->attr->axis;
    size_t whole = block_size(&c->out[0], axis), part = block_size(&c->in[0], axis);
    size_t at = bytes_before(&c->out[0], axis, c->attr->start);
    int64_t lo, hi;

    co_share(outer(&c->out[0], axis), c->ith, c->nth, &lo, &hi);
    for (int64_t o = lo; o < hi; o++) {
        char *block = (char *)c->out[0].p + (size_t)o * whole;
        memset(block, 0, at);
        memcpy(block + at, (const char *)c->in[0].p + (size_t)o * part, part);
        memset(block + at + part, 0, whole - at - part);
    }
}

void REF(shape)(co_kernel_row *row)
{
    row[CO_OP_FILL].fn = fill;
    row[CO_OP_COPY].fn = copy;
    row[CO_OP_TRANSPOSE].fn = transpose;
    row[CO_OP_CONCAT].fn = concat;
    row[CO_OP_SLICE].fn = slice;
    row[CO_OP_PAD].fn = pad;
}
