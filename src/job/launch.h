/* launch.h -- the command lines of `cohort launch`, `cohort host` and `cohort join`: torchrun's flags for any
 * program.
 *
 * argv[0] is the command's name. Each returns the exit status. `help` is called for --help with the command's
 * name.
 */
#ifndef CO_JOB_LAUNCH_H
#define CO_JOB_LAUNCH_H

extern const char co_launch_usage[], co_host_usage[], co_join_usage[];

int co_launch_run(int argc, char **argv, int (*help)(const char *command));
int co_host_run(int argc, char **argv, int (*help)(const char *command));
int co_join_run(int argc, char **argv, int (*help)(const char *command));

#endif
