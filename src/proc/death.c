/* death.c -- how a process died: a table of signals, and what the kernel's records add to it. */
#include "proc/death.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/err.h"
#include "base/signal.h"
#include "proc/evidence.h"

/* What a signal usually means; signals without a usual meaning have no row. */
static const struct {
    int sig;
    const char *advice;
} signals[] = {
    {SIGSEGV,
     "a crash in native code: PYTHONFAULTHANDLER=1 shows the Python line, gdb --args the native one"},
    {SIGABRT, "it ended itself (a failed assertion, an uncaught C++ exception): its last lines say why"},
    {SIGFPE, "an integer division by zero in native code: gdb --args shows where"},
    {SIGBUS, "memory behind a mapping is missing: a full /dev/shm or disk, or a mapped file that was cut"},
    {SIGILL, "an instruction this CPU does not have: build the program for this machine"},
    {SIGKILL, "somebody sent SIGKILL: a memory or time limit of the scheduler, an administrator, kill -9"},
    {SIGTERM, "somebody sent SIGTERM to this worker alone: a scheduler, an administrator, kill"},
    {SIGINT, "somebody sent SIGINT to this worker alone"},
    {SIGHUP, "somebody sent SIGHUP to this worker alone"},
    {SIGXCPU, "its limit of CPU time is used up: ulimit -t"},
    {SIGXFSZ, "its limit of file size is reached: ulimit -f"},
    {SIGSYS, "a system call that is forbidden here (seccomp): the container's profile"},
    {SIGPIPE, "it wrote to a pipe or socket that nobody reads"},
};

void co_death_traces_take(co_death_traces *out, const char *root)
{
    *out = (co_death_traces){.root = root, .oom_kills = co_evidence_oom_kills(root)};
}

static void advise(co_death_cause *out, const char *advice)
{
    if (!out->advice[0])
        snprintf(out->advice, sizeof out->advice, "%s", advice);
}

static void add_how(co_death_cause *out, const char *before, const char *text)
{
    size_t n = strlen(out->how);

    snprintf(out->how + n, sizeof out->how - n, "%s%s", before, text);
}

static bool oom_counted(const co_death_traces *before)
{
    return before->oom_kills >= 0 && co_evidence_oom_kills(before->root) > before->oom_kills;
}

/* The kernel log names the process; the counter only says that some process was killed. */
static bool killed_for_memory(pid_t pid, co_death_traces *before)
{
    char path[PATH_MAX];
    bool counted = oom_counted(before);

    before->oom_kills += counted;
    snprintf(path, sizeof path, "%s/dev/kmsg", before->root);
    return counted || co_evidence_killed_in(path, pid);
}

static void tell_sigkill(co_death_cause *out, pid_t pid, co_death_traces *before)
{
    out->out_of_memory = killed_for_memory(pid, before);
    if (!out->out_of_memory)
        return;
    add_how(out, ", ", "by the kernel's out-of-memory killer");
    advise(out, "memory is full: a smaller batch, fewer processes or data loaders, or a higher limit "
                "(docker --memory, sbatch --mem)");
}

static void tell_sigbus(co_death_cause *out, pid_t pid, co_death_traces *before)
{
    char path[PATH_MAX], found[100];

    (void)pid;
    snprintf(path, sizeof path, "%s/dev/shm", before->root);
    if (!co_evidence_shm_full(path, found, sizeof found))
        return;
    add_how(out, "; ", found);
    advise(out, "give /dev/shm more room (docker run --shm-size=8g, a Memory volume in Kubernetes), or use "
                "fewer data loaders");
}

static void tell_sigill(co_death_cause *out, pid_t pid, co_death_traces *before)
{
    char path[PATH_MAX], found[160];

    (void)pid;
    snprintf(path, sizeof path, "%s/proc/cpuinfo", before->root);
    if (co_evidence_no_instructions(path, found, sizeof found))
        add_how(out, "; ", found);
}

/* Signals that the kernel's records may explain. */
static const struct {
    int sig;
    void (*tell)(co_death_cause *out, pid_t pid, co_death_traces *before);
} tellers[] = {{SIGKILL, tell_sigkill}, {SIGBUS, tell_sigbus}, {SIGILL, tell_sigill}};

static void tell_signal(co_death_cause *out, pid_t pid, co_death_traces *before)
{
    snprintf(out->how, sizeof out->how, "killed by %s (%d)", co_signal_name(out->sig), out->sig);
    for (size_t i = 0; i < CO_COUNT(tellers); i++)
        if (tellers[i].sig == out->sig)
            tellers[i].tell(out, pid, before);
    for (size_t i = 0; i < CO_COUNT(signals); i++)
        if (signals[i].sig == out->sig)
            advise(out, signals[i].advice);
}

/* Shells exit with 128 + N when their command died of signal N. */
static void tell_exit(co_death_cause *out, const co_death_traces *before)
{
    int by_shell = out->status - 128;

    snprintf(out->how, sizeof out->how, "exited with status %d", out->status);
    if (by_shell > 0 && by_shell < NSIG && sigabbrev_np(by_shell)) {
        add_how(out, " (how a shell reports ", co_signal_name(by_shell));
        add_how(out, ")", "");
    }
    if (oom_counted(before))
        add_how(out, "; ", "the kernel's out-of-memory killer has struck here since the start");
    if (out->status == 127)
        advise(out, "127 is how a shell reports a command that it did not find");
    if (out->status == 126)
        advise(out, "126 is how a shell reports a file that it may not execute");
}

void co_death_tell(co_death_cause *out, int wait_status, pid_t pid, co_death_traces *before)
{
    *out = (co_death_cause){.sig = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0,
                            .status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0};
    if (out->sig)
        tell_signal(out, pid, before);
    else
        tell_exit(out, before);
}
