/* view.c -- see view.h. */
#include "comm/view.h"

/* The last unit that a member holds. */
static uint32_t held_by(const co_position *at)
{
    return at->fresh ? 0 : at->ready ? at->unit : at->unit - 1;
}

/* It took part in the last unit that it holds, so it can give it.
 * A newcomer has what it entered with from others. */
static bool took_part(const co_position *at)
{
    return at->since <= held_by(at);
}

static bool is_whole(const co_position *at)
{
    return at->whole && !at->fresh;
}

/* The last unit that a whole member holds and can give; if only newcomers are whole, that they hold. False:
 * nobody is whole. */
static bool find_held(const co_position *at, int hosts, uint32_t *m)
{
    bool any = false, gives = false;

    for (int h = 0; h < hosts; h++)
        gives = gives || (is_whole(&at[h]) && took_part(&at[h]));
    for (int h = 0; h < hosts; h++) {
        if (!is_whole(&at[h]) || (gives && !took_part(&at[h])))
            continue;
        *m = any && *m > held_by(&at[h]) ? *m : held_by(&at[h]);
        any = true;
    }
    return any;
}

/* A whole member that holds unit m, and can give it if `gives`; -1: none. Those that go on come first. */
static int holder(const co_position *at, int hosts, uint32_t m, bool gives)
{
    int found = -1;

    for (int h = 0; h < hosts; h++)
        if (is_whole(&at[h]) && held_by(&at[h]) == m && (!gives || took_part(&at[h])) &&
            (found < 0 || at[found].ended))
            found = h;
    return found;
}

/* Whose start is the run's: -1 if the run has begun, or if nobody has a state. */
static int first_of_all(const co_position *at, int hosts)
{
    int first = -1;

    for (int h = 0; h < hosts; h++) {
        if (!at[h].starts && !at[h].fresh)
            return -1;
        if (is_whole(&at[h]) && (first < 0 || at[h].unit > at[first].unit))
            first = h;
    }
    return first;
}

/* The run has begun with the state that this member started from, and nobody has finished a unit since. It is
 * a member of the first view, which has not reached it: no unit can be finished without its part. */
static bool stands_at_the_start(const co_position *at, int hosts, const co_position *member)
{
    bool same = false;

    for (int h = 0; h < hosts; h++) {
        bool began = !at[h].starts && !at[h].fresh;
        if (at[h].ended || (began && held_by(&at[h]) >= member->unit))
            return false;
        same = same ||
               (began && at[h].since == 0 && at[h].first == member->unit && at[h].start == member->start);
    }
    return same;
}

/* The positions, with those marked as fresh whose state is not the run's. */
static void find_newcomers(co_position *out, const co_position *at, int hosts)
{
    int first = first_of_all(at, hosts);

    for (int h = 0; h < hosts; h++) {
        out[h] = at[h];
        if (!at[h].starts || at[h].fresh)
            continue;
        out[h].fresh = first < 0 ? !stands_at_the_start(at, hosts, &at[h])
                                 : at[h].unit != at[first].unit || at[h].start != at[first].start;
    }
}

co_err co_view_decide(co_view *view, uint32_t number, int hosts, const uint8_t *id, const co_position *given,
                      const int *weight, int slices)
{
    int share[CO_MAX_MEMBERS], any = 0;
    co_position at[CO_MAX_MEMBERS];

    *view = (co_view){.deal = {.view = number, .hosts = hosts}};
    find_newcomers(at, given, hosts);
    if (!find_held(at, hosts, &view->held))
        return co_fail(CO_EFAIL, "no host that is left holds the whole state");
    int giver = holder(at, hosts, view->held, true), feeder = holder(at, hosts, view->held, false);
    for (int h = 0; h < hosts; h++) {
        bool misses = !at[h].fresh && held_by(&at[h]) < view->held;
        view->anew[h] = at[h].fresh || held_by(&at[h]) > view->held || (misses && giver < 0);
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
    view->deal.writer = __builtin_ctzll(view->deal.whole);
    return CO_OK;
}

uint64_t co_view_unfit(int hosts, const co_position *given)
{
    uint64_t out = 0;
    uint32_t m;
    bool ended = false;
    co_position at[CO_MAX_MEMBERS];

    find_newcomers(at, given, hosts);
    if (!find_held(at, hosts, &m))
        return 0;
    for (int h = 0; h < hosts; h++)
        ended = ended || at[h].ended;
    for (int h = 0; h < hosts; h++)
        if ((at[h].fresh && ended) || (at[h].ended && held_by(&at[h]) > m))
            out |= (uint64_t)1 << h;
    return out;
}
