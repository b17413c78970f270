/* start.c -- a plan becomes a job: the roster is opened, and the job runs to its end. */
#include "job/launch/launch_int.h"

#include <string.h>

static co_err open_roster(co_roster **out, const launch_plan *p)
{
    if (p->local)
        return co_roster_local(out, &p->spec.terms);
    co_meet where = p->meet;
    where.grace_s = p->spec.grace_s;
    where.logs = p->spec.log_dir && strcmp(p->spec.log_dir, "/dev/null") != 0;
    co_err err = token_from_user(&p->spec.terms, &where);
    if (!err)
        err = co_roster_open(out, &p->spec.terms, &where);
    explicit_bzero(where.token, sizeof where.token);
    return err;
}

/* The training opens the roster itself: its hosts keep their processes when another comes or goes. */
static int train(launch_plan *p, const co_launch_calls *calls)
{
    co_hosts_line hosts = {0};

    hosts_line_fill(&hosts, p);
    int status = calls->train(p->n_train, p->train, &hosts);
    explicit_bzero(hosts.meet.token, sizeof hosts.meet.token);
    return status;
}

/* "2 workers on this host: python3 train.py --lr 0.1", cut where it does not fit. */
static void say_began(const launch_plan *p, const co_launch_calls *calls)
{
    char what[256];
    int n = p->spec.terms.nproc;
    size_t at = (size_t)snprintf(what, sizeof what, "%d worker%s on this host:", n, n == 1 ? "" : "s");

    for (int i = 0; p->spec.argv[i] && at < sizeof what; i++)
        at += (size_t)snprintf(what + at, sizeof what - at, " %s", p->spec.argv[i]);
    calls->began(p->spec.terms.run_id, what);
}

int launch_run(launch_plan *p, const co_launch_calls *calls)
{
    co_roster *roster;
    int status = CO_EXIT_FAILED;

    if (p->train)
        return train(p, calls);
    co_err err = open_roster(&roster, p);

    if (err)
        return co_say_error(err);
    if (p->spec.omp_one && !p->spec.hushed)
        co_notice("OMP_NUM_THREADS=1 for each worker, so that they do not compete for the CPUs; set it to "
                  "choose");
    say_began(p, calls);
    err = co_job_run(&p->spec, roster, &status);
    calls->ended();
    co_roster_close(roster);
    return err ? co_say_error(err) : status;
}
