/* stage.c -- the steps from stage to stage that all hosts hear of, in jobs of rounds and of views alike. */
#include "roster/net/seat_int.h"

#include <stdio.h>

void stage_enter(job *all, stage to)
{
    all->stage = to;
    all->stage_ms = 0;
    all->last_call_ms = -1;
}

void stage_add_cause(const job *all, json_t *body)
{
    if (all->has_cause && body)
        json_object_set_new(body, "cause", failure_pack(&all->cause));
}

void stage_end(server *srv, const co_leave *how)
{
    job *all = &srv->job;

    if (all->stage == OVER)
        return;
    stage_enter(all, OVER);
    all->ending = *how;
    for (int i = 0; i < srv->seats.n; i++)
        if (srv->seats.at[i]->joined) {
            json_t *body = leave_pack(how);
            stage_add_cause(all, body);
            seat_say(&srv->seats, srv->seats.at[i], FRAME_OVER, body);
        }
}

void stage_over(server *srv, int status, const char *text)
{
    co_leave how = {.status = status};

    snprintf(how.text, sizeof how.text, "%s", text);
    stage_end(srv, &how);
}

void stage_dismiss(server *srv, seat *peer, const co_leave *how)
{
    seat_say(&srv->seats, peer, FRAME_OVER, leave_pack(how));
    peer->joined = false;
    peer->closing = true;
    peer->number = -1;
    peer->age_ms = 0;
}

int64_t stage_next_number(server *srv)
{
    seats *all = &srv->seats;
    int64_t least = srv->handover.least_number;

    all->view = (all->view > least ? all->view : least) + 1;
    return all->view;
}

bool stage_regathers(const server *srv)
{
    return srv->handover.past.number > 0 && srv->seats.view == 0;
}

bool stage_unsure(const server *srv)
{
    return srv->handover.checked && srv->handover.cleared != srv->handover.losses;
}
