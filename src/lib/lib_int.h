/* lib_int.h -- internal forms of the structs of cohort.h, shared by the files of this room. */
#ifndef CO_LIB_LIB_INT_H
#define CO_LIB_LIB_INT_H

#include "base/alloc.h"
#include "cli/cli.h"
#include "cohort.h"

/* A program's parts as rows of the registries. Lives in its pool. */
typedef struct lib_parts {
    co_pool pool;
    co_cli_parts cli;
} lib_parts;

/* parts.c. CO_EINPUT names the part and what it lacks; nothing needs to be freed then. */
co_err parts_init(lib_parts *p, const cohort_parts *parts);
void parts_fini(lib_parts *p);

/* A model or data set of the program: the registry's row, and the public struct that it was made from. The
 * row is the first member, so a pointer to the row is a pointer to this struct. */
typedef struct lib_model {
    co_model_def def;
    const cohort_model *theirs;
} lib_model;

typedef struct lib_dataset {
    co_dataset_def def;
    const cohort_dataset *theirs;
} lib_dataset;

co_node *model_build(const co_build *b, const void *cfg);                          /* model.c */
co_err dataset_open(co_dataset **out, const co_dataset_def *def, const void *cfg); /* dataset.c */

co_shape shape_in(cohort_shape s);
cohort_shape shape_out(const co_shape *s);

#endif
