/* cpu_time.c -- the CPU time of this host's part of a run: the supervisor, its threads and all ranks.
 *
 * getrusage knows a child only after it was waited for, so the CPU clocks of the ranks that still run are added.
 * Other work on the machine changes CPU time far less than wall time. Cost: one system call a rank.
 */
#include "train/super_int.h"

#include <sys/resource.h>
#include <time.h>

static double seconds(const struct rusage *use)
{
    return (double)(use->ru_utime.tv_sec + use->ru_stime.tv_sec) +
           1e-6 * (double)(use->ru_utime.tv_usec + use->ru_stime.tv_usec);
}

double run_cpu_s(const struct supervisor *super)
{
    struct rusage mine, kids;

    getrusage(RUSAGE_SELF, &mine);
    getrusage(RUSAGE_CHILDREN, &kids);
    double sum = seconds(&mine) + seconds(&kids);
    for (int slot = 0; super->crew && slot < super->run.plan->ranks; slot++) {
        pid_t pid = co_crew_pid(super->crew, slot);
        struct timespec used;
        clockid_t clock;
        if (pid > 0 && clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &used) == 0)
            sum += (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
    }
    return sum;
}
