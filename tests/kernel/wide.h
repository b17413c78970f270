/* wide.h -- the reference kernels in double: real_size 8, every F32 tensor holds doubles, all else unchanged.
 * Finite differences through it are accurate to nine digits, and it shows the rounding error of the float
 * kernels. */
#ifndef TESTS_KERNEL_WIDE_H
#define TESTS_KERNEL_WIDE_H

#include "kernel/kernel.h"

const co_kernels *test_kernels_wide(void); /* static; level "wide" */

#endif
