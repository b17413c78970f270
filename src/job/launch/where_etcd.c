/* where_etcd.c -- --rdzv-backend=etcd-v3: hosts meet through an etcd cluster; --rdzv-endpoint lists its
 * members. */
#include "job/launch/launch_int.h"

#include <string.h>

bool wants_etcd(const launch_args *a)
{
    return a->backend && strncmp(a->backend, "etcd", 4) == 0 && !a->standalone;
}

/* The value of a key of --rdzv-conf, in the pool; NULL: not given. */
static char *conf_value(co_pool *pool, const char *conf, const char *key)
{
    size_t len = strlen(key);

    for (const char *at = conf; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strncmp(at, key, len) == 0 && at[len] == '=')
            return co_pool_strn(pool, at + len + 1, strcspn(at + len + 1, ","));
    return NULL;
}

static co_err set_files(co_meet_etcd *e, co_pool *pool, const char *conf)
{
    static const char *const names[] = {"cacert", "cert", "key"};
    const char **const to[] = {&e->ca, &e->cert, &e->key};

    for (size_t i = 0; i < CO_COUNT(names); i++) {
        *to[i] = conf_value(pool, conf, names[i]);
        if (*to[i] && access(*to[i], R_OK) != 0)
            return co_fail(CO_EINPUT, "launch: --rdzv-conf %s=%s: %m", names[i], *to[i]);
    }
    return CO_OK;
}

co_err plan_where_etcd(launch_plan *p, const launch_args *a)
{
    co_meet_etcd *e = &p->meet.etcd;
    const char *protocol = conf_value(&p->pool, a->conf, "protocol");
    const char *lease = conf_value(&p->pool, a->conf, "lease"), *port = conf_value(&p->pool, a->conf, "port");
    int number = 0;

    if (!a->endpoint)
        return co_fail(
            CO_EINPUT,
            "launch: --rdzv-backend=%s needs the members of etcd: --rdzv-endpoint=HOST:2379,HOST:2379",
            a->backend);
    if (!a->rdzv_id)
        return co_fail(CO_EINPUT, "launch: --rdzv-backend=%s needs --rdzv-id=NAME: etcd tells jobs apart by it",
                       a->backend);
    if (strcmp(a->backend, "etcd-v3") != 0)
        co_notice("--rdzv-backend=%s is taken for etcd-v3: etcd is spoken to through version 3 of its API",
                  a->backend);
    if (protocol)
        CO_TRY(flag_one_of("--rdzv-conf protocol", protocol, "http|https"));
    if (lease)
        CO_TRY(flag_seconds(&e->lease_s, "--rdzv-conf lease", lease));
    if (lease && (e->lease_s < 1 || e->lease_s > 600))
        return co_fail(CO_EINPUT, "launch: --rdzv-conf lease=%s: 1 to 600 seconds are needed", lease);
    if (port)
        CO_TRY(flag_whole(&number, "--rdzv-conf port", port, 0, 65535));
    CO_TRY(set_files(e, &p->pool, a->conf));
    e->tls = protocol && strcmp(protocol, "https") == 0;
    e->members = a->endpoint;
    snprintf(p->meet.endpoint, sizeof p->meet.endpoint, ":%d", number);
    return CO_OK;
}
