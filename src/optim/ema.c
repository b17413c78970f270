/* ema.c -- the running average of the weights. */
#include "optim/optim.h"

#include <string.h>

void co_ema_apply(float *ema, const float *w, size_t n, double decay, int64_t t)
{
    float keep = (float)decay, add = (float)(1 - decay);

    if (t == 1) {
        memcpy(ema, w, n * sizeof *ema);
        return;
    }
    for (size_t i = 0; i < n; i++)
        ema[i] = keep * ema[i] + add * w[i];
}
