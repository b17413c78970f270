/* tree.c -- the tree of processes in /proc, and how much CPU time they have used. */
#include "proc/look.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"

static int by_pid(const void *a, const void *b)
{
    pid_t x = ((const co_proc *)a)->pid, y = ((const co_proc *)b)->pid;

    return (x > y) - (x < y);
}

int co_proc_scan(co_proc **out)
{
    DIR *d = opendir("/proc");
    co_proc *all = NULL;
    int n = 0, room = 0;

    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] < '1' || e->d_name[0] > '9')
            continue;
        if (n == room) {
            co_proc *more = co_realloc(all, (size_t)(room = room ? 2 * room : 256) * sizeof *all);
            if (!more)
                break;
            all = more;
        }
        n += co_proc_read(&all[n], (pid_t)atoi(e->d_name));
    }
    if (d)
        closedir(d);
    if (n)
        qsort(all, (size_t)n, sizeof *all, by_pid);
    *out = all;
    return n;
}

bool co_proc_read_busiest(co_proc *out, pid_t pid)
{
    char path[64];
    co_proc thread;

    if (!co_proc_read(out, pid))
        return false;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *threads = opendir(path);
    for (struct dirent *e; threads && out->state == 'S' && (e = readdir(threads));)
        if (co_proc_read_thread(&thread, pid, (pid_t)atoi(e->d_name)) &&
            (thread.state == 'R' || thread.state == 'D'))
            out->state = thread.state;
    if (threads)
        closedir(threads);
    return true;
}

static const co_proc *find(const co_proc *p, int n, pid_t pid)
{
    co_proc key = {.pid = pid};

    return bsearch(&key, p, (size_t)n, sizeof *p, by_pid);
}

static bool below(const co_proc *p, int n, const co_proc *at, pid_t top)
{
    for (int steps = 0; at && steps < 1000; steps++) {
        if (at->pid == top)
            return true;
        at = find(p, n, at->ppid);
    }
    return false;
}

uint64_t co_proc_ticks(const co_proc *p, int n, pid_t top)
{
    uint64_t sum = 0;

    for (int i = 0; i < n; i++)
        if (below(p, n, &p[i], top))
            sum += p[i].ticks;
    return sum;
}

/* Does the process sleep until a child ends? Then the child is the suspect. */
static bool waits_for_child(pid_t pid)
{
    char path[64];
    long nr = -1;

    snprintf(path, sizeof path, "/proc/%d/syscall", (int)pid);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%ld", &nr) != 1)
        nr = -1;
    if (f)
        fclose(f);
    return nr == SYS_wait4 || nr == SYS_waitid;
}

const co_proc *co_proc_suspect(const co_proc *p, int n, pid_t top)
{
    const co_proc *at = find(p, n, top);

    for (int i = 0; i < n; i++)
        if (p[i].state == 'D' && below(p, n, &p[i], top))
            return &p[i];
    for (int i = 0; at && i < n; i++)
        if (p[i].ppid == at->pid && waits_for_child(at->pid))
            at = &p[i], i = -1;
    return at;
}

/* Is `entry` one of the NUL-terminated strings in /proc/PID/environ? */
static bool in_environ(pid_t pid, const char *entry)
{
    char path[64], *text = NULL;
    size_t len = 0, n = strlen(entry) + 1;
    bool found = false;

    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    if (co_fs_read(&text, &len, path, 1 << 22) != CO_OK)
        return false;
    for (size_t at = 0; at + n <= len + 1 && !found; at += strlen(text + at) + 1)
        found = strcmp(text + at, entry) == 0;
    co_free(text);
    return found;
}

void co_proc_kill_adopted(pid_t session, const char *mark, const char *rank)
{
    /* children of a killed process become ours, and are killed next */
    for (int again = 0; again < 100; again++) {
        co_proc *p;
        int n = co_proc_scan(&p), found = 0;
        for (int i = 0; i < n; i++)
            if (p[i].ppid == getpid() &&
                (p[i].session == session || (in_environ(p[i].pid, mark) && in_environ(p[i].pid, rank)))) {
                if (kill(p[i].pid, SIGKILL) != 0)
                    continue; /* another user's process: we may not kill it and do not wait for it */
                found++;
                while (waitpid(p[i].pid, NULL, 0) < 0 && errno == EINTR)
                    ;
            }
        co_free(p);
        if (!found)
            return;
    }
}
