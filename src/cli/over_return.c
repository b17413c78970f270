/* over_return.c -- the end of a guest: it reports, or it comes back. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/over_int.h"
#include "net/net.h"

enum {
    RETURN_MS = 15000, /* how long a guest that was left looks for the others */
    REFUSED_MS = 2000, /* a port that refuses for this long has nobody behind it */
    RETRY_MS = 200,
    RETURNS_MOST = 100 /* how often a guest comes back */
};

/* Whether somebody listens where the roster was. A port that refuses for a while has nobody behind it any
 * more; a wire that says nothing may come back. */
bool guest_comes_back(void *ctx)
{
    training *s = ctx;
    co_patience patience = co_patience_s(RETURN_MS / 1000.0);
    co_endpoint at;
    co_addr to[4];
    int n = 0, fd;
    uint64_t began = co_now_ns();

    if (s->app.hosts->meet.etcd.members || co_endpoint_parse(&at, s->app.hosts->meet.endpoint) != CO_OK)
        return false;
    tell(s, "looking for the others for up to %d s, to join them again", RETURN_MS / 1000);
    while (co_now_ns() < patience.until_ns) {
        co_patience once = co_patience_s(1);
        co_err err = co_net_resolve(to, 4, &n, at.host, at.port < 0 ? CO_MEET_PORT : at.port, &once);
        if (!err)
            err = co_net_connect(&fd, &to[0], &once);
        if (!err) {
            close(fd);
            return s->over->comes_back = true;
        }
        if (err == CO_EPEER && co_now_ns() - began > REFUSED_MS * UINT64_C(1000000))
            break;
        poll(NULL, 0, RETRY_MS);
    }
    co_errclear();
    tell(s, "nobody else was found: the run ends on this host, with a checkpoint of what it holds");
    return false;
}

int over_report(training *s, const line *l, co_err err)
{
    const co_train_summary *out = &s->summary;
    static const char *const names[] = {"done", "stopped", "failed"};
    json_t *figures = figures_of_host(s);
    char *text = figures ? co_json_text(figures) : NULL;

    if (text)
        log_line(s, text);
    co_free(text);
    json_decref(figures);
    const char *why = out->blame[0] ? out->blame : co_errmsg();
    if (err)
        shout(s, "failed    %s",
              *why               ? why
              : err == CO_ENOMEM ? "memory is out"
                                 : "without a message: a bug in cohort");
    else if (out->status == CO_STATUS_STOPPED && !s->over->keeper[0])
        tell(s, "stopped   before this host met the others: nothing was written");
    else
        tell(s, "%-9s step %lld, weights %.16s; the record is on %s", names[out->status], (long long)out->steps,
             out->weights_sha256, s->over->keeper[0] ? s->over->keeper : "the first host");
    if (l->json)
        co_json_print(json_pack("{ss sI ss}", "status", names[out->status], "steps", (json_int_t)out->steps,
                                "weights_sha256", out->weights_sha256));
    return err == CO_EINPUT                   ? CO_EXIT_USAGE
           : err                              ? CO_EXIT_FAILED
           : out->status == CO_STATUS_STOPPED ? CO_EXIT_STOPPED
                                              : CO_EXIT_DONE;
}

/* Where the hosts meet, for a line that does not say it itself: `cohort join` and --hosts were told. */
static int add_meeting(char **argv, co_pool *pool, const co_hosts_line *hosts)
{
    argv[0] = co_pool_printf(pool, "--nnodes=%d:%d", hosts->terms.min_hosts, hosts->terms.max_hosts);
    argv[1] = co_pool_printf(pool, "--rdzv-endpoint=%s", hosts->meet.endpoint);
    argv[2] = co_pool_printf(pool, "--rdzv-id=%s", hosts->terms.run_id);
    argv[3] = hosts->port ? co_pool_printf(pool, "--port=%d", hosts->port) : NULL;
    return argv[0] && argv[1] && argv[2] ? 3 : 0;
}

int returns_so_far(void)
{
    const char *before = getenv("COHORT_RETURNS");

    return before ? atoi(before) : 0;
}

void over_as_returned(co_meet *meet)
{
    if (!returns_so_far())
        return;
    meet->role = CO_MEET_JOIN;
    meet->join_timeout_s = RETURN_MS / 1000.0;
}

bool over_can_return(const line *l)
{
    return l->typed && returns_so_far() < RETURNS_MOST;
}

/* The line that was typed; where it does not say where the hosts meet, with that. NULL: out of memory. */
static char **line_again(co_pool *pool, const training *s, const line *l)
{
    int words = 0;

    while (l->typed[words])
        words++;
    char **argv = co_array((size_t)words + 6, sizeof *argv);
    if (!argv)
        return NULL;
    argv[0] = (char *)(uintptr_t)app_program();
    memcpy(argv + 1, l->typed, (size_t)words * sizeof *argv);
    if (l->hosts_given)
        add_meeting(argv + 1 + words, pool, s->app.hosts);
    return argv;
}

/* The same process with the same line: whoever started it sees no difference. */
void over_return(training *s, const line *l)
{
    co_pool pool = {0};
    char count[16], **argv = line_again(&pool, s, l);

    snprintf(count, sizeof count, "%d", returns_so_far() + 1);
    setenv("COHORT_RETURNS", count, 1);
    if (s->app.hosts->meet.token[0])
        setenv("COHORT_TOKEN", s->app.hosts->meet.token, 1);
    tell(s, "this host joins the others again, as a new one");
    if (argv)
        execv("/proc/self/exe", argv);
    co_notice("this command could not be started again: %m");
    exit(CO_EXIT_STOPPED);
}
