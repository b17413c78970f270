/* launch.c -- what a process and all processes below it take: a launch says nothing of its workers itself. */
#include "top/top_int.h"

#include <math.h>
#include <unistd.h>

#include "base/alloc.h"
#include "proc/look.h"

static bool is_below(const co_proc *p, int n, pid_t pid, pid_t top)
{
    for (int depth = 0; depth < 64 && pid > 1; depth++) {
        if (pid == top)
            return true;
        int i = 0;
        while (i < n && p[i].pid != pid)
            i++;
        if (i == n)
            return false;
        pid = p[i].ppid;
    }
    return false;
}

static double memory_of(pid_t pid)
{
    char text[4096];
    int64_t kb = co_proc_text(text, sizeof text, pid, "status") ? co_proc_number(text, "RssAnon") : -1;

    return kb > 0 ? (double)kb * 1024 / 1e6 : 0;
}

void top_look_at_tree(top_tree *before, int pid, double now_s, double *cpu_percent, double *memory_mb)
{
    co_proc *all = NULL;
    int n = co_proc_scan(&all);
    double ticks = (double)co_proc_ticks(all, n, pid), secs = now_s - before->at_s;

    *cpu_percent = NAN;
    *memory_mb = 0;
    for (int i = 0; i < n; i++)
        if (is_below(all, n, all[i].pid, pid))
            *memory_mb += memory_of(all[i].pid);
    if (before->pid == pid && secs > 0 && ticks >= before->ticks)
        *cpu_percent = 100 * (ticks - before->ticks) / (double)sysconf(_SC_CLK_TCK) / secs;
    *before = (top_tree){.pid = pid, .ticks = ticks, .at_s = now_s};
    co_free(all);
}
