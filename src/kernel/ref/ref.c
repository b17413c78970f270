/* ref.c -- the provider `ref`: plain C for any CPU, and the oracle of every other provider. A new family is
 * one file in this folder and one line here. */
#include "kernel/ref/real.h"

void REF(fill)(co_kernels *k)
{
    k->version = 1;
    k->real_size = sizeof(real);
    REF(matmul)(k->row);
    REF(conv)(k->row);
    REF(norm)(k->row);
    REF(pool)(k->row);
    REF(activation)(k->row);
    REF(attention)(k->row);
    REF(elementwise)(k->row);
    REF(shape)(k->row);
    REF(embedding)(k->row);
    REF(pairs)(k->row);
    REF(loss)(k->row);
    REF(reduce)(k->row);
    REF(ragged)(k->row);
}
