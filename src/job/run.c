/* run.c -- a job on one host: one loop that sleeps in poll and handles the roster's orders, the workers'
 * events and signals.
 *
 *     IDLE --BEGIN--> RUNNING --all ended well--> IDLE, done
 *                        |  a worker failed | STOP | OVER | a signal | stalled
 *                        +--SIGTERM, or the signal--> ENDING --grace over--> SIGKILL
 *                                                       +--nobody left--> IDLE, stopped (if STOP asked)
 *
 * Invariants: a round's workers, and all processes they started, are gone and their output is read before the
 * next round begins and before we return. The cause that we report is the roster's: the earliest failure on
 * any host.
 */
#include "job/job_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"

enum { FIXED = 5 /* descriptors of the job itself */ };

/* --- signals ------------------------------------------------------------------------------------------- */
static void hear_signals(job *j)
{
    struct signalfd_siginfo info;

    while (read(j->process.signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
        request_end(j, (int)info.ssi_signo, request_origin((int)info.ssi_signo));
}

/* --- the roster ---------------------------------------------------------------------------------------- */
static void give_up(job *j, co_err err)
{
    if (j->orders.err)
        return;
    j->orders.err = err;
    snprintf(j->orders.why, sizeof j->orders.why, "%s", co_errmsg());
    round_end(j, SIGTERM);
}

static void follow(job *j, const co_roster_event *ev)
{
    switch (ev->kind) {
    case CO_ROSTER_NOTHING:
    case CO_ROSTER_FREEZE: /* of a job of views, which this is not */
    case CO_ROSTER_VIEW:
    case CO_ROSTER_WAIT:
        return;
    case CO_ROSTER_TALK:
        if (!j->spec->hushed)
            co_screen_sayf(&j->screen, "%s", ev->text);
        return;
    case CO_ROSTER_BEGIN:
        j->orders.begin = true;
        j->orders.next = ev->round;
        return;
    case CO_ROSTER_STOP:
        j->orders.stop = true;
        j->orders.begin = false; /* its round is over before we started it */
        break;
    case CO_ROSTER_OVER:
        j->orders.over = true;
        j->orders.status = ev->status;
        j->request.other_sig = ev->has_cause ? 0 : ev->sig;
        break;
    }
    if (ev->has_cause)
        blame(j, &ev->cause, ev->text);
    else if (ev->text[0] && !j->request.sig && !j->spec->hushed && ev->origin != CO_ORIGIN_CONDUCTOR)
        co_screen_sayf(&j->screen, "%s", ev->text);
    round_end(j, j->request.other_sig ? j->request.other_sig : SIGTERM);
}

static void hear_roster(job *j)
{
    co_roster_event ev = {.kind = CO_ROSTER_NOTHING};

    do {
        co_err err = j->orders.err || j->orders.over ? CO_OK : co_roster_turn(j->roster, 0, &ev);
        if (j->orders.err || j->orders.over)
            return;
        if (err)
            give_up(j, err);
        else
            follow(j, &ev);
    } while (ev.kind != CO_ROSTER_NOTHING);
}

/* --- answers ------------------------------------------------------------------------------------------- */
/* This host failed. The other hosts may go on without it, unless it keeps the roster. */
static void not_begun(job *j)
{
    co_failure f = {.host_rank = j->round.is.my_host, .rank = -1, .local_rank = -1, .status = 1 << 8};

    f.when_ns = (int64_t)(co_wall_s() * 1e9) - co_roster_clock_offset(j->roster);
    snprintf(f.host, sizeof f.host, "%s", j->host);
    snprintf(f.how, sizeof f.how, "could not start its workers: %.200s", j->orders.why);
    co_roster_failed(j->roster, &f);
    if (!co_roster_keeps(j->roster))
        return;
    co_leave how = {.origin = CO_ORIGIN_HOST, .status = 1};
    snprintf(how.host, sizeof how.host, "%s", j->host);
    snprintf(how.text, sizeof how.text, "%s", j->orders.why);
    co_roster_leave(j->roster, &how);
}

/* If the roster waits for us, reports that we have stopped or starts a round. Returns true if it did: the
 * roster may answer at once. */
static bool answer(job *j)
{
    if (j->round.state != ROUND_IDLE || j->orders.over || j->orders.err)
        return false;
    if (j->orders.stop) {
        j->orders.stop = false;
        co_roster_stopped(j->roster);
        return true;
    }
    if (!j->orders.begin || j->request.sig)
        return false;
    j->orders.begin = false;
    judge_begin(j);
    stall_begin(j);
    co_err err = round_start(j, &j->orders.next);
    if (err) {
        give_up(j, err);
        round_kill(j);
        not_begun(j);
    }
    return true;
}

/* --- the loop ------------------------------------------------------------------------------------------ */
static int sooner(int a_ms, int b_ms)
{
    return a_ms < 0 ? b_ms : b_ms < 0 || a_ms < b_ms ? a_ms : b_ms;
}

static int until_ms(uint64_t when_ns)
{
    uint64_t now = co_now_ns();

    return !when_ns ? -1 : when_ns <= now ? 0 : (int)((when_ns - now) / 1000000) + 1;
}

static int longest_sleep(job *j)
{
    int ms = sooner(co_screen_due_ms(&j->screen), output_turn(j));

    ms = sooner(ms, until_ms(j->verdict.blame_ns));
    ms = sooner(ms, j->round.state == ROUND_ENDING ? until_ms(j->round.kill_ns) : -1);
    ms = sooner(ms, until_ms(j->orders.leave_ns));
    ms = sooner(ms, until_ms(control_due_ns(j)));
    ms = sooner(ms, request_due_ms(j));
    ms = sooner(ms, joblog_due_ms(&j->log));
    return sooner(ms, stall_due_ms(j));
}

/* Waits, then handles each descriptor that is ready. p has room for FIXED + 3 per worker. */
static void wait_and_act(job *j, struct pollfd *p)
{
    co_screen *c = &j->screen;
    int n = 2, ms = longest_sleep(j);

    co_outlets_push(&c->out, p);
    /* Check this only after the push: workers may have waited for the bytes that were just written, and no
     * other event would wake us. */
    c->hurries = j->round.state == ROUND_ENDING;
    bool full = co_outlets_full(&c->out) && !c->hurries;
    p[n++] = (struct pollfd){.fd = j->process.signal_fd, .events = POLLIN};
    p[n++] = (struct pollfd){.fd = j->orders.err || j->orders.over ? -1 : co_roster_fd(j->roster),
                             .events = POLLIN};
    p[n++] = (struct pollfd){.fd = j->control.fd, .events = POLLIN};
    for (int i = 0; i < j->round.n; i++) {
        worker *w = &j->round.workers[i];
        p[n++] = (struct pollfd){.fd = w->sock, .events = POLLIN};
        for (int k = 0; k < 2; k++)
            p[n++] = (struct pollfd){.fd = full ? -1 : w->s[k].fd, .events = POLLIN};
    }
    if (poll(p, (nfds_t)n, ms) < 0)
        return;
    if (p[2].revents)
        hear_signals(j);
    if (p[4].revents || (control_due_ns(j) && co_now_ns() >= control_due_ns(j)))
        control_read(j);
    for (int i = 0; i < j->round.n; i++) { /* output first: a dead worker is judged by its last lines */
        worker *w = &j->round.workers[i];
        const struct pollfd *q = p + FIXED + 3 * i;
        if (q[1].revents)
            worker_read(w, 0);
        if (q[2].revents)
            worker_read(w, 1);
        if (q[0].revents)
            worker_take_reports(w);
    }
}

static void write_files(job *j)
{
    for (int i = 0; i < j->round.n; i++)
        for (int k = 0; k < 2; k++)
            files_log_push(&j->files, &j->round.workers[i].s[k].file);
    files_log_push(&j->files, &j->files.merged);
    if (j->files.broken_why[0]) {
        co_screen_sayf(&j->screen, "%s", j->files.broken_why);
        j->files.broken_why[0] = '\0';
    }
    joblog_receive(&j->log);
    joblog_write(&j->log, false);
}

static bool finished(job *j)
{
    if (j->round.state != ROUND_IDLE)
        return false;
    if (j->request.sig && !j->orders.leave_ns)
        j->orders.leave_ns = co_now_ns() + OVER_WAIT_MS * UINT64_C(1000000);
    if (!j->orders.over && !j->orders.err && !(j->orders.leave_ns && co_now_ns() >= j->orders.leave_ns))
        return false;
    return !j->orders.over || joblog_settled(&j->log);
}

static void loop(job *j, struct pollfd *p)
{
    for (;;) {
        do
            hear_roster(j);
        while (answer(j));
        if (finished(j))
            return;
        wait_and_act(j, p);
        stall_watch(j);
        judge_turn(j);
        co_screen_flush(&j->screen, false);
        write_files(j);
    }
}

static int exit_status(const job *j)
{
    /* The worker most likely crashed while saving. With status 75 a scheduler would restart the job again and
     * again. */
    if (j->verdict.crash_status)
        return j->verdict.crash_status;
    if (j->request.sig && j->round.had_to_kill &&
        (!j->verdict.failed || !j->orders.over)) /* not within the grace period */
        return 128 + j->request.sig;
    return j->orders.over ? j->orders.status : j->request.sig ? request_status(j->request.sig) : 1;
}

/* The last line of merged.log: readers stop there. */
static void end_log(job *j)
{
    int64_t offset_ns = co_roster_clock_offset(j->roster);

    if (j->orders.err)
        files_merge_note(&j->files, offset_ns, "ends: %s", j->orders.why);
    else
        files_merge_note(&j->files, offset_ns, "ends: exit status %d", exit_status(j));
}

static void say_not_shown(job *j)
{
    if (j->screen.not_shown)
        co_screen_sayf(
            &j->screen, "%llu kB that workers printed while the job ended are not shown, as nobody read them%s",
            (unsigned long long)(j->screen.not_shown + 999) / 1000,
            j->spec->log_dir && !j->files.broken ? "; the log files have them" : "");
}

static co_err set_up(job *j)
{
    struct rlimit more;
    const sigset_t *s = &j->spec->signals;

    if (j->spec->host)
        snprintf(j->host, sizeof j->host, "%s", j->spec->host);
    else if (gethostname(j->host, sizeof j->host - 1) != 0)
        snprintf(j->host, sizeof j->host, "localhost");
    pthread_sigmask(SIG_BLOCK, s, &j->process.old_mask);
    getrlimit(RLIMIT_NOFILE, &j->process.old_nofile);
    more = (struct rlimit){j->process.old_nofile.rlim_max, j->process.old_nofile.rlim_max};
    setrlimit(RLIMIT_NOFILE, &more);
    snprintf(j->process.mark, sizeof j->process.mark, "COHORT_LAUNCHER=%d-%llx", (int)getpid(),
             (unsigned long long)co_now_ns());
    co_anchor_start(&j->process.anchor, j->process.mark);
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* we adopt the processes of a killed guard */
    j->process.signal_fd = signalfd(-1, s, SFD_CLOEXEC | SFD_NONBLOCK);
    if (j->process.signal_fd < 0)
        return co_fail(CO_EIO, "signalfd: %m");
    CO_TRY(files_open(&j->files, j->spec, j->host));
    joblog_open(&j->log, 0);
    return CO_OK;
}

co_err co_job_run(const co_job_spec *spec, co_roster *roster, int *status)
{
    job *j = co_zalloc(sizeof *j);
    struct pollfd *p = co_array((size_t)(FIXED + 3 * spec->terms.nproc), sizeof *p);
    void (*on_pipe)(int) = signal(SIGPIPE, SIG_IGN);
    void (*on_file_size)(int) =
        signal(SIGXFSZ, SIG_IGN); /* a log file at its size limit is reported, and the job goes on */
    co_err err = CO_ENOMEM;

    if (!j || !p)
        goto out;
    j->spec = spec;
    j->roster = roster;
    j->process.signal_fd = j->files.merged.fd = -1;
    j->events = output_events(j);
    joblog_init(&j->log, spec, &j->files, roster, &j->screen);
    j->control.fd = spec->control_fd > STDERR_FILENO ? spec->control_fd : -1;
    j->control.heard_ns = co_now_ns();
    co_screen_open(&j->screen, spec->out_fd, spec->err_fd);
    err = set_up(j);
    if (err == CO_OK)
        loop(j, p);
    write_files(j);
    joblog_finish(&j->log);
    end_log(j);
    write_files(j);
    joblog_close(&j->log);
    say_not_shown(j);
    if (j->files.kept && j->files.run && !j->verdict.kept && !spec->log_dir)
        co_screen_sayf(&j->screen, "log files are in %s", j->files.run);
    files_close(&j->files, j->verdict.kept);
    if (j->process.signal_fd >= 0) {
        hear_signals(j);
        close(j->process.signal_fd);
    }
    co_anchor_release(&j->process.anchor);
    request_restore_mask(j);
    co_screen_close(&j->screen, j->request.sig || j->request.other_sig ? CO_UNREAD_MS : -1);
    setrlimit(RLIMIT_NOFILE, &j->process.old_nofile);
    if (err == CO_OK && j->orders.err)
        err = co_fail(j->orders.err, "%s", j->orders.why);
    else if (err == CO_OK)
        *status = exit_status(j);
out:
    signal(SIGXFSZ, on_file_size);
    signal(SIGPIPE, on_pipe);
    co_free(j);
    co_free(p);
    return err;
}
