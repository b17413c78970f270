/* guard.c -- the process between us and a worker, so that nothing the worker started outlives it or us.
 *
 *     job --socket--> guard (own session, subreaper) --> worker (own session) --> anything, daemons too
 *
 * - Orphans of the worker become the guard's children. Killing all children, again and again until none is
 *   left, therefore ends the whole tree.
 * - We die (the socket ends, or the parent-death signal): the guard kills the tree at once.
 * - The guard dies: the worker has SIGKILL as its parent-death signal.
 * - The worker ended: processes that it left have LINGER_MS to exit by themselves; then they get SIGTERM,
 *   then SIGKILL.
 * - The job ends: the worker's process group gets the signal, once. A shell dies of it at once, but the
 *   program that it ran may need the grace period. So the processes that are left keep the full grace period,
 *   until the launcher sends SIGKILL.
 * - Another user's process, or one that hangs in the kernel, does not end by SIGKILL: the guard reports it
 *   and leaves it.
 *
 * A guard only makes system calls: it was forked from a process that may have threads.
 */
#include "proc/guard.h"
#include "proc/proc_int.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fds.h"

typedef struct guard {
    const co_guard_spec *spec;
    pid_t parent, self, worker;
    int sock, signals;
    bool ended;          /* the worker has */
    bool killing;        /* SIGKILL went to all */
    bool left_signalled; /* SIGTERM went to what the worker left */
    bool hurry;          /* SIGKILL was ordered a second time */
    bool graced;         /* the job ends: SIGKILL comes from the launcher, after the grace period */
    int passed_on;       /* the signal that the launcher had us pass on; 0: none */
    int last_signal;     /* the last signal sent to the guard itself; 0: none */
    int died_of;         /* the worker's signal; 0: none */
    int64_t deadline_ns; /* for processes that the worker left */
    int64_t killing_ns;  /* since when */
} guard;

static int64_t now_of(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void say(const guard *g, co_guard_report w)
{
    w.pid = g->worker;
    w.when_ns = now_of(CLOCK_REALTIME);
    /* nobody listens: the loop notices that the socket ended */
    if (send(g->sock, &w, sizeof w, MSG_NOSIGNAL) < 0) {
    }
}

static void tell(const guard *g, co_guard_kind kind, int status, int n)
{
    say(g, (co_guard_report){.kind = kind, .status = status, .n = n});
}

/* --- the worker ---------------------------------------------------------------------------------------- */
static void default_signals(void)
{
    static const int ours[] = {SIGPIPE, SIGXFSZ, SIGCHLD, SIGTERM, SIGUSR1, SIGUSR2};

    for (size_t i = 0; i < CO_COUNT(ours); i++)
        signal(ours[i], SIG_DFL);
}

_Noreturn static void become_worker(const guard *g, int failed)
{
    const co_guard_spec *s = g->spec;

    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != g->self)
        _exit(1);
    default_signals();
    setrlimit(RLIMIT_NOFILE, &s->nofile);
    if (dup2(s->out_fd, STDOUT_FILENO) >= 0 && dup2(s->err_fd, STDERR_FILENO) >= 0) {
        close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
        sigprocmask(SIG_SETMASK, &s->mask, NULL);
        execve(s->file, s->argv, s->envp);
    }
    int why = errno;
    if (write(failed, &why, sizeof why) < 0) { /* the guard sees the exit */
    }
    _exit(127);
}

/* errno of a failed pipe, fork or exec; 0 if the worker runs. */
static int start_worker(guard *g)
{
    int p[2], why = 0;

    if (pipe2(p, O_CLOEXEC) < 0)
        return errno;
    g->worker = fork();
    if (g->worker < 0)
        return errno;
    if (g->worker == 0)
        become_worker(g, p[1]);
    close(p[1]);
    while (read(p[0], &why, sizeof why) < 0 && errno == EINTR)
        ;
    close(p[0]);
    return why;
}

/* --- the tree ------------------------------------------------------------------------------------------ */
/* The signal it died of, from the wait status or from a shell's 128 + N; 0: no signal. */
static int signal_of(int status)
{
    if (WIFSIGNALED(status))
        return WTERMSIG(status);
    return WEXITSTATUS(status) > 128 ? WEXITSTATUS(status) - 128 : 0;
}

/* Reaps children that have ended; false when no child is left. */
static bool reap(guard *g)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid == 0 || (pid < 0 && errno != ECHILD))
            return true;
        if (pid < 0)
            return false;
        if (pid == g->worker) {
            g->ended = true;
            g->died_of = signal_of(status);
            tell(g, CO_GUARD_ENDED, status, 0);
            g->deadline_ns = now_of(CLOCK_MONOTONIC) + LINGER_MS * INT64_C(1000000);
        }
    }
}

static void kill_all(guard *g)
{
    if (!g->killing)
        g->killing_ns = now_of(CLOCK_MONOTONIC);
    g->killing = true;
    if (!g->ended)
        kill(-g->worker, SIGKILL);
    children_signal(&(sweep){.sig = SIGKILL});
}

/* --- its loop ------------------------------------------------------------------------------------------ */
/* If the worker has already died of this signal, somebody signalled every process of the job. That is one
 * request, not two. */
static void pass_on(guard *g, int sig)
{
    g->graced |= !g->ended || g->died_of == sig;
    if (g->ended)
        return;
    g->passed_on = sig;
    kill(-g->worker, sig);
}

static void obey(guard *g)
{
    int sig;
    ssize_t n = recv(g->sock, &sig, sizeof sig, MSG_DONTWAIT);

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        g->sock = -1;
        kill_all(g);
    } else if (n == (ssize_t)sizeof sig && sig == SIGKILL) {
        g->hurry = g->killing;
        kill_all(g);
    } else if (n == (ssize_t)sizeof sig) {
        pass_on(g, sig);
    }
}

static void hear_signal(guard *g)
{
    struct signalfd_siginfo info;

    if (read(g->signals, &info, sizeof info) != (ssize_t)sizeof info || info.ssi_signo == SIGCHLD)
        return;
    g->last_signal = (int)info.ssi_signo;
    if (getppid() != g->parent)
        kill_all(g);
    else if (!g->ended) /* the signal was meant for the worker */
        kill(-g->worker, (int)info.ssi_signo);
}

/* Sends SIGTERM to processes that the worker left. Processes that already got the signal that ended the
 * worker are spared: they may be saving. */
static void ask_the_left(guard *g)
{
    int had = g->passed_on ? g->passed_on : g->last_signal == g->died_of ? g->died_of : 0;
    sweep s = {.sig = SIGTERM, .group = g->worker, .had = g->graced ? had : 0};

    g->left_signalled = true;
    g->deadline_ns = now_of(CLOCK_MONOTONIC) + LEFT_BEHIND_MS * INT64_C(1000000);
    children_signal(&s);
    tell(g, CO_GUARD_LEFT, 0, s.sent);
}

/* Kills processes that became our children since the last sweep, and gives up on those that should have died
 * by now. */
static void go_on_killing(const guard *g)
{
    sweep s = {.sig = SIGKILL};

    children_signal(&s);
    bool hopeless = g->hurry || (s.refused && !s.sent);
    int64_t since_ms = (now_of(CLOCK_MONOTONIC) - g->killing_ns) / 1000000;
    if (!s.one || since_ms < (hopeless ? HOPELESS_MS : STUCK_MS))
        return;
    say(g, (co_guard_report){.kind = CO_GUARD_STUCK, .status = s.why, .n = s.sent + s.refused, .who = s.one});
    _exit(0);
}

static void mind_the_left(guard *g)
{
    bool due = g->ended && now_of(CLOCK_MONOTONIC) >= g->deadline_ns;

    if (g->killing)
        go_on_killing(g);
    else if (due && !g->left_signalled)
        ask_the_left(g);
    else if (due && !g->graced)
        kill_all(g);
}

static int wait_ms(const guard *g)
{
    if (g->killing)
        return SWEEP_MS; /* orphans of killed processes come to us, and are killed in their turn */
    if (!g->ended || (g->left_signalled && g->graced))
        return -1;
    int64_t left = (g->deadline_ns - now_of(CLOCK_MONOTONIC)) / 1000000 + 1;
    return left < 0 ? 0 : (int)left;
}

_Noreturn static void guard_main(guard *g)
{
    sigset_t all;
    co_fds keep = {0};
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);

    g->self = getpid();
    setsid();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    prctl(PR_SET_NAME, "cohort-guard");
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    /* if SIGCHLD stayed ignored, the kernel would reap the worker and we would never know */
    signal(SIGCHLD, SIG_DFL);
    g->signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    if (g->signals < 0 || getppid() != g->parent)
        _exit(1);
    int why = start_worker(g);
    if (why) {
        if (g->worker > 0)
            waitpid(g->worker, NULL, 0); /* otherwise our parent would have to reap it */
        tell(g, CO_GUARD_NOT_STARTED, why, 0);
        _exit(127);
    }
    tell(g, CO_GUARD_STARTED, 0, 0);
    dup2(nowhere, STDIN_FILENO);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    co_fds_add(&keep, g->sock);
    co_fds_add(&keep, g->signals);
    co_fds_close_others(&keep);
    while (reap(g)) {
        struct pollfd p[2] = {{.fd = g->sock, .events = POLLIN}, {.fd = g->signals, .events = POLLIN}};
        poll(p, 2, wait_ms(g));
        if (p[0].revents)
            obey(g);
        if (p[1].revents)
            hear_signal(g);
        mind_the_left(g);
    }
    _exit(0);
}

co_err co_guard_start(pid_t *pid, int *sock, const co_guard_spec *spec)
{
    int s[2];
    guard g = {.spec = spec, .parent = getpid()};
    sigset_t all, before;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s) < 0)
        return co_fail(CO_EIO, "socketpair for a guard: %m");
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* no handler of ours runs in the child */
    pid_t p = fork();
    if (p == 0) {
        close(s[0]);
        g.sock = s[1];
        guard_main(&g);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(s[1]);
    if (p < 0) {
        close(s[0]);
        return co_fail(CO_EIO, "fork of a guard: %m");
    }
    *pid = p;
    *sock = s[0];
    return CO_OK;
}

void co_guard_signal(int sock, int sig)
{
    /* the guard has ended */
    if (sock >= 0 && send(sock, &sig, sizeof sig, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    }
}
