/* launch.c -- `cohort launch`: torchrun's command line for any program. The flags are in the table of
 * launch_int.h; job/job.h runs the workers. */
#include "job/launch/launch_int.h"

#include <string.h>

static void note(const char *text)
{
    co_notice("%s", text);
}

int co_launch_run(int argc, char **argv, const co_launch_calls *calls)
{
    launch_args a;

    if (argc == 2 && strcmp(argv[1], "--from-stdin") == 0)
        return launch_from_stdin(calls);
    co_err err = launch_parse(&a, argc, argv, note);

    if (err)
        return co_say_error(err);
    if (a.help) {
        launch_args_free(&a);
        return calls->help("launch");
    }
    a.line = argv;
    err = own_training(&a);
    if (!err && (a.hosts || a.hostfile)) {
        int status_of_all = launch_on_hosts(&a);
        launch_args_free(&a);
        return status_of_all;
    }
    launch_plan *p = co_zalloc(sizeof *p);
    int status = CO_EXIT_FAILED;
    if (!err)
        err = p ? variables_set(&a, &p->pool) : CO_ENOMEM;
    if (!err)
        err = plan_make(p, &a);
    if (!err && !a.train)
        err = plan_where_place(p);
    status = err ? co_say_error(err) : launch_run(p, calls);
    if (p)
        plan_free(p);
    co_free(p);
    launch_args_free(&a);
    return status;
}
