/* stage.c -- the steps from stage to stage that all hosts hear of: STOP for a round, OVER for the job. */
#include "roster/net/seat_int.h"

#include <stdio.h>

void stage_enter(rounds *all, stage to)
{
    all->stage = to;
    all->stage_ms = 0;
    all->last_call_ms = -1;
}

static void add_cause(const rounds *all, json_t *body)
{
    if (all->has_cause && body)
        json_object_set_new(body, "cause", failure_pack(&all->cause));
}

void stage_end(server *srv, const co_leave *how)
{
    rounds *all = &srv->rounds;

    if (all->stage == OVER)
        return;
    stage_enter(all, OVER);
    all->ending = *how;
    for (int i = 0; i < srv->seats.n; i++)
        if (srv->seats.at[i]->joined) {
            json_t *body = leave_pack(how);
            add_cause(all, body);
            seat_say(&srv->seats, srv->seats.at[i], FRAME_OVER, body);
        }
}

void stage_over(server *srv, int status, const char *text)
{
    co_leave how = {.status = status};

    snprintf(how.text, sizeof how.text, "%s", text);
    stage_end(srv, &how);
}

void stage_stop(server *srv, bool counts, const char *why)
{
    rounds *all = &srv->rounds;

    all->counts = all->counts || counts;
    if (all->stage != RUN)
        return;
    stage_enter(all, STOPPING);
    for (int i = 0; i < srv->seats.n; i++)
        if (srv->seats.at[i]->number >= 0) {
            json_t *body = json_pack("{so}", "text", co_json_string(why));
            add_cause(all, body);
            seat_say(&srv->seats, srv->seats.at[i], FRAME_STOP, body);
        }
}

bool stage_between(const server *srv)
{
    return srv->rounds.round.world > 0 || srv->handover.past.number > 0;
}

bool stage_regathers(const server *srv)
{
    return srv->handover.past.number > 0 && srv->rounds.round.number == 0;
}

bool stage_unsure(const server *srv)
{
    return srv->handover.checked && srv->handover.cleared != srv->handover.losses;
}
