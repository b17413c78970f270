/* winograd_weights.c -- transforms of the weights (lanes are rows of the output) and of their gradient (lanes are
 * channels). */
#include "kernel/simd/winograd_int.h"

/* G g Gt for VW pairs of channels: g[k] = the lanes' element k of 9. */
static void weights_tile(float *v, int64_t step, const vf g[9])
{
    vf r[4][3], half = v_set(0.5f);

    UNROLL for (int j = 0; j < 3; j++)
    {
        vf ends = g[j] + g[6 + j];
        r[0][j] = g[j], r[1][j] = (ends + g[3 + j]) * half, r[2][j] = (ends - g[3 + j]) * half,
        r[3][j] = g[6 + j];
    }
    UNROLL for (int i = 0; i < 4; i++)
    {
        vf ends = r[i][0] + r[i][2];
        v_store(v + (4 * i + 0) * step, r[i][0]);
        v_store(v + (4 * i + 1) * step, (ends + r[i][1]) * half);
        v_store(v + (4 * i + 2) * step, (ends - r[i][1]) * half);
        v_store(v + (4 * i + 3) * step, r[i][2]);
    }
}

/* Lanes past MR hold what the next channel overwrites. */
void win_weights(float *v, int64_t step, const float *taps, int64_t channels, bool back)
{
    vf tap[9];

    for (int64_t c = 0; c < channels; c++) {
        UNROLL for (int k = 0; k < 9; k++) tap[k] = v_load(taps + (9 * c + (back ? 8 - k : k)) * MR);
        weights_tile(v + c * MR, step, tap);
    }
}

void win_dw_row(float *dw, const float *s, int64_t step, int64_t slab, int64_t channels, bool add)
{
    vf half = v_set(0.5f);
    float buf[9][VW];

    for (int64_t c = 0; c < channels; c += VW) {
        int64_t n = channels - c < VW ? channels - c : VW;
        vf r[3][4];
        UNROLL for (int j = 0; j < 4; j++)
        {
            const float *p = s + c / NR * slab + c % NR + j * step;
            vf s0 = v_load_n(p, n), s1 = v_load_n(p + 4 * step, n), s2 = v_load_n(p + 8 * step, n);
            vf s3 = v_load_n(p + 12 * step, n), mid = (s1 + s2) * half;
            r[0][j] = s0 + mid, r[1][j] = (s1 - s2) * half, r[2][j] = mid + s3;
        }
        UNROLL for (int i = 0; i < 3; i++)
        {
            vf mid = (r[i][1] + r[i][2]) * half;
            v_store(buf[3 * i], r[i][0] + mid);
            v_store(buf[3 * i + 1], (r[i][1] - r[i][2]) * half);
            v_store(buf[3 * i + 2], mid + r[i][3]);
        }
        taps_give(dw + c * 9, buf[0], VW, 9, n, add);
    }
}
