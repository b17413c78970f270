/* cast.h -- the hosts of a job of views in one process. The test plays their agents: each answers FREEZE with
 * its position at once, and keeps the last view. */
#ifndef TESTS_ROSTER_CAST_H
#define TESTS_ROSTER_CAST_H

#include "base/alloc.h"
#include "roster/rosters.h"

enum { CAST_MOST = 8 };

typedef struct actor {
    co_roster *r; /* NULL: not in the play */
    co_position at;
    int weight;
    bool mute; /* does not answer FREEZE */
    co_roster_view *view;
    uint32_t number;   /* of the last FREEZE */
    int freezes, id;   /* how many came; its place */
    int waits;         /* WAIT events */
    int slow_lines;    /* lines that name a slow host */
    bool over, broken; /* broken: refused, or cut off */
    int status;
    char text[1024], talk[1024], wait[1024]; /* the last of OVER, FREEZE or an error; TALK; WAIT */
} actor;

typedef struct cast {
    scene scene;
    actor host[CAST_MOST];
} cast;

static const co_position whole_at_start = {.unit = 1, .whole = true, .since = 1};
static const co_position nothing_yet = {.fresh = true};

static inline cast cast_of(int min, int max, int least)
{
    cast all = {.scene = scene_of(min, max, "127.0.0.1")};

    all.scene.terms.views = true;
    all.scene.terms.least_hosts = least;
    all.scene.terms.facts = "{\"slices\": \"16\"}";
    return all;
}

static inline actor *enter_as(cast *all, int i, co_position at)
{
    static uint64_t births = 100;
    scene s = all->scene;
    char name[16];

    s.terms.birth = ++births;
    s.terms.bulk_port = 40000 + i;
    if (i)
        s.where.role = CO_MEET_JOIN;
    snprintf(name, sizeof name, "%c", 'a' + i);
    all->host[i] = (actor){.r = host(s, name), .at = at};
    return &all->host[i];
}

static inline void leave_stage(actor *one)
{
    co_roster_close(one->r);
    co_free(one->view);
    *one = (actor){0};
}

static inline void cast_close(cast *all)
{
    for (int i = CAST_MOST; i-- > 0;)
        if (all->host[i].r)
            leave_stage(&all->host[i]);
}

static inline void act(actor *one, const co_roster_event *ev)
{
    if (ev->kind == CO_ROSTER_FREEZE) {
        CHECK(ev->number > one->number, "FREEZE %u after %u", ev->number, one->number);
        one->number = ev->number;
        one->id = ev->id;
        one->freezes++;
        snprintf(one->text, sizeof one->text, "%s", ev->text);
        if (!one->mute)
            co_roster_position(one->r, ev->number, &one->at, one->weight);
    } else if (ev->kind == CO_ROSTER_VIEW) {
        co_free(one->view);
        one->view = ev->view;
        if (one->view->view.deal.whole >> one->view->view.deal.me & 1)
            one->at = one->at.fresh || one->view->view.anew[one->view->view.deal.me]
                          ? (co_position){.unit = one->view->view.held + 1, .whole = true, .since = 1}
                          : one->at;
        else if (one->at.fresh) /* being fed from here on */
            one->at = (co_position){.unit = one->view->view.held + 1, .since = one->view->view.held + 1};
    } else if (ev->kind == CO_ROSTER_WAIT) {
        one->waits++;
        snprintf(one->wait, sizeof one->wait, "%s", ev->text);
    } else if (ev->kind == CO_ROSTER_OVER) {
        one->over = true;
        one->status = ev->status;
        snprintf(one->text, sizeof one->text, "%s", ev->text);
    } else if (ev->kind == CO_ROSTER_TALK) {
        test_note("%s", ev->text);
        snprintf(one->talk, sizeof one->talk, "%s", ev->text);
        one->slow_lines += test_contains(ev->text, " is slow: ");
    }
}

/* Every actor hears what has come. */
static inline void play(cast *all)
{
    co_roster_event ev;

    for (int i = 0; i < CAST_MOST; i++) {
        actor *one = &all->host[i];
        for (bool more = one->r && !one->broken; more;) {
            co_err err = co_roster_turn(one->r, 2, &ev);
            if (err) {
                one->broken = true;
                snprintf(one->text, sizeof one->text, "%s", co_errmsg());
            } else {
                act(one, &ev);
            }
            more = !err && ev.kind != CO_ROSTER_NOTHING;
        }
    }
}

/* Plays until `what` holds. */
#define PLAY_UNTIL(all, what)                                                                                \
    do {                                                                                                     \
        double until_ = co_now_s() + 20;                                                                     \
        while (!(what)) {                                                                                    \
            CHECK(co_now_s() < until_, "waited in vain for " #what);                                         \
            play(all);                                                                                       \
        }                                                                                                    \
    } while (0)

/* Whether all hosts that play are in one view of n hosts, with a number of at least `least`. */
static inline bool in_view(const cast *all, int n, uint32_t least)
{
    uint32_t number = 0;
    int in = 0;

    for (int i = 0; i < CAST_MOST; i++) {
        const actor *one = &all->host[i];
        if (!one->r || one->over)
            continue;
        if (!one->view || one->view->view.deal.hosts != n || one->view->view.deal.view < least ||
            one->view->view.deal.view != one->number || (number && number != one->number))
            return false;
        number = one->number;
        in++;
    }
    return in == n;
}

static inline int leaves(const actor *one)
{
    const co_deal *deal = &one->view->view.deal;

    return deal->from[deal->me + 1] - deal->from[deal->me];
}

#endif
