/* data_int.h -- the parts of `cohort bench data`. */
#ifndef CO_BENCH_DATA_INT_H
#define CO_BENCH_DATA_INT_H

#include "bench/bench_int.h"
#include "data/data.h"
#include "train/measure.h"

enum { DATA_ARMS = 8, DATA_MOST_ROUNDS = 200 };

/* One way to load: the words of a training. Times are microseconds a sample, by round. */
typedef struct data_arm {
    const char *words[BENCH_WORDS]; /* end with NULL */
    co_str title;                   /* what was typed */
    co_plan *plan;
    void *held; /* for the planner */
    co_loading *loading;
    double stage_us[CO_STAGES][DATA_MOST_ROUNDS], loader_us[DATA_MOST_ROUNDS];
} data_arm;

typedef struct data_bench {
    data_arm *arm; /* [arms] */
    int arms, rounds, samples;
} data_bench;

/* data_measure.c: fills the times. The arms take turns in each round. */
co_err data_measure(data_bench *b);
double data_stage_us(const data_bench *b, const data_arm *a, co_stage s); /* the median */
double data_all_us(const data_bench *b, const data_arm *a);               /* the sum of these medians */
double data_loader_us(const data_bench *b, const data_arm *a);
/* How many times faster than the first arm: the median of the rounds. */
double data_speedup(const data_bench *b, const data_arm *a);

/* data_report.c */
void data_print_text(const data_bench *b);
void data_print_json(const data_bench *b);

/* data_pictures.c: a folder of two classes with JPEG files of this size below `root`. */
co_err data_pictures_make(const char *root, int width, int height);

#endif
