/* fill.c -- fills the table of this level: first the kernels of the level below it (plain C, or fewer lanes), then
 * those of this level that replace them. */
#include "kernel/kernel_int.h"
#include "kernel/simd/simd_int.h"

void LEVEL(kernels_fill)(co_kernels *k)
{
    level_below(k);
    k->version = 2; /* 2: 3x3 convolutions by Winograd's algorithm (docs/decisions/0023) */
    rows_matmul(k);
    rows_conv(k);
    rows_elementwise(k);
    rows_norm(k);
    if (VW <= 8) /* rows of pooled pictures are seldom longer */
        rows_pool(k);
    rows_loss(k);
    rows_attention(k);
    rows_ragged(k);
    rows_pairs(k);
}
