/* meet_reach.c -- the steps from an endpoint to a connection that knows the token:
 *
 *     resolve -> route -> connect -> TLS and token -> (roster_net_client.c) terms -> clock
 *
 * Each step that fails is named with the address, from which side, and what to look at. A step that may pass later (the other host
 * is not up yet, its name not yet known) is tried again until the time to join is over; meanwhile the user is told.
 *
 * An endpoint may have several addresses, some of networks that do not lead here. They are tried side by side, each begun a quarter
 * of a second after the one before it or as soon as all before it have failed; the first that shakes hands is taken.
 */
#include "roster/net/net_int.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

/* A step failed. The text is kept if it is a later step than what was kept before: with several addresses the one that
 * came furthest says most. */
struct trouble {
    int step; /* 1 resolve, 2 route, 3 connect, 4 TLS */
    co_err err;
    bool final; /* trying again would not help */
    bool shown; /* of the meeting */
    int other;  /* troubles of this look that were not a refused connection */
    char text[900];
};

static co_err note(struct trouble *t, int step, co_err err, bool final, const char *advice)
{
    static const char *const names[] = {"", "resolve", "route", "connect", "TLS"};

    t->other += step != 3 || err != CO_EPEER;
    if (step >= t->step) {
        t->step = step;
        t->err = err;
        t->final = final;
        snprintf(t->text, sizeof t->text, "step %s: %s. %s",
                 step == 4 && err == CO_EINPUT ? "token" : names[step], co_errmsg(), advice);
    }
    return err;
}

static co_patience at_most(const co_patience *p, int ms)
{
    uint64_t soon = co_now_ns() + (uint64_t)ms * 1000000;

    return (co_patience){.until_ns = soon < p->until_ns ? soon : p->until_ns, .give_up = p->give_up};
}

static co_err shake_hands(reached *out, int fd, co_tls *tls, const co_patience *p, struct trouble *t)
{
    co_patience soon = at_most(p, CONNECT_MS);
    co_conn *c = NULL;
    co_err err = co_conn_new(&c, fd, tls, CO_CONN_CLIENT);

    if (!err)
        err = co_conn_meet(c, &soon);
    if (!err) {
        out->conn = c;
        return CO_OK;
    }
    co_conn_free(c);
    if (err == CO_ESTOP)
        return err;
    char why[300];
    snprintf(why, sizeof why, "%s", co_errmsg());
    co_fail(err, "%s (reached from %s): %s", out->via, out->from, why);
    const char *advice =
        err == CO_EINPUT    ? "Copy the token again from the first host's screen into COHORT_TOKEN."
        : err == CO_EFORMAT ? "Another program listens there, or one side runs with --insecure."
                            : "It accepts connections but does not speak: another program, or a busy host.";
    return note(t, 4, err, err == CO_EINPUT || err == CO_EFORMAT, advice);
}

/* One address that is being tried. */
struct attempt {
    co_addr to;
    int fd; /* -1: not begun, or over */
    uint64_t until_ns;
    char via[CO_HOST_NAME], from[CO_HOST_NAME];
};

static co_err not_connected(const struct attempt *a, co_err err, struct trouble *t)
{
    char why[300];

    snprintf(why, sizeof why, "%s", co_errmsg());
    co_fail(err, "%s (tried from %s)", why, a->from);
    return note(t, 3, err, false,
                err == CO_EPEER && t->shown ? "The job is over, or the code is an old one"
                : err == CO_EPEER    ? "Is the first host started, with this port and an address that others "
                                       "reach (not localhost)?"
                : err == CO_ETIMEOUT ? "A firewall drops it, or it is another host's address."
                                     : "Is the address right, and the interface up?");
}

static void begin(struct attempt *a, struct trouble *t)
{
    co_addr mine;

    co_addr_text(a->via, sizeof a->via, &a->to);
    co_err err = co_net_route(&mine, &a->to);
    if (err) {
        note(t, 2, err, false,
             "This host has no network that leads there: is the address right, the interface up?");
        return;
    }
    co_addr_text(a->from, sizeof a->from, &mine);
    a->until_ns = co_now_ns() + CONNECT_MS * 1000000ull;
    if ((err = co_net_connect_start(&a->fd, &a->to)))
        not_connected(a, err, t);
}

/* It can be written to, or it is late. */
static co_err finish(reached *out, struct attempt *a, bool in_time, co_tls *tls, const co_patience *p,
                     struct trouble *t)
{
    int fd = a->fd;
    co_err err = co_net_connect_end(fd, &a->to, in_time);

    a->fd = -1;
    if (err) {
        close(fd);
        return not_connected(a, err, t);
    }
    snprintf(out->via, sizeof out->via, "%s", a->via);
    snprintf(out->from, sizeof out->from, "%s", a->from);
    return shake_hands(out, fd, tls, p, t);
}

/* Waits for those that are under way, not longer than until the next is due. False: none is. */
static bool wait_for_any(struct attempt *a, int n, bool ready[], bool more)
{
    struct pollfd fds[MEET_ADDRESSES];
    int under_way = 0;

    for (int i = 0; i < n; i++) {
        fds[i] = (struct pollfd){.fd = a[i].fd, .events = POLLOUT};
        under_way += a[i].fd >= 0;
    }
    if (under_way)
        poll(fds, (nfds_t)n, more ? STAGGER_MS / 5 : TURN_MS);
    for (int i = 0; i < n; i++)
        ready[i] = under_way && a[i].fd >= 0 && fds[i].revents;
    return under_way > 0;
}

static co_err race(reached *out, struct attempt *a, int n, co_tls *tls, const co_patience *p, struct trouble *t)
{
    bool ready[MEET_ADDRESSES], under_way = false;
    uint64_t begun_ns = 0;
    int begun = 0;
    co_err err = CO_EIO;

    while (err && err != CO_ESTOP && (begun < n || under_way)) {
        if (p->give_up && atomic_load(p->give_up))
            return co_fail(CO_ESTOP, "asked to stop");
        if (begun < n && (!under_way || co_now_ns() - begun_ns >= STAGGER_MS * 1000000ull)) {
            begin(&a[begun++], t);
            begun_ns = co_now_ns();
        }
        under_way = wait_for_any(a, begun, ready, begun < n);
        for (int i = 0; i < begun && err && err != CO_ESTOP; i++) {
            uint64_t now = co_now_ns();
            if (a[i].fd >= 0 && (ready[i] || now >= a[i].until_ns || now >= p->until_ns))
                err = finish(out, &a[i], ready[i], tls, p, t);
        }
    }
    return err;
}

/* The endpoint's other addresses, as the host that listens there knows them. */
static int further(co_addr *out, int most, const meeting *m, const co_patience *p)
{
    char host[CO_NAME_MOST];
    int n = 0, got;

    for (const char *at = m->also; *at && n < most; at += *at == ',') {
        size_t len = strcspn(at, ",");
        snprintf(host, sizeof host, "%.*s", (int)len, at);
        if (co_net_resolve(out + n, most - n, &got, host, m->at.port, p) == CO_OK)
            n += got;
        at += len;
    }
    return n;
}

static co_err reach_once(reached *out, const meeting *m, co_tls *tls, const co_patience *p, struct trouble *t)
{
    co_patience soon = at_most(p, RESOLVE_MS);
    struct attempt a[MEET_ADDRESSES];
    co_addr to[MEET_ADDRESSES];
    int n = 0;

    *t = (struct trouble){.shown = m->shown};
    co_err err = co_net_resolve(to, MEET_ADDRESSES, &n, m->at.host, m->at.port, &soon);
    if (err == CO_ESTOP)
        return err;
    if (err && !*m->also)
        return note(t, 1, err, false,
                    "Is it spelled right? /etc/hosts or the name server of this host must know it; a number "
                    "works too.");
    n += further(to + n, MEET_ADDRESSES - n, m, &soon);
    for (int i = 0; i < n; i++)
        a[i] = (struct attempt){.to = to[i], .fd = -1};
    err = race(out, a, n, tls, p, t);
    for (int i = 0; i < n; i++)
        if (a[i].fd >= 0)
            close(a[i].fd);
    return err;
}

co_err meet_reach(reached *out, const meeting *m, co_tls *tls, const co_patience *p,
                  void (*told)(void *, const char *), void *ctx)
{
    struct trouble t = {0}, last;
    uint64_t began_ns = co_now_ns(), told_ns = 0;

    for (;;) {
        co_err err = reach_once(out, m, tls, p, &last);
        if (!err || err == CO_ESTOP)
            return err;
        uint64_t now = co_now_ns();
        if (!*t.text || now < p->until_ns || last.final) /* an attempt cut short tells less than the one before */
            t = last;
        bool over = m->shown && t.step == 3 && !t.other && now - began_ns > GONE_MS * 1000000ull;
        if (t.final || over || now >= p->until_ns)
            return co_fail(t.err == CO_EINPUT ? CO_EINPUT : CO_EFAIL, "cannot join the job at %s:%d: %s",
                           m->at.host, m->at.port, t.text);
        if (now - (told_ns ? told_ns : began_ns) > (told_ns ? RETALK_MS : FIRST_TALK_MS) * 1000000ull) {
            char line[1200];
            snprintf(line, sizeof line, "not yet at %s:%d, trying on: %s", m->at.host, m->at.port, t.text);
            told(ctx, line);
            told_ns = now;
        }
        poll(NULL, 0, now - began_ns < 1000000000 ? 30 : 100); /* hosts that are started together meet at once */
        for (int i = 0; i < 2 && now - began_ns > 5000000000 && !(p->give_up && atomic_load(p->give_up)); i++)
            poll(NULL, 0, 100);
    }
}
