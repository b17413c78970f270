/* ops_int.h -- the parts of `cohort bench ops`. */
#ifndef CO_BENCH_OPS_INT_H
#define CO_BENCH_OPS_INT_H

#include "bench/bench_int.h"
#include "bench/peak.h"
#include "train/measure.h"

enum { OPS_RANKS = 2, OPS_MOST_ROUNDS = 1000 };

/* One call, or all calls of an operator. The arrays' index is the number of ranks, less one. */
typedef struct ops_row {
    const co_call_facts *facts; /* of the (first) call */
    int call, calls;            /* its place in the pass; how many calls the row stands for */
    double flops, useful, bytes;
    bool counted; /* flops and useful are known */
    double ms[OPS_RANKS];
} ops_row;

typedef struct ops {
    co_plan *plan;
    int rounds, n, samples;
    co_call_facts *facts;    /* [n] */
    ops_row *row;            /* [n] */
    co_peak peak[OPS_RANKS]; /* of one process while so many measure it */
} ops;

/* ops_measure.c: fills the times and the peaks. The ranks are processes that compute at the same time. */
co_err ops_measure(ops *o);

/* ops_report.c */
void ops_print_text(ops *o, const char *title); /* sorts the rows */
void ops_print_json(const ops *o);

#endif
