/* bench_int.h -- shared by the benches. */
#ifndef CO_BENCH_BENCH_INT_H
#define CO_BENCH_BENCH_INT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/exit.h"
#include "base/flag.h"
#include "base/json.h"
#include "base/str.h"
#include "bench/bench.h"
#include "cohort.h" /* COHORT_VERSION */
#include "term/say.h"

/* The benches, each in a file of its own; rows of the table in bench.c. */
int bench_sameness(int argc, char **argv);
int bench_kills(int argc, char **argv);
int bench_start(int argc, char **argv);
int bench_scaling(int argc, char **argv);
int bench_apply(int argc, char **argv);
int bench_sparse(int argc, char **argv);
int bench_hosts(int argc, char **argv);
int bench_exchange(int argc, char **argv);
int bench_threads(int argc, char **argv);
int bench_versus(int argc, char **argv);

/* trial.c: runs `cohort train` with these arguments (NULL-terminated) in a fresh folder below `dir`. */
typedef struct trial {
    int status; /* exit status */
    char *dir;  /* run folder */
    json_t *summary;
    double secs;
    uint64_t began_ns;
} trial;
co_err trial_run(trial *t, const char *program, const char *dir, const char *const *words);
void trial_free(trial *t);
co_err trial_folder(char path[64]); /* a fresh folder under TMPDIR */
/* Runs in ROOT/r, which is emptied first; a run that does not end with 0 is an error. */
co_err trial_once(trial *t, const char *root, const char *const *words);
double trial_number(const trial *t, const char *key); /* of its summary; 0: not there */
/* Reports the error and gives the exit status. Removes `root` after success; after a failure it has the logs. */
int trial_ended(co_err err, const char *root);

int by_double(const void *a, const void *b);
double median(double *x, int n);
const char *self(void); /* this program's file */

/* machine.c: the peak memory of all descendants of this process together, from start to stop. */
typedef struct memory_watch memory_watch;
co_err memory_watch_start(memory_watch **out);
size_t memory_watch_stop(memory_watch *w);               /* bytes; frees w; NULL is fine */
void cpu_fact(const char *name, char *out, size_t size); /* a value of /proc/cpuinfo, or "" */
json_t *cpu_vector_flags(void);                          /* the CPU flags for vector instructions */

/* material.c: makes root/text, and root/pictures with one folder per class. */
co_err material_make(const char *root);

#endif
