/* meet.c -- the hosts of a training: `cohort launch`'s flags and the environment, read by the same code as
 * for `cohort launch`. A plan without a program holds what was read; the caller sees a copy of its terms
 * and meeting.
 */
#include "job/launch/launch_int.h"

#include <string.h>

#include "job/meet.h"

static void note(const char *text)
{
    co_notice("%s", text);
}

/* Messages of the launcher begin with its name; here another command speaks. */
static co_err without_name(co_err err)
{
    static const char name[] = "launch: ";
    char text[2048];

    if (!err || strncmp(co_errmsg(), name, sizeof name - 1) != 0)
        return err;
    snprintf(text, sizeof text, "%s", co_errmsg() + sizeof name - 1);
    return co_fail(err, "%s", text);
}

static co_err parse(launch_args *a, const co_hosts_ask *ask)
{
    static char name[] = "train";
    int n = 0;

    while (ask->flags[n])
        n++;
    char **argv = co_array((size_t)n + 3, sizeof *argv);
    if (!argv)
        return CO_ENOMEM;
    argv[0] = name;
    for (int i = 0; i < n; i++)
        argv[i + 1] = (char *)(uintptr_t)ask->flags[i];
    argv[n + 1] = name; /* the program */
    co_err err = launch_parse(a, n + 2, argv, note);
    co_free(argv);
    return err;
}

void hosts_line_fill(co_hosts_line *hosts, launch_plan *p)
{
    hosts->plan = p;
    hosts->terms = p->spec.terms;
    hosts->meet = p->meet;
    hosts->alone = p->local;
    hosts->quiet = p->spec.hushed;
    hosts->neighbours = p->place && p->place->tasks_most > 1 ? p->place->tasks : 1;
    if (p->place && !*hosts->meet.endpoint) /* co_place_share says the same, if the environment knows it */
        snprintf(hosts->meet.endpoint, sizeof hosts->meet.endpoint, "%s", p->place->endpoint);
    hosts->port = p->port;
    snprintf(hosts->pixels, sizeof hosts->pixels, "%s", p->pixels);
    snprintf(hosts->place, sizeof hosts->place, "%s", p->place ? p->place->name : "");
}

static void settle(launch_args *a, const co_hosts_ask *ask)
{
    a->train = true;
    a->line = ask->line;
    if (!a->nnodes && ask->num_nodes) {
        a->nnodes = ask->num_nodes;
        a->nnodes_key = "trainer.num_nodes";
    }
}

static co_err make(launch_plan *p, const co_hosts_ask *ask)
{
    launch_args a;

    CO_TRY(parse(&a, ask));
    settle(&a, ask);
    co_err err = a.ssh ? co_fail(CO_EINPUT, "--ssh is for --hosts and --hostfile, which are not here")
                       : variables_set(&a, &p->pool);
    if (!err)
        err = plan_hosts(p, &a);
    launch_args_free(&a);
    return err;
}

co_err co_hosts_line_make(co_hosts_line **out, const co_hosts_ask *ask)
{
    co_hosts_line *hosts = co_zalloc(sizeof *hosts);
    launch_plan *p = co_zalloc(sizeof *p);
    co_err err = hosts && p ? make(p, ask) : CO_ENOMEM;

    if (err) {
        if (p)
            plan_free(p);
        co_free(p);
        co_free(hosts);
        return without_name(err);
    }
    hosts_line_fill(hosts, p);
    *out = hosts;
    return CO_OK;
}

co_err co_hosts_line_enter(co_hosts_line *hosts)
{
    const co_place *place = hosts->plan->place;

    if (!place)
        return CO_OK;
    if (place->outside)
        return without_name(plan_into_step(hosts->plan));
    cpus_share(place);
    return CO_OK;
}

co_err co_hosts_line_meet(co_hosts_line *hosts)
{
    if (hosts->alone)
        return CO_OK;
    if (hosts->plan->place)
        hosts->plan->place->for_mpi = true; /* the carrier may open it */
    co_err err = hosts->plan->told ? host_listen(hosts->plan) : plan_where_place(hosts->plan);
    if (err)
        return without_name(err);
    hosts_line_fill(hosts, hosts->plan);
    return token_from_user(&hosts->terms, &hosts->meet);
}

bool co_hosts_line_first(const co_hosts_line *hosts)
{
    return hosts->plan->told || hosts->terms.host_rank == 0 || hosts->meet.role == CO_MEET_SERVE;
}

void co_hosts_line_free(co_hosts_line *hosts)
{
    if (!hosts)
        return;
    plan_free(hosts->plan);
    co_free(hosts->plan);
    explicit_bzero(hosts->meet.token, sizeof hosts->meet.token);
    co_free(hosts);
}

static bool names(const char *flag, const char *name)
{
    size_t n = strlen(name);

    return strncmp(flag, name, n) == 0 && (flag[n] == '=' || !flag[n]);
}

bool co_hosts_line_conducts(const co_hosts_ask *ask)
{
    for (int i = 0; ask->flags[i]; i++)
        if (names(ask->flags[i], "--hosts") || names(ask->flags[i], "--hostfile"))
            return true;
    return false;
}

int co_hosts_line_conduct(const co_hosts_ask *ask, const char *const *words, int n)
{
    const char **program = co_array((size_t)n + 3, sizeof *program);
    launch_args a = {0};
    co_err err = program ? parse(&a, ask) : CO_ENOMEM;

    if (err) {
        co_free(program);
        return co_say_error(without_name(err));
    }
    settle(&a, ask);
    program[0] = OWN_PROGRAM;
    program[1] = "train";
    memcpy(program + 2, words, (size_t)n * sizeof *program);
    launch_args_free(&a);
    a.program = program;
    a.n = n + 2;
    int status = launch_on_hosts(&a);
    launch_args_free(&a);
    return status;
}

void co_hosts_line_count(char *out, size_t size, const co_hosts_line *hosts)
{
    int min = hosts->terms.min_hosts, max = hosts->terms.max_hosts;

    if (min < max)
        snprintf(out, size, "%d to %d hosts", min, max);
    else
        snprintf(out, size, "%d host%s", max, max == 1 ? "" : "s");
}
