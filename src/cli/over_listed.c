/* over_listed.c -- what `cohort ps` lists of a run of several hosts: on each of them the hosts of the present
 * view and their states.
 *
 *     computes    has slices of each step
 *     joins       is fed the weights
 *     idle        holds the weights, and has no slices in this view
 *     lost        was a member, and is not in this view
 */
#include <string.h>

#include "cli/over_int.h"

void over_list_guest(training *s)
{
    if (co_live_register_guest(s->app.hosts->terms.run_id, s->app.cfg->task_name) != CO_OK)
        tell(s, "note      `cohort ps` will not list this host's part: %s", co_errmsg());
}

static const char *state_of(const co_deal *deal, int h)
{
    if (!(deal->whole >> h & 1))
        return "joins";
    return deal->from[h] < deal->from[h + 1] ? "computes" : "idle";
}

static bool is_member(const co_roster_view *view, const char *name)
{
    for (int h = 0; h < view->view.deal.hosts; h++)
        if (strcmp(view->member[h].name, name) == 0)
            return true;
    return false;
}

/* Those of the views before that are not in this one. */
static void add_lost(json_t *hosts, const json_t *before, const co_roster_view *view)
{
    size_t i;
    json_t *host;

    json_array_foreach(before, i, host)
    {
        const char *name = co_json_str(host, "name");
        if (name && !is_member(view, name))
            json_array_append_new(
                hosts, json_pack("{ss si si ss}", "name", name, "ranks", 0, "slices", 0, "state", "lost"));
    }
}

void list_hosts(training *s, const co_roster_view *view)
{
    const co_deal *deal = &view->view.deal;
    json_t *hosts = json_array();

    for (int h = 0; h < deal->hosts; h++)
        json_array_append_new(hosts, json_pack("{so si si ss}", "name", co_json_string(view->member[h].name),
                                               "ranks", view->member[h].ranks, "slices",
                                               deal->from[h + 1] - deal->from[h], "state", state_of(deal, h)));
    add_lost(hosts, s->over->listed, view);
    json_decref(s->over->listed);
    s->over->listed = hosts;
    if (co_live_hosts(s->app.hosts->terms.run_id, deal->view, view->member[RECORD_KEEPER].name, hosts) != CO_OK)
        co_errclear(); /* the entry could not be made; that was reported */
}
