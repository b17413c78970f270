/* deal.c -- see deal.h. */
#include "comm/deal.h"

#include <string.h>

co_deal co_deal_alone(int slices)
{
    co_deal d = {.view = 1, .hosts = 1, .whole = 1};

    d.from[1] = (int16_t)slices;
    return d;
}

void co_deal_leaves(co_deal *d, int slices, const int *weight)
{
    int64_t all = 0, before = 0;

    for (int h = 0; h < d->hosts; h++)
        all += weight[h];
    for (int h = 0; h < d->hosts; h++) {
        d->from[h] = (int16_t)(all ? before * slices / all : (int64_t)h * slices / d->hosts);
        before += weight[h];
    }
    d->from[d->hosts] = (int16_t)slices;
}

int co_deal_pieces(const co_deal *d, const co_cut *cut, int h, co_piece out[2 * CO_MAX_LEVELS])
{
    int n = 0;

    for (int at = d->from[h]; at < d->from[h + 1];) {
        int level = at ? __builtin_ctz((unsigned)at) : CO_MAX_LEVELS - 1;
        while (at + (1 << level) > d->from[h + 1])
            level--;
        if (!co_cut_is_empty(cut, at, at + (1 << level)))
            out[n++] = (co_piece){(int16_t)level, (int16_t)(at >> level)};
        at += 1 << level;
    }
    return n;
}
