/* bench_int.h -- shared by the benches. */
#ifndef CO_CLI_BENCH_INT_H
#define CO_CLI_BENCH_INT_H

#include "cli/cli_int.h"

int by_double(const void *a, const void *b);
double median(double *x, int n);
const char *self(void); /* this program's file */

#endif
