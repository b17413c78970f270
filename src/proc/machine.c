/* machine.c -- the memory and CPUs of this process, and the signals that ask it to stop. */
#include "proc/crew.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "proc/look.h"

int co_cpus_usable(void)
{
    cpu_set_t may;
    int n = sched_getaffinity(0, sizeof may, &may) == 0 ? CPU_COUNT(&may) : 1;
    co_cgroup group;

    co_cgroup_read(&group, "");
    return group.cpus && group.cpus < n ? group.cpus : n;
}

size_t co_memory_private(void)
{
    char text[4096];

    co_proc_text(text, sizeof text, getpid(), "status");
    int64_t kib = co_proc_number(text, "RssAnon");
    return kib > 0 ? (size_t)kib * 1024 : 0;
}

sigset_t co_signals_hold(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return set;
}

co_err co_signals_open(int *fd)
{
    sigset_t set = co_signals_hold();

    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    *fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return *fd < 0 ? co_fail(CO_EIO, "signalfd: %m") : CO_OK;
}

int co_signals_next(int fd)
{
    struct signalfd_siginfo info;

    return read(fd, &info, sizeof info) == (ssize_t)sizeof info ? (int)info.ssi_signo : 0;
}
