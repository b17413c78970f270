/* deal.c -- see deal.h. */
#include "comm/deal.h"

#include <string.h>

co_deal co_deal_alone(int slices)
{
    co_deal d = {.view = 1, .hosts = 1, .whole = 1};

    d.from[1] = (int16_t)slices;
    return d;
}

/* Borders at the nearest slice. */
static void deal_shares(co_deal *d, int slices, const int *share)
{
    int64_t all = 0, before = 0;

    for (int h = 0; h < d->hosts; h++)
        all += share[h];
    for (int h = 0; h < d->hosts; h++) {
        d->from[h] = (int16_t)((2 * before * slices + all) / (2 * all));
        before += share[h];
    }
    d->from[d->hosts] = (int16_t)slices;
}

double co_deal_time(const co_deal *d, const int *weight)
{
    double most = 0;

    for (int h = 0; h < d->hosts; h++) {
        double leaves = d->from[h + 1] - d->from[h], time = leaves / (weight[h] > 0 ? weight[h] : 1e-9);
        most = time > most ? time : most;
    }
    return most;
}

void co_deal_leaves(co_deal *d, int slices, const int *weight)
{
    int equal[CO_MAX_MEMBERS] = {0}, known = 0;
    co_deal even = *d;

    for (int h = 0; h < d->hosts; h++)
        known += weight[h] > 0;
    for (int h = 0; h < d->hosts; h++)
        equal[h] = !known || weight[h] > 0;
    deal_shares(&even, slices, equal);
    if (known)
        deal_shares(d, slices, weight);
    if (!known || CO_DEAL_GAIN * co_deal_time(&even, weight) < co_deal_time(d, weight))
        memcpy(d->from, even.from, sizeof d->from);
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
