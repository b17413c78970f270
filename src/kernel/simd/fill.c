/* fill.c -- fills the table of this level: first the reference kernels, then the vector kernels that replace
 * some of them. */
#include "kernel/kernel_int.h"
#include "kernel/simd/simd_int.h"

void LEVEL(kernels_fill)(co_kernels *k)
{
    kernels_ref_fill(k);
    k->version = 2; /* 2: 3x3 convolutions by Winograd's algorithm (docs/decisions/0023) */
    rows_matmul(k);
    rows_conv(k);
    rows_elementwise(k);
    rows_norm(k);
    rows_pool(k);
    rows_loss(k);
    rows_attention(k);
    rows_ragged(k);
}
