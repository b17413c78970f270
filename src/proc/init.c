/* init.c -- see init.h. */
#include "proc/init.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* The child gets a process group of its own, in the foreground of the terminal if there is one: Ctrl-C
 * reaches it once, from the terminal, and not again from process 1. */
static void lead_group(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;

    setpgid(0, 0);
    sigaction(SIGTTOU, &ignore, &before);
    (void)!tcsetpgrp(STDIN_FILENO, getpgrp());
    sigaction(SIGTTOU, &before, NULL);
}

/* Waits for all that have ended. True: the child is among them. */
static bool reap(pid_t child, int *status)
{
    bool ended = false;
    int st;
    pid_t pid;

    while ((pid = waitpid(-1, &st, WNOHANG)) > 0)
        if (pid == child) {
            *status = st;
            ended = true;
        }
    return ended;
}

static _Noreturn void stay(pid_t child, const sigset_t *all)
{
    int status = 0;

    while (!reap(child, &status)) {
        int sig = sigwaitinfo(all, NULL);
        if (sig > 0 && sig != SIGCHLD)
            kill(child, sig);
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

void co_init_stay_behind(void)
{
    sigset_t all, before;

    if (getpid() != 1)
        return;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    fflush(NULL);
    pid_t child = fork();
    if (child > 0) {
        signal(SIGCHLD, SIG_DFL);
        stay(child, &all);
    }
    if (child == 0)
        lead_group();
    sigprocmask(SIG_SETMASK, &before, NULL);
}
