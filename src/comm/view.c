/* view.c -- see view.h. */
#include "comm/view.h"

/* The last unit that a member holds. */
static uint32_t held_by(const co_position *at)
{
    return at->fresh ? 0 : at->ready ? at->unit : at->unit - 1;
}

/* A member that holds unit m and the whole state, and can give the unit too if `gives`; -1: none. Those that go on
 * come first. */
static int holder(const co_position *at, int hosts, uint32_t m, bool gives)
{
    int found = -1;

    for (int h = 0; h < hosts; h++)
        if (!at[h].fresh && at[h].whole && held_by(&at[h]) >= m && (!gives || at[h].since <= m) &&
            (found < 0 || at[found].ended))
            found = h;
    return found;
}

co_err co_view_decide(co_view *view, uint32_t number, int hosts, const uint8_t *id, const co_position *at,
                      const int *weight, int slices)
{
    int share[CO_MAX_HOSTS], any = 0;

    *view = (co_view){.deal = {.view = number, .hosts = hosts}};
    for (int h = 0; h < hosts; h++)
        if (held_by(&at[h]) > view->held)
            view->held = held_by(&at[h]);
    int giver = holder(at, hosts, view->held, true), feeder = holder(at, hosts, view->held, false);
    if (feeder < 0)
        return co_fail(CO_EFAIL, "no host that is left holds the whole state");
    for (int h = 0; h < hosts; h++) {
        bool misses = !at[h].fresh && held_by(&at[h]) < view->held;
        view->anew[h] = at[h].fresh || (misses && giver < 0);
        bool works = at[h].whole && !view->anew[h];
        view->deal.id[h] = id[h];
        view->deal.whole |= (uint64_t)works << h;
        view->giver[h] = (int8_t)(misses && giver >= 0 ? giver : -1);
        view->feeder[h] = (int8_t)(works ? -1 : feeder);
        view->fed[h] = view->anew[h] ? 0 : at[h].fed;
        view->stops = view->stops || (at[h].ended && at[h].unit == view->held + 1);
        share[h] = works ? weight[h] : 0;
        any += share[h];
    }
    for (int h = 0; h < hosts && any == 0; h++)
        share[h] = view->deal.whole >> h & 1;
    co_deal_leaves(&view->deal, slices, share);
    return CO_OK;
}
