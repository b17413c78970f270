/* taps.c -- gradients of weights leave the kernels here: sums that lie tap by tap go to dw, channel by channel. */
#include "kernel/simd/conv_int.h"

ALWAYS_INLINE void put(float *to, vf x, bool add)
{
    if (add)
        x += v_load(to);
    v_store(to, x);
}

ALWAYS_INLINE void put_one(float *to, float x, bool add)
{
    *to = add ? x + *to : x;
}

/* VW taps of VW channels. */
ALWAYS_INLINE void turn(float *dw, const float *sums, int64_t step, int64_t taps, bool add)
{
    const float *row[VW];
    vf r[VW];

    UNROLL for (int i = 0; i < VW; i++) row[i] = sums + i * step;
    v_load_turned(r, row, 0, VW);
    UNROLL for (int i = 0; i < VW; i++) put(dw + i * taps, r[i], add);
}

/* Fewer than VW taps of VW channels. */
ALWAYS_INLINE void turn_few(float *dw, const float *sums, int64_t step, int64_t taps, bool add)
{
    const float *row[VW];
    vf r[VW];

    UNROLL for (int i = 0; i < VW; i++) row[i] = sums + (i < taps ? i : 0) * step;
    v_load_turned(r, row, 0, VW);
    UNROLL for (int i = 0; i < VW; i++)
    {
        float *to = dw + i * taps;
        if (add)
            r[i] += v_load_n(to, taps);
        v_store_few(to, taps, r[i]);
    }
}

/* VW channels. Nine taps are the usual number: there, `taps` and `add` are constants. */
ALWAYS_INLINE void give(float *dw, const float *sums, int64_t step, int64_t taps, bool add)
{
    int64_t t = 0;

    if (VW / 2 < taps && taps < VW) {
        turn_few(dw, sums, step, taps, add);
        return;
    }
    for (; t + VW <= taps; t += VW)
        turn(dw + t, sums + t * step, step, taps, add);
    for (; t < taps; t++)
        UNROLL for (int i = 0; i < VW; i++) put_one(dw + i * taps + t, sums[t * step + i], add);
}

void taps_give(float *dw, const float *sums, int64_t step, int64_t taps, int64_t n, bool add)
{
    int64_t c = 0;

    for (; c + VW <= n; c += VW)
        if (taps != 9)
            give(dw + c * taps, sums + c, step, taps, add);
        else if (add)
            give(dw + c * 9, sums + c, step, 9, true);
        else
            give(dw + c * 9, sums + c, step, 9, false);
    for (; c < n; c++)
        for (int64_t t = 0; t < taps; t++)
            put_one(dw + c * taps + t, sums[t * step + c], add);
}
