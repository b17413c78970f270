/* cases.h -- calling a kernel in a test, and a table of awkward calls of every operator.
 *
 * The table serves every test that applies to all operators (threads, garbage, providers), so a new operator
 * with a row here gets those tests without further work. Tests are written in float; tensors are converted
 * for a provider with wider elements.
 */
#ifndef TESTS_KERNEL_CASES_H
#define TESTS_KERNEL_CASES_H

#include "base/team.h"
#include "kernel/kernel.h"

/* Makes one call with nth threads, run one after the other; allocates and frees the scratch. */
void op_call(const co_kernels *k, co_op op, const co_attr *attr, const co_run *run, const co_arg *in,
             int n_in, const co_arg *out, int n_out, int nth);

#define DIMS(...)                                                                                            \
    {                                                                                                        \
        (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                                           \
        {                                                                                                    \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }

/* --- a call and its answer, on every provider
 *
 *     static const float a[] = {1, 2, 3, 4}, c[] = {7, 10, 15, 22};
 *     EXPECT(CO_OP_MATMUL, (0), 0, (F32(a, 2, 2), F32(a, 2, 2)), (F32(c, 2, 2)));
 */
typedef struct tensor {
    co_dtype dtype;
    co_shape shape;
    const void *p; /* host values: F32 are floats */
} tensor;
#define F32(p, ...)                                                                                          \
    {                                                                                                        \
        CO_F32, DIMS(__VA_ARGS__), p                                                                         \
    }
#define I32(p, ...)                                                                                          \
    {                                                                                                        \
        CO_I32, DIMS(__VA_ARGS__), p                                                                         \
    }
#define I64(p, ...)                                                                                          \
    {                                                                                                        \
        CO_I64, DIMS(__VA_ARGS__), p                                                                         \
    }
#define U32(p, ...)                                                                                          \
    {                                                                                                        \
        CO_U32, DIMS(__VA_ARGS__), p                                                                         \
    }
#define F64(p)                                                                                               \
    {                                                                                                        \
        CO_F64, {0, {0}}, p                                                                                  \
    } /* a scalar */
#define BRACES(...)                                                                                          \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }

/* Differences up to tol (absolute) pass; nan must match nan; integers are compared exactly. */
#define EXPECT(op, attr_, tol, in_, want_)                                                                   \
    do {                                                                                                     \
        const tensor expect_in[] = BRACES in_, expect_want[] = BRACES want_;                                 \
        op_expect(op, &(const co_attr)BRACES attr_, tol, expect_in, (int)CO_COUNT(expect_in), expect_want,   \
                  (int)CO_COUNT(expect_want), __LINE__);                                                     \
    } while (0)
void op_expect(co_op op, const co_attr *attr, double tol, const tensor *in, int n_in, const tensor *want,
               int n_out, int line);

/* --- the table */
typedef struct case_arg {
    co_dtype dtype;
    co_shape shape;
    float lo, hi; /* inputs: drawn from [lo, hi) */
} case_arg;

typedef struct op_case {
    co_op op;
    co_attr attr;
    int n_in, n_out;
    case_arg in[CO_MAX_IN], out[CO_MAX_OUT];
} op_case;

int op_case_count(void);
const op_case *op_case_at(int i);

/* The outputs of case i, one after the other, after a call by nth threads on outputs that held `garbage` in
 * every byte. A provider with its own memory space computes there. The caller frees the result; *len is in
 * bytes. */
void *op_case_run(const co_kernels *k, const op_case *c, int nth, int garbage, size_t *len);
/* The same by a call that adds its output to what was there: `held` in every byte. NULL: the kernel cannot. */
void *op_case_run_add(const co_kernels *k, const op_case *c, int nth, int held, size_t *len);
/* The same by the threads of a team, all at once; not in a memory space of its own. */
void *op_case_run_team(const co_kernels *k, const op_case *c, co_team *team, size_t *len);

size_t op_arg_size(const co_kernels *k, co_dtype dtype, const co_shape *shape); /* bytes */

#endif
