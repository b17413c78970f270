/* growth_int.h -- shared by the files of `cohort bench growth`.
 *
 *     growth_axes.c     the table of axes: what grows, with which points
 *     growth_report.c   a point's figures, the rises of cost between neighbours, the plot
 *     growth.c          the command line, and the points one after the other
 */
#ifndef CO_BENCH_GROWTH_INT_H
#define CO_BENCH_GROWTH_INT_H

#include "bench/versus_int.h"

enum { GROWTH_POINTS = 16 };

typedef struct growth_axis {
    const char *name, *help;
    const char *label;            /* below the plot */
    int point[GROWTH_POINTS + 1]; /* unless --points says otherwise; 0 ends them */
    int least, most;
    co_err (*set)(versus *v, int point); /* task, batch and size. CO_EINPUT: there is no such point */
    bool doubles;                        /* each point is twice the one before: a logarithmic axis */
    bool by_token;                       /* the plot shows the cost of a token, not of a sample */
} growth_axis;

/* Index 0: cohort; 1: PyTorch with the fastest of its settings at that point. */
typedef struct growth_point {
    int point, batch, size, ranks, threads, steps;
    const char *model, *compared_with;
    double ms[2]; /* for one of the task's unit: a sample, or a token */
    double units; /* of a sample: 1, or its tokens */
    double gflop; /* useful ones, for one of the unit */
    double ratio; /* PyTorch's ms over ours: the median of the rounds' ratios */
} growth_point;

typedef struct growth {
    const growth_axis *axis;
    int want[GROWTH_POINTS], n, rounds;
    int steps; /* 0: chosen for each point */
    const char *plots;
    growth_point at[GROWTH_POINTS];
    versus v;
} growth;

/* growth_axes.c */
/* CO_EINPUT, with a list of all: the name is NULL or that of no axis. */
co_err growth_find_axis(const growth_axis **out, const char *name);
/* Numbers with commas between them, rising; NULL: the axis' own. */
co_err growth_read_points(growth *g, const char *text);

/* growth_report.c */
void growth_print_point(const growth *g, const growth_point *p);
void growth_print_axis(const growth *g);
co_err growth_plot(const growth *g); /* writes growth-AXIS.svg into the folder `plots` */

#endif
