/* tensor.c -- dtypes and shapes: the table behind the enum, and sizes computed with overflow checks. */
#include "tensor/tensor.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
} dtypes[CO_DTYPE_COUNT] = {
#define X(name, size) [CO_##name] = {#name, size},
    CO_DTYPES(X)
#undef X
};

size_t co_dtype_size(co_dtype t)
{
    return (unsigned)t < CO_DTYPE_COUNT ? dtypes[t].size : 0;
}

const char *co_dtype_name(co_dtype t)
{
    return (unsigned)t < CO_DTYPE_COUNT ? dtypes[t].name : "?";
}

bool co_dtype_parse(co_dtype *out, const char *s)
{
    for (int t = 0; t < CO_DTYPE_COUNT; t++) {
        if (strcmp(dtypes[t].name, s) == 0) {
            *out = (co_dtype)t;
            return true;
        }
    }
    return false;
}

int64_t co_shape_count(const co_shape *s)
{
    int64_t n = 1;

    for (int i = 0; i < s->nd; i++)
        n *= s->d[i];
    return n;
}

bool co_shape_eq(const co_shape *a, const co_shape *b)
{
    if (a->nd != b->nd)
        return false;
    for (int i = 0; i < a->nd; i++)
        if (a->d[i] != b->d[i])
            return false;
    return true;
}

const char *co_shape_text(char *buf, size_t size, const co_shape *shape)
{
    size_t at = 0;

    if (size == 0)
        return buf;
    buf[0] = '\0';
    for (int i = -1; i <= shape->nd && at < size; i++) {
        int n;
        if (i < 0)
            n = snprintf(buf + at, size - at, "[");
        else if (i < shape->nd)
            n = snprintf(buf + at, size - at, "%s%lld", i ? "," : "", (long long)shape->d[i]);
        else
            n = snprintf(buf + at, size - at, "]");
        at += n > 0 ? (size_t)n : 0;
    }
    return buf;
}

bool co_shape_bytes(size_t *out, const co_shape *s, co_dtype t)
{
    const size_t limit = (size_t)1 << 62;
    size_t n = co_dtype_size(t);

    if (s->nd < 0 || s->nd > CO_MAX_DIMS || n == 0)
        return false;
    for (int i = 0; i < s->nd; i++)
        if (s->d[i] < 0 || __builtin_mul_overflow(n, (size_t)s->d[i], &n) || n > limit)
            return false;
    *out = n;
    return true;
}
