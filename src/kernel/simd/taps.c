/* taps.c -- gradients of weights leave the kernels here: sums that lie tap by tap go to dw, channel by channel. */
#include "kernel/simd/conv_int.h"

static void put(float *to, vf x, bool add)
{
    if (add)
        x += v_load(to);
    v_store(to, x);
}

void taps_give(float *dw, const float *sums, int64_t step, int64_t taps, int64_t n, bool add)
{
    for (int64_t c = 0; c < n; c += VW) {
        int64_t t = 0, last = c + VW < n ? c + VW : n;
        for (; t + VW <= taps; t += VW) {
            const float *row[VW];
            vf r[VW];
            for (int i = 0; i < VW; i++)
                row[i] = sums + (t + i) * step;
            v_load_turned(r, row, c);
            UNROLL for (int i = 0; i < VW; i++) if (c + i < n) put(dw + (c + i) * taps + t, r[i], add);
        }
        for (; t < taps; t++)
            for (int64_t i = c; i < last; i++) {
                float *to = dw + i * taps + t, x = sums[t * step + i];
                *to = add ? x + *to : x;
            }
    }
}
