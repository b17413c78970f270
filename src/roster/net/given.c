/* given.c -- the finder of a job whose endpoint is given: this host serves there, or joins the host that
 * does. */
#include "roster/net/network_int.h"

#include <stdio.h>
#include <unistd.h>

static bool given_wanted(const co_meet *where)
{
    (void)where;
    return true; /* the last row of the table */
}

/* Prints what to type on the other hosts. */
static void invite(network *net)
{
    char line[1000], made[120] = "";
    const char *ranks = "", *here = "";
    const role *my = &net->role;

    if (!my->serves && net->where.insecure) {
        snprintf(line, sizeof line, "joining %.255s:%d without TLS and token (--insecure)", my->at.host,
                 my->at.port);
        queue_talk(&net->queue, line);
    }
    if (!my->serves || net->terms.max_hosts == 1 || net->where.plan || net->where.listener > 0)
        return;
    if (*my->made)
        snprintf(made, sizeof made, ", with COHORT_TOKEN=%s before it", my->made);
    if (net->terms.host_rank == 0 && net->where.role == CO_MEET_AUTO)
        ranks = net->terms.max_hosts == 2 ? " with --node-rank=1" : " with --node-rank=1, 2 and so on";
    if (co_host_is_loopback(my->at.host))
        here = ". Only launchers on this host can come to that address: for others, name one of this host's "
               "that they reach";
    if (*my->doubt)
        queue_talk(&net->queue, my->doubt);
    snprintf(line, sizeof line, "waiting for %d host%s at %.255s:%d%s; run the same line on the others%s%s%s",
             net->terms.min_hosts, net->terms.min_hosts == 1 ? "" : "s",
             *my->at.host ? my->at.host : "this host", my->at.port, my->tls ? "" : " (without TLS and token)",
             ranks, made, here);
    queue_talk(&net->queue, line);
}

static co_err given_open(network *net)
{
    CO_TRY(role_decide(&net->role, &net->terms, &net->where));
    if (net->role.tls) {
        co_err err = co_tls_new(&net->tls, &net->role.token, net->terms.run_id);
        if (err) {
            if (net->role.serves)
                close(net->role.listener);
            return err;
        }
    }
    if (net->role.serves)
        CO_TRY(join_own(net));
    invite(net);
    return CO_OK;
}

static void given_refused(void *net, co_err err, const char *text)
{
    queue_broke(&((network *)net)->queue, err, text);
}

const finder_ops finder_given = {.name = "given",
                                 .wanted = given_wanted,
                                 .needs_token = role_lacks_token,
                                 .open = given_open,
                                 .enter = join_other,
                                 .refused = given_refused};
