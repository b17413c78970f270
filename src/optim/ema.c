/* ema.c -- the running average of the weights, in PyTorch's form: ema + (1 - decay) * (w - ema). The form
 * decay * ema + (1 - decay) * w would drift: rounded to float, the two factors do not add up to one, and with
 * decay 0.9999 the average would settle two parts in ten thousand away from the weights. */
#include "optim/optim.h"

#include <string.h>

void co_ema_apply(float *ema, const float *w, size_t n, double decay, int64_t t)
{
    float add = (float)(1 - decay);

    if (t == 1) {
        memcpy(ema, w, n * sizeof *ema);
        return;
    }
    for (size_t i = 0; i < n; i++)
        ema[i] = ema[i] + add * (w[i] - ema[i]);
}
