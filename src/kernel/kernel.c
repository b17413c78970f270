/* kernel.c -- the table of providers. Each starts as a copy of `ref` and overwrites what it does better, so a
 * provider never lacks an operator. The tables are filled once, on the first question, and never change. */
#include "kernel/kernel.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "kernel/kernel_int.h"

static struct provider {
    co_kernels k;
    char name[32]; /* "avx2.1" */
} ref, avx2, far;

static struct provider *const all[] = {&ref, &avx2, &far};
static pthread_once_t filled = PTHREAD_ONCE_INIT;

static int cpu_has_avx2(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static void fill(void)
{
    kernels_ref_fill(&ref.k);
    kernels_far_fill(&far.k);
    kernels_ref_fill(&avx2.k);
    avx2.k.level = "avx2";
    if (cpu_has_avx2()) /* the filling code itself is compiled for it */
        kernels_avx2_fill(&avx2.k);
    for (size_t i = 0; i < CO_COUNT(all); i++)
        snprintf(all[i]->name, sizeof all[i]->name, "%s.%d", all[i]->k.level, all[i]->k.version);
}

const char *co_op_name(co_op op)
{
    static const char *const names[] = {
#define X(id, name) name,
        CO_OPS(X)
#undef X
    };

    return op >= 0 && op < CO_OP_COUNT ? names[op] : "unknown operator";
}

co_err co_kernels_get(const co_kernels **out, const char *level)
{
    pthread_once(&filled, fill);
    if (!strcmp(level, "auto")) {
        *out = cpu_has_avx2() ? &avx2.k : &ref.k;
        return CO_OK;
    }
    for (size_t i = 0; i < CO_COUNT(all); i++) {
        if (strcmp(level, all[i]->k.level) != 0)
            continue;
        if (all[i] == &avx2 && !cpu_has_avx2())
            return co_fail(CO_EINPUT, "kernels 'avx2': this CPU lacks AVX2 or FMA (use 'ref' or 'auto')");
        *out = &all[i]->k;
        return CO_OK;
    }
    return co_fail(CO_EINPUT, "kernels '%s': no such level (there are auto, ref, avx2, far)", level);
}

const char *co_kernels_name(const co_kernels *k)
{
    for (size_t i = 0; i < CO_COUNT(all); i++)
        if (k == &all[i]->k)
            return all[i]->name;
    return k->level; /* not of this table: a test's own */
}

int64_t dims_product(const co_shape *s, int from, int to)
{
    int64_t n = 1;

    for (int i = from; i < to && i < s->nd; i++)
        n *= s->d[i];
    return n;
}

int64_t shape_last(const co_shape *s)
{
    return s->nd > 0 ? s->d[s->nd - 1] : 1;
}

int64_t shape_rows(const co_shape *s)
{
    return dims_product(s, 0, s->nd - 1);
}
