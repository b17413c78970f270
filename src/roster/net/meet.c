/* meet.c -- who keeps the roster, and with which token. How to get there: meet_reach.c.
 *
 * Who serves: rank 0, if ranks were given; else the host that has the endpoint's address and gets its port. A second agent on
 * that host finds the port taken and joins.
 */
#include "roster/net/net_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

int64_t meet_clock(const co_meet *m)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec + m->skew_ns;
}

static bool is_ours(const co_endpoint *at)
{
    co_addr a[MEET_ADDRESSES];
    co_patience p = co_patience_s(RESOLVE_MS / 1000.0);
    int n = 0;

    if (!*at->host || co_host_is_loopback(at->host))
        return true;
    if (co_net_resolve(a, MEET_ADDRESSES, &n, at->host, at->port, &p))
        return false;
    for (int i = 0; i < n; i++)
        if (co_addr_is_mine(&a[i]))
            return true;
    return false;
}

/* Rank 0 listens wherever it is, as an address that others reach may be on none of its interfaces (a cloud's public one, a
 * container's published port, a service of Kubernetes). More often it is --node-rank=0 on two hosts: worth a line. */
static void doubt_place(meeting *m, const co_terms *terms, const co_meet *where)
{
    co_addr a[MEET_ADDRESSES];
    co_patience p = co_patience_s(DOUBT_MS / 1000.0);
    char ours[200];
    int n = 0;

    if (where->role != CO_MEET_AUTO || where->listener > 0 || terms->host_rank != 0 ||
        terms->max_hosts == 1 || *where->listen || *where->advertise || !*m->at.host ||
        strcmp(m->at.host, "0.0.0.0") == 0 || strcmp(m->at.host, "::") == 0 || co_host_is_loopback(m->at.host))
        return;
    if (co_net_resolve(a, MEET_ADDRESSES, &n, m->at.host, m->at.port, &p)) {
        co_errclear();
        return;
    }
    for (int i = 0; i < n; i++)
        if (co_addr_is_loopback(&a[i]) || co_addr_is_mine(&a[i]))
            return;
    co_addr_mine(ours, sizeof ours);
    snprintf(
        m->doubt, sizeof m->doubt,
        "%.255s is no address of this host (it has %s). --node-rank=0, the default, is for the host that has "
        "it: should this be --node-rank=1? Listening all the same, as the address may lead here in another "
        "way",
        m->at.host, *ours ? ours : "none");
}

static const char *listen_address(const co_endpoint *at, const co_meet *where)
{
    if (*where->listen)
        return where->listen;
    if (co_host_is_loopback(at->host) &&
        !*where->token) /* with one, hosts that come from elsewhere get an answer */
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
        m->at.port = CO_MEET_PORT;
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
    bool loopback = co_host_is_loopback(m->at.host) && (!*where->listen || co_host_is_loopback(where->listen));

    return !where->insecure && (*where->token || !loopback);
}

bool co_meet_needs_token(const co_terms *terms, const co_meet *where)
{
    meeting m;

    if (where->etcd.members)
        return finder_needs_token(terms, where);
    if (*where->token || where->listener > 0 || decide_role(&m, terms, where))
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
        return co_fail(
            CO_EINPUT,
            "this host has no token to join the job at %s:%d with. The first host shows it: put "
            "COHORT_TOKEN=... before this command, or start every host with --insecure. A first "
            "host that shows none was started for itself alone: with --nnodes=1, or at 127.0.0.1%s",
            m->at.host, m->at.port,
            getenv("SLURM_JOB_ID") ? ". Inside Slurm leave --rdzv-endpoint and --master-addr out "
                                     "(srun cohort launch ...): then no token is needed"
                                   : "");
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
    if (m.serves)
        doubt_place(&m, terms, where);
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
