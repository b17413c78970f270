/* simd_int.h -- each file of this folder puts its own rows into the table. */
#ifndef CO_KERNEL_SIMD_SIMD_INT_H
#define CO_KERNEL_SIMD_SIMD_INT_H

#include "kernel/kernel.h"
#include "kernel/simd/vec.h"

#define rows_matmul      LEVEL(rows_matmul)
#define rows_conv        LEVEL(rows_conv)
#define rows_elementwise LEVEL(rows_elementwise)
#define rows_norm        LEVEL(rows_norm)
#define rows_pool        LEVEL(rows_pool)
#define rows_loss        LEVEL(rows_loss)
#define rows_attention   LEVEL(rows_attention)
#define rows_ragged      LEVEL(rows_ragged)
#define rows_pairs       LEVEL(rows_pairs)

void rows_matmul(co_kernels *k);
void rows_conv(co_kernels *k);
void rows_elementwise(co_kernels *k);
void rows_norm(co_kernels *k);
void rows_pool(co_kernels *k);
void rows_loss(co_kernels *k);
void rows_attention(co_kernels *k);
void rows_ragged(co_kernels *k);
void rows_pairs(co_kernels *k);

#endif
