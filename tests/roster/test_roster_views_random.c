/* Random schedules for a server of views: hosts come, go, fall silent and accuse each other, at any time.
 * Whatever happens, the members end up in one view or hear that the run is over, and no unit that was held is
 * lost. */
#include "roster/table.h"

typedef struct game {
    table table;
    uint64_t rng;
    uint32_t held; /* by the last view */
    int views;
    char what[64];
} game;

static int draw(game *g, int n)
{
    return (int)(test_u32(&g->rng) % (uint32_t)n);
}

static int hosts_here(const game *g)
{
    int n = 0;

    for (int i = 0; i < TABLE_MOST; i++)
        n += g->table.guest[i].here && !g->table.guest[i].over && !g->table.guest[i].refused;
    return n;
}

/* All hosts are in one view, or wait, or the run is over. */
static bool is_quiet(const game *g)
{
    const server *srv = g->table.server;
    int n = hosts_here(g);

    if (srv->job.stage == OVER)
        return g->table.guest[0].over;
    if (srv->views.wanted || srv->views.settles_ms >= 0 || seats_joined(&srv->seats) != n)
        return false;
    return srv->job.stage == WAITING || table_runs(&g->table, n, 1);
}

/* The members of a view go on for some units; not all hold the last one. */
static void advance(game *g)
{
    uint32_t unit = g->held + 1 + (uint32_t)draw(g, 3);

    for (int i = 0; i < TABLE_MOST; i++) {
        guest *one = &g->table.guest[i];
        if (!one->here || one->over || !one->view)
            continue;
        const co_view *view = &one->view->view;
        int me = view->deal.me;
        bool whole = view->deal.whole >> me & 1;
        if (view->anew[me])
            one->at = (co_position){.since = view->held + 1};
        one->at.whole = one->at.whole || whole;
        one->at.unit = unit;
        one->at.ready = draw(g, 2);
        if (!one->at.whole && draw(g, 3) == 0) {
            one->at.whole = true;
            CHECK_OK(
                client_say(&one->client, FRAME_WHOLE, json_pack("{sI}", "number", (json_int_t)one->number)));
        }
    }
}

static void check_view(game *g)
{
    const co_view *first = NULL;

    for (int i = 0; i < TABLE_MOST; i++) {
        const guest *one = &g->table.guest[i];
        if (!one->here || one->over || !one->view)
            continue;
        const co_view *view = &one->view->view;
        CHECK(!first || (first->held == view->held && first->deal.view == view->deal.view &&
                         memcmp(first->deal.from, view->deal.from, sizeof view->deal.from) == 0 &&
                         first->deal.whole == view->deal.whole),
              "%s: two hosts have different views %u", g->what, view->deal.view);
        first = view;
    }
    CHECK(first && first->held >= g->held, "%s: unit %u was held, now it is %u", g->what, g->held,
          first ? first->held : 0);
    g->held = first->held;
    g->views++;
}

static void settle(game *g)
{
    double until = co_now_s() + 20;

    for (int i = 0; !is_quiet(g); i++) {
        CHECK(co_now_s() < until, "%s: stage %d, %d of %d hosts, view %lld", g->what,
              g->table.server->job.stage, seats_joined(&g->table.server->seats), hosts_here(g),
              (long long)g->table.server->seats.view);
        pass(&g->table, i % 8 ? 0 : 60);
    }
    if (g->table.server->job.stage == RUN)
        check_view(g);
}

static void come_or_go(game *g, int i)
{
    guest *one = &g->table.guest[i];
    co_leave how = {.status = CO_EXIT_PREEMPTED, .text = "it must go"};

    if (!one->here)
        sit(&g->table, i,
            draw(g, 2) ? (co_position){.fresh = true} : (co_position){.unit = 3, .whole = true, .since = 3});
    else if (one->over || one->refused || draw(g, 2))
        stand_up(one);
    else
        CHECK_OK(client_say(&one->client, FRAME_LEAVE, leave_pack(&how)));
}

static void do_something(game *g)
{
    guest *by = &g->table.guest[draw(g, TABLE_MOST)];
    int turns = draw(g, 4), kind = draw(g, 10);

    if (kind < 5)
        come_or_go(g, 1 + draw(g, TABLE_MOST - 1));
    else if (kind < 7 && by->here && !by->over && !by->refused)
        CHECK_OK(client_say(
            &by->client, FRAME_CUT,
            json_pack("{sI si ss}", "number", (json_int_t)by->number, "place", draw(g, 8), "text", "reset")));
    else if (kind < 9 && by->here && !by->over && !by->refused)
        CHECK_OK(client_say(&by->client, FRAME_WEIGH,
                            json_pack("{sI si}", "number", (json_int_t)by->number, "weight", 1 + draw(g, 9))));
    else
        pass(&g->table, 5000 * draw(g, 4));
    while (turns-- > 0)
        pass(&g->table, 0);
}

/* All members end. If hosts wait, others come first. */
static void end(game *g)
{
    table *all = &g->table;

    for (int i = 1; i < TABLE_MOST && all->server->job.stage == WAITING; i++)
        if (!all->guest[i].here || all->guest[i].over || all->guest[i].refused) {
            stand_up(&all->guest[i]);
            sit(all, i, (co_position){.fresh = true});
            settle(g);
        }
    for (int i = 0; i < TABLE_MOST; i++) {
        guest *one = &all->guest[i];
        if (one->here && !one->over && !one->refused)
            CHECK_OK(
                client_say(&one->client, FRAME_ENDED, json_pack("{sI}", "number", (json_int_t)one->number)));
    }
    PASS_UNTIL(all, all->guest[0].over);
    CHECK(all->guest[0].status == 0, "%s: status %d: %s", g->what, all->guest[0].status, all->guest[0].text);
}

static void play_game(uint64_t seed)
{
    game g = {.table = {.scene = scene_of(2, TABLE_MOST, "127.0.0.1")}, .rng = seed * 2654435761u + 1};
    table *all = &g.table;

    snprintf(g.what, sizeof g.what, "seed %llu", (unsigned long long)seed);
    all->scene.terms.least_hosts = 1 + (int)(seed % 2);
    all->scene.where.join_timeout_s = 1e6;
    table_open(all, NULL, (co_position){.unit = 1, .whole = true, .since = 1});
    sit(all, 1, (co_position){.unit = 1, .whole = true, .since = 1});
    pass(all, 1000);
    settle(&g);
    for (int i = 0; i < 30 && all->server->job.stage != OVER; i++) {
        if (all->server->job.stage == RUN)
            advance(&g);
        for (int k = 1 + draw(&g, 3); k > 0 && all->server->job.stage != OVER; k--)
            do_something(&g);
        settle(&g);
    }
    CHECK(all->server->job.stage != OVER, "%s: %s", g.what, all->guest[0].text); /* host 0 holds the state */
    end(&g);
    test_note("%s: %d views", g.what, g.views);
    table_close(all);
}

TEST(random_losses_joins_and_cuts_never_leave_a_run_in_two_views_or_without_what_it_held)
{
    for (uint64_t seed = 1; seed <= 40; seed++)
        play_game(seed);
}
