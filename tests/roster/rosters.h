/* rosters.h -- the rosters of several hosts in one process. Each has its own carrier thread; the test plays
 * all agents. */
#ifndef TESTS_ROSTER_ROSTERS_H
#define TESTS_ROSTER_ROSTERS_H

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "harness.h"
#include "roster/roster.h"
#include "net/net.h"

typedef struct scene {
    co_terms terms;
    co_meet where;
} scene;

static inline scene scene_of(int min, int max, const char *host)
{
    scene s = {.terms = {.run_id = "run7",
                         .min_hosts = min,
                         .max_hosts = max,
                         .nproc = 2,
                         .host_rank = -1,
                         .program = "train.py",
                         .version = "1.0"},
               .where = {.join_timeout_s = 20, .last_call_s = 0.2}};
    int port;

    CHECK_OK(co_net_free_port(&port));
    co_endpoint_text(s.where.endpoint, sizeof s.where.endpoint, host, port);
    return s;
}

static inline co_roster *host(scene s, const char *name)
{
    co_roster *r;

    snprintf(s.where.host, sizeof s.where.host, "%s", name);
    CHECK_OK(co_roster_open(&r, &s.terms, &s.where));
    return r;
}

/* A signal asks this host to end. */
static inline void leave(co_roster *r, int sig, int status)
{
    co_roster_leave(r, &(co_leave){.sig = sig, .origin = CO_ORIGIN_USER, .status = status});
}

/* The next event other than TALK; it must be of this kind. */
static inline co_roster_event event(co_roster *r, co_roster_kind kind)
{
    double until = co_now_s() + 20;
    co_roster_event ev;

    for (;;) {
        CHECK(co_now_s() < until, "no event of kind %d came", kind);
        CHECK_OK(co_roster_turn(r, 100, &ev));
        if (ev.kind == CO_ROSTER_TALK)
            test_note("%s", ev.text);
        if (ev.kind != CO_ROSTER_NOTHING && ev.kind != CO_ROSTER_TALK)
            break;
    }
    CHECK(ev.kind == kind, "event %d, wanted %d: %s", ev.kind, kind, ev.text);
    return ev;
}

/* Waits for a TALK that contains these words. */
static inline void talk(co_roster *r, const char *words)
{
    double until = co_now_s() + 20;
    co_roster_event ev;

    do {
        CHECK(co_now_s() < until, "nobody said \"%s\"", words);
        CHECK_OK(co_roster_turn(r, 100, &ev));
        CHECK(ev.kind == CO_ROSTER_NOTHING || ev.kind == CO_ROSTER_TALK, "event %d instead of \"%s\": %s",
              ev.kind, words, ev.text);
    } while (ev.kind != CO_ROSTER_TALK || !test_contains(ev.text, words));
    test_note("%s", ev.text);
}

/* Waits until the roster fails with this code and these words: it was refused or cut off. */
static inline void broken(co_roster *r, co_err code, const char *words)
{
    double until = co_now_s() + 20;
    co_roster_event ev;
    co_err err = CO_OK;

    while (!err) {
        CHECK(co_now_s() < until, "not refused");
        err = co_roster_turn(r, 100, &ev);
        CHECK(err || ev.kind == CO_ROSTER_NOTHING || ev.kind == CO_ROSTER_TALK, "event %d: %s", ev.kind,
              ev.text);
    }
    test_note("%s", co_errmsg());
    CHECK(err == code && test_contains(co_errmsg(), words), "error %d: %s", err, co_errmsg());
}

static inline int64_t wall_ns(void)
{
    return (int64_t)(co_wall_s() * 1e9);
}

static inline co_failure failure(int rank, int status, int64_t when_ns)
{
    co_failure f = {.host = "x", .rank = rank, .pid = 100 + rank, .status = status << 8, .when_ns = when_ns};

    snprintf(f.how, sizeof f.how, "exited with status %d", status);
    return f;
}

#endif
