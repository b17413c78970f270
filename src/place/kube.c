/* kube.c -- a pod of a Kubernetes Indexed Job, alone or inside a JobSet.
 *
 * JOB_COMPLETION_INDEX is the pod's number, and its full name leads to the name of pod 0. Kubernetes does not
 * tell a pod how many pods there are: --nnodes or PET_NNODES must.
 *
 *     train-3.train.default.svc.cluster.local  -->  train-0.train.default.svc.cluster.local:29400
 *
 * That name resolves only once pod 0 runs, and only if there is a headless Service. The other pods wait until
 * it resolves.
 */
#include "place/place_int.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* This host's name with its domain, which /etc/hosts of a pod with a subdomain contains; "": no domain. */
static void full_name(char *out, size_t size)
{
    struct addrinfo want = {.ai_flags = AI_CANONNAME, .ai_socktype = SOCK_STREAM}, *found = NULL;
    char name[CO_HOST_NAME] = "";

    *out = '\0';
    if (gethostname(name, sizeof name - 1) != 0)
        return;
    if (getaddrinfo(name, NULL, &want, &found) == 0 && found && found->ai_canonname)
        snprintf(out, size, "%s", found->ai_canonname);
    if (found)
        freeaddrinfo(found);
    if (!strchr(out, '.'))
        snprintf(out, size, "%s", name);
}

/* Converts NAME-index.DOMAIN to NAME-0.DOMAIN. */
static bool pod_zero(char *out, size_t size, const char *full, int index)
{
    char tail[16];
    const char *dot = strchr(full, '.');
    size_t name = dot ? (size_t)(dot - full) : 0;
    size_t n = (size_t)snprintf(tail, sizeof tail, "-%d", index);

    if (name <= n || strncmp(full + name - n, tail, n) != 0)
        return false;
    return (size_t)snprintf(out, size, "%.*s-0%s:%d", (int)(name - n), full, dot, CO_MEET_PORT) < size;
}

static co_err find(co_place *p, const co_place_ask *ask)
{
    char full[CO_HOST_NAME];

    if (!env_text("JOB_COMPLETION_INDEX"))
        return CO_OK;
    CO_TRY(env_whole(&p->seat, "JOB_COMPLETION_INDEX", 0, 1 << 20, 0));
    full_name(full, sizeof full);
    snprintf(p->name, sizeof p->name, "pod %d of an Indexed Job", p->seat);
    if (!ask->max_hosts)
        return co_fail(CO_EINPUT,
                       "%s: how many pods there are is not in the environment. --nnodes=N, or PET_NNODES in "
                       "the manifest, N"
                       " as in `completions`; --standalone if each works alone",
                       p->name);
    p->nodes = p->seats = ask->max_hosts;
    p->node = p->seat;
    if (p->seats > 1 && p->seat >= p->seats)
        return co_fail(CO_EINPUT, "%s, but --nnodes=%d: `completions` and --nnodes are the same number",
                       p->name, p->seats);
    if (p->seats > 1 && !pod_zero(p->endpoint, sizeof p->endpoint, full, p->seat))
        return co_fail(CO_EINPUT,
                       "%s: its name %.100s does not lead to pod 0. The pods need `subdomain: NAME` and a "
                       "headless Service"
                       " NAME; or --rdzv-endpoint says where to meet",
                       p->name, full);
    const char *zero = p->seats > 1 ? p->endpoint : full;
    snprintf(p->run_id, sizeof p->run_id, "%.*s", (int)strcspn(zero, ".:"), zero);
    return CO_OK;
}

const place_row place_kube = {.find = find, .needs_token = true, .one_each = "completions: %d"};
