/* simd_case.h -- one operator call on made-up data, for the tests of a level. A test can run it at any level
 * with any number of threads, compare the output bytes and hash them. Outputs start as garbage and are
 * followed by guard bytes that must not change. */
#ifndef TESTS_KERNEL_SIMD_CASE_H
#define TESTS_KERNEL_SIMD_CASE_H

#include <string.h>

#include "base/alloc.h"
#include "harness.h"
#include "kernel/kernel_int.h"

enum { SIMD_GUARD = 16 };

typedef struct simd_case {
    co_op op;
    co_attr attr;
    co_run run;
    co_arg in[CO_MAX_IN], out[CO_MAX_OUT];
    int n_in, n_out;
} simd_case;

static inline const co_kernels *simd_provider(const char *name)
{
    const co_kernels *k = NULL;
    CHECK_OK(co_kernels_get(&k, name));
    return k;
}

/* Runs the check on every level of src/kernel/simd that this CPU has; they all have one numerics. */
static inline void simd_each_level(void (*check)(const co_kernels *k))
{
    int n = 0;
    for (int i = 0; i < provider_count; i++)
        if (!strcmp(providers[i].numerics, "avx2") && providers[i].has()) {
            test_note("level %s", providers[i].name);
            check(simd_provider(providers[i].name));
            n++;
        }
    if (!n)
        test_skip("this CPU has no level of src/kernel/simd");
}

static inline size_t simd_bytes(const co_arg *a)
{
    return (size_t)co_shape_count(&a->shape) * co_dtype_size(a->dtype);
}

/* Uniform in [-1, 1) times scale. */
static inline float *simd_in(simd_case *c, co_shape s, float scale, uint64_t *rng)
{
    co_arg a = {.dtype = CO_F32, .shape = s};
    float *p = a.p = co_alloc(simd_bytes(&a));
    for (int64_t i = 0; i < co_shape_count(&s); i++)
        p[i] = test_unit(rng) * scale;
    c->in[c->n_in++] = a;
    return p;
}

static inline void *simd_in_ints(simd_case *c, co_shape s, co_dtype t)
{
    co_arg a = {.dtype = t, .shape = s};
    a.p = co_zalloc(simd_bytes(&a));
    c->in[c->n_in++] = a;
    return a.p;
}

static inline void *simd_out(simd_case *c, co_shape s)
{
    co_arg a = {.dtype = CO_F32, .shape = s};
    a.p = co_zalloc(simd_bytes(&a) + SIMD_GUARD);
    c->out[c->n_out++] = a;
    return a.p;
}

static inline void simd_run(const co_kernels *k, simd_case *t, int nth)
{
    for (int i = 0; i < t->n_out; i++)
        memset(t->out[i].p, 0xa5, simd_bytes(&t->out[i]) + SIMD_GUARD);
    co_call c = {&t->attr, t->in, t->out, t->n_in, t->n_out, NULL, &t->run, 0, nth};
    const co_kernel_row *row = &k->row[t->op];
    size_t size = row->scratch ? row->scratch(&c) : 0;
    char *mem = co_alloc(size + 64 + SIMD_GUARD), *scratch = mem + (64 - (uintptr_t)mem % 64) % 64;
    memset(scratch, 0xa5, size + SIMD_GUARD);
    c.scratch = scratch;
    co_kernel_run(row, &c, NULL, nth);
    for (int b = 0; b < SIMD_GUARD; b++) {
        CHECK((uint8_t)scratch[size + (size_t)b] == 0xa5, "%s writes past its scratch", co_op_name(t->op));
        for (int i = 0; i < t->n_out; i++)
            CHECK(((uint8_t *)t->out[i].p)[simd_bytes(&t->out[i]) + (size_t)b] == 0xa5,
                  "%s writes past output %d", co_op_name(t->op), i);
    }
    co_free(mem);
}

/* Keeps output i as it is now. */
static inline void *simd_keep(const simd_case *t, int i)
{
    void *p = co_alloc(simd_bytes(&t->out[i]) + 1);
    memcpy(p, t->out[i].p, simd_bytes(&t->out[i]));
    return p;
}

/* Runs with 1, 2 and 3 threads and checks that the bytes are the same. Leaves the outputs of one thread. */
static inline void simd_run_threads(const co_kernels *k, simd_case *t)
{
    void *one[CO_MAX_OUT];
    simd_run(k, t, 1);
    for (int i = 0; i < t->n_out; i++)
        one[i] = simd_keep(t, i);
    for (int nth = 2; nth <= 3; nth++) {
        simd_run(k, t, nth);
        for (int i = 0; i < t->n_out; i++)
            CHECK(!memcmp(one[i], t->out[i].p, simd_bytes(&t->out[i])),
                  "%s: output %d differs with %d threads", co_op_name(t->op), i, nth);
    }
    for (int i = 0; i < t->n_out; i++)
        co_free(one[i]);
}

static inline void simd_free(simd_case *t)
{
    for (int i = 0; i < t->n_in; i++)
        co_free(t->in[i].p);
    for (int i = 0; i < t->n_out; i++)
        co_free(t->out[i].p);
}

static inline int64_t simd_between(uint64_t *rng, int64_t lo, int64_t hi)
{
    return lo + (int64_t)(test_u32(rng) % (uint32_t)(hi - lo + 1));
}

#endif
