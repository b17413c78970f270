/* table.h -- a server of views and its hosts in one thread: the test decides how much time passes, and can
 * send any frame. Host 0 has the server's own seat. Each host answers FREEZE with its position, unless it is
 * mute. */
#ifndef TESTS_ROSTER_TABLE_H
#define TESTS_ROSTER_TABLE_H

#include "base/alloc.h"
#include "roster/net/seat_int.h"
#include "roster/rosters.h"

enum { TABLE_MOST = 6 };

typedef struct guest {
    client client;
    co_terms terms;
    co_meet where;
    co_position at;
    int weight;
    bool here, mute, over, refused;
    int freezes, waits, status;
    uint32_t number; /* of the last FREEZE */
    co_roster_view *view;
    char text[1024], talk[1024];
} guest;

typedef struct table {
    scene scene;
    server *server;
    guest guest[TABLE_MOST];
} table;

static inline void guest_event(void *ctx, const co_roster_event *ev)
{
    guest *one = ctx;

    if (ev->kind != CO_ROSTER_TALK)
        snprintf(one->text, sizeof one->text, "%s", ev->text);
    if (ev->kind == CO_ROSTER_FREEZE) {
        one->freezes++;
        one->number = ev->number;
        if (!one->mute)
            CHECK_OK(client_say(&one->client, FRAME_POSITION, position_pack(ev->number, &one->at, one->weight)));
    } else if (ev->kind == CO_ROSTER_VIEW) {
        co_free(one->view);
        one->view = ev->view;
    } else if (ev->kind == CO_ROSTER_WAIT) {
        one->waits++;
    } else if (ev->kind == CO_ROSTER_OVER) {
        one->over = true;
        one->status = ev->status;
    } else if (ev->kind == CO_ROSTER_TALK) {
        test_note("%s: %s", one->where.host, ev->text);
        snprintf(one->talk, sizeof one->talk, "%s", ev->text);
    }
}

static inline void guest_refused(void *ctx, co_err err, const char *text)
{
    guest *one = ctx;

    (void)err;
    one->refused = true;
    snprintf(one->text, sizeof one->text, "%s", text);
}

static const client_events guest_events = {.event = guest_event, .refused = guest_refused};

/* fd: its end of the connection. */
static inline guest *seat_guest(table *all, int i, int fd, co_position at)
{
    guest *one = &all->guest[i];

    *one = (guest){.terms = all->scene.terms, .where = all->scene.where, .at = at, .here = true};
    one->terms.birth = (uint64_t)co_now_ns();
    one->terms.bulk_port = 40000 + i;
    snprintf(one->where.host, sizeof one->where.host, "%c", 'a' + i);
    one->client = (client){.terms = &one->terms, .where = &one->where, .report = &guest_events, .ctx = one};
    one->client.run = run_number(one->terms.run_id);
    one->client.place = -1;
    CHECK_OK(co_conn_new(&one->client.conn, fd, NULL, CO_CONN_CLIENT));
    return one;
}

/* A host that has not said HELLO yet. */
static inline guest *bring(table *all, int i, co_position at)
{
    co_patience soon = co_patience_s(20);
    co_endpoint where;
    co_addr to;
    int fd, n;

    CHECK_OK(co_endpoint_parse(&where, all->scene.where.endpoint));
    CHECK_OK(co_net_resolve(&to, 1, &n, where.host, where.port, &soon));
    CHECK_OK(co_net_connect(&fd, &to, &soon));
    return seat_guest(all, i, fd, at);
}

static inline guest *sit(table *all, int i, co_position at)
{
    guest *one = bring(all, i, at);

    CHECK_OK(client_hello(&one->client, "127.0.0.1"));
    return one;
}

static inline void table_open(table *all, const past *before, co_position at)
{
    role here;
    int pair[2];

    all->scene.terms.views = true;
    if (!all->scene.terms.facts)
        all->scene.terms.facts = "{\"slices\": \"16\"}";
    all->scene.where.lost_after_s = 1e6; /* nobody is silent: time advances in large steps */
    co_meet where = all->scene.where;
    where.role = CO_MEET_SERVE;
    snprintf(where.host, sizeof where.host, "a");
    CHECK_OK(role_decide(&here, &all->scene.terms, &where));
    CHECK_OK(co_net_pair(pair));
    CHECK_OK(server_open(&all->server, &all->scene.terms, &where, &here, NULL, pair[1]));
    if (before)
        server_resume(all->server, before);
    guest *own = seat_guest(all, 0, pair[0], at);
    if (before)
        own->client.past = *before;
    CHECK_OK(client_hello(&own->client, ""));
}

static inline void stand_up(guest *one)
{
    co_conn_free(one->client.conn);
    co_free(one->view);
    *one = (guest){0};
}

static inline void table_close(table *all)
{
    for (int i = 0; i < TABLE_MOST; i++)
        stand_up(&all->guest[i]);
    server_close(all->server);
}

static inline void pass(table *all, double ms)
{
    server_turn(all->server, ms);
    for (int i = 0; i < TABLE_MOST; i++)
        if (all->guest[i].here)
            client_turn(&all->guest[i].client, 0);
}

/* Frames go back and forth, without any time passing, until `what` holds. */
#define PASS_UNTIL(all, what)                                                                                \
    do {                                                                                                     \
        double until_ = co_now_s() + 20;                                                                     \
        while (!(what)) {                                                                                    \
            CHECK(co_now_s() < until_, "waited in vain for " #what);                                         \
            pass(all, 0);                                                                                    \
        }                                                                                                    \
    } while (0)

/* Frames that are under way arrive. */
static inline void calm(table *all)
{
    for (int i = 0; i < 20; i++) {
        pass(all, 0);
        poll(NULL, 0, 1);
    }
}

static inline bool table_runs(const table *all, int n, uint32_t least)
{
    int in = 0;

    for (int i = 0; i < TABLE_MOST; i++) {
        const guest *one = &all->guest[i];
        if (one->here && !one->over)
            in += one->view && one->view->view.deal.view == one->number && one->number >= least &&
                  one->view->view.deal.hosts == n;
    }
    return in == n && all->server->job.stage == RUN;
}

static inline int slices_of(const guest *one)
{
    const co_deal *deal = &one->view->view.deal;

    return deal->from[deal->me + 1] - deal->from[deal->me];
}

#endif
