/* kernel_int.h -- what the providers of the kernel table share. Seen by src/kernel/ only (and by the tests'
 * provider `wide`, which compiles the reference kernels once more, in double). */
#ifndef CO_KERNEL_KERNEL_INT_H
#define CO_KERNEL_KERNEL_INT_H

#include "kernel/kernel.h"

/* Level "ref", version, real_size and every row. */
void kernels_ref_fill(co_kernels *k);
/* Over a table that kernels_ref_fill filled: overwrites the rows this level has (and version, when its
 * algorithms change). Only called where the CPU has AVX2 and FMA. */
void kernels_avx2_fill(co_kernels *k);
/* Level "far": the rows of ref over a memory space of its own. */
void kernels_far_fill(co_kernels *k);

/* Product of dimensions [from, to); 1 if there are none. */
int64_t dims_product(const co_shape *s, int from, int to);
int64_t shape_last(const co_shape *s); /* the last dimension; 1 for a scalar */
int64_t shape_rows(const co_shape *s); /* the product of all others: R of "[R, C]" */

#endif
