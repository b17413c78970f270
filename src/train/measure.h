/* measure.h -- how long a training will take, and where its time goes, measured before it is started. */
#ifndef CO_TRAIN_MEASURE_H
#define CO_TRAIN_MEASURE_H

#include "graph/graph.h"
#include "train/train.h"

typedef struct co_calibration {
    /* A slice's forward and backward pass, and filling it. By all threads of a rank; by one, if they compute slices
     * at once. */
    double slice_ms, load_ms;
    double sum_apply_ms; /* by this plan's ranks together */
    double eval_item_ms;
    double alone_ms; /* a step if this host had all slices */
    double work_ms;  /* a step with this host's share of the slices, without the wire; one host: alone_ms */
    double wire_ms;  /* what a host sends in a step, at CO_WIRE_GBITS; one host: 0 */
    double step_ms, epoch_s; /* work and wire one after the other; epoch_s with its evaluation */
    double test_s;           /* the test after the last step; 0: there is none */
    double total_s;          /* all epochs that are left, and the test. No limit on epochs: means nothing */
} co_calibration;
enum { CO_WIRE_GBITS = 1 }; /* Gbit/s, assumed: nothing is measured between hosts before they meet */
/* A step of this host alone / (hosts * a step of all hosts), with a wire of `gbits`. One host: 1. */
double co_calibration_efficiency(const co_calibration *c, int hosts, double gbits);
/* Measures a few slices in this process; their results are thrown away. */
co_err co_plan_calibrate(co_plan *p, co_calibration *out);

typedef struct co_op_time {
    const char *name; /* "conv2d 'layer1.0.conv1'", owned by the plan */
    bool backward;
    double ms; /* per slice, the shortest of a few rounds */
} co_op_time;
/* Where a slice's time goes, call by call; *out is the caller's (co_free). */
co_err co_plan_profile(co_plan *p, co_op_time **out, int *n);

/* The passes of the first slice of step 1, loaded once; call by call. */
typedef struct co_calls co_calls;
co_err co_calls_open(co_calls **out, co_plan *p); /* p must live as long */
void co_calls_close(co_calls *c);                 /* NULL is fine */
int co_calls_count(const co_calls *c);
int co_calls_samples(const co_calls *c);                /* of the slice */
const co_call_facts *co_calls_facts(const co_calls *c); /* [count] */
void co_calls_run(co_calls *c, double *ms); /* one forward and backward pass; ms [count]: what each call took */

/* Loading alone: the slices of training from step `step` (1 or more) on, in order, until they have `samples`
 * samples or a few more; *loaded says how many. A sample that cannot be read is an error as in training. */
typedef struct co_loading co_loading;
co_err co_loading_open(co_loading **out, co_plan *p); /* p must live as long */
void co_loading_close(co_loading *l);                 /* NULL is fine */
/* By this thread; the CPU time of each stage is added to *times. */
co_err co_loading_fill(co_loading *l, int64_t step, int samples, co_stage_times *times, int *loaded);
/* By a loader with one thread, as training has them. */
co_err co_loading_run(co_loading *l, int64_t step, int samples, int *loaded);

/* Computes every slice of step 1 once: forward and backward passes, nothing else. To count instructions. */
co_err co_plan_compute_step(co_plan *p);

#endif
