/* kernel_int.h -- what the providers of the kernel table share. Only src/kernel/ and its tests include it;
 * among the tests is the provider `wide`, which compiles the reference kernels again in double. */
#ifndef CO_KERNEL_KERNEL_INT_H
#define CO_KERNEL_KERNEL_INT_H

#include <stdbool.h>

#include "kernel/kernel.h"

/* A row of the table of providers (providers.c). */
typedef struct provider {
    const char *name;     /* what trainer.kernels takes; co_kernels.level */
    const char *numerics; /* providers with the same numerics give the same bits; co_kernels.numerics */
    const char *needs;    /* what the CPU must have, for the error message; NULL: nothing */
    bool (*has)(void);    /* whether this CPU can run it */
    /* Fills a zeroed table: every row, `version`, `real_size` and `space`. Called only where has() is
     * true. */
    void (*fill)(co_kernels *k);
} provider;

extern const provider providers[];
extern const int provider_count;

void kernels_ref_fill(co_kernels *k);
void kernels_far_fill(co_kernels *k);
/* src/kernel/simd/, once per level */
void kernels_fill_avx512(co_kernels *k);
void kernels_fill_avx2(co_kernels *k);
void kernels_fill_fma128(co_kernels *k);

/* Product of dimensions [from, to); 1 if there are none. */
int64_t dims_product(const co_shape *s, int from, int to);
int64_t shape_last(const co_shape *s); /* the last dimension; 1 for a scalar */
int64_t shape_rows(const co_shape *s); /* the product of all others: R of "[R, C]" */

/* LAYER_NORM: 1 / deviation of a row of n from the sum of its squared distances; and what the sum of g * xh
 * is divided by in its gradient: n, or (n - 1) * (1 - eps * rstd) if unbiased. A row of equal elements has
 * no gradient through its deviation. */
double layer_norm_rstd(double squares, int64_t n, const co_attr *attr);
double layer_norm_divisor(double rstd, int64_t n, const co_attr *attr);

#endif
