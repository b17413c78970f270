/* conduct.c -- one loop around poll for all hosts of a job: starts them, passes on their output and our
 * signals, and ends all of them when one is lost.
 *
 * The exit status is the first, in time, that is not 0. If we were asked to end, it is the first that
 * differs from the status of such an end. A host that ssh lost counts as status 1. Invariants: a host gets
 * its order once, after its start mark; every host's child is reaped and its output passed on before we
 * return; if we die, the pipes end, and with them the job on every host.
 */
#include "ssh/ssh_int.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/signal.h"

enum { EXIT_LOST = 1, EXIT_NOT_STARTED = 2 };

void conduct_say(conductor *c, const char *fmt, ...)
{
    char text[1100];
    va_list ap;

    va_start(ap, fmt);
    int n = snprintf(text, sizeof text - 1, "cohort: ");
    vsnprintf(text + n, sizeof text - 1 - (size_t)n, fmt, ap);
    va_end(ap);
    strcat(text, "\n");
    co_outlet_add(co_outlets_at(&c->out, 1), text, strlen(text));
}

static bool say_broken(conductor *c)
{
    char line[256];
    bool said = false;

    for (int to; (to = co_outlets_broken(&c->out, line, sizeof line)) >= 0; said = true)
        co_outlet_add(co_outlets_at(&c->out, to), line, strlen(line));
    return said;
}

/* --- losing --------------------------------------------------------------------------------------------- */
/* sig 0: no signal came; hosts get the word END instead. */
static void end_all(conductor *c, int sig)
{
    for (int i = 0; i < c->job->n; i++)
        host_end(&c->hosts[i], sig);
    if (!c->kill_ns)
        c->kill_ns = co_now_ns() + (uint64_t)(c->job->grace_s * 1e9) + SLACK_MS * UINT64_C(1000000);
}

static int lost_status(const conductor *c)
{
    if (c->asked)
        return c->asked == SIGTERM || c->asked == SIGUSR1 ? CO_EXIT_PREEMPTED : 128 + c->asked;
    return c->told >= c->job->min_hosts ? EXIT_LOST : EXIT_NOT_STARTED;
}

/* A host is gone too early, or with a bad status. The first host keeps the roster: without it the job
 * ends, and the status it reported is the job's. Other hosts may go as long as min_hosts are left. */
static void lose(conductor *c, const far_host *h, int status)
{
    int left = 0;

    for (int i = 0; i < c->job->n; i++)
        left += c->hosts[i].stage != HOST_GONE;
    /* We were asked to end and this host has another status: a worker crashed there. Hosts that ended well
     * may have been faster. */
    if (c->asked && status != lost_status(c) && (!c->status || c->status == lost_status(c)))
        c->status = status;
    if (h->rank != 0 && left >= c->job->min_hosts)
        return;
    /* The job says that it was asked to end, but not by us: it heard of the lost host before we did. */
    if (c->status == CO_EXIT_PREEMPTED && !c->asked && status == EXIT_LOST)
        c->status = status;
    if (h->rank != 0 && c->hosts[0].ended >= 0)
        return;
    if (!c->status)
        c->status = status;
    if (c->failed || c->asked)
        return;
    c->failed = true;
    c->hang_up_ns = co_now_ns() + REASON_MS * UINT64_C(1000000);
    end_all(c, 0);
}

void conduct_lose(conductor *c, far_host *h)
{
    conduct_say(c, "host %s: %s", co_ssh_shown(h->spec), co_errmsg());
    if (h->pid == 0)
        h->stage = HOST_GONE;
    else
        host_end(h, 0);
    lose(c, h, lost_status(c));
}

/* --- ends ----------------------------------------------------------------------------------------------- */
/* ssh failed for lack of a password or of a known host key: a person at the terminal could help. OpenSSH says
 * this only in its message, which is not translated; its exit status is 255 for every failure. */
static bool may_be_asked(const far_host *h)
{
    return h->c->job->may_ask && !h->here && !h->asks && !h->ending && h->stage == HOST_CALLING &&
           (strstr(h->last, "Permission denied") || strstr(h->last, "Host key verification failed"));
}

static void tell_lost(far_host *h)
{
    conductor *c = h->c;
    const char *name = co_ssh_shown(h->spec);
    const char *last = strncmp(h->last, "ssh: ", 5) == 0 ? h->last + 5 : h->last;
    bool killed = WIFSIGNALED(h->exit);
    int code = killed ? 128 + WTERMSIG(h->exit) : WEXITSTATUS(h->exit);

    if (*h->stuck)
        conduct_say(c, "host %s: %s%s%s%s", name, h->stuck, *last ? " (" : "", last, *last ? ")" : "");
    else if (h->here)
        conduct_say(c, "host %s: cohort ended without saying why, status %d%s%s", name, code,
                    *last ? ": " : "", last);
    else if (killed)
        conduct_say(c, "host %s: ssh was killed by %s", name, co_signal_name(WTERMSIG(h->exit)));
    else if (h->stage >= HOST_READY)
        conduct_say(c, "host %s: the connection was lost (ssh: %s)", name, *last ? last : "no message");
    else if (code == 255)
        conduct_say(c, "host %s: ssh: %s (does `%s %s true` work here?)", name,
                    *last ? last : "ended with status 255 and no message",
                    c->job->command ? c->job->command : "ssh", h->spec->name);
    else
        conduct_say(c, "host %s: cohort does not start there (status %d)%s%s", name, code, *last ? ": " : "",
                    last);
}

static void finish_host(far_host *h)
{
    conductor *c = h->c;

    host_close_input(h);
    if (may_be_asked(h)) {
        h->asks = true;
        h->stage = HOST_QUEUED;
        return;
    }
    if (h->ended < 0 && !h->hung_up && (!h->ending || h->stage < HOST_READY))
        tell_lost(h);
    h->stage = HOST_GONE;
    if (h->ended != 0)
        lose(c, h, h->ended > 0 ? h->ended : lost_status(c));
}

static void reap(conductor *c)
{
    for (int i = 0; i < c->job->n; i++) {
        far_host *h = &c->hosts[i];
        if (h->pid > 0 && waitpid(h->pid, &h->exit, WNOHANG) == h->pid)
            h->pid = 0;
        if (h->stage != HOST_GONE && h->stage != HOST_QUEUED && host_over(h))
            finish_host(h);
    }
}

/* --- signals -------------------------------------------------------------------------------------------- */
static void asked_to_end(conductor *c, int sig)
{
    bool again = c->asked != 0;

    if (co_signal_repeats(sig, c->asked_ns))
        return;
    c->asked = sig;
    c->asked_ns = again ? c->asked_ns : co_now_ns();
    if (!again && c->told)
        conduct_say(c, "%s: passed on to all workers; they have %g s", co_signal_name(sig), c->job->grace_s);
    end_all(c, sig);
    if (again) /* hosts kill their workers now; after the time this takes, an ssh that is stuck is killed */
        c->kill_ns = co_now_ns() + SECOND_MS * UINT64_C(1000000);
}

static void hear_signals(conductor *c)
{
    struct signalfd_siginfo info;

    while (read(c->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo != SIGCHLD)
            asked_to_end(c, (int)info.ssi_signo);
}

/* --- the loop ------------------------------------------------------------------------------------------- */
/* Starts the next host whose ssh may ask at the terminal, if no other ssh is using it. */
static void let_one_ask(conductor *c)
{
    far_host *next = NULL;

    for (int i = c->job->n; i-- > 0;) {
        far_host *h = &c->hosts[i];
        if (h->asks && h->stage == HOST_CALLING)
            return;
        if (h->stage == HOST_QUEUED)
            next = h;
    }
    if (next && host_start(next))
        conduct_lose(c, next);
}

static void show_life(conductor *c)
{
    uint64_t now = co_now_ns();

    if (now < c->alive_ns)
        return;
    c->alive_ns = now + LIFE_MS * UINT64_C(1000000);
    for (int i = 0; i < c->job->n; i++)
        if (c->hosts[i].stage >= HOST_READY && !c->hosts[i].unsent.len)
            host_tell(&c->hosts[i], "\n", 1);
}

static uint64_t sooner(uint64_t a_ns, uint64_t b_ns)
{
    return b_ns && b_ns < a_ns ? b_ns : a_ns;
}

static int longest_sleep(const conductor *c)
{
    uint64_t now = co_now_ns(), until = sooner(sooner(c->alive_ns, c->kill_ns), c->hang_up_ns);

    return until <= now ? 0 : (int)((until - now) / 1000000) + 1;
}

/* `p` has room for 3 descriptors and 3 more per host. */
static void wait_and_act(conductor *c, struct pollfd *p)
{
    int n = 2, hosts = c->job->n;

    co_outlets_push(&c->out, p);
    p[n++] = (struct pollfd){.fd = c->signal_fd, .events = POLLIN};
    for (int i = 0; i < hosts; i++) {
        far_host *h = &c->hosts[i];
        bool sends = h->stage == HOST_COPYING ? h->copied < c->cargo.len : h->unsent.len > h->sent;
        p[n++] = (struct pollfd){.fd = sends ? h->in : -1, .events = POLLOUT};
        for (int k = 0; k < 2; k++)
            p[n++] =
                (struct pollfd){.fd = co_outlet_full(co_outlets_at(&c->out, k)) && !c->asked ? -1 : h->out[k],
                                .events = POLLIN};
    }
    if (poll(p, (nfds_t)n, longest_sleep(c)) < 0)
        return;
    if (p[2].revents)
        hear_signals(c);
    for (int i = 0; i < hosts; i++) {
        const struct pollfd *q = p + 3 + 3 * i;
        if (q[0].revents)
            host_push(&c->hosts[i]);
        for (int k = 0; k < 2; k++)
            if (q[1 + k].revents)
                host_read(&c->hosts[i], k);
    }
}

static bool finished(const conductor *c)
{
    for (int i = 0; i < c->job->n; i++)
        if (c->hosts[i].stage != HOST_GONE)
            return false;
    return true;
}

/* Ends what has taken too long. */
static void lose_patience(conductor *c)
{
    uint64_t now = co_now_ns();
    bool hang_up = c->hang_up_ns && now >= c->hang_up_ns, end = c->kill_ns && now >= c->kill_ns;

    for (int i = 0; i < c->job->n && (hang_up || end); i++) {
        host_hang_up(&c->hosts[i]);
        if (end)
            host_kill(&c->hosts[i]);
    }
    if (hang_up)
        c->hang_up_ns = 0;
    if (end) {
        c->status = c->status ? c->status : c->asked ? 128 + c->asked : EXIT_LOST;
        c->kill_ns = now + SECOND_MS * UINT64_C(1000000);
    }
}

static void loop(conductor *c, struct pollfd *p)
{
    while (reap(c), let_one_ask(c), !finished(c)) {
        wait_and_act(c, p);
        say_broken(c);
        show_life(c);
        lose_patience(c);
    }
}

/* --- all ------------------------------------------------------------------------------------------------ */
static co_err set_up(conductor *c)
{
    const co_ssh_job *j = c->job;
    sigset_t set = j->signals;

    for (int i = 0; i < j->n; i++)
        c->hosts[i] =
            (far_host){.c = c, .spec = &j->hosts[i], .rank = i, .in = -1, .out = {-1, -1}, .ended = -1};
    CO_TRY(command_split(&c->ssh, &c->n_ssh, &c->pool, j->command ? j->command : "ssh"));
    CO_TRY(cargo_open(&c->cargo, j->version));
    c->remote = carry_line(&c->cargo, &c->pool);
    if (!c->remote)
        return CO_ENOMEM;
    co_patience names =
        co_patience_s(NAMES_S); /* for all names together; if no name server answers, ssh reports it */
    for (int i = 0; i < j->n; i++) {
        far_host *h = &c->hosts[i];
        config_ask(&h->conf, c->ssh, c->n_ssh, j->hosts[i].name);
        h->here = config_is_here(&h->conf, j->hosts[i].name, &names);
    }
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){c->old_nofile.rlim_max, c->old_nofile.rlim_max});
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, &c->old_mask);
    c->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return c->signal_fd < 0 ? co_fail(CO_EIO, "signalfd: %m") : CO_OK;
}

static void start_all(conductor *c)
{
    for (int i = 0; i < c->job->n; i++) {
        far_host *h = &c->hosts[i];
        if (!h->ending && host_start(h))
            conduct_lose(c, h);
    }
}

static void close_all(conductor *c)
{
    if (c->not_shown)
        conduct_say(c, "%llu kB that came while the job ended are not shown, as nobody read them",
                    (unsigned long long)(c->not_shown + 999) / 1000);
    co_outlets_drain(&c->out, c->asked ? CO_UNREAD_MS : -1);
    if (say_broken(c))
        co_outlets_drain(&c->out, c->asked ? CO_UNREAD_MS : -1);
    co_outlets_close(&c->out);
    for (int i = 0; c->hosts && i < c->job->n; i++) {
        co_str_fini(&c->hosts[i].unsent);
        co_str_fini(&c->hosts[i].held[0]);
        co_str_fini(&c->hosts[i].held[1]);
    }
    cargo_close(&c->cargo);
    co_pool_fini(&c->pool);
    co_free(c->hosts);
}

co_err co_ssh_run(const co_ssh_job *j, int *status)
{
    static const host_events report = {.say = conduct_say, .ready = conduct_ready, .where = conduct_where};
    conductor c = {
        .job = j, .report = &report, .signal_fd = -1, .alive_ns = co_now_ns() + LIFE_MS * UINT64_C(1000000)};
    struct pollfd *p = co_array((size_t)(3 + 3 * j->n), sizeof *p);
    void (*on_pipe)(int) = signal(SIGPIPE, SIG_IGN);
    struct sigaction on_child, plain = {.sa_handler = SIG_DFL};

    sigaction(SIGCHLD, &plain,
              &on_child); /* it may be ignored by inheritance, and then no child can be waited for */
    getrlimit(RLIMIT_NOFILE, &c.old_nofile);
    co_outlets_open(&c.out, j->out_fd, j->err_fd);
    c.hosts = co_array((size_t)j->n, sizeof *c.hosts);
    co_err err = p && c.hosts ? set_up(&c) : CO_ENOMEM;
    if (!err) {
        start_all(&c);
        loop(&c, p);
        *status = c.status;
    }
    if (c.signal_fd >= 0) {
        hear_signals(&c);
        close(c.signal_fd);
        sigprocmask(SIG_SETMASK, &c.old_mask, NULL);
    }
    setrlimit(RLIMIT_NOFILE, &c.old_nofile);
    close_all(&c);
    co_free(p);
    signal(SIGPIPE, on_pipe);
    sigaction(SIGCHLD, &on_child, NULL);
    return err;
}
