/* finder.c -- finds the host that keeps the roster through etcd, and joins it or becomes it.
 *
 *     look --nobody--> campaign --won--> serve, hold the lease --lost it--> step down --+
 *      | ^                 | another was first                                          |
 *      | +--<--------------+                                                            |
 *      +--somebody--> join --welcome--> a client --keeper lost--> (lost.c)--------------+--> look
 *
 * The token never goes into etcd. Somebody who can write to etcd could send hosts to a wrong address, but the
 * TLS handshake would fail there.
 */
#include "roster/etcd/etcd_int.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

static bool etcd_wanted(const co_meet *where)
{
    return where->etcd.members != NULL;
}

static co_err finder_open(network *net)
{
    finder *find = co_zalloc(sizeof *find);
    co_err err = find ? etcd_open(&find->etcd, net->terms.run_id, &net->where.etcd) : CO_ENOMEM;

    if (err) {
        co_free(find);
        return err;
    }
    find->ttl_s = net->where.etcd.lease_s >= 1 ? (int)net->where.etcd.lease_s : ETCD_TTL_S;
    net->finder = find;
    return CO_OK;
}

static void finder_close(network *net)
{
    finder *find = net->finder;

    if (!find)
        return;
    lease_end(find->lease);
    etcd_close(find->etcd);
    co_free(find);
}

static bool finder_needs_token(const co_terms *terms, const co_meet *where)
{
    co_patience patience = co_patience_s(3 * ETCD_ANSWER_MS / 1000.0);
    keeping now = {0};
    etcd *db;

    if (where->insecure || *where->token || etcd_open(&db, terms->run_id, &where->etcd))
        return false;
    co_err err = etcd_look(db, &now, "", &patience);
    etcd_close(db);
    return !err && now.there;
}

/* ---- joining ---- */
static co_err take_token(network *net, const char *host)
{
    if (net->where.insecure || net->tls)
        return CO_OK;
    if (!*net->where.token)
        return co_fail(
            CO_EINPUT,
            "this host has no token to join the job %s that host %s keeps. That host shows it: put "
            "COHORT_TOKEN=... before this command, or start every host with --insecure",
            net->terms.run_id, host);
    CO_TRY(co_token_parse(&net->role.token, net->where.token));
    return co_tls_new(&net->tls, &net->role.token, net->terms.run_id);
}

static co_err join(network *net, const keeper *who, const co_patience *patience)
{
    bool again = strcmp(who->endpoint, net->finder->now.endpoint) == 0; /* most likely it is dead */
    uint64_t soon = co_now_ns() + (again ? ETCD_REJOIN_MS : ETCD_JOIN_MS) * 1000000ull;
    co_patience once = {.until_ns = soon < patience->until_ns ? soon : patience->until_ns,
                        .give_up = patience->give_up};
    finder *find = net->finder;

    find->refused[0] = '\0';
    net->role.tls = !net->where.insecure;
    net->role.serves = false;
    if (co_endpoint_parse(&net->role.at, who->endpoint) || net->role.at.port <= 0)
        return co_fail(CO_EFAIL, "step etcd: the keeper's endpoint is \"%.60s\"", who->endpoint);
    snprintf(net->role.also, sizeof net->role.also, "%s", who->also);
    CO_TRY(take_token(net, who->host));
    CO_TRY(join_other(net, &once));
    if (*find->refused)
        return co_fail(CO_EPEER, "%s", find->refused);
    find->now = *who;
    find->step_down[0] = '\0';
    return CO_OK;
}

static void end_as(network *net, const keeping *now)
{
    co_roster_event ev = leave_event(&now->end);
    const char *how = now->end.text;

    snprintf(ev.text, sizeof ev.text, "the job ended while this host was cut off%s%.900s", *how ? ": " : "",
             how);
    net->client.over = true;
    queue_event(&net->queue, &ev);
}

/* Nobody keeps the roster, but the job that ran last has not said that it ended. */
static co_err wait_for_the_other(network *net, const keeping *now, const co_patience *patience)
{
    return co_fail(
        CO_EFAIL,
        "host %.100s began it and may go on with it, though etcd no longer hears of that host. Unless etcd "
        "does, this host may begin it anew in %d s",
        now->running_host, etcd_seconds_left(net->finder->etcd, now->running_lease, patience));
}

/* The job has ended, somebody keeps its roster, or another job of that name runs. An end that was noted by
 * a host which gave up does not count while somebody keeps the roster. */
static co_err take_answer(network *net, const keeping *now, const co_patience *patience)
{
    if (!now->over || (now->there && strcmp(now->who.job, net->finder->now.job) == 0))
        return now->there ? join(net, &now->who, patience) : wait_for_the_other(net, now, patience);
    end_as(net, now);
    return CO_OK;
}

static co_err try_once(network *net, const co_patience *patience)
{
    const char *job = net->client.past.number ? net->finder->now.job : "";
    keeping now = {0};
    bool won = false;

    CO_TRY(etcd_look(net->finder->etcd, &now, job, patience));
    bool other = *now.running && strcmp(now.running, job) != 0;
    if (!now.over && !now.there && !other)
        CO_TRY(campaign(net, &won, &now, patience));
    return won ? CO_OK : take_answer(net, &now, patience);
}

static co_err finder_enter(network *net, const co_patience *patience)
{
    uint64_t began_ns = co_now_ns(), talked_ns = 0;
    char line[1100], why[900] = "";

    double missed_ms = 1000 * (net->where.lost_after_s > 0 ? net->where.lost_after_s : 3) + ETCD_REFUSED_MS;
    net->finder->refused_until_ns = net->client.past.number ? began_ns + (uint64_t)(missed_ms * 1e6) : 0;
    for (;;) {
        uint64_t look_ns = co_now_ns();
        co_err err = try_once(net, patience);
        uint64_t now = co_now_ns();
        if (!err || err == CO_ESTOP || err == CO_EINPUT || err == CO_ENOMEM)
            return err;
        if (patience->give_up && atomic_load(patience->give_up))
            return CO_ESTOP;
        if (!*why || now < patience->until_ns) /* an attempt cut short by the deadline tells less */
            snprintf(why, sizeof why, "%s", co_errmsg());
        if (now >= patience->until_ns)
            return co_fail(CO_EFAIL, "cannot join the job %s: %s", net->terms.run_id, why);
        if (now - (talked_ns ? talked_ns : began_ns) >
            (talked_ns ? RETALK_MS : 2 * FIRST_TALK_MS) * 1000000ull) {
            snprintf(line, sizeof line, "not yet in the job %s, trying on: %s", net->terms.run_id, why);
            queue_talk(&net->queue, line);
            talked_ns = now;
        }
        uint64_t next_ns = look_ns + ETCD_LOOK_MS * 1000000ull;
        next_ns = next_ns < patience->until_ns ? next_ns : patience->until_ns;
        while (co_now_ns() < next_ns && !atomic_load(&net->closing))
            poll(NULL, 0, 50);
    }
}

static void finder_refused(void *roster, co_err err, const char *text)
{
    network *net = roster;

    /* A job that is over frees its place soon, and our old seat goes when the keeper has noticed our
     * absence. */
    if (err == CO_EPEER || co_now_ns() < net->finder->refused_until_ns) {
        snprintf(net->finder->refused, sizeof net->finder->refused, "%s", text);
        net->client.over = false;
        return;
    }
    queue_broke(&net->queue, err, text);
}

static void finder_failed(network *net)
{
    const past *mine = &net->client.past;
    co_roster_event ev = {.kind = CO_ROSTER_OVER,
                          .status = mine->has_cause    ? co_failure_status(&mine->cause)
                                    : net->terms.views ? CO_EXIT_PREEMPTED
                                                       : 1,
                          .has_cause = mine->has_cause,
                          .cause = mine->cause};

    queue_talk(&net->queue, co_errmsg());
    queue_event(&net->queue, &ev);
}

const finder_ops finder_etcd = {.name = "etcd",
                                .wanted = etcd_wanted,
                                .needs_token = finder_needs_token,
                                .open = finder_open,
                                .enter = finder_enter,
                                .refused = finder_refused,
                                .lost = keep_lost,
                                .failed = finder_failed,
                                .turn = keep_turn,
                                .let_go = keep_let_go,
                                .end = keep_end,
                                .close = finder_close};
