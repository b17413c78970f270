/* tree.c -- the tree of processes in /proc, and how much CPU time they have used. */
#include "proc/look.h"
#include "proc/proc_int.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"

static int by_pid(const void *a, const void *b)
{
    pid_t x = ((const co_proc *)a)->pid, y = ((const co_proc *)b)->pid;

    return (x > y) - (x < y);
}

typedef struct list {
    co_proc *all;
    int n, room;
} list;

static void add_to_list(void *ctx, pid_t pid)
{
    list *to = ctx;

    if (to->n == to->room) {
        int room = to->room ? 2 * to->room : 256;
        co_proc *more = co_realloc(to->all, (size_t)room * sizeof *more);
        if (!more)
            return;
        to->all = more;
        to->room = room;
    }
    to->n += co_proc_read(&to->all[to->n], pid);
}

int co_proc_scan(co_proc **out)
{
    list found = {0};

    each_process(add_to_list, &found);
    if (found.n)
        qsort(found.all, (size_t)found.n, sizeof *found.all, by_pid);
    *out = found.all;
    return found.n;
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
        if (read_thread(&thread, pid, (pid_t)atoi(e->d_name)) && (thread.state == 'R' || thread.state == 'D'))
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
    char text[256];
    long nr;

    co_proc_text(text, sizeof text, pid, "syscall");
    return sscanf(text, "%ld", &nr) == 1 && (nr == SYS_wait4 || nr == SYS_waitid);
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

/* A process in the middle of exec shows an empty environment for a moment. */
static bool shows_no_environ(const co_proc *p)
{
    char byte[2];

    return p->state != 'Z' && !co_proc_text(byte, sizeof byte, p->pid, "environ");
}

static bool kill_and_reap(pid_t pid)
{
    if (kill(pid, SIGKILL) != 0)
        return false; /* another user's process: we may not kill it and do not wait for it */
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return true;
}

void co_proc_kill_adopted(pid_t session, const char *mark, const char *rank)
{
    /* children of a killed process become ours, and are killed next */
    for (int again = 0; again < ADOPTED_TURNS; again++) {
        co_proc *p;
        int n = co_proc_scan(&p), found = 0, unknown = 0;
        for (int i = 0; i < n; i++)
            if (p[i].ppid != getpid())
                continue;
            else if (p[i].session == session || (in_environ(p[i].pid, mark) && in_environ(p[i].pid, rank)))
                found += kill_and_reap(p[i].pid);
            else
                unknown += shows_no_environ(&p[i]);
        co_free(p);
        if (!found && !unknown)
            return;
        if (!found)
            poll(NULL, 0, ADOPTED_MS);
    }
}
