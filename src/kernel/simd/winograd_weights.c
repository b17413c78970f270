/* winograd_weights.c -- transforms of the weights and of their gradient; lanes are channels. */
#include "kernel/simd/winograd_int.h"

/* G g Gt for VW pairs of channels: g[k] = the lanes' element k of 9. */
static void weights_tile(float *v, int64_t step, const vf g[9], int64_t n)
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
        v_store_n(v + (4 * i + 0) * step, n, r[i][0]);
        v_store_n(v + (4 * i + 1) * step, n, (ends + r[i][1]) * half);
        v_store_n(v + (4 * i + 2) * step, n, (ends - r[i][1]) * half);
        v_store_n(v + (4 * i + 3) * step, n, r[i][2]);
    }
}

void win_weights(float *v, const float *w, const geom *g, int64_t r0, int64_t rows, bool back)
{
    int64_t lane = back ? g->o * 9 : 9, row = back ? 9 : g->c * 9;
    int32_t at[VW];
    vf tap[9];

    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < g->c; c += VW) {
            const float *p = w + (r0 + r) * row + c * lane;
            int64_t n = g->c - c < VW ? g->c - c : VW;
            for (int64_t i = 0; i < VW; i++)
                at[i] = (int32_t)((i < n ? i : n - 1) * lane);
            for (int k = 0; k < 9; k++)
                tap[k] = v_gather(p + (back ? 8 - k : k), vi_load(at));
            weights_tile(v + r * g->c + c, rows * g->c, tap, n);
        }
}

void win_dw_row(float *dw, const float *s, int64_t step, int64_t slab, int64_t channels)
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
        for (int64_t i = 0; i < n; i++)
            for (int k = 0; k < 9; k++)
                dw[(c + i) * 9 + k] = buf[k][i];
    }
}
