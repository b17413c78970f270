/* launch.c -- `cohort launch`, `cohort host`, `cohort join`: their lines are read by job/launch.h. If the program is
 * our own training, it runs here. */
#include "cli/train_int.h"

#include "job/launch.h"

static const co_launch_calls calls = {show_usage, train_with};

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
