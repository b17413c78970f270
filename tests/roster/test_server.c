/* The roster's server without its thread: the test calls server_turn and decides how much time passes. */
#include "roster/rosters.h"

#include <unistd.h>

#include "roster/net/seat_int.h"

typedef struct desk {
    scene scene;
    server *server;
    client mine; /* the server's own seat */
} desk;

static void note_event(void *ctx, const co_roster_event *ev)
{
    (void)ctx;
    test_note("%d: %s", ev->kind, ev->text);
}

static const client_events noted = {.event = note_event};

static void open_desk(desk *d, const past *p)
{
    role m;
    int pair[2];

    d->scene.where.lost_after_s = 1e6; /* time advances in large steps: no host may count as silent */
    co_meet where = d->scene.where;
    where.role = CO_MEET_SERVE;
    d->scene.where.role = CO_MEET_JOIN;
    CHECK_OK(role_decide(&m, &d->scene.terms, &where));
    CHECK_OK(co_net_pair(pair));
    d->mine = (client){.terms = &d->scene.terms, .where = &d->scene.where, .report = &noted};
    d->mine.run = run_number(d->scene.terms.run_id);
    CHECK_OK(co_conn_new(&d->mine.conn, pair[0], NULL, CO_CONN_CLIENT));
    CHECK_OK(server_open(&d->server, &d->scene.terms, &where, &m, NULL, pair[1]));
    if (p)
        server_resume(d->server, p);
    CHECK_OK(client_hello(&d->mine, ""));
}

static void close_desk(desk *d)
{
    co_conn_free(d->mine.conn);
    server_close(d->server);
}

static void turn(desk *d, double ms)
{
    client_turn(&d->mine, 0);
    server_turn(d->server, ms);
    client_turn(&d->mine, 0);
}

static void until_joined(desk *d, int n)
{
    double until = co_now_s() + 20;

    while (seats_joined(&d->server->seats) != n) {
        CHECK(co_now_s() < until, "%d hosts, not %d", seats_joined(&d->server->seats), n);
        turn(d, 0);
    }
}

static void until_stage(desk *d, stage to)
{
    double until = co_now_s() + 20;

    while (d->server->job.stage != to) {
        CHECK(co_now_s() < until, "stage %d, not %d", d->server->job.stage, to);
        turn(d, 0);
    }
}

TEST(a_host_that_drops_while_the_others_come_back_to_a_new_keeper_ends_nothing)
{
    past p = {.number = 4, .restarts = 1, .hosts = 4, .counted = true, .has_cause = true};
    desk d = {.scene = scene_of(2, 4, "127.0.0.1")};

    d.scene.terms.max_restarts = 3;
    p.cause = failure(0, 1, wall_ns());
    open_desk(&d, &p);
    co_roster *c = host(d.scene, "c");
    until_joined(&d, 2);
    co_roster_close(c);
    until_joined(&d, 1);
    CHECK(!server_over(d.server), "the job is over: %s", d.server->job.ending.text);
    co_roster *late = host(d.scene, "d");
    until_joined(&d, 2);
    turn(&d, 1000); /* the last call is over */
    until_stage(&d, RUN);
    co_round o = event(late, CO_ROSTER_BEGIN).round;
    CHECK(o.hosts == 2 && o.restarts == 1 && o.number == 1, "%d hosts, %d restarts, round %lld", o.hosts,
          o.restarts, (long long)o.number);
    co_roster_close(late);
    close_desk(&d);
}

static void stops_for(double grace_s, double limit_s)
{
    desk d = {.scene = scene_of(2, 2, "127.0.0.1")};
    co_failure f = failure(0, 3, wall_ns());

    open_desk(&d, NULL);
    d.scene.where.grace_s = grace_s;
    co_roster *b = host(d.scene, "b");
    until_stage(&d, RUN);
    CHECK_OK(client_say(&d.mine, FRAME_FAILED, failure_pack(&f)));
    CHECK_OK(client_say(&d.mine, FRAME_STOPPED, NULL));
    until_stage(&d, STOPPING);
    turn(&d, 1000 * limit_s - 5000);
    CHECK(seats_joined(&d.server->seats) == 2, "lost within %g s", limit_s - 5);
    turn(&d, 10000);
    turn(&d, 0);
    CHECK(seats_joined(&d.server->seats) == 1 && server_over(d.server), "waited for more than %g s",
          limit_s + 5);
    co_roster_close(b);
    close_desk(&d);
}

TEST(a_new_keeper_that_waits_for_the_others_says_so_every_fifteen_seconds)
{
    past p = {.number = 4, .restarts = 1, .hosts = 4, .done = true, .counted = true, .has_cause = true};
    desk d = {.scene = scene_of(3, 3, "127.0.0.1")};

    d.scene.where.join_timeout_s = 600;
    p.cause = failure(0, 1, wall_ns());
    open_desk(&d, &p);
    co_roster *c = host(d.scene, "c");
    until_joined(&d, 2);
    turn(&d, 14000);
    turn(&d, 2000);
    talk(c,
         "still waiting for the others to come back: 2 of 3 hosts are here after 16 s (600 s are the limit)");
    turn(&d, 13000);
    turn(&d, 2000);
    talk(c, "2 of 3 hosts are here after 31 s");
    CHECK(!server_over(d.server), "the job is over: %s", d.server->job.ending.text);
    co_roster_close(c);
    close_desk(&d);
}

TEST(a_host_whose_workers_have_a_long_grace_period_is_not_lost_before_it)
{
    stops_for(0, 120);
    stops_for(30, 120);
    stops_for(300, 330);
}

static bool clock_is(const desk *d, double ahead_s)
{
    double s = (double)d->server->seats.at[1]->clock.offset_ns / 1e9;

    return s > ahead_s - 0.5 && s < ahead_s + 0.5;
}

TEST(a_clock_that_is_set_during_a_job_is_measured_again)
{
    desk d = {.scene = scene_of(2, 2, "127.0.0.1")};
    const double ahead_s[] = {0, 300, -1000, 0};

    open_desk(&d, NULL);
    co_roster *b = host(d.scene, "b");
    until_stage(&d, RUN);
    d.server->seats.at[1]->clock.best_rtt_ns = 1; /* shorter than any later round trip */
    for (size_t i = 0; i < CO_COUNT(ahead_s); i++) {
        double until = co_now_s() + 20;
        d.server->where.skew_ns = (int64_t)(-ahead_s[i] * 1e9); /* the server's clock: b is ahead of it */
        for (turn(&d, 1000); !clock_is(&d, ahead_s[i]); turn(&d, 100))
            CHECK(co_now_s() < until, "b is %g s ahead, not %g",
                  (double)d.server->seats.at[1]->clock.offset_ns / 1e9, ahead_s[i]);
    }
    co_roster_close(b);
    close_desk(&d);
}

static int unjoined(const desk *d)
{
    return d->server->seats.n - seats_joined(&d->server->seats);
}

TEST(who_does_not_say_who_it_is_does_not_fill_the_server)
{
    enum { CROWD = 300 };
    desk d = {.scene = scene_of(2, 2, "127.0.0.1")};
    uint8_t head[CO_FRAME_HEAD];
    co_patience soon = co_patience_s(20);
    co_endpoint at;
    co_addr to;
    int fd[CROWD], most = 0, n;

    open_desk(&d, NULL);
    CHECK_OK(co_endpoint_parse(&at, d.scene.where.endpoint));
    CHECK_OK(co_net_resolve(&to, 1, &n, at.host, at.port, &soon));
    co_frame_head(head, &(co_frame){.type = FRAME_HELLO, .len = CO_FRAME_MOST});
    for (int i = 0; i < CROWD; i++) {
        CHECK_OK(co_net_connect(&fd[i], &to, &soon));
        CHECK(send(fd[i], head, sizeof head, MSG_NOSIGNAL) == (ssize_t)sizeof head, "sent");
        turn(&d, 1);
        most = unjoined(&d) > most ? unjoined(&d) : most;
    }
    co_roster *b = host(d.scene, "b");
    until_stage(&d, RUN);
    test_note("at most %d were kept of %d", most, CROWD);
    CHECK(most > 1 && most <= CO_STRANGERS + 1, "%d were kept", most);
    for (int i = 0; i < CROWD; i++)
        close(fd[i]);
    co_roster_close(b);
    close_desk(&d);
}

TEST(a_pong_with_an_impossible_time_changes_nothing_on_the_server)
{
    static const char *const times[] = {"-1",
                                        "9223372036854775807",
                                        "-9223372036854775808",
                                        "4611686018427387904",
                                        "1e300",
                                        "\"now\"",
                                        "null",
                                        "[1]"};
    desk d = {.scene = scene_of(2, 2, "127.0.0.1")};

    open_desk(&d, NULL);
    until_joined(&d, 1);
    turn(&d, 0);
    seat *own = d.server->seats.at[0];
    for (size_t i = 0; i < CO_COUNT(times); i++)
        for (size_t k = 0; k < CO_COUNT(times) + 1; k++) {
            char json[200], now[30];
            json_t *body = NULL;
            snprintf(now, sizeof now, "%lld", (long long)wall_ns());
            snprintf(json, sizeof json, "{\"t\": %s, \"mine\": %s}", k < CO_COUNT(times) ? times[k] : now,
                     times[i]);
            CHECK_OK(co_json_parse(&body, json, strlen(json), "test"));
            own->clock.best_rtt_ns = k % 2 ? -1 : 1000000000; /* without and with an earlier measurement */
            own->clock.offset_ns = -3600000000000;
            clock_pong(d.server, own, body);
            CHECK(own->clock.offset_ns == -3600000000000, "%s moves the clock by %g s", json,
                  (double)own->clock.offset_ns / 1e9);
            json_decref(body);
        }
    close_desk(&d);
}
