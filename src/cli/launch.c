/* launch.c -- `cohort launch`, `cohort host`, `cohort join`: their lines are read by job/launch.h. If the
 * program is our own training, it runs here. */
#include "cli/train_int.h"

#include "job/launch.h"

/* For `cohort ps` and `cohort stop`. A job runs without an entry too. */
static void began(const char *job, const char *what)
{
    if (co_live_register_launch(job, what) != CO_OK)
        co_errclear();
}

static const co_launch_calls calls = {show_usage, train_with, began, co_live_unregister};

int cmd_launch(int argc, char **argv)
{
    return co_launch_run(argc, argv, &calls);
}

int cmd_host(int argc, char **argv)
{
    return co_host_run(argc, argv, &calls);
}

int cmd_join(int argc, char **argv)
{
    return co_join_run(argc, argv, &calls);
}
