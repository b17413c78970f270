/* reach.c -- the steps from an endpoint to a connection that knows the token:
 *
 *     resolve -> route -> connect -> TLS and token -> (client.c) terms -> clock
 *
 * The message of a step that fails names the address, our own address, and what to check. A step that may
 * succeed later (the other host is not up yet, its name not known yet) is tried again until the time to
 * join is over; meanwhile the user hears why it takes long.
 *
 * An endpoint may have several addresses, and not all networks lead there. They are tried side by side:
 * each attempt starts a quarter of a second after the one before it, or as soon as all before it have
 * failed. The first that completes the handshake is taken.
 */
#include "roster/net/role_int.h"

#include <poll.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "roster/times_int.h"

/* Why we are not connected. Of several addresses, the text of the one that came furthest is kept: it is the
 * most useful. */
struct trouble {
    int step; /* 1 resolve, 2 route, 3 connect, 4 TLS */
    co_err err;
    bool final;     /* trying again would not help */
    bool from_code; /* see role */
    int other;      /* failures that were not a refused connection */
    char text[900];
};

static co_err note(struct trouble *trouble, int step, co_err err, bool final, const char *advice)
{
    static const char *const names[] = {"", "resolve", "route", "connect", "TLS"};

    trouble->other += step != 3 || err != CO_EPEER;
    if (step >= trouble->step) {
        trouble->step = step;
        trouble->err = err;
        trouble->final = final;
        snprintf(trouble->text, sizeof trouble->text, "step %s: %s. %s",
                 step == 4 && err == CO_EINPUT ? "token" : names[step], co_errmsg(), advice);
    }
    return err;
}

static co_patience at_most(const co_patience *patience, int ms)
{
    uint64_t soon = co_now_ns() + (uint64_t)ms * 1000000;

    return (co_patience){.until_ns = soon < patience->until_ns ? soon : patience->until_ns,
                         .give_up = patience->give_up};
}

static co_err shake_hands(reached *out, int fd, co_tls *tls, const co_patience *patience,
                          struct trouble *trouble)
{
    co_patience soon = at_most(patience, CONNECT_MS);
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
    return note(trouble, 4, err, err == CO_EINPUT || err == CO_EFORMAT, advice);
}

/* One address that is being tried. */
struct attempt {
    co_addr to;
    int fd; /* -1: not begun, or over */
    uint64_t until_ns;
    char via[CO_HOST_NAME], from[CO_HOST_NAME];
};

static co_err not_connected(const struct attempt *tries, co_err err, struct trouble *trouble)
{
    char why[300];

    snprintf(why, sizeof why, "%s", co_errmsg());
    co_fail(err, "%s (tried from %s)", why, tries->from);
    return note(trouble, 3, err, false,
                err == CO_EPEER && trouble->from_code ? "The job is over, or the code is an old one"
                : err == CO_EPEER    ? "Is the first host started, with this port and an address that others "
                                       "reach (not localhost)?"
                : err == CO_ETIMEOUT ? "A firewall drops it, or it is another host's address."
                                     : "Is the address right, and the interface up?");
}

static void begin(struct attempt *tries, struct trouble *trouble)
{
    co_addr mine;

    co_addr_text(tries->via, sizeof tries->via, &tries->to);
    co_err err = co_net_route(&mine, &tries->to);
    if (err) {
        note(trouble, 2, err, false,
             "This host has no network that leads there: is the address right, the interface up?");
        return;
    }
    co_addr_text(tries->from, sizeof tries->from, &mine);
    tries->until_ns = co_now_ns() + CONNECT_MS * 1000000ull;
    if ((err = co_net_connect_start(&tries->fd, &tries->to)))
        not_connected(tries, err, trouble);
}

/* The attempt can be written to, or its time is over. */
static co_err finish(reached *out, struct attempt *tries, bool in_time, co_tls *tls,
                     const co_patience *patience, struct trouble *trouble)
{
    int fd = tries->fd;
    co_err err = co_net_connect_end(fd, &tries->to, in_time);

    tries->fd = -1;
    if (err) {
        close(fd);
        return not_connected(tries, err, trouble);
    }
    snprintf(out->via, sizeof out->via, "%s", tries->via);
    snprintf(out->from, sizeof out->from, "%s", tries->from);
    return shake_hands(out, fd, tls, patience, trouble);
}

/* Waits for the attempts under way, at most until the next one is due. False: none is under way. */
static bool wait_for_any(struct attempt *tries, int n, bool ready[], bool more)
{
    struct pollfd fds[ROLE_ADDRESSES];
    int under_way = 0;

    for (int i = 0; i < n; i++) {
        fds[i] = (struct pollfd){.fd = tries[i].fd, .events = POLLOUT};
        under_way += tries[i].fd >= 0;
    }
    if (under_way)
        poll(fds, (nfds_t)n, more ? STAGGER_MS / 5 : TURN_MS);
    for (int i = 0; i < n; i++)
        ready[i] = under_way && tries[i].fd >= 0 && fds[i].revents;
    return under_way > 0;
}

static co_err race(reached *out, struct attempt *tries, int n, co_tls *tls, const co_patience *patience,
                   struct trouble *trouble)
{
    bool ready[ROLE_ADDRESSES], under_way = false;
    uint64_t begun_ns = 0;
    int begun = 0;
    co_err err = CO_EIO;

    while (err && err != CO_ESTOP && (begun < n || under_way)) {
        if (patience->give_up && atomic_load(patience->give_up))
            return co_fail(CO_ESTOP, "asked to stop");
        if (begun < n && (!under_way || co_now_ns() - begun_ns >= STAGGER_MS * 1000000ull)) {
            begin(&tries[begun++], trouble);
            begun_ns = co_now_ns();
        }
        under_way = wait_for_any(tries, begun, ready, begun < n);
        for (int i = 0; i < begun && err && err != CO_ESTOP; i++) {
            uint64_t now = co_now_ns();
            if (tries[i].fd >= 0 && (ready[i] || now >= tries[i].until_ns || now >= patience->until_ns))
                err = finish(out, &tries[i], ready[i], tls, patience, trouble);
        }
    }
    return err;
}

/* The endpoint's other addresses, which came from the host that listens there. */
static int further(co_addr *out, int most, const role *to, const co_patience *patience)
{
    char host[CO_NAME_MOST];
    int n = 0, got;

    for (const char *at = to->also; *at && n < most; at += *at == ',') {
        size_t len = strcspn(at, ",");
        snprintf(host, sizeof host, "%.*s", (int)len, at);
        if (co_net_resolve(out + n, most - n, &got, host, to->at.port, patience) == CO_OK)
            n += got;
        at += len;
    }
    return n;
}

static co_err reach_once(reached *out, const role *to, co_tls *tls, const co_patience *patience,
                         struct trouble *trouble)
{
    co_patience soon = at_most(patience, RESOLVE_MS);
    struct attempt tries[ROLE_ADDRESSES];
    co_addr found[ROLE_ADDRESSES];
    int n = 0;

    *trouble = (struct trouble){.from_code = to->from_code};
    co_err err = co_net_resolve(found, ROLE_ADDRESSES, &n, to->at.host, to->at.port, &soon);
    if (err == CO_ESTOP)
        return err;
    if (err && !*to->also)
        return note(trouble, 1, err, false,
                    "Is it spelled right? /etc/hosts or the name server of this host must know it; a number "
                    "works too.");
    n += further(found + n, ROLE_ADDRESSES - n, to, &soon);
    for (int i = 0; i < n; i++)
        tries[i] = (struct attempt){.to = found[i], .fd = -1};
    err = race(out, tries, n, tls, patience, trouble);
    for (int i = 0; i < n; i++)
        if (tries[i].fd >= 0)
            close(tries[i].fd);
    return err;
}

co_err reach_roster(reached *out, const role *to, co_tls *tls, const co_patience *patience,
                    void (*talk)(void *, const char *), void *ctx)
{
    struct trouble trouble = {0}, last;
    uint64_t began_ns = co_now_ns(), talked_ns = 0;

    for (;;) {
        co_err err = reach_once(out, to, tls, patience, &last);
        if (!err || err == CO_ESTOP)
            return err;
        uint64_t now = co_now_ns();
        if (!*trouble.text || now < patience->until_ns ||
            last.final) /* the message of an attempt that the deadline cut short says less */
            trouble = last;
        bool over =
            to->from_code && trouble.step == 3 && !trouble.other && now - began_ns > GONE_MS * 1000000ull;
        if (trouble.final || over || now >= patience->until_ns)
            return co_fail(trouble.err == CO_EINPUT ? CO_EINPUT : CO_EFAIL,
                           "cannot join the job at %s:%d: %s", to->at.host, to->at.port, trouble.text);
        if (now - (talked_ns ? talked_ns : began_ns) > (talked_ns ? RETALK_MS : FIRST_TALK_MS) * 1000000ull) {
            char line[1200];
            snprintf(line, sizeof line, "not yet at %s:%d, trying on: %s", to->at.host, to->at.port,
                     trouble.text);
            talk(ctx, line);
            talked_ns = now;
        }
        poll(NULL, 0, now - began_ns < 1000000000 ? 30 : 100); /* hosts that start together meet at once */
        for (int i = 0;
             i < 2 && now - began_ns > 5000000000 && !(patience->give_up && atomic_load(patience->give_up));
             i++)
            poll(NULL, 0, 100);
    }
}
