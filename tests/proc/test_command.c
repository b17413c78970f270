/* The output of another program. */
#include "harness.h"

#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "proc/command.h"

TEST(a_command_that_a_signal_killed_is_said_with_the_signal)
{
    const char *const argv[] = {"sh", "-c", "kill -SEGV $$", NULL};
    char out[64];

    CHECK_FAILS(co_command_read(out, sizeof out, argv, 10), CO_EIO, "killed by SIGSEGV (11)");
    const char *const exits[] = {"sh", "-c", "exit 3", NULL};
    CHECK_FAILS(co_command_read(out, sizeof out, exits, 10), CO_EIO, "exited with status 3");
}

static void hear(int sig)
{
    (void)sig;
}

TEST(a_signal_does_not_lift_the_time_limit_of_a_command)
{
    const char *const argv[] = {"sleep", "30", NULL};
    struct itimerval soon = {.it_value = {.tv_usec = 100000}};
    char out[64];

    CHECK(sigaction(SIGALRM, &(struct sigaction){.sa_handler = hear, .sa_flags = SA_RESTART}, NULL) == 0,
          "sigaction");
    setitimer(ITIMER_REAL, &soon, NULL);
    CHECK_FAILS(co_command_read(out, sizeof out, argv, 0.5), CO_EIO, "has not answered within 0.5 s");
}
