/* util.c -- how busy the machine is, and how much of it this run uses; read from /proc about once a
 * second.
 *
 *     cpu_percent      of the machine's CPUs, all processes; 100 = all busy
 *     run_cpu_percent  of this run's processes; 100 = one CPU busy
 *     memory_mb        of this run: private memory of its processes, and the memory they share once
 *     host_memory_percent, load (the last minute's)
 *     what disks and network move: flow.c
 *
 * A run's processes are this one and its children. Reading is a few system calls per process; a figure
 * that cannot be read is nan and left out. */
#include "track/track_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proc/look.h"

enum { CHILDREN_MOST = 1024 };

/* A number of a text of "key: number" lines; nan if it is not there. */
static double number_in(const char *text, const char *key)
{
    int64_t number = co_proc_number(text, key);

    return number < 0 ? NAN : (double)number;
}

/* Clock ticks of all CPUs since boot: busy ones, and all. Time spent waiting for a disk counts as idle. */
static bool read_machine(double *busy, double *all)
{
    char text[512];
    unsigned long long t[8] = {0};

    if (!co_proc_text(text, sizeof text, 0, "stat") ||
        sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1], &t[2], &t[3], &t[4], &t[5],
               &t[6], &t[7]) < 4)
        return false;
    *all = 0;
    for (int i = 0; i < 8; i++)
        *all += (double)t[i];
    *busy = *all - (double)t[3] - (double)t[4];
    return true;
}

struct process_use {
    char state;
    double ticks;             /* CPU time */
    double anon_kb, shmem_kb; /* resident */
};

static bool read_process(struct process_use *u, pid_t pid)
{
    char text[4096];
    co_proc p;

    if (!co_proc_read(&p, pid) || !co_proc_text(text, sizeof text, pid, "status"))
        return false;
    u->state = p.state;
    u->ticks = (double)p.ticks;
    u->anon_kb = number_in(text, "RssAnon");
    u->shmem_kb = number_in(text, "RssShmem");
    return !isnan(u->anon_kb) && !isnan(u->shmem_kb); /* a zombie has neither */
}

/* CPU time of one process since the last call; if the process is new, all of its CPU time. */
static double ticks_since(const co_util *u, int pid, double ticks)
{
    for (int i = 0; i < u->n_known; i++)
        if (u->known[i].pid == pid)
            return ticks >= u->known[i].ticks ? ticks - u->known[i].ticks : 0;
    return ticks;
}

/* This process and its children: CPU time since the last look, and memory. */
static void look_at_run(co_util *u, double took_s, double *ticks, double *memory_kb)
{
    pid_t pids[CHILDREN_MOST];
    double shared = 0;
    struct process_use now;
    co_util next = {0};
    int n = co_proc_children(pids + 1, CHILDREN_MOST - 1, getpid());

    pids[0] = getpid();
    *ticks = *memory_kb = 0;
    for (int i = 0; i <= n || i == 0; i++) {
        if (!read_process(&now, pids[i]))
            continue;
        double since = ticks_since(u, pids[i], now.ticks);
        *ticks += since;
        *memory_kb += now.anon_kb;
        shared = now.shmem_kb > shared ? now.shmem_kb : shared;
        if (next.n_known == CO_UTIL_PROCESSES)
            continue;
        next.known[next.n_known].pid = pids[i];
        next.known[next.n_known].state = now.state;
        next.known[next.n_known].ticks = now.ticks;
        next.known[next.n_known].memory_mb = now.anon_kb * 1024 / 1e6;
        next.known[next.n_known++].cpu_percent =
            took_s > 0 ? 100 * since / (double)sysconf(_SC_CLK_TCK) / took_s : NAN;
    }
    *memory_kb += shared;
    memcpy(u->known, next.known, sizeof u->known);
    u->n_known = next.n_known;
}

static double host_memory_percent(void)
{
    char text[2048];

    if (!co_proc_text(text, sizeof text, 0, "meminfo"))
        return NAN;
    double total = number_in(text, "MemTotal"), left = number_in(text, "MemAvailable");
    return total > 0 ? 100 * (total - left) / total : NAN;
}

bool co_util_look(co_util *u, double now_s, co_sample *out)
{
    char text[128];
    double busy = 0, all = 0, ticks, memory_kb, second = (double)sysconf(_SC_CLK_TCK);
    bool first = u->at_s == 0, machine = read_machine(&busy, &all);

    double took = now_s - u->at_s, machine_took = all - u->all;
    look_at_run(u, took, &ticks, &memory_kb);
    *out = (co_sample){.cpu_percent = machine && machine_took > 0 ? 100 * (busy - u->busy) / machine_took : NAN,
                       .run_cpu_percent = took > 0 ? 100 * ticks / second / took : NAN,
                       .memory_mb = memory_kb * 1024 / 1e6,
                       .host_memory_percent = host_memory_percent(),
                       .load = co_proc_text(text, sizeof text, 0, "loadavg") ? strtod(text, NULL) : NAN};
    flow_look(&u->flow, took, out);
    u->at_s = now_s;
    u->busy = busy;
    u->all = all;
    return !first; /* the first call has nothing to compare with */
}

bool co_util_process(const co_util *u, int pid, double *cpu_percent, double *memory_mb, bool *stopped)
{
    for (int i = 0; i < u->n_known; i++)
        if (u->known[i].pid == pid) {
            *cpu_percent = u->known[i].cpu_percent;
            *memory_mb = u->known[i].memory_mb;
            *stopped = u->known[i].state == 'T' || u->known[i].state == 't';
            return true;
        }
    return false;
}
