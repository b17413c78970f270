/* where.c -- decides from the flags where the hosts of a job meet: nowhere (one host), at the endpoint, or at
 * the master's address. */
#include "job/launch/launch_int.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "net/net.h"

static void new_id(char out[37])
{
    unsigned char r[16] = {0};

    if (getrandom(r, sizeof r, 0) != (ssize_t)sizeof r)
        memset(r, getpid() & 255, sizeof r);
    r[6] = (r[6] & 0x0f) | 0x40;
    r[8] = (r[8] & 0x3f) | 0x80;
    for (int i = 0, at = 0; i < 16; i++)
        at += snprintf(out + at, (size_t)(37 - at), i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
                       r[i]);
}

/* Keys of --rdzv-conf that need no warning: torchrun's that have no effect here, and those that where_etcd.c
 * reads. */
static bool passes(const char *key)
{
    static const char *const others[] = {"close_timeout",
                                         "heartbeat_timeout",
                                         "keep_alive_interval",
                                         "keep_alive_max_attempt",
                                         "read_timeout",
                                         "store_type",
                                         "use_libuv",
                                         "rank",
                                         "protocol",
                                         "cacert",
                                         "cert",
                                         "key",
                                         "lease",
                                         "port"};

    for (size_t i = 0; i < CO_COUNT(others); i++)
        if (strcmp(key, others[i]) == 0)
            return true;
    return false;
}

/* Reads the keys of --rdzv-conf that have an effect here. */
static co_err set_conf(co_meet *m, const char *text)
{
    for (const char *at = text; at && *at;) {
        char key[64], value[512];
        size_t n = strcspn(at, ","), eq = strcspn(at, "=");
        if (eq >= n || eq == 0 || eq >= sizeof key || n - eq > sizeof value)
            return co_fail(CO_EINPUT, "launch: --rdzv-conf=%s: KEY=VALUE,KEY=VALUE is needed", text);
        snprintf(key, sizeof key, "%.*s", (int)eq, at);
        snprintf(value, sizeof value, "%.*s", (int)(n - eq - 1), at + eq + 1);
        if (strcmp(key, "join_timeout") == 0 || strcmp(key, "timeout") == 0)
            CO_TRY(flag_seconds(&m->join_timeout_s, "--rdzv-conf join_timeout", value));
        else if (strcmp(key, "last_call_timeout") == 0)
            CO_TRY(flag_seconds(&m->last_call_s, "--rdzv-conf last_call_timeout", value));
        else if (strcmp(key, "lost_after") == 0)
            CO_TRY(flag_seconds(&m->lost_after_s, "--rdzv-conf lost_after", value));
        else if (strcmp(key, "is_host") == 0)
            m->role = strchr("1tTyY", value[0]) && value[0] ? CO_MEET_SERVE : CO_MEET_JOIN;
        else if (!passes(key))
            co_notice("--rdzv-conf: %s has no effect here and is ignored", key);
        at += n + (at[n] == ',');
    }
    return CO_OK;
}

/* COHORT_FAULT=version=9.9.9,clock=300,pixels=other: this host pretends to have another version, a clock that
 * is 300 s ahead, or libraries that decode pictures to other pixels, so that tests and users can try how the
 * other hosts react. Nothing else in the program reads it. */
static co_err set_fault(launch_plan *p, const char *text)
{
    double ahead_s;

    for (const char *at = text; at && *at;) {
        char word[64];
        size_t n = strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        if (strncmp(word, "version=", 8) == 0)
            snprintf(p->spec.terms.version, sizeof p->spec.terms.version, "%.31s", word + 8);
        else if (strncmp(word, "pixels=", 7) == 0)
            snprintf(p->pixels, sizeof p->pixels, "%.31s", word + 7);
        else if (strncmp(word, "clock=", 6) == 0 && co_str_to_f64(word + 6, &ahead_s) && ahead_s > -1e8 &&
                 ahead_s < 1e8)
            p->meet.skew_ns = (int64_t)(ahead_s * 1e9);
        else
            return co_fail(CO_EINPUT,
                           "launch: COHORT_FAULT=%s: version=TEXT, pixels=TEXT or clock=SECONDS is needed",
                           text);
        at += n + (at[n] == ',');
    }
    return CO_OK;
}

static co_err add_port(co_meet *m, const char *host, const char *port)
{
    if (strncmp(host, "tcp://", 6) == 0) /* as scripts with --dist-url have it */
        host += 6;
    const char *after = strrchr(host, ']'), *colon = strrchr(host, ':');
    bool has_port = colon && (after ? colon > after : strchr(host, ':') == colon);
    size_t n = (size_t)snprintf(m->endpoint, sizeof m->endpoint, "%s%s%s", host, has_port ? "" : ":",
                                has_port ? "" : port);

    return n < sizeof m->endpoint ? CO_OK
                                  : co_fail(CO_EINPUT, "launch: the address %.40s... is too long", host);
}

/* One host: the only port is the one that the workers use. */
static co_err stay_local(launch_plan *p, const launch_args *a, int port)
{
    co_terms *t = &p->spec.terms;
    co_holder who;

    if (port && !a->standalone && !a->train) { /* the ranks of a training use no port */
        if (co_net_holder(&who, port))
            return co_fail(
                CO_EINPUT, "launch: --master-port=%d is taken by %s; leave it out and a free one is found",
                port,
                who.pid ? co_pool_printf(&p->pool, "%s (pid %d)", who.command, who.pid) : "somebody else");
        p->spec.master_addr = a->master_addr ? a->master_addr : "127.0.0.1";
        p->spec.master_port = port;
    }
    if (a->rdzv_id && !a->standalone)
        snprintf(t->run_id, sizeof t->run_id, "%s", a->rdzv_id);
    else if (p->spec.master_port)
        snprintf(t->run_id, sizeof t->run_id, "none");
    else
        new_id(t->run_id);
    return CO_OK;
}

/* --node-rank, which is only of use together with --nnodes or a scheduler. */
static co_err set_host_rank(launch_plan *p, const launch_args *a)
{
    co_terms *terms = &p->spec.terms;
    bool alone = !a->nnodes && !p->place;

    if (!a->node_rank)
        return CO_OK;
    if (alone && strcmp(a->node_rank, "0") != 0)
        return co_fail(CO_EINPUT,
                       "launch: --node-rank=%s, but there is no --nnodes, so this is a job of one host: "
                       "--nnodes=N on every host says how many there are",
                       a->node_rank);
    CO_TRY(flag_whole(&terms->host_rank, "--node-rank", a->node_rank, 0, terms->max_hosts - 1));
    if (alone)
        co_notice("--node-rank=0 without --nnodes: a job of this host alone; --nnodes=N if there are more");
    return CO_OK;
}

/* The run id and this host's rank in a job of several hosts. Ranks are given out by the roster (-1), unless
 * the flags or the scheduler number the hosts. */
static void set_seat(launch_plan *p, const launch_args *a, const char *backend)
{
    co_terms *terms = &p->spec.terms;
    bool numbered = a->node_rank || (strcmp(backend, "static") == 0 && !a->endpoint);
    const char *id = a->rdzv_id ? a->rdzv_id : p->place && *p->place->run_id ? p->place->run_id : "none";

    snprintf(terms->run_id, sizeof terms->run_id, "%s", id);
    if (p->place)
        terms->host_rank = p->place->seat;
    else if (!numbered)
        terms->host_rank = -1;
}

static co_err set_meeting(launch_plan *p, const launch_args *a)
{
    if (!p->place && !a->endpoint && !a->master_addr && !wants_etcd(a))
        return co_fail(
            CO_EINPUT,
            "launch: %s=%s needs a place where the hosts meet: --rdzv-endpoint=HOST:29400 on all of "
            "them, HOST being the first one's name or address",
            a->nnodes_key ? a->nnodes_key : "--nnodes", a->nnodes);
    p->meet.insecure = a->insecure;
    if (a->local_addr)
        snprintf(p->meet.advertise, sizeof p->meet.advertise, "%s", a->local_addr);
    CO_TRY(set_conf(&p->meet, a->conf));
    CO_TRY(set_fault(p, getenv("COHORT_FAULT")));
    if (wants_etcd(a))
        return plan_where_etcd(p, a);
    if (p->place)
        return CO_OK; /* plan_where_place does the rest */
    return a->endpoint ? add_port(&p->meet, a->endpoint, "29400")
                       : add_port(&p->meet, a->master_addr, a->master_port ? a->master_port : "29500");
}

/* --port: only trainings have one. */
static co_err set_bulk_port(launch_plan *p, const launch_args *a)
{
    if (!a->port)
        return CO_OK;
    if (!a->train)
        return co_fail(CO_EINPUT,
                       "launch: --port=%s is for trainings (cohort train): it is where a host takes "
                       "gradients. A flag of the program goes after the program",
                       a->port);
    return flag_whole(&p->port, "--port", a->port, 1, 65535);
}

co_err plan_where(launch_plan *p, const launch_args *a)
{
    int port = 0;
    const char *backend = a->backend ? a->backend : "static";

    CO_TRY(set_bulk_port(p, a));
    CO_TRY(plan_find_place(p, a));
    if (p->place && p->place->outside)
        return CO_OK; /* plan_into_step: the rest is read again in the step, the token too */
    CO_TRY(token_from_env(&p->meet));
    CO_TRY(flag_one_of("--rdzv-backend", backend, "static|c10d|etcd-v3|etcd|etcd-v2"));
    if (a->master_port)
        CO_TRY(flag_whole(&port, "--master-port", a->master_port, 0, 65535));
    CO_TRY(set_host_rank(p, a));
    int most = p->spec.terms.max_hosts;
    if (a->standalone && most > 1)
        return co_fail(CO_EINPUT, "launch: --standalone is one host, --nnodes=%s is not: leave one of them out",
                       a->nnodes);
    p->local = a->standalone || (most == 1 && !a->endpoint && !wants_etcd(a));
    if (p->local)
        return stay_local(p, a, port);
    set_seat(p, a, backend);
    return set_meeting(p, a);
}
