/* wide.c -- the sources of the provider `ref`, compiled once more over double. exp and erf are libm's here,
 * so they also check our own. */
#define REF_WIDE

#include "kernel/ref/activation.c"
#include "kernel/ref/attention.c"
#include "kernel/ref/conv.c"
#include "kernel/ref/elementwise.c"
#include "kernel/ref/embedding.c"
#include "kernel/ref/pairs.c"
#include "kernel/ref/loss.c"
#include "kernel/ref/matmul.c"
#include "kernel/ref/norm.c"
#include "kernel/ref/pool.c"
#include "kernel/ref/ragged.c"
#include "kernel/ref/reduce.c"
#include "kernel/ref/shape.c"
#include "kernel/ref/ref.c"

#include "kernel/wide.h"

const co_kernels *test_kernels_wide(void)
{
    static co_kernels k;

    if (!k.level) {
        kernels_wide_fill(&k);
        k.level = k.numerics = "wide";
    }
    return &k;
}
