/* fill.c -- the rows of this level over a table of reference rows. */
#include "kernel/kernel_int.h"
#include "kernel/simd/simd_int.h"

void kernels_avx2_fill(co_kernels *k)
{
    k->level = "avx2";
    rows_matmul(k);
    rows_conv(k);
    rows_elementwise(k);
    rows_norm(k);
    rows_pool(k);
    rows_loss(k);
    rows_attention(k);
}
