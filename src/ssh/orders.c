/* orders.c -- gives each host its order: the first host as soon as it is ready, the others once the first one
 * listens. */
#include "ssh/ssh_int.h"

#include <stdio.h>
#include <string.h>

#include "net/net.h"

static int count(const char *const *list)
{
    int n = 0;

    while (list && list[n])
        n++;
    return n;
}

/* The command line of `cohort launch` on this host: the flags that all hosts get, this host's own flags, and
 * the program. */
static const char **words_for(conductor *c, const far_host *h)
{
    const co_ssh_job *j = c->job;
    int flags = count(j->flags), n = flags;
    const char **w = co_pool_alloc(&c->pool, (size_t)(flags + count(j->program) + 6) * sizeof *w);

    if (!w)
        return NULL;
    memcpy(w, j->flags, (size_t)flags * sizeof *w);
    if (h->spec->slots)
        w[n++] = co_pool_printf(&c->pool, "--nproc-per-node=%d", h->spec->slots);
    if (j->n == 1) {
        w[n++] = "--standalone";
    } else {
        w[n++] = co_pool_printf(&c->pool, "--node-rank=%d", h->rank);
        w[n++] = co_pool_printf(&c->pool, "--rdzv-endpoint=%s", h->rank ? c->endpoint : ":0");
    }
    w[n++] = "--";
    for (int i = 0; i < n; i++)
        if (!w[i])
            return NULL;
    for (int i = 0; j->program[i]; i++)
        w[n++] = j->program[i];
    return w;
}

static co_err make_order(conductor *c, const far_host *h, char **line)
{
    const co_ssh_job *j = c->job;
    co_ssh_order o = {.rank = h->rank, .hosts = j->n, .env = (const char **)j->env, .words = words_for(c, h)};

    if (!o.words)
        return CO_ENOMEM;
    snprintf(o.host, sizeof o.host, "%s", co_ssh_shown(h->spec));
    snprintf(o.token, sizeof o.token, "%s", j->token);
    snprintf(o.also, sizeof o.also, "%s", h->rank ? c->also : "");
    snprintf(o.cwd, sizeof o.cwd, "%s", j->cwd);
    co_err err = co_ssh_order_text(line, &o);
    explicit_bzero(o.token, sizeof o.token);
    return err;
}

static void give_order(conductor *c, far_host *h)
{
    char *line = NULL;

    if (make_order(c, h, &line)) {
        conduct_lose(c, h);
        return;
    }
    c->told++;
    h->stage = h->rank == 0 && c->job->n > 1 ? HOST_TOLD : HOST_RUNNING;
    host_tell(h, line, strlen(line));
    explicit_bzero(line, strlen(line));
    co_free(line);
}

void conduct_ready(conductor *c, far_host *h)
{
    if (h->ending)
        host_end(h, 0);
    else if (h->rank == 0 || *c->endpoint)
        give_order(c, h);
}

/* Other hosts reach the first host by the name that ssh uses for it, unless that is a loopback name. They
 * also try all its addresses. */
void conduct_where(conductor *c, far_host *h, int port, const char *addresses)
{
    char name[CO_HOST_NAME];
    bool by_name = !h->here && !co_host_is_loopback(h->conf.hostname);

    snprintf(name, sizeof name, "%.*s", (int)strcspn(addresses, ","), addresses);
    co_endpoint_text(c->endpoint, sizeof c->endpoint,
                     by_name ? h->conf.hostname
                     : *name ? name
                             : "127.0.0.1",
                     port);
    snprintf(c->also, sizeof c->also, "%s", addresses);
    h->stage = HOST_RUNNING;
    for (int i = 1; i < c->job->n; i++)
        if (c->hosts[i].stage == HOST_READY && !c->hosts[i].ending)
            give_order(c, &c->hosts[i]);
}
