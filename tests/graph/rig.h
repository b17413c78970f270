/* rig.h -- a compiled graph with memory around it, for tests of any provider.
 *
 *     rig r;
 *     rig_open(&r, g, test_kernels_wide());
 *     rig_fill(&r, 1);                          // state and inputs from a seed
 *     rig_run(&r);
 *     CHECK(rig_leaf(&r, "fc.weight", 0) == 2.5, ...);
 *     rig_close(&r);
 */
#ifndef TESTS_GRAPH_RIG_H
#define TESTS_GRAPH_RIG_H

#include "graph/graph.h"

enum { RIG_SLOTS = 4, RIG_LISTS = 4 };

typedef struct rig {
    const co_kernels *k;
    co_exec *e;
    co_bases b;
    size_t state_len, leaf_len; /* bytes: the leaf is as long as the state, see rig_run */
    co_rows rows[RIG_LISTS];
    co_run run;
    double stat[RIG_SLOTS];
} rig;

void rig_open(rig *r, co_graph *g, const co_kernels *k); /* everything zero */
/* The same with a team of threads; grain as in co_exec_new_team. */
void rig_open_team(rig *r, co_graph *g, const co_kernels *k, int threads, int64_t grain);
void rig_close(rig *r);
/* State and inputs. F32: [-1,1). I64: distinct ids. I32 by the input's name:
 * "below N": 0..N-1; "upto N": 0..N; "maybe N": 0..N-1 or now and then -100; "at 0 2 5": these numbers. */
void rig_fill(rig *r, uint64_t seed);
void rig_poison(rig *r, unsigned char byte); /* the workspace, if the host can reach it */
/* Runs the executor. Then rows of sparse gradients are put into the leaf at the table's place, which is
 * cleared first, so that tests see one gradient for every element of the state. */
void rig_run(rig *r);

double rig_get(const rig *r, const void *base, size_t i); /* F32 element i of a base */
void rig_set(rig *r, void *base, size_t i, double x);
double rig_leaf(const rig *r, const char *name, size_t i); /* gradient of element i of a parameter */
void *rig_input(const rig *r, const char *name);
const co_kernels *rig_kernels(const char *level);

/* A net with a bit of everything: convolution, batch norm, pooling, attention with lens, dropout, a sparse
 * and a dense embedding, a tied weight, broadcasts. */
co_graph *rig_net(bool training);

#endif
