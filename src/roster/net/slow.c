/* slow.c -- names a host that is slower than the others for good: once, with the likely reason.
 *
 * Hosts report every few seconds what a slice costs them. A host is slow if that is more than 1.5 times the
 * median of the other hosts, in two measurements in a row: one may be chance. The slices are dealt by speed
 * anyway, but a person can remove the reason. The reason is found in the figures that the slow host has
 * measured. The surest reasons are tried first; the last one admits that none was found.
 */
#include "roster/net/seat_int.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    IN_A_ROW = 2,    /* measurements */
    QUEUED = 20,     /* percent of their time that ranks wait for a CPU: the CPUs are shared */
    STOLEN = 10,     /* percent of the CPUs' time that other virtual machines take */
    RATHER_FAST = 80 /* percent of the others' clock rate: a CPU that is not slow for its clock */
};
#define SLOW_FROM 1.5

/* Medians of the other members. */
typedef struct others {
    int n;
    int cost, compute, input, mhz;
} others;

static int by_size(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;

    return (x > y) - (x < y);
}

static int median(int *number, int n)
{
    qsort(number, (size_t)n, sizeof *number, by_size);
    return number[(n - 1) / 2] / 2 + number[n / 2] / 2;
}

static int cost_of(const co_host_speed *speed)
{
    return speed->compute_us / 2 + speed->input_us / 2; /* half of it: the sum may be too large for an int */
}

static others others_of(const server *srv, const seat *peer)
{
    int cost[CO_MAX_MEMBERS], compute[CO_MAX_MEMBERS], input[CO_MAX_MEMBERS], mhz[CO_MAX_MEMBERS];
    others all = {0};

    for (int i = 0; i < srv->seats.n && all.n < CO_MAX_MEMBERS; i++) {
        const seat *other = srv->seats.at[i];
        if (other == peer || other->number < 0 || !other->member.speed.weight)
            continue;
        cost[all.n] = cost_of(&other->member.speed);
        compute[all.n] = other->member.speed.compute_us;
        input[all.n] = other->member.speed.input_us;
        mhz[all.n++] = other->member.speed.mhz;
    }
    if (all.n == 0)
        return all;
    return (others){all.n, median(cost, all.n), median(compute, all.n), median(input, all.n),
                    median(mhz, all.n)};
}

/* --- reasons -------------------------------------------------------------------------------------------- */
static bool is_rehearsed(const co_host_speed *it, const others *all)
{
    (void)all;
    return it->rehearsed;
}
static bool waits_for_data(const co_host_speed *it, const others *all)
{
    return it->input_us - all->input > it->compute_us - all->compute;
}
static bool has_few_cpus(const co_host_speed *it, const others *all)
{
    (void)all;
    return it->threads > it->cpus && it->cpus > 0;
}
static bool is_queued(const co_host_speed *it, const others *all)
{
    (void)all;
    return it->queued >= QUEUED;
}
static bool is_stolen_from(const co_host_speed *it, const others *all)
{
    (void)all;
    return it->stolen >= STOLEN;
}
static bool has_low_clock(const co_host_speed *it, const others *all)
{
    return it->mhz > 0 && it->mhz < all->mhz / 100 * RATHER_FAST;
}
static bool is_slow_anyway(const co_host_speed *it, const others *all)
{
    (void)it, (void)all;
    return true;
}

static int percent_queued(const co_host_speed *it)
{
    return it->queued;
}
static int percent_stolen(const co_host_speed *it)
{
    return it->stolen;
}
static int own_clock(const co_host_speed *it)
{
    return it->mhz;
}
static int cpus_usable(const co_host_speed *it)
{
    return it->cpus;
}

static const struct reason {
    bool (*holds)(const co_host_speed *it, const others *all);
    const char *text, *unit;
    int (*figure)(const co_host_speed *it); /* NULL: none */
} reasons[] = {
    {is_rehearsed, "it is slow on purpose (fault.host_slow)", "", NULL},
    {waits_for_data, "it waits for its data (disk, decoding)", "", NULL},
    {has_few_cpus, "its ranks have more threads than it has usable CPUs: ", "", cpus_usable},
    {is_queued, "its CPUs are shared with other programs; its ranks wait for a CPU for ", " % of their time",
     percent_queued},
    {is_stolen_from, "its CPUs are shared with other virtual machines, which take ", " % of their time",
     percent_stolen},
    {has_low_clock, "its CPUs run slower than the others', at ", " MHz", own_clock},
    {is_slow_anyway, "not found; its CPUs are not shared, and it does not wait for its data", "", NULL},
};

static void name_it(server *srv, const seat *peer, const others *all)
{
    const co_host_speed *it = &peer->member.speed;
    const struct reason *why = reasons;
    char name[300], figure[32] = "";

    while (!why->holds(it, all))
        why++;
    if (why->figure)
        snprintf(figure, sizeof figure, "%d", why->figure(it));
    seat_name(name, sizeof name, peer);
    seats_talk(&srv->seats, true,
               "host %s is slow: a slice costs it %.1f ms of a CPU, the others %.1f ms. The likely reason: "
               "%s%s%s",
               name, 2e-3 * cost_of(it), 2e-3 * all->cost, why->text, figure, why->unit);
}

void slow_check(server *srv, seat *peer)
{
    others all = others_of(srv, peer);

    if (all.n == 0 || cost_of(&peer->member.speed) <= SLOW_FROM * all.cost) {
        peer->member.slow = 0;
        return;
    }
    if (++peer->member.slow < IN_A_ROW || peer->member.slow_said)
        return;
    peer->member.slow_said = true;
    name_it(srv, peer, &all);
}
