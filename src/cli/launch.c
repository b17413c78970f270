/* launch.c -- `cohort launch`: torchrun's command line for any program. The flags are launch_int.h's table; what runs the
 * workers is launch/job.h. */
#include "cli/launch_int.h"

#include <string.h>

static void note(const char *text)
{
    say("cohort: %s", text);
}

static co_err open_roster(co_roster **out, const launch_plan *p)
{
    if (p->local)
        return co_roster_local(out, &p->spec.terms);
    co_meet where = p->meet;
    where.grace_s = p->spec.grace_s;
    where.logs = p->spec.log_dir && strcmp(p->spec.log_dir, "/dev/null") != 0;
    co_err err = launch_ask_token(&p->spec.terms, &where);
    if (!err)
        err = co_roster_open(out, &p->spec.terms, &where);
    explicit_bzero(where.token, sizeof where.token);
    return err;
}

int launch_run(const launch_plan *p)
{
    co_roster *roster;
    int status = EXIT_FAILED;
    co_err err = open_roster(&roster, p);

    if (err)
        return fail_with(err);
    if (p->spec.omp_one && !p->spec.hushed)
        note("OMP_NUM_THREADS=1 for each worker, so that they do not fight for the CPUs; set it to choose");
    err = co_job_run(&p->spec, roster, &status);
    co_roster_close(roster);
    return err ? fail_with(err) : status;
}

int cmd_launch(int argc, char **argv)
{
    launch_args a;

    if (argc == 2 && strcmp(argv[1], "--from-stdin") == 0)
        return launch_from_stdin();
    co_err err = launch_parse(&a, argc, argv, note);

    if (err)
        return fail_with(err);
    if (a.help) {
        launch_args_free(&a);
        return show_usage("launch");
    }
    a.line = argv;
    if (a.hosts || a.hostfile) {
        int status_of_all = launch_on_hosts(&a);
        launch_args_free(&a);
        return status_of_all;
    }
    launch_plan *p = co_zalloc(sizeof *p);
    int status = EXIT_FAILED;
    err = p ? launch_set_variables(&a, &p->pool) : CO_ENOMEM;
    if (!err)
        err = launch_plan_make(p, &a);
    if (!err)
        err = launch_meet_place(p);
    status = err ? fail_with(err) : launch_run(p);
    if (p)
        launch_plan_free(p);
    co_free(p);
    launch_args_free(&a);
    return status;
}
