/* role.c -- decides whether this host keeps the roster or joins the host that does, and with which token.
 *
 * Rank 0 serves, if ranks were given; otherwise the host that has the endpoint's address and gets its
 * port. A second launcher on that host finds the port taken and joins. How to get there: reach.c.
 */
#include "roster/net/role_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "roster/times_int.h"

int64_t host_clock_ns(const co_meet *where)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec + where->skew_ns;
}

void host_own_name(char *out, size_t size, const co_meet *where)
{
    memset(out, 0, size);
    snprintf(out, size, "%s", where->host);
    if (!*out && gethostname(out, size - 1) != 0)
        snprintf(out, size, "host");
}

static bool is_ours(const co_endpoint *at)
{
    co_addr a[ROLE_ADDRESSES];
    co_patience p = co_patience_s(RESOLVE_MS / 1000.0);
    int n = 0;

    if (!*at->host || co_host_is_loopback(at->host))
        return true;
    if (co_net_resolve(a, ROLE_ADDRESSES, &n, at->host, at->port, &p))
        return false;
    for (int i = 0; i < n; i++)
        if (co_addr_is_mine(&a[i]))
            return true;
    return false;
}

/* Rank 0 listens even if the endpoint's address is on none of its interfaces: others may reach it by a
 * cloud's public address, a container's published port or a Kubernetes service. More often two hosts have
 * --node-rank=0: worth a line. */
static void doubt_place(role *my, const co_terms *terms, const co_meet *where)
{
    co_addr a[ROLE_ADDRESSES];
    co_patience p = co_patience_s(RESOLVE_WARN_MS / 1000.0);
    char ours[200];
    int n = 0;

    if (where->role != CO_MEET_AUTO || where->listener > 0 || terms->host_rank != 0 || terms->max_hosts == 1 ||
        *where->listen || *where->advertise || !*my->at.host || strcmp(my->at.host, "0.0.0.0") == 0 ||
        strcmp(my->at.host, "::") == 0 || co_host_is_loopback(my->at.host))
        return;
    if (co_net_resolve(a, ROLE_ADDRESSES, &n, my->at.host, my->at.port, &p)) {
        co_errclear();
        return;
    }
    for (int i = 0; i < n; i++)
        if (co_addr_is_loopback(&a[i]) || co_addr_is_mine(&a[i]))
            return;
    co_addr_mine(ours, sizeof ours);
    snprintf(
        my->doubt, sizeof my->doubt,
        "%.255s is no address of this host (it has %s). --node-rank=0, the default, is for the host that has "
        "it: should this be --node-rank=1? Listening all the same, as the address may lead here in another "
        "way",
        my->at.host, *ours ? ours : "none");
}

static const char *listen_address(const co_endpoint *at, const co_meet *where)
{
    if (*where->listen)
        return where->listen;
    /* With a token we listen everywhere, so that hosts from elsewhere get an answer. */
    if (co_host_is_loopback(at->host) && !*where->token)
        return strcmp(at->host, "::1") == 0 ? "::1" : "127.0.0.1";
    return "";
}

/* Whether the program that has the port may be another launcher of this job on this host. */
static bool holder_is_cohort(int port)
{
    co_holder who;

    if (!co_net_holder(&who, port))
        return false;
    /* pid 0: another user's; it may be */
    return !who.pid || who.same_program || strstr(who.command, "cohort");
}

static co_err take_port(role *my, const co_meet *where, bool may_join)
{
    co_err err = co_net_listen(&my->listener, listen_address(&my->at, where), my->at.port);

    if (err == CO_EIO && may_join && holder_is_cohort(my->at.port))
        return CO_OK;
    if (err)
        return co_fail_in(CO_EINPUT, "the meeting point");
    my->serves = true;
    if (my->at.port == 0) {
        co_addr a = co_net_local(my->listener);
        my->at.port = co_addr_port(&a);
    }
    return CO_OK;
}

static co_err parse_endpoint(role *my, const co_meet *where)
{
    *my = (role){.listener = -1};
    co_err err = co_endpoint_parse(&my->at, where->endpoint);
    if (err)
        return co_fail_in(err, "--rdzv-endpoint");
    if (my->at.port < 0)
        my->at.port = CO_MEET_PORT;
    return CO_OK;
}

static co_err decide_role(role *my, const co_terms *terms, const co_meet *where)
{
    CO_TRY(parse_endpoint(my, where));
    if (where->listener > 0) {
        my->listener = where->listener;
        my->serves = true;
        return CO_OK;
    }
    if (where->role == CO_MEET_JOIN || (where->role == CO_MEET_AUTO && terms->host_rank > 0))
        return *my->at.host ? CO_OK
                            : co_fail(CO_EINPUT, "--rdzv-endpoint=%s names no host to join", where->endpoint);
    bool chosen = where->role == CO_MEET_SERVE || terms->host_rank == 0;
    if (chosen || is_ours(&my->at))
        return take_port(my, where, !chosen);
    return CO_OK;
}

static bool needs_tls(const role *my, const co_meet *where)
{
    bool loopback = co_host_is_loopback(my->at.host) && (!*where->listen || co_host_is_loopback(where->listen));

    return !where->insecure && (*where->token || !loopback);
}

bool role_lacks_token(const co_terms *terms, const co_meet *where)
{
    role my;

    if (*where->token || where->listener > 0 || decide_role(&my, terms, where))
        return false;
    if (my.listener >= 0)
        close(my.listener);
    return !my.serves && needs_tls(&my, where);
}

static co_err decide_token(role *my, const co_meet *where)
{
    my->tls = needs_tls(my, where);
    if (!my->tls)
        return CO_OK;
    if (*where->token)
        return co_token_parse(&my->token, where->token);
    if (!my->serves)
        return co_fail(
            CO_EINPUT,
            "this host has no token to join the job at %s:%d with. The first host shows it: put "
            "COHORT_TOKEN=... before this command, or start every host with --insecure. A first "
            "host that shows none was started for itself alone: with --nnodes=1, or at 127.0.0.1%s",
            my->at.host, my->at.port,
            getenv("SLURM_JOB_ID") ? ". Inside Slurm leave --rdzv-endpoint and --master-addr out "
                                     "(srun cohort launch ...): then no token is needed"
                                   : "");
    CO_TRY(co_token_make(&my->token));
    co_token_text(my->made, &my->token);
    return CO_OK;
}

co_err role_decide(role *out, const co_terms *terms, const co_meet *where)
{
    role my;

    CO_TRY(decide_role(&my, terms, where));
    co_err err = decide_token(&my, where);
    if (err) {
        if (my.listener >= 0)
            close(my.listener);
        return err;
    }
    snprintf(my.also, sizeof my.also, "%s", where->also);
    if (my.serves)
        doubt_place(&my, terms, where);
    *out = my;
    return CO_OK;
}

co_err co_meet_listen(co_meet *where)
{
    role my;

    CO_TRY(parse_endpoint(&my, where));
    CO_TRY(take_port(&my, where, false));
    co_err err = decide_token(&my, where);
    if (err) {
        close(my.listener);
        return err;
    }
    if (*my.made)
        snprintf(where->token, sizeof where->token, "%s", my.made);
    co_endpoint_text(where->endpoint, sizeof where->endpoint, my.at.host, my.at.port);
    where->listener = my.listener;
    where->role = CO_MEET_SERVE;
    return CO_OK;
}
