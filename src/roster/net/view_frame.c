/* view_frame.c -- a host's position, its speed and a view as JSON, and the checks of what comes in.
 *
 * A view says who computes, gives and feeds what: its receiver indexes arrays with these numbers. So
 * view_unpack checks every number against the others, and refuses the whole view if one is wrong.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "roster/net/frame_int.h"

/* JSON's integers are signed, so a number of 64 bits travels as text. */
void long_text(char out[20], uint64_t number)
{
    snprintf(out, 20, "%016" PRIx64, number);
}

uint64_t long_parse(const json_t *body, const char *key)
{
    const char *text = co_json_str(body, key);

    if (!text || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        return 0;
    return strtoull(text, NULL, 16);
}

static bool field_bool(const json_t *body, const char *key)
{
    return json_is_true(json_object_get(body, key));
}

/* --- positions ------------------------------------------------------------------------------------------ */
json_t *position_pack(uint32_t number, const co_position *at, int weight)
{
    char start[20];

    long_text(start, at->start);
    return json_pack("{sI sI sb sb sb sb sI sI si sb sI ss}", "number", (json_int_t)number, "unit",
                     (json_int_t)at->unit, "ready", at->ready, "ended", at->ended, "whole", at->whole,
                     "fresh", at->fresh, "fed", (json_int_t)at->fed, "since", (json_int_t)at->since, "weight",
                     weight, "starts", at->starts, "first", (json_int_t)at->first, "start", start);
}

co_err position_unpack(co_position *at, int *weight, const json_t *body)
{
    bool fresh = field_bool(body, "fresh");
    int64_t unit = field_int(body, "unit", fresh ? 0 : 1, UINT32_MAX - 1, -1); /* units count from 1 */
    int64_t fed = field_int(body, "fed", 0, UINT32_MAX, -1);
    int64_t since = field_int(body, "since", 0, UINT32_MAX, -1);
    /* 0 is no unit: who does not say where it started counts as a newcomer until it was in a view */
    int64_t first = json_object_get(body, "first") ? field_int(body, "first", 0, UINT32_MAX, -1) : 0;
    int64_t w = field_int(body, "weight", 0, WEIGHT_MOST, -1);

    if (unit < 0 || fed < 0 || since < 0 || first < 0 || w < 0)
        return co_fail(CO_EFORMAT, "a position with a number that is missing or out of range");
    *at = (co_position){.unit = (uint32_t)unit,
                        .ready = field_bool(body, "ready"),
                        .ended = field_bool(body, "ended"),
                        .whole = field_bool(body, "whole") && !fresh,
                        .fresh = fresh,
                        .fed = (uint32_t)fed,
                        .since = (uint32_t)since,
                        .starts = field_bool(body, "starts"),
                        .first = (uint32_t)first,
                        .start = long_parse(body, "start")};
    *weight = (int)w;
    return CO_OK;
}

/* --- how fast a host is --------------------------------------------------------------------------------- */
enum { US_MOST = 2000000000, COUNT_MOST = 1 << 20 };

static int at_most(int number, int most)
{
    return number < 0 ? 0 : number > most ? most : number;
}

json_t *speed_pack(uint32_t number, const co_host_speed *speed)
{
    return json_pack("{sI si si si si si si si si sb}", "number", (json_int_t)number, "weight",
                     at_most(speed->weight, WEIGHT_MOST), "compute_us", at_most(speed->compute_us, US_MOST),
                     "input_us", at_most(speed->input_us, US_MOST), "cpus", at_most(speed->cpus, COUNT_MOST),
                     "threads", at_most(speed->threads, COUNT_MOST), "queued", at_most(speed->queued, 100),
                     "stolen", at_most(speed->stolen, 100), "mhz", at_most(speed->mhz, COUNT_MOST),
                     "rehearsed", speed->rehearsed);
}

void speed_unpack(co_host_speed *speed, const json_t *body)
{
    *speed = (co_host_speed){.weight = (int)field_int(body, "weight", 1, WEIGHT_MOST, 0),
                             .compute_us = (int)field_int(body, "compute_us", 0, US_MOST, 0),
                             .input_us = (int)field_int(body, "input_us", 0, US_MOST, 0),
                             .cpus = (int)field_int(body, "cpus", 0, COUNT_MOST, 0),
                             .threads = (int)field_int(body, "threads", 0, COUNT_MOST, 0),
                             .queued = (int)field_int(body, "queued", 0, 100, 0),
                             .stolen = (int)field_int(body, "stolen", 0, 100, 0),
                             .mhz = (int)field_int(body, "mhz", 0, COUNT_MOST, 0),
                             .rehearsed = field_bool(body, "rehearsed")};
}

/* --- views ---------------------------------------------------------------------------------------------- */
static json_t *member_pack(const co_roster_view *all, int h)
{
    const co_view *view = &all->view;
    const co_member *who = &all->member[h];
    char birth[20];

    long_text(birth, who->birth);
    return json_pack("{si ss so so si si si sb si si sI sb}", "place", who->id, "birth", birth, "name",
                     co_json_string(who->name), "addr", co_json_string(who->addr), "port", who->port, "ranks",
                     who->ranks, "leaves", view->deal.from[h + 1] - view->deal.from[h], "whole",
                     (int)(view->deal.whole >> h & 1), "giver", view->giver[h], "feeder", view->feeder[h],
                     "fed", (json_int_t)view->fed[h], "anew", view->anew[h]);
}

json_t *view_pack(const co_roster_view *all)
{
    const co_view *view = &all->view;
    json_t *members = json_array();

    for (int h = 0; h < view->deal.hosts && members; h++)
        if (json_array_append_new(members, member_pack(all, h))) {
            json_decref(members);
            members = NULL;
        }
    if (!members)
        return NULL;
    return json_pack("{si si sI sI sb so}", "me", view->deal.me, "writer", view->deal.writer, "held",
                     (json_int_t)view->held, "counts", (json_int_t)view->counts, "stops", view->stops,
                     "members", members);
}

/* One member. A number outside its range becomes -2, which is never allowed. */
static bool member_unpack(co_roster_view *all, int h, const json_t *body)
{
    co_view *view = &all->view;
    co_member *who = &all->member[h];
    int last = view->deal.hosts - 1;
    int leaves = (int)field_int(body, "leaves", 0, CO_MAX_SLICES, -2);
    int giver = (int)field_int(body, "giver", -1, last, -2),
        feeder = (int)field_int(body, "feeder", -1, last, -2);
    int64_t fed = field_int(body, "fed", 0, UINT32_MAX, -2);
    bool whole = field_bool(body, "whole");

    *who = (co_member){.id = (int)field_int(body, "place", 0, CO_MAX_MEMBERS - 1, -2),
                       .birth = long_parse(body, "birth"),
                       .port = (int)field_int(body, "port", 0, 65535, -2),
                       .ranks = (int)field_int(body, "ranks", 1, INT32_MAX, -2)};
    field_text(who->name, sizeof who->name, body, "name");
    field_text(who->addr, sizeof who->addr, body, "addr");
    if (who->id < 0 || who->port < 0 || who->ranks < 0 || leaves < 0 || giver == -2 || feeder == -2 || fed < 0)
        return false;
    for (int k = 0; k < h; k++)
        if (all->member[k].id == who->id)
            return false;
    if (giver == h || feeder == h || whole != (feeder < 0) || (!whole && leaves) ||
        view->deal.from[h] + leaves > CO_MAX_SLICES)
        return false;
    view->deal.from[h + 1] = (int16_t)(view->deal.from[h] + leaves);
    view->deal.id[h] = (uint8_t)who->id;
    view->deal.whole |= (uint64_t)whole << h;
    view->giver[h] = (int8_t)giver;
    view->feeder[h] = (int8_t)feeder;
    view->fed[h] = (uint32_t)fed;
    view->anew[h] = field_bool(body, "anew");
    return true;
}

/* The writer, and whoever gives or feeds, hold the whole state. */
static bool roles_fit(const co_view *view)
{
    uint64_t needed = (uint64_t)1 << view->deal.writer;

    for (int h = 0; h < view->deal.hosts; h++) {
        needed |= view->giver[h] >= 0 ? (uint64_t)1 << view->giver[h] : 0;
        needed |= view->feeder[h] >= 0 ? (uint64_t)1 << view->feeder[h] : 0;
    }
    return (needed & ~view->deal.whole) == 0 && view->deal.from[view->deal.hosts] > 0;
}

co_err view_unpack(co_roster_view *all, const json_t *body, uint32_t number)
{
    const json_t *members = json_object_get(body, "members");
    size_t n = json_array_size(members);
    int last = (int)n - 1;

    if (n < 1 || n > CO_MAX_MEMBERS)
        return co_fail(CO_EFORMAT, "a view of %zu hosts", n);
    memset(all, 0, sizeof *all);
    int64_t held = field_int(body, "held", 0, UINT32_MAX - 1, -1);
    all->view.deal = (co_deal){.view = number,
                               .hosts = (int)n,
                               .me = (int)field_int(body, "me", 0, last, -1),
                               .writer = (int)field_int(body, "writer", 0, last, -1)};
    if (number < 1 || number > INT32_MAX || held < 0 || all->view.deal.me < 0 || all->view.deal.writer < 0)
        return co_fail(CO_EFORMAT, "a view with a number that is missing or out of range");
    all->view.held = (uint32_t)held;
    all->view.counts = (uint32_t)field_int(body, "counts", 0, UINT32_MAX - 1, 0);
    all->view.stops = field_bool(body, "stops");
    for (int h = 0; h < (int)n; h++)
        if (!member_unpack(all, h, json_array_get(members, (size_t)h)))
            return co_fail(CO_EFORMAT, "a view whose member %d contradicts the others", h);
    if (!roles_fit(&all->view))
        return co_fail(CO_EFORMAT, "a view in which a host without the whole state gives it");
    return CO_OK;
}
