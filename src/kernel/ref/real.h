/* real.h -- the element type of the reference kernels, and the loops they share.
 *
 * The files of this folder are written over `real`: float in the provider `ref`, double in the tests'
 * provider `wide`, which includes the same sources with REF_WIDE defined. There every F32 tensor holds
 * doubles; I32, I64, U32 and F64 stay what they are. A family of operators is one file; it ends with the
 * function that puts its kernels into the table.
 *
 * Sums run in index order, product then add. Long sums of products, which vector units speed up, run in
 * `real` (matrix products, convolutions, attention). Sums whose cost is small beside the rest run in double
 * (statistics of norms, sums of softmax, losses, sums over rows).
 */
#ifndef CO_KERNEL_REF_REAL_H
#define CO_KERNEL_REF_REAL_H

#include <math.h> /* sqrt and fabs: exact, the same everywhere */

#include "base/maths.h"
#include "kernel/kernel_int.h"

#ifdef REF_WIDE
typedef double real;
#define REF(name) kernels_wide_##name
#define R_EXP     exp
#define R_ERF     erf
#else
typedef float real;
#define REF(name) kernels_ref_##name
#define R_EXP     co_expf
#define R_ERF     co_erff
#endif

void REF(fill)(co_kernels *k);
void REF(matmul)(co_kernel_row *row);
void REF(conv)(co_kernel_row *row);
void REF(norm)(co_kernel_row *row);
void REF(pool)(co_kernel_row *row);
void REF(activation)(co_kernel_row *row);
void REF(attention)(co_kernel_row *row);
void REF(elementwise)(co_kernel_row *row);
void REF(shape)(co_kernel_row *row);
void REF(embedding)(co_kernel_row *row);
void REF(loss)(co_kernel_row *row);
void REF(reduce)(co_kernel_row *row);
void REF(ragged)(co_kernel_row *row);
void REF(pairs)(co_kernel_row *row);

/* y[j] += a * x[j] */
static inline void add_scaled(real *restrict y, real a, const real *restrict x, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        y[j] += a * x[j];
}

/* y[j] = sum over k of x[k * xs] * w[j * ws + k]. Computes four outputs at a time, so that four independent
 * chains of additions overlap; each chain is in order of k. */
static inline void dot_rows(real *restrict y, int64_t n, const real *restrict x, int64_t xs,
                            const real *restrict w, int64_t ws, int64_t len)
{
    int64_t j = 0;

    for (; j + 4 <= n; j += 4) {
        const real *w0 = w + j * ws, *w1 = w0 + ws, *w2 = w1 + ws, *w3 = w2 + ws;
        real a0 = 0, a1 = 0, a2 = 0, a3 = 0;
        for (int64_t k = 0; k < len; k++) {
            real v = x[k * xs];
            a0 += v * w0[k];
            a1 += v * w1[k];
            a2 += v * w2[k];
            a3 += v * w3[k];
        }
        y[j] = a0;
        y[j + 1] = a1;
        y[j + 2] = a2;
        y[j + 3] = a3;
    }
    for (; j < n; j++) {
        real a = 0;
        for (int64_t k = 0; k < len; k++)
            a += x[k * xs] * w[j * ws + k];
        y[j] = a;
    }
}

#endif
