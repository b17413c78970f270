/* bench_int.h -- shared by the benches. */
#ifndef CO_CLI_BENCH_INT_H
#define CO_CLI_BENCH_INT_H

#include "cli/cli_int.h"

int by_double(const void *a, const void *b);
double median(double *x, int n);
const char *self(void); /* this program's file */

/* bench_machine.c: the most that all processes below this one occupied together, from start to stop. */
typedef struct memory_watch memory_watch;
co_err memory_watch_start(memory_watch **out);
size_t memory_watch_stop(memory_watch *w);               /* bytes; frees w; NULL is fine */
void cpu_fact(const char *name, char *out, size_t size); /* of a line of /proc/cpuinfo; "" if there is none */
json_t *cpu_vector_flags(void);                          /* those flags that say how wide it computes */

/* bench_material.c: root/text, and root/pictures, a folder a class. */
co_err material_make(const char *root);

#endif
