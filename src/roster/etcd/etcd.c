/* roster_etcd.c -- the finder: who keeps the roster, as etcd has it; becoming that host; stepping down.
 *
 *     look --nobody--> campaign --won--> serve, hold the lease --lost it--> step down --+
 *      | ^                 | another was first                                          |
 *      | +--<--------------+                                                            |
 *      +--somebody--> join --welcome--> a client --keeper lost--> (roster_etcd_lost.c)--+--> look
 *
 * The token never goes into etcd: whoever can write there could send hosts to a wrong address, where TLS ends it.
 */
#include "roster/etcd/etcd_int.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

/* For one attempt to join; then etcd may know another keeper. */
enum { JOIN_MS = 2000, REJOIN_MS = 1000 };

co_err finder_open(finder **out, const co_terms *terms, const co_meet *where)
{
    finder *f = co_zalloc(sizeof *f);
    co_err err = f ? etcd_open(&f->etcd, terms->run_id, &where->etcd) : CO_ENOMEM;

    if (err) {
        co_free(f);
        return err;
    }
    f->ttl_s = where->etcd.lease_s >= 1 ? (int)where->etcd.lease_s : ETCD_TTL_S;
    *out = f;
    return CO_OK;
}

void finder_close(finder *f)
{
    if (!f)
        return;
    lease_end(f->lease);
    etcd_close(f->etcd);
    co_free(f);
}

bool finder_needs_token(const co_terms *terms, const co_meet *where)
{
    co_patience p = co_patience_s(3 * ETCD_ANSWER_MS / 1000.0);
    keeping now = {0};
    finder *f;

    if (where->insecure || *where->token || finder_open(&f, terms, where))
        return false;
    co_err err = etcd_look(f->etcd, &now, "", &p);
    finder_close(f);
    return !err && now.there;
}

/* ---- joining ---- */
static co_err take_token(net *r, const char *host)
{
    if (r->where.insecure || r->tls)
        return CO_OK;
    if (!*r->where.token)
        return co_fail(
            CO_EINPUT,
            "this host has no token to join the job %s that host %s keeps. That host shows it: put "
            "COHORT_TOKEN=... before this command, or start every host with --insecure",
            r->terms.run_id, host);
    CO_TRY(co_token_parse(&r->meeting.token, r->where.token));
    return co_tls_new(&r->tls, &r->meeting.token, r->terms.run_id);
}

static co_err join(net *r, const keeper *who, const co_patience *p)
{
    bool again = strcmp(who->endpoint, r->finder->now.endpoint) == 0; /* most likely it is dead */
    uint64_t soon = co_now_ns() + (again ? REJOIN_MS : JOIN_MS) * 1000000ull;
    co_patience once = {.until_ns = soon < p->until_ns ? soon : p->until_ns, .give_up = p->give_up};
    finder *f = r->finder;

    f->refused[0] = '\0';
    r->meeting.tls = !r->where.insecure;
    r->meeting.serves = false;
    if (co_endpoint_parse(&r->meeting.at, who->endpoint) || r->meeting.at.port <= 0)
        return co_fail(CO_EFAIL, "step etcd: the keeper's endpoint is \"%.60s\"", who->endpoint);
    snprintf(r->meeting.also, sizeof r->meeting.also, "%s", who->also);
    CO_TRY(take_token(r, who->host));
    CO_TRY(carrier_greet(r, &once));
    if (*f->refused)
        return co_fail(CO_EPEER, "%s", f->refused);
    f->now = *who;
    f->step_down[0] = '\0';
    return CO_OK;
}

static void end_as(net *r, const keeping *now)
{
    co_roster_event ev = {.kind = CO_ROSTER_OVER, .status = now->status};

    snprintf(ev.text, sizeof ev.text, "the job ended while this host was cut off%s%s", *now->text ? ": " : "",
             now->text);
    r->client.over = true;
    queue_event(r, &ev);
}

/* Nobody keeps the roster, but what ran last did not say that it ended. */
static co_err wait_for_the_other(net *r, const keeping *now, const co_patience *p)
{
    return co_fail(
        CO_EFAIL,
        "host %.100s began it and may go on with it, though etcd no longer hears of that host. Unless etcd "
        "does, this host may begin it anew in %d s",
        now->running_host, etcd_seconds_left(r->finder->etcd, now->running_lease, p));
}

/* The job has ended, somebody keeps its roster, or another of that name runs. What a host that despaired left there does not count while it is kept. */
static co_err accept_that(net *r, const keeping *now, const co_patience *p)
{
    if (!now->over || (now->there && strcmp(now->who.job, r->finder->now.job) == 0))
        return now->there ? join(r, &now->who, p) : wait_for_the_other(r, now, p);
    end_as(r, now);
    return CO_OK;
}

/* ---- serving ---- */
static void new_job(char out[33])
{
    unsigned char bytes[16];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        memset(bytes, getpid() & 255, sizeof bytes);
    for (int i = 0; i < 16; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

/* Where others find this host if it wins. */
static void describe(const net *r, keeper *me, const co_meet *here)
{
    co_endpoint at;
    char first[CO_NAME_MOST];

    co_addr_mine(me->also, sizeof me->also);
    snprintf(first, sizeof first, "%.*s", (int)strcspn(me->also, ","), me->also);
    if (co_endpoint_parse(&at, here->endpoint))
        at = (co_endpoint){.port = 0};
    co_endpoint_text(me->endpoint, sizeof me->endpoint,
                     *here->advertise ? here->advertise
                     : *first         ? first
                                      : "127.0.0.1",
                     at.port);
    if (*here->host)
        snprintf(me->host, sizeof me->host, "%s", here->host);
    else if (gethostname(me->host, sizeof me->host - 1) != 0)
        snprintf(me->host, sizeof me->host, "host");
    if (r->client.past.number)
        memcpy(me->job, r->finder->now.job, sizeof me->job);
    else
        new_job(me->job);
}

static void invite(net *r, bool made)
{
    char line[1200], token[120] = "";

    if (r->terms.max_hosts == 1)
        return;
    if (made)
        snprintf(token, sizeof token, ", with COHORT_TOKEN=%s before it", r->where.token);
    if (r->client.past.number)
        snprintf(line, sizeof line,
                 "this host keeps the roster now, at port %d; waiting for the others to come back",
                 r->meeting.at.port);
    else
        snprintf(line, sizeof line,
                 "waiting for %d hosts, which find this one (port %d) through etcd at %.500s%s; run the same "
                 "line on"
                 " the others%s",
                 r->terms.min_hosts, r->meeting.at.port, etcd_members(r->finder->etcd),
                 r->meeting.tls ? "" : " (without TLS and token)", token);
    queue_talk(r, line);
}

/* The place is ours, but there is nothing to fill it with: it is given back. */
static void undo(net *r, int64_t id)
{
    pthread_mutex_lock(&r->lock);
    atomic_store(&r->seated, false);
    pthread_mutex_unlock(&r->lock);
    finder_let_go(r);
    co_conn_free(r->client.conn);
    r->client.conn = NULL;
    etcd_owe(r->finder->etcd, id);
}

/* The place is ours. Takes here->listener. */
static co_err serve(net *r, const co_meet *here, const lease_spec *spec)
{
    finder *f = r->finder;
    bool made = !*r->where.token && !r->where.insecure;
    co_err err = meet_decide(&r->meeting, &r->terms, here);

    if (err)
        return err;
    snprintf(r->where.token, sizeof r->where.token, "%s", here->token);
    f->now = spec->me;
    f->losses = 0;
    f->asked = false;
    f->doubt_ns = 0;
    f->step_down[0] = '\0';
    r->client.server[0] = '\0';
    r->client.silent_ms = 0;
    if (r->meeting.tls && !r->tls && (err = co_tls_new(&r->tls, &r->meeting.token, r->terms.run_id)))
        close(r->meeting.listener);
    if (!err)
        err = roster_serve_here(r);
    if (!err)
        server_clear(r->server, -1); /* no round before finder_turn has asked */
    if (!err && r->client.past.number)
        server_resume(r->server, &r->client.past);
    if (!err)
        err = lease_start(&f->lease, spec);
    if (!err)
        invite(r, made);
    return err;
}

static co_err campaign(net *r, const co_patience *p)
{
    finder *f = r->finder;
    co_meet here = r->where;
    lease_spec spec = {.etcd = f->etcd, .ttl_s = f->ttl_s, .sure_ns = co_now_ns(), .talk = queue_talk, .ctx = r};
    keeping other = {0};

    if (!*here.endpoint)
        snprintf(here.endpoint, sizeof here.endpoint, ":0");
    CO_TRY(co_meet_listen(&here));
    describe(r, &spec.me, &here);
    co_err err = etcd_campaign(f->etcd, &other, &spec.id, &spec.me, f->ttl_s, p);
    if (err || !spec.id) {
        close(here.listener);
        return err ? err : accept_that(r, &other, p);
    }
    err = serve(r, &here, &spec);
    if (err)
        undo(r, spec.id);
    return err;
}

/* ---- meeting ---- */
static co_err try(net *r, const co_patience *p)
{
    const char *job = r->client.past.number ? r->finder->now.job : "";
    keeping now;

    CO_TRY(etcd_look(r->finder->etcd, &now, job, p));
    bool other = *now.running && strcmp(now.running, job) != 0;
    return now.over || now.there || other ? accept_that(r, &now, p) : campaign(r, p);
}

co_err finder_meet(net *r, const co_patience *p)
{
    uint64_t began_ns = co_now_ns(), told_ns = 0;
    char line[1100], why[900] = "";

    double missed_ms = 1000 * (r->where.lost_after_s > 0 ? r->where.lost_after_s : 3) + REFUSED_MS;
    r->finder->refused_until_ns = r->client.past.number ? began_ns + (uint64_t)(missed_ms * 1e6) : 0;
    for (;;) {
        uint64_t look_ns = co_now_ns();
        co_err err = try(r, p);
        uint64_t now = co_now_ns();
        if (!err || err == CO_ESTOP || err == CO_EINPUT || err == CO_ENOMEM)
            return err;
        if (p->give_up && atomic_load(p->give_up))
            return CO_ESTOP;
        if (!*why || now < p->until_ns) /* an attempt cut short tells less than the one before */
            snprintf(why, sizeof why, "%s", co_errmsg());
        if (now >= p->until_ns)
            return co_fail(CO_EFAIL, "cannot join the job %s: %s", r->terms.run_id, why);
        if (now - (told_ns ? told_ns : began_ns) > (told_ns ? RETALK_MS : 2 * FIRST_TALK_MS) * 1000000ull) {
            snprintf(line, sizeof line, "not yet in the job %s, trying on: %s", r->terms.run_id, why);
            queue_talk(r, line);
            told_ns = now;
        }
        uint64_t next_ns = look_ns + ETCD_LOOK_MS * 1000000ull;
        next_ns = next_ns < p->until_ns ? next_ns : p->until_ns;
        while (co_now_ns() < next_ns && !atomic_load(&r->closing))
            poll(NULL, 0, 50);
    }
}

void finder_refused(void *roster, co_err err, const char *text)
{
    net *r = roster;

    /* A job that is over gives its place up, and our old seat goes when the keeper has missed us. */
    if (err == CO_EPEER || co_now_ns() < r->finder->refused_until_ns) {
        snprintf(r->finder->refused, sizeof r->finder->refused, "%s", text);
        r->client.over = false;
        return;
    }
    queue_broke(r, err, text);
}

void finder_fail(net *r)
{
    const past *p = &r->client.past;
    co_roster_event ev = {.kind = CO_ROSTER_OVER,
                          .status = p->has_cause ? co_failure_status(&p->cause) : 1,
                          .has_cause = p->has_cause,
                          .cause = p->cause};

    queue_talk(r, co_errmsg());
    queue_event(r, &ev);
}
