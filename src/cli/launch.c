/* launch.c -- `cohort launch`, `cohort host`, `cohort join`: their lines are read by job/launch.h. */
#include "cli/cli_int.h"

#include "job/launch.h"

int cmd_launch(int argc, char **argv)
{
    return co_launch_run(argc, argv, show_usage);
}

int cmd_host(int argc, char **argv)
{
    return co_host_run(argc, argv, show_usage);
}

int cmd_join(int argc, char **argv)
{
    return co_join_run(argc, argv, show_usage);
}
