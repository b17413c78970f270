/* machine.c -- what this process may use of the machine, and the signals it answers. */
#include "launch/launch.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* CPUs that the cgroup's quota amounts to, rounded up; 0 if there is none. */
static int cgroup_cpus(void)
{
    long quota = -1, period = 100000;
    FILE *f = fopen("/sys/fs/cgroup/cpu.max", "re");

    if (f) {
        if (fscanf(f, "%ld %ld", &quota, &period) != 2)
            quota = -1; /* "max" */
        fclose(f);
    } else if ((f = fopen("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "re"))) {
        if (fscanf(f, "%ld", &quota) != 1)
            quota = -1;
        fclose(f);
        f = fopen("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "re");
        if (f && fscanf(f, "%ld", &period) != 1)
            quota = -1;
        if (f)
            fclose(f);
    }
    return quota > 0 && period > 0 ? (int)((quota + period - 1) / period) : 0;
}

int co_cpus_usable(void)
{
    cpu_set_t may;
    int n = sched_getaffinity(0, sizeof may, &may) == 0 ? CPU_COUNT(&may) : 1;
    int quota = cgroup_cpus();

    return quota && quota < n ? quota : n;
}

size_t co_memory_private(void)
{
    FILE *f = fopen("/proc/self/status", "re");
    char line[128];
    unsigned long kib = 0;

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "RssAnon: %lu", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return (size_t)kib * 1024;
}

co_err co_signals_open(int *fd)
{
    sigset_t set;

    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    *fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return *fd < 0 ? co_fail(CO_EIO, "signalfd: %m") : CO_OK;
}

int co_signals_next(int fd)
{
    struct signalfd_siginfo info;

    return read(fd, &info, sizeof info) == (ssize_t)sizeof info ? (int)info.ssi_signo : 0;
}
