/* over.c -- a training over several hosts. The host that keeps the roster writes the record and has the
 * screen; the others are guests. A guest opens a run folder only if a view makes it the writer: when the host
 * that wrote is lost, or with etcd, where no host knows before the first view which of them keeps the roster.
 *
 *     over_come_late   a rehearsed delay, before anything is opened
 *     over_open        after the plan: this host's facts, its port, the roster
 *     over_hooks       record.c's hooks; for a guest they do nothing until it has a folder
 */
#include "cli/over_int.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "link/links.h"
#include "net/net.h"

enum {
    LAST_CALL_S = 2, /* how long an elastic run with enough hosts waits for more before it begins */
    LISTEN_MS = 5    /* between two looks for lines that are on their way */
};

/* --- opening and closing -------------------------------------------------------------------------------- */
static co_err open_port(over *o, const co_hosts_line *hosts, co_terms *terms)
{
    co_endpoint meets;

    if (hosts->port && !hosts->meet.etcd.members && co_endpoint_parse(&meets, hosts->meet.endpoint) == CO_OK &&
        hosts->port == (meets.port < 0 ? CO_MEET_PORT : meets.port))
        return co_fail(CO_EINPUT, "--port=%d is where the hosts meet (%s): give another one", hosts->port,
                       hosts->meet.endpoint);
    co_errclear();
    co_err err = co_net_listen(&o->given.listener, "", hosts->port);
    if (err)
        return hosts->port ? co_fail_in(CO_EINPUT, "--port=%d", hosts->port) : err;
    co_addr mine = co_net_local(o->given.listener);
    terms->bulk_port = co_addr_port(&mine);
    if (getrandom(&o->given.birth, sizeof o->given.birth, 0) != (ssize_t)sizeof o->given.birth)
        return co_fail(CO_EIO, "getrandom: %m");
    terms->birth = o->given.birth;
    return CO_OK;
}

void over_come_late(const training *s)
{
    double seconds = s->app.cfg->fault_host_join_s;
    uint64_t until = co_now_ns() + (uint64_t)(seconds * 1e9);

    if (!s->app.hosts || s->app.hosts->alone || seconds <= 0 || returns_so_far() > 0)
        return;
    co_say("rehearsal: this host comes in %g s (fault.host_join_s)", seconds);
    for (uint64_t now; (now = co_now_ns()) < until;)
        poll(NULL, 0, (int)((until - now) / 1000000) + 1);
}

co_err over_open(training *s)
{
    co_hosts_line *mine = s->app.hosts;

    if (!mine || mine->alone)
        return CO_OK;
    over *o = s->over = co_zalloc(sizeof *o);
    if (!o)
        return CO_ENOMEM;
    o->given.listener = -1;
    o->given.returned = returns_so_far() > 0;
    o->figures = json_array();
    char say[600];
    co_link_kind kind;
    CO_TRY(co_link_choose(&kind, (co_link_kind)s->app.cfg->link, say, sizeof say));
    o->given.link = (int)kind;
    if (kind == CO_LINK_MPI)
        tell(s, "link      %s", strncmp(say, "link: ", 6) == 0 ? say + 6 : say);
    CO_TRY(co_hosts_line_meet(mine));
    if (!(o->facts = facts_of(s)))
        return CO_ENOMEM;
    CO_TRY(open_port(o, mine, &mine->terms));
    mine->terms.facts = o->facts;
    mine->terms.nproc = co_plan_facts_of(s->plan)->ranks;
    if (mine->meet.last_call_s <= 0)
        mine->meet.last_call_s = LAST_CALL_S; /* whoever comes later joins the run */
    o->given.elastic_min = mine->terms.min_hosts < mine->terms.max_hosts ? mine->terms.min_hosts : 0;
    over_as_returned(&mine->meet);
    mine->meet.logs = true; /* what guests say comes to the record */
    CO_TRY(co_roster_open(&o->given.roster, &mine->terms, &mine->meet));
    o->given.tls = co_roster_tls(o->given.roster);
    o->given.run = co_fnv1a64(mine->terms.run_id, strlen(mine->terms.run_id));
    o->guest = !co_roster_keeps(o->given.roster);
    return CO_OK;
}

void over_decline(const training *s)
{
    co_hosts_line *mine = s->app.hosts;
    char why[1024];

    if (!mine || mine->alone || co_hosts_line_first(mine) || s->over || !mine->meet.endpoint[0])
        return; /* nobody waits for the first host */
    snprintf(why, sizeof why, "%s", co_errmsg());
    if (co_hosts_line_meet(mine) == CO_OK)
        co_roster_decline(&mine->terms, &mine->meet, why);
    co_fail(CO_EINPUT, "%s", why);
}

/* A guest's last lines are on their way, or there was no time for it. */
static void see_off(over *o)
{
    uint64_t until = co_now_ns() + LAST_LINES_MS * UINT64_C(1000000);

    while (!co_roster_settled(o->given.roster) && co_now_ns() < until)
        poll(NULL, 0, LISTEN_MS);
    co_roster_finish(o->given.roster);
}

void over_close(training *s)
{
    over *o = s->over;

    if (!o)
        return;
    if (o->given.roster)
        see_off(o);
    json_decref(o->figures);
    json_decref(o->listed);
    co_roster_close(o->given.roster);
    if (o->given.listener >= 0)
        close(o->given.listener);
    co_free(o->facts);
    co_free(o);
    s->over = NULL;
}

bool over_guest(const training *s)
{
    return s->over && s->over->guest;
}

/* --- hooks ---------------------------------------------------------------------------------------------- */
/* For the record and the screen: who has how many slices. */
static void on_view(void *ctx, const co_roster_view *view)
{
    training *s = ctx;
    const co_deal *deal = &view->view.deal;
    json_t *hosts = json_array();

    if (s->over->guest)
        guest_view(s, deal, view->member[RECORD_KEEPER].name);
    for (int h = 0; h < deal->hosts; h++)
        json_array_append_new(hosts, json_pack("{so si si sb}", "host", co_json_string(view->member[h].name),
                                               "ranks", view->member[h].ranks, "slices",
                                               deal->from[h + 1] - deal->from[h], "whole",
                                               (int)(deal->whole >> h & 1)));
    if (s->folder)
        co_event_json(s->folder, json_pack("{ss sI sI so}", "name", "view", "step", (json_int_t)s->last.step,
                                           "view", (json_int_t)deal->view, "hosts", hosts));
    else
        json_decref(hosts);
    snprintf(s->over->keeper, sizeof s->over->keeper, "%s", view->member[RECORD_KEEPER].name);
    label_host(s, view);
    list_hosts(s, view);
}

const co_train_hooks *over_hooks(training *s)
{
    over *o = s->over;

    o->record = record_hooks(s);
    o->hooks = o->record;
    if (o->guest)
        o->hooks = guest_hooks(s);
    else
        o->hooks.turn = listening_turn;
    o->hooks.view = on_view;
    return &o->hooks;
}
