/* accuse.c -- members that have lost their connection to each other, though both still talk to the roster.
 *
 * After a short while, in which a host that died is noticed, a change with the same members makes new
 * connections. If one pair loses its connection in three views within a minute, the one of the two that more
 * hosts accuse is sent away; if as many accuse both, the one that joined later. The host that keeps the
 * roster always stays.
 *
 * A host that names itself has lost all of its connections. Then a change follows too, and nobody is blamed.
 */
#include "roster/net/seat_int.h"

#include <stdio.h>
#include <string.h>

#include "roster/times_int.h"

enum { CUTS_MOST = 3 };

static seat *member_at(const server *srv, int place)
{
    for (int i = 0; i < srv->seats.n; i++)
        if (srv->seats.at[i]->number >= 0 && srv->seats.at[i]->member.place == place)
            return srv->seats.at[i];
    return NULL;
}

static void forget(views *all, int i)
{
    memmove(&all->accused[i], &all->accused[i + 1], (size_t)(--all->accusations - i) * sizeof all->accused[0]);
}

static void remember(views *all, const accusation *one)
{
    for (int i = 0; i < all->accusations; i++)
        if (all->accused[i].number == one->number && all->accused[i].by == one->by &&
            all->accused[i].whom == one->whom)
            return;
    if (all->accusations == ACCUSATIONS)
        forget(all, 0);
    all->accused[all->accusations++] = *one;
}

void accuse(server *srv, seat *by, int whom, const char *why)
{
    views *all = &srv->views;
    const seat *other = member_at(srv, whom);
    char name[300];

    if (!other)
        return;
    if (other != by)
        remember(all, &(accusation){.number = srv->seats.view, .by = by->member.place, .whom = whom});
    if (all->settles_ms >= 0)
        return;
    all->settles_ms = 0;
    if (other == by) {
        snprintf(all->cut, sizeof all->cut, "host %.80s makes its connections anew: %.200s", by->who.name, why);
        return;
    }
    seat_name(name, sizeof name, other);
    snprintf(all->cut, sizeof all->cut, "host %.80s lost its connection to %.80s: %.80s", by->who.name, name,
             why);
}

static bool of_pair(const accusation *one, int a, int b)
{
    return (one->by == a && one->whom == b) || (one->by == b && one->whom == a);
}

/* In how many views these two lost their connection. */
static int cuts(const views *all, int a, int b)
{
    int64_t last = 0; /* accusations are in the order of their views */
    int n = 0;

    for (int i = 0; i < all->accusations; i++)
        if (of_pair(&all->accused[i], a, b) && all->accused[i].number != last) {
            last = all->accused[i].number;
            n++;
        }
    return n;
}

static int accusers(const views *all, int whom)
{
    uint64_t by = 0;

    for (int i = 0; i < all->accusations; i++)
        if (all->accused[i].whom == whom)
            by |= (uint64_t)1 << all->accused[i].by;
    return __builtin_popcountll(by);
}

static void evict(server *srv, seat *a, seat *b)
{
    views *all = &srv->views;
    int by_a = accusers(all, a->member.place), by_b = accusers(all, b->member.place);
    bool later = a->seq > b->seq, out = by_a != by_b ? by_a > by_b : later;
    seat *who = a->local ? b : b->local ? a : out ? a : b, *other = who == a ? b : a;
    co_leave how = {.status = CO_EXIT_PREEMPTED};
    char name[300];

    snprintf(how.text, sizeof how.text,
             "host %.100s and host %.100s lost their connection %d times within %d s: the run goes on "
             "without host "
             "%.100s. Check the network between the two, then start it there again",
             who->who.name, other->who.name, CUTS_MOST, ACCUSED_MS / 1000, who->who.name);
    for (int i = all->accusations; i-- > 0;)
        if (all->accused[i].by == who->member.place || all->accused[i].whom == who->member.place)
            forget(all, i);
    seat_name(name, sizeof name, who);
    views_dismiss(srv, who, &how);
    views_want(all, "host %s is sent away: it lost its connection to %.100s %d times", name, other->who.name,
               CUTS_MOST);
}

static void settle(server *srv)
{
    views *all = &srv->views;

    all->settles_ms = -1;
    for (int i = all->accusations; i-- > 0;) {
        accusation one = all->accused[i];
        seat *a = member_at(srv, one.by), *b = member_at(srv, one.whom);
        if (one.number != srv->seats.view || !a || !b || cuts(all, one.by, one.whom) < CUTS_MOST)
            continue;
        evict(srv, a, b);
        return;
    }
    views_want(all, "%s", all->cut);
}

void accuse_turn(server *srv, double elapsed_ms)
{
    views *all = &srv->views;

    for (int i = all->accusations; i-- > 0;)
        if ((all->accused[i].age_ms += elapsed_ms) > ACCUSED_MS)
            forget(all, i);
    if (srv->job.stage != RUN || all->settles_ms < 0)
        return;
    all->settles_ms += elapsed_ms;
    if (all->settles_ms >= SETTLE_MS && !all->wanted)
        settle(srv);
}
