/* crew.c -- fork, watch, fence, replace.
 *
 *     (none) --fork--> RUNNING --it exits---> died() --> LET_GO | REPLACE (fork, inc + 1) | END
 *                         |  no progress past its deadline
 *                         +--SIGKILL--> FENCED --it exits---> died()
 *
 * Invariant: at most one live process per slot, because a fork for a slot happens only after its pidfd showed
 * the exit.
 */
#include "proc/crew.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "proc/look.h"

struct member {
    pid_t pid; /* 0: nobody */
    int pidfd;
    uint32_t inc;
    uint64_t turns;     /* when we last checked */
    double still_s;     /* scheduled time without progress */
    double due_s;       /* of that, what counts towards its deadline */
    double unjudged_s;  /* time without progress since /proc was last read */
    uint64_t cpu_ticks; /* when /proc was last read */
    char state;
    bool stop_said; /* the notice that it is stopped was given */
    bool fenced;
    double fenced_ms;
};

struct co_crew {
    co_crew_spec spec;
    uint64_t last_ns;
    double since_look_s;
    struct member m[CO_CREW_MOST];
};

/* Binds this process to CPUs slot * each, slot * each + 1, ... of those that it may use. */
static void pin_to(int slot, int each)
{
    cpu_set_t may, ours;

    if (sched_getaffinity(0, sizeof may, &may) != 0)
        return;
    int groups = CPU_COUNT(&may) / each, i = 0;
    CPU_ZERO(&ours);
    for (int cpu = 0; groups && cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &may) && i++ / each == slot % groups)
            CPU_SET(cpu, &ours);
    if (groups)
        sched_setaffinity(0, sizeof ours, &ours);
}

/* Makes the out-of-memory killer choose ranks, never the supervisor. */
static void offer_to_oom_killer(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    if (write(fd, "1000", 4) != 4) { /* not allowed here: the kernel chooses by its own rules */
    }
    close(fd);
}

/* Descriptors of the parent are closed first: whoever is at their other end must learn at once that the
 * parent closed them. */
static void become_child(pid_t parent, const co_fds *keep)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1); /* it died before we asked */
    co_fds_close_others(keep);
    offer_to_oom_killer();
}

static void log_to(const char *dir, int slot)
{
    char host[64] = "host", path[4096];
    int fd;

    if (!dir)
        return;
    gethostname(host, sizeof host - 1);
    snprintf(path, sizeof path, "%s/%s-%d.log", dir, host, slot);
    if (co_fs_open_log(&fd, path) != CO_OK) { /* a missing log must not stop a rank */
        dprintf(STDERR_FILENO, "cohort: rank %d writes here: %s\n", slot, co_errmsg());
        return;
    }
    dup2(fd, STDERR_FILENO);
    close(fd);
}

/* A descriptor that becomes readable when the process ends. If we cannot get one, the process is killed: we
 * could not notice its death. */
static co_err open_pidfd(int *out, pid_t pid, const char *who, co_err otherwise)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0), why = errno;

    if (fd >= 0) {
        *out = fd;
        return CO_OK;
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    errno = why;
    return co_fail(otherwise, "pidfd_open for %s: %m%s", who,
                   why == ENOSYS                    ? " (Linux 5.3 or later is needed)"
                   : why == EMFILE || why == ENFILE ? " (ulimit -n raises the number of open files)"
                                                    : "");
}

static co_err hire(co_crew *c, int slot)
{
    struct member *m = &c->m[slot];
    pid_t parent = getpid();

    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        return co_fail(CO_EFAIL, "fork rank %d: %m", slot);
    if (pid == 0) {
        become_child(parent, &c->spec.keep);
        log_to(c->spec.log_dir, slot);
        if (c->spec.pin)
            pin_to(slot, c->spec.cpus_each > 0 ? c->spec.cpus_each : 1);
        _exit(c->spec.main(c->spec.ctx, slot, m->inc));
    }
    int fd;
    char who[32];
    snprintf(who, sizeof who, "rank %d", slot);
    CO_TRY(open_pidfd(&fd, pid, who, CO_EFAIL));
    *m = (struct member){
        .pid = pid, .pidfd = fd, .inc = m->inc, .turns = c->spec.turns(c->spec.ctx, slot), .state = '?'};
    return CO_OK;
}

co_err co_crew_start(co_crew **out, const co_crew_spec *spec)
{
    co_crew *c = co_zalloc(sizeof *c);

    if (!c)
        return CO_ENOMEM;
    CO_ASSERT(spec->size <= CO_CREW_MOST, "slots are limited");
    c->spec = *spec;
    c->last_ns = co_now_ns();
    for (int i = 0; i < spec->size; i++) {
        co_err err = hire(c, i);
        if (err) {
            co_crew_free(c);
            return err;
        }
    }
    *out = c;
    return CO_OK;
}

static void got_on(struct member *m)
{
    m->still_s = m->due_s = m->unjudged_s = 0;
    m->stop_said = false;
}

/* Adds to the clock of a rank that makes no progress, unless it gets no CPU, is traced, or waits for others.
 * A stopped rank does not count as waiting: it could not notice that its wait is over. */
static void age(co_crew *c, int slot)
{
    struct member *m = &c->m[slot];
    double dt = m->unjudged_s;
    co_proc now = {.state = '?'};

    co_proc_read_busiest(&now, m->pid);
    char state = now.state;
    bool ran = now.ticks != m->cpu_ticks, busy = ran || state == 'R' || state == 'D';
    m->cpu_ticks = now.ticks;
    m->state = state;
    m->unjudged_s = 0;
    if (state != 'T' && c->spec.waiting(c->spec.ctx, slot)) {
        got_on(m);
        return;
    }
    if (state == 't' || (state == 'R' && !ran))
        return;
    m->still_s += dt;
    m->due_s += dt / (busy ? CO_BUSY_FACTOR : 1);
    if (state == 'T' && !m->stop_said && c->spec.notice) {
        char text[160];
        snprintf(
            text, sizeof text,
            "rank %d (pid %d) is stopped (SIGSTOP or a debugger); it is replaced in %.1f s unless it goes on",
            slot, (int)m->pid, c->spec.stall_s);
        c->spec.notice(c->spec.ctx, slot, text);
        m->stop_said = true;
    }
    if (m->due_s > c->spec.stall_s) {
        m->fenced = true;
        co_crew_kill(c, slot);
    }
}

static void watch(co_crew *c, double dt)
{
    bool look_now = (c->since_look_s += dt) >= 0.1;

    for (int i = 0; i < c->spec.size; i++) {
        struct member *m = &c->m[i];
        if (!m->pid)
            continue;
        uint64_t turns = c->spec.turns(c->spec.ctx, i);
        if (m->fenced) {
            m->fenced_ms += dt * 1e3;
        } else if (turns != m->turns) {
            m->turns = turns;
            got_on(m);
        } else {
            m->unjudged_s += dt;
            if (look_now)
                age(c, i);
        }
    }
    if (look_now)
        c->since_look_s = 0;
}

static co_err bury(co_crew *c, int slot)
{
    struct member *m = &c->m[slot];
    co_death d = {.slot = slot,
                  .inc = m->inc,
                  .pid = m->pid,
                  .fenced = m->fenced,
                  .still_s = m->still_s,
                  .state = m->state,
                  .seen_ns = co_now_ns()};

    while (waitpid(m->pid, &d.status, 0) < 0 && errno == EINTR)
        ;
    close(m->pidfd);
    m->pid = 0;
    switch (c->spec.died(c->spec.ctx, &d)) {
    case CO_CREW_REPLACE:
        m->inc++;
        return hire(c, slot);
    case CO_CREW_END:
        return CO_EFAIL;
    case CO_CREW_LET_GO:
        break;
    }
    return CO_OK;
}

/* A slot whose rank was killed and does not exit; -1: none. */
static int held_slot(const co_crew *c)
{
    for (int i = 0; i < c->spec.size; i++)
        if (c->m[i].pid && c->m[i].fenced_ms > CO_FENCE_MS)
            return i;
    return -1;
}

co_err co_crew_turn(co_crew *c, int timeout_ms, struct pollfd *fds, int n_fds)
{
    struct pollfd p[CO_CREW_MOST + 8];
    int slot_of[CO_CREW_MOST], n = 0;

    CO_ASSERT(n_fds <= 8, "few descriptors");
    for (int i = 0; i < c->spec.size; i++)
        if (c->m[i].pid) {
            slot_of[n] = i;
            p[n++] = (struct pollfd){.fd = c->m[i].pidfd, .events = POLLIN};
        }
    if (n_fds)
        memcpy(p + n, fds, (size_t)n_fds * sizeof *fds);
    if (poll(p, (nfds_t)(n + n_fds), timeout_ms) < 0 && errno != EINTR)
        return co_fail(CO_EFAIL, "poll: %m");
    if (n_fds)
        memcpy(fds, p + n, (size_t)n_fds * sizeof *fds);
    for (int i = 0; i < n; i++)
        if (p[i].revents)
            CO_TRY(bury(c, slot_of[i]));

    uint64_t now = co_now_ns();
    double dt = (double)(now - c->last_ns) * 1e-9;
    c->last_ns = now;
    watch(c, dt > CO_LATE_TURN_MS * 1e-3 ? CO_LATE_TURN_MS * 1e-3 : dt);
    int held = held_slot(c);
    if (held >= 0)
        return co_fail(
            CO_EFAIL,
            "rank %d (pid %d) was killed and does not exit (state %c): the kernel holds it, look at its "
            "disk or network mount",
            held, (int)c->m[held].pid, c->m[held].state);
    return CO_OK;
}

int co_crew_alive(const co_crew *c)
{
    int n = 0;

    for (int i = 0; i < c->spec.size; i++)
        n += c->m[i].pid != 0;
    return n;
}

pid_t co_crew_pid(const co_crew *c, int slot)
{
    return c->m[slot].pid;
}

void co_crew_kill(co_crew *c, int slot)
{
    if (c->m[slot].pid)
        syscall(SYS_pidfd_send_signal, c->m[slot].pidfd, SIGKILL, NULL, 0);
}

void co_crew_free(co_crew *c)
{
    if (!c)
        return;
    for (int i = 0; i < c->spec.size; i++)
        co_crew_kill(c, i);
    for (int i = 0; i < c->spec.size; i++)
        if (c->m[i].pid) {
            struct pollfd p = {.fd = c->m[i].pidfd, .events = POLLIN};
            if (poll(&p, 1, CO_FENCE_MS) > 0)
                waitpid(c->m[i].pid, NULL, 0);
            close(c->m[i].pidfd);
        }
    co_free(c);
}

co_err co_child_start(pid_t *pid, int *pidfd, const co_child_spec *spec)
{
    pid_t parent = getpid();

    fflush(NULL);
    pid_t p = fork();
    if (p < 0)
        return co_fail(CO_EIO, "fork: %m");
    if (p == 0) {
        become_child(parent, &spec->keep);
        _exit(spec->main(spec->ctx));
    }
    CO_TRY(open_pidfd(pidfd, p, "a child process", CO_EIO));
    *pid = p;
    return CO_OK;
}
