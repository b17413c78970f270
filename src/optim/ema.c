/* ema.c -- the running average of the weights, in PyTorch's form: ema + (1 - decay) * (w - ema). The form
 * decay * ema + (1 - decay) * w would drift: rounded to float, the two factors do not add up to one, and with
 * decay 0.9999 the average would settle two parts in ten thousand away from the weights. */
#include "optim/optim.h"

#include <string.h>

#include "base/lanes.h"

static inline CO_INLINE void average(float *restrict ema, const float *restrict w, size_t n, float add)
{
    for (size_t i = 0; i < n; i++)
        ema[i] = ema[i] + add * (w[i] - ema[i]);
}

static void average_any(float *ema, const float *w, size_t n, float add)
{
    average(ema, w, n, add);
}

static CO_AVX2 void average_avx2(float *ema, const float *w, size_t n, float add)
{
    average(ema, w, n, add);
}

void co_ema_apply(float *ema, const float *w, size_t n, double decay, int64_t t)
{
    if (t == 1) {
        memcpy(ema, w, n * sizeof *ema);
        return;
    }
    (co_has_avx2() ? average_avx2 : average_any)(ema, w, n, (float)(1 - decay));
}
