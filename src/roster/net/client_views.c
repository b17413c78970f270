/* client_views.c -- the seat of a host in a job of views: FREEZE, VIEW and WAIT become events.
 *
 * The numbers of views rise. A FREEZE with a number that the host has heard of before is old, and so is a
 * VIEW with another number than that of the last FREEZE: both are dropped.
 */
#include <stdio.h>

#include "base/alloc.h"
#include "roster/net/client_int.h"

bool client_add_past_views(const client *cl, json_t *hello)
{
    return !cl->terms->views || (json_object_set_new(hello, "view", json_integer(cl->past.view)) == 0 &&
                                 json_object_set_new(hello, "frozen", json_integer(cl->past.frozen)) == 0 &&
                                 json_object_set_new(hello, "place", json_integer(cl->place)) == 0);
}

co_err hear_freeze(client *cl, const co_frame *frame, const json_t *body, co_roster_event *ev)
{
    int place = (int)field_int(body, "place", 0, CO_MAX_MEMBERS - 1, -1);

    if (!cl->terms->views || place < 0 || frame->view > INT32_MAX)
        return co_fail(CO_EFORMAT, "a change of the view that no host could follow");
    if (frame->view <= cl->past.number)
        return CO_OK;
    cl->view = cl->past.number = cl->past.frozen = frame->view;
    cl->place = place;
    ev->kind = CO_ROSTER_FREEZE;
    ev->number = frame->view;
    ev->id = place;
    return CO_OK;
}

co_err hear_wait(client *cl, const co_frame *frame, const json_t *body, co_roster_event *ev)
{
    (void)cl, (void)body;
    ev->kind = CO_ROSTER_WAIT;
    ev->number = frame->view;
    return CO_OK;
}

static void remember(client *cl, const co_roster_view *all)
{
    past *mine = &cl->past;

    mine->view = all->view.deal.view;
    mine->hosts = all->view.deal.hosts;
    mine->done = mine->counted = mine->has_cause = false;
    for (int h = 0; h < all->view.deal.hosts; h++) {
        uint64_t *born = &mine->born[all->member[h].id];
        *born = *born > all->member[h].birth ? *born : all->member[h].birth;
    }
}

co_err hear_view(client *cl, const co_frame *frame, const json_t *body, co_roster_event *ev)
{
    if (!cl->terms->views || frame->view != cl->past.frozen || cl->past.view == cl->past.frozen)
        return CO_OK;
    co_roster_view *all = co_zalloc(sizeof *all);
    co_err err = all ? view_unpack(all, body, frame->view) : CO_ENOMEM;
    const co_member *me = err ? NULL : &all->member[all->view.deal.me];

    if (me && (me->id != cl->place || me->birth != cl->terms->birth))
        err = co_fail(CO_EFORMAT, "a view in which this host is another one");
    if (err) {
        co_free(all);
        return err;
    }
    remember(cl, all);
    ev->kind = CO_ROSTER_VIEW;
    ev->number = frame->view;
    ev->view = all;
    return CO_OK;
}
