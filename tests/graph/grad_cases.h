/* grad_cases.h -- small graphs, one operator each, for gradient checks. */
#ifndef TESTS_GRAPH_GRAD_CASES_H
#define TESTS_GRAPH_GRAD_CASES_H

#include "graph/graph.h"

typedef struct grad_case {
    co_op op; /* the one it is for */
    const char *name;
    co_node *(*build)(co_graph *g);
    bool flat; /* its gradient is always zero */
} grad_case;

extern const grad_case grad_cases[];
extern const int grad_case_count;

#endif
