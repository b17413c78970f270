/* signal.c -- the names of signals. */
#include "base/signal.h"

#include <signal.h>
#include <stddef.h>

#include "base/err.h"

static const char *const names[] = {
    [SIGSEGV] = "SIGSEGV",   [SIGABRT] = "SIGABRT", [SIGFPE] = "SIGFPE",       [SIGBUS] = "SIGBUS",
    [SIGILL] = "SIGILL",     [SIGKILL] = "SIGKILL", [SIGTERM] = "SIGTERM",     [SIGINT] = "SIGINT",
    [SIGHUP] = "SIGHUP",     [SIGXCPU] = "SIGXCPU", [SIGXFSZ] = "SIGXFSZ",     [SIGSYS] = "SIGSYS",
    [SIGPIPE] = "SIGPIPE",   [SIGQUIT] = "SIGQUIT", [SIGTRAP] = "SIGTRAP",     [SIGUSR1] = "SIGUSR1",
    [SIGUSR2] = "SIGUSR2",   [SIGALRM] = "SIGALRM", [SIGSTKFLT] = "SIGSTKFLT", [SIGCHLD] = "SIGCHLD",
    [SIGCONT] = "SIGCONT",   [SIGSTOP] = "SIGSTOP", [SIGTSTP] = "SIGTSTP",     [SIGTTIN] = "SIGTTIN",
    [SIGTTOU] = "SIGTTOU",   [SIGURG] = "SIGURG",   [SIGVTALRM] = "SIGVTALRM", [SIGPROF] = "SIGPROF",
    [SIGWINCH] = "SIGWINCH", [SIGIO] = "SIGIO",     [SIGPWR] = "SIGPWR",
};

const char *co_signal_name(int sig)
{
    const char *name = sig > 0 && (size_t)sig < CO_COUNT(names) ? names[sig] : NULL;

    return name ? name : "SIG?";
}
