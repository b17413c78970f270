/* meet.c -- who keeps the roster, and the steps that lead to it:
 *
 *     resolve -> route -> connect -> TLS and token -> (roster_net_client.c) terms -> clock
 *
 * Each step that fails is named with the address, from which side, and what to look at. A step that may pass later (the other host
 * is not up yet, its name not yet known) is tried again until the time to join is over; meanwhile the user is told.
 *
 * Who serves: rank 0, if ranks were given; else the host that has the endpoint's address and gets its port. A second agent on
 * that host finds the port taken and joins.
 */
#include "launch/roster_net_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { DEFAULT_PORT = 29400, ADDRESSES = 8 };

int64_t meet_clock(const co_meet *m)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec + m->skew_ns;
}

/* Loopback by what was written: a name that only this host's /etc/hosts maps to 127.0.1.1 is not. */
static bool is_loopback(const char *host)
{
    return strcasecmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
}

static bool is_ours(const co_endpoint *at)
{
    co_addr a[ADDRESSES];
    co_patience p = co_patience_s(RESOLVE_MS / 1000.0);
    int n = 0;

    if (!*at->host || is_loopback(at->host))
        return true;
    if (co_net_resolve(a, ADDRESSES, &n, at->host, at->port, &p))
        return false;
    for (int i = 0; i < n; i++)
        if (co_addr_is_mine(&a[i]))
            return true;
    return false;
}

static const char *listen_address(const co_endpoint *at, const co_meet *where)
{
    if (*where->listen)
        return where->listen;
    if (is_loopback(at->host))
        return strcmp(at->host, "::1") == 0 ? "::1" : "127.0.0.1";
    return "";
}

/* Whether it may be the roster of this very job, kept by another agent on this host. */
static bool holder_is_cohort(int port)
{
    char link[64], theirs[512] = "", ours[512] = "";
    co_holder who;

    if (!co_net_holder(&who, port))
        return false;
    if (!who.pid || strstr(who.command, "cohort")) /* cannot be seen: it may be */
        return true;
    snprintf(link, sizeof link, "/proc/%d/exe", who.pid);
    ssize_t a = readlink(link, theirs, sizeof theirs - 1),
            b = readlink("/proc/self/exe", ours, sizeof ours - 1);
    return a > 0 && a == b && strcmp(theirs, ours) == 0;
}

static co_err take_port(meeting *m, const co_meet *where, bool may_join)
{
    co_err err = co_net_listen(&m->listener, listen_address(&m->at, where), m->at.port);

    if (err == CO_EIO && may_join && holder_is_cohort(m->at.port))
        return CO_OK;
    if (err)
        return co_fail_in(CO_EINPUT, "the meeting point");
    m->serves = true;
    if (m->at.port == 0) {
        co_addr a = co_net_local(m->listener);
        m->at.port = co_addr_port(&a);
    }
    return CO_OK;
}

static co_err parse_endpoint(meeting *m, const co_meet *where)
{
    *m = (meeting){.listener = -1};
    co_err err = co_endpoint_parse(&m->at, where->endpoint);
    if (err)
        return co_fail_in(err, "--rdzv-endpoint");
    if (m->at.port < 0)
        m->at.port = DEFAULT_PORT;
    return CO_OK;
}

static co_err decide_role(meeting *m, const co_terms *terms, const co_meet *where)
{
    CO_TRY(parse_endpoint(m, where));
    if (where->listener > 0) {
        m->listener = where->listener;
        m->serves = true;
        return CO_OK;
    }
    if (where->role == CO_MEET_JOIN || (where->role == CO_MEET_AUTO && terms->host_rank > 0))
        return *m->at.host ? CO_OK
                           : co_fail(CO_EINPUT, "--rdzv-endpoint=%s names no host to join", where->endpoint);
    bool told = where->role == CO_MEET_SERVE || terms->host_rank == 0;
    if (told || is_ours(&m->at))
        return take_port(m, where, !told);
    return CO_OK;
}

static bool needs_tls(const meeting *m, const co_meet *where)
{
    bool loopback = is_loopback(m->at.host) && (!*where->listen || is_loopback(where->listen));

    return !where->insecure && (*where->token || !loopback);
}

bool co_meet_needs_token(const co_terms *terms, const co_meet *where)
{
    meeting m;

    if (*where->token || decide_role(&m, terms, where))
        return false;
    if (m.listener >= 0)
        close(m.listener);
    return !m.serves && needs_tls(&m, where);
}

static co_err decide_token(meeting *m, const co_meet *where)
{
    m->tls = needs_tls(m, where);
    if (!m->tls)
        return CO_OK;
    if (*where->token)
        return co_token_parse(&m->token, where->token);
    if (!m->serves)
        return co_fail(CO_EINPUT,
                       "this host has no token to join the job at %s:%d with. The first host shows it: put "
                       "COHORT_TOKEN=... before"
                       " this command, or start every host with --insecure",
                       m->at.host, m->at.port);
    CO_TRY(co_token_make(&m->token));
    co_token_text(m->made, &m->token);
    return CO_OK;
}

co_err meet_decide(meeting *out, const co_terms *terms, const co_meet *where)
{
    meeting m;

    CO_TRY(decide_role(&m, terms, where));
    co_err err = decide_token(&m, where);
    if (err) {
        if (m.listener >= 0)
            close(m.listener);
        return err;
    }
    snprintf(m.also, sizeof m.also, "%s", where->also);
    *out = m;
    return CO_OK;
}

co_err co_meet_listen(co_meet *where)
{
    meeting m;

    CO_TRY(parse_endpoint(&m, where));
    CO_TRY(take_port(&m, where, false));
    co_err err = decide_token(&m, where);
    if (err) {
        close(m.listener);
        return err;
    }
    if (*m.made)
        snprintf(where->token, sizeof where->token, "%s", m.made);
    co_endpoint_text(where->endpoint, sizeof where->endpoint, m.at.host, m.at.port);
    where->listener = m.listener;
    where->role = CO_MEET_SERVE;
    return CO_OK;
}

/* A step failed. The text is kept if it is a later step than what was kept before: with several addresses the one that
 * came furthest says most. */
struct trouble {
    int step; /* 1 resolve, 2 route, 3 connect, 4 TLS */
    co_err err;
    bool final; /* trying again would not help */
    char text[900];
};

static co_err note(struct trouble *t, int step, co_err err, bool final, const char *advice)
{
    static const char *const names[] = {"", "resolve", "route", "connect", "TLS"};

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

static co_err reach_one(reached *out, const co_addr *to, co_tls *tls, const co_patience *p, struct trouble *t)
{
    co_patience soon = at_most(p, CONNECT_MS);
    co_addr mine;
    char why[300];
    int fd = -1;

    co_addr_text(out->via, sizeof out->via, to);
    co_err err = co_net_route(&mine, to);
    if (err)
        return note(t, 2, err, false,
                    "This host has no network that leads there: is the address right, the interface up?");
    co_addr_text(out->from, sizeof out->from, &mine);
    err = co_net_connect(&fd, to, &soon);
    if (err == CO_ESTOP)
        return err;
    if (err) {
        snprintf(why, sizeof why, "%s", co_errmsg());
        co_fail(err, "%s (tried from %s)", why, out->from);
        return note(t, 3, err, false,
                    err == CO_EPEER ? "Is the first host started, with this port and an address that others "
                                      "reach (not localhost)?"
                    : err == CO_ETIMEOUT ? "A firewall drops it, or it is another host's address."
                                         : "Is the address right, and the interface up?");
    }
    return shake_hands(out, fd, tls, p, t);
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
    co_addr to[ADDRESSES];
    int n = 0;

    *t = (struct trouble){0};
    co_err err = co_net_resolve(to, ADDRESSES, &n, m->at.host, m->at.port, &soon);
    if (err == CO_ESTOP)
        return err;
    if (err && !*m->also)
        return note(t, 1, err, false,
                    "Is it spelled right? /etc/hosts or the name server of this host must know it; a number "
                    "works too.");
    n += further(to + n, ADDRESSES - n, m, &soon);
    err = CO_EIO;
    for (int i = 0; i < n && err; i++)
        if ((err = reach_one(out, &to[i], tls, p, t)) == CO_ESTOP)
            return err;
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
        if (!*t.text || now < p->until_ns ||
            last.final) /* an attempt cut short tells less than the one before */
            t = last;
        if (t.final || now >= p->until_ns)
            return co_fail(t.err == CO_EINPUT ? CO_EINPUT : CO_EFAIL, "cannot join the job at %s:%d: %s",
                           m->at.host, m->at.port, t.text);
        if (now - (told_ns ? told_ns : began_ns) > (told_ns ? RETALK_MS : FIRST_TALK_MS) * 1000000ull) {
            char line[1200];
            snprintf(line, sizeof line, "not yet at %s:%d, trying on: %s", m->at.host, m->at.port, t.text);
            told(ctx, line);
            told_ns = now;
        }
        poll(NULL, 0,
             now - began_ns < 1000000000 ? 30 : 100); /* hosts that are started together meet at once */
        for (int i = 0; i < 2 && now - began_ns > 5000000000 && !(p->give_up && atomic_load(p->give_up)); i++)
            poll(NULL, 0, 100);
    }
}
