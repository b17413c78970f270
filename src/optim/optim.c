/* optim.c -- the table of optimisers, and the gradient norm and clip factor, which every step needs. */
#include "optim/optim_int.h"

#include <string.h>

#include "base/lanes.h"

const co_optim_def *const co_optims[] = {&sgd_def, &adam_def, &adamw_def, &sparse_adam_def, NULL};

const co_optim_def *co_optim_find(const char *name)
{
    for (int i = 0; co_optims[i]; i++)
        if (strcmp(co_optims[i]->name, name) == 0)
            return co_optims[i];
    return NULL;
}

double co_clip_factor(double norm, double max_norm)
{
    if (!(max_norm > 0))
        return 1;
    double factor = max_norm / (norm + 1e-6);
    return factor < 1 ? factor : 1;
}

/* Squares of elements 8 i + j are added to lane[j], in order. */
static inline CO_INLINE void add_squares(double lane[8], const float *x, size_t n)
{
    double sum[8]; /* in registers: nothing that x may be */
    size_t i = 0;

    memcpy(sum, lane, sizeof sum);
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++)
            sum[j] += (double)x[i + (size_t)j] * (double)x[i + (size_t)j];
    for (int j = 0; i < n; i++, j++)
        sum[j] += (double)x[i] * (double)x[i];
    memcpy(lane, sum, sizeof sum);
}

static void add_squares_any(double lane[8], const float *x, size_t n)
{
    add_squares(lane, x, n);
}

static CO_AVX2 void add_squares_avx2(double lane[8], const float *x, size_t n)
{
    add_squares(lane, x, n);
}

void co_squares_add(co_squares *squares, const float *x, size_t n)
{
    (co_has_avx2() ? add_squares_avx2 : add_squares_any)(squares->lane, x, n);
}

/* A float squared is below 1.2e77 in double, so a sum of squares of finite elements cannot overflow, and
 * squares cannot cancel: the total is finite exactly when every element is. */
double co_squares_total(const co_squares *squares, bool *finite)
{
    const double *lane = squares->lane;
    double even = (lane[0] + lane[4]) + (lane[2] + lane[6]);
    double odd = (lane[1] + lane[5]) + (lane[3] + lane[7]);
    double total = even + odd;

    if (!(total - total == 0))
        *finite = false;
    return total;
}

double co_sum_squares(const float *x, size_t n, bool *finite)
{
    co_squares squares = {0};

    co_squares_add(&squares, x, n);
    return co_squares_total(&squares, finite);
}
