/* optim.c -- the table of optimisers, and the gradient norm and clip factor, which every step needs. */
#include "optim/optim_int.h"

#include <string.h>

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

/* A float squared is below 1.2e77 in double, so a sum of squares of finite elements cannot overflow, and
 * squares cannot cancel: the total is finite exactly when every element is. */
double co_sum_squares(const float *x, size_t n, bool *finite)
{
    double lane[8] = {0};
    size_t i = 0;

    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++)
            lane[j] += (double)x[i + (size_t)j] * (double)x[i + (size_t)j];
    for (int j = 0; i < n; i++, j++)
        lane[j] += (double)x[i] * (double)x[i];

    double even = (lane[0] + lane[4]) + (lane[2] + lane[6]);
    double odd = (lane[1] + lane[5]) + (lane[3] + lane[7]);
    double total = even + odd;
    if (!(total - total == 0))
        *finite = false;
    return total;
}
