/* ps.c -- `cohort ps` and `cohort stop`: the runs and launches of this user on this machine, and a request to
 * save and end.
 *
 * A run is signalled through a pidfd that is opened first and then compared with the list of live runs, so
 * that another process that got the same pid is never signalled. */
#include "cli/cli_int.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

/* --- ps ----------------------------------------------------------------------------------------------- */
enum { TAIL_BYTES = 4096 };

/* The step of the last whole event; -1 if there is none yet. */
static long long step_of(const char *dir)
{
    char path[PATH_MAX], tail[TAIL_BYTES + 1];
    long long step = -1;

    if (snprintf(path, sizeof path, "%s/events.jsonl", dir) >= (int)sizeof path)
        return -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    off_t end = lseek(fd, 0, SEEK_END);
    ssize_t n = pread(fd, tail, TAIL_BYTES, end > TAIL_BYTES ? end - TAIL_BYTES : 0);
    close(fd);
    for (ssize_t stop = n - 1; stop > 0 && step < 0; stop--) {
        if (tail[stop] != '\n')
            continue;
        ssize_t start = stop;
        while (start > 0 && tail[start - 1] != '\n')
            start--;
        json_t *e = NULL;
        if (co_json_parse(&e, tail + start, (size_t)(stop - start), "event") == CO_OK)
            co_json_i64(e, "step", &step);
        json_decref(e);
    }
    co_errclear();
    return step;
}

/* A run's row of the table. */
typedef struct ps_row {
    char pid[16], started[32], task[64], epoch[48], step[48], left[32], dir[1100], hosts[1024];
} ps_row;

/* "view 2: a computes, b joins" */
static void hosts_text(char *out, size_t size, const co_live_run *r)
{
    json_t *hosts = r->hosts[0] ? json_loads(r->hosts, 0, NULL) : NULL, *host;
    size_t i, at = 0;

    out[0] = '\0';
    if (hosts)
        at = (size_t)snprintf(out, size, "view %lld: ", (long long)r->view);
    json_array_foreach(hosts, i, host)
    {
        const char *name = co_json_str(host, "name"), *state = co_json_str(host, "state");
        if (name && state && at < size)
            at += (size_t)snprintf(out + at, size - at, "%s%s %s", i ? ", " : "", name, state);
    }
    json_decref(hosts);
}

/* "3/10"; "3" where there is no limit; "-" before the first step. */
static void part_of(char out[48], int64_t at, int64_t of)
{
    if (at <= 0)
        snprintf(out, 48, "-");
    else if (of <= 0 || of >= INT32_MAX)
        snprintf(out, 48, "%lld", (long long)at);
    else
        snprintf(out, 48, "%lld/%lld", (long long)at, (long long)of);
}

static void make_row(ps_row *row, const co_live_run *r)
{
    co_progress p;
    char metric[16];
    bool there = co_live_see(r->pid, &p, metric);
    long long step = there ? p.step : r->dir[0] ? step_of(r->dir) : -1;

    *row = (ps_row){.epoch = "-", .left = "-"};
    if (r->guest)
        snprintf(row->dir, sizeof row->dir, "guest, record on %s", r->record_host[0] ? r->record_host : "?");
    else
        snprintf(row->dir, sizeof row->dir, "%s", r->launch[0] ? r->launch : r->dir);
    hosts_text(row->hosts, sizeof row->hosts, r);
    snprintf(row->pid, sizeof row->pid, "%d", r->pid);
    co_date(row->started, sizeof row->started, "%Y-%m-%d %H:%M", r->started);
    snprintf(row->task, sizeof row->task, "%s", r->task);
    part_of(row->step, step, there ? p.steps : 0);
    if (there)
        part_of(row->epoch, p.epoch, p.epochs);
    if (there && p.step > 0 && isfinite(p.eta_s))
        co_time_text(row->left, p.eta_s);
}

static void print_json_run(const co_live_run *r)
{
    co_progress p;
    char metric[16];
    bool there = co_live_see(r->pid, &p, metric) && p.step > 0;
    long long step = there ? p.step : r->dir[0] ? step_of(r->dir) : -1;
    json_t *j = json_pack("{s:i, s:s, s:f, s:s, s:s?}", "pid", r->pid, "run_id", r->run_id, "started",
                          r->started, "task", r->task, "dir", r->dir[0] ? r->dir : NULL);

    json_object_set_new(j, "step", step < 0 ? json_null() : json_integer(step));
    json_object_set_new(j, "steps", there ? json_integer(p.steps) : json_null());
    json_object_set_new(j, "epoch", there ? json_integer(p.epoch) : json_null());
    json_object_set_new(j, "epochs", there ? json_integer(p.epochs) : json_null());
    json_object_set_new(j, "left_s", there && isfinite(p.eta_s) ? json_real(p.eta_s) : json_null());
    json_object_set_new(j, "samples_per_s",
                        there && isfinite(p.samples_per_s) ? json_real(p.samples_per_s) : json_null());
    json_object_set_new(j, "role", json_string(r->guest ? "guest" : r->launch[0] ? "launch" : "run"));
    json_object_set_new(j, "launch", r->launch[0] ? co_json_string(r->launch) : json_null());
    json_object_set_new(j, "job", r->job[0] ? co_json_string(r->job) : json_null());
    json_object_set_new(j, "record_host", r->record_host[0] ? co_json_string(r->record_host) : json_null());
    json_object_set_new(j, "view", r->hosts[0] ? json_integer(r->view) : json_null());
    json_t *hosts = r->hosts[0] ? json_loads(r->hosts, 0, NULL) : NULL;
    json_object_set_new(j, "hosts", hosts ? hosts : json_null());
    co_json_print(j);
}

static int wider(int width, const char *text)
{
    int n = (int)strlen(text);

    return n > width ? n : width;
}

static void print_table(const co_live_run *r, int n, FILE *to)
{
    ps_row *row = co_array((size_t)n + 1, sizeof *row);
    int task = 0, epoch = 0, step = 0, left = 0, dir = 0;

    if (!row)
        return;
    row[0] = (ps_row){"pid", "started", "task", "epoch", "step", "time left", "folder", ""};
    for (int i = 1; i <= n; i++)
        make_row(&row[i], &r[i - 1]);
    for (int i = 0; i <= n; i++) {
        task = wider(task, row[i].task);
        epoch = wider(epoch, row[i].epoch);
        step = wider(step, row[i].step);
        left = wider(left, row[i].left);
        if (row[i].hosts[0]) {
            snprintf(row[0].hosts, sizeof row[0].hosts, "hosts");
            dir = wider(dir, row[i].dir);
        }
    }
    for (int i = 0; i <= n; i++)
        fprintf(to, "%8s  %-16s  %-*s  %*s  %*s  %*s  %-*s%s%s\n", row[i].pid, row[i].started, task,
                row[i].task, epoch, row[i].epoch, step, row[i].step, left, row[i].left,
                row[i].hosts[0] ? dir : 0, row[i].dir, row[i].hosts[0] ? "  " : "", row[i].hosts);
    co_free(row);
}

void live_print(const co_live_run *r, int n, bool json, FILE *to)
{
    if (!json && n)
        print_table(r, n, to);
    for (int i = 0; i < n && json; i++)
        print_json_run(&r[i]);
}

int cmd_ps(int argc, char **argv)
{
    co_live_run *runs = NULL;
    int n = 0;
    line l;

    if (line_parse(&l, argc, argv, false, NULL) != CO_OK)
        return co_say_error(CO_EINPUT);
    co_err err = CO_OK;
    if (l.help)
        show_usage("ps");
    else if (l.n)
        err = co_fail(CO_EINPUT, "ps takes no \"%s\"; it lists all runs", l.words[0]);
    else
        err = co_live_list(&runs, &n);
    live_print(runs, n, l.json, stdout);
    if (!err && !n && !l.help)
        co_say("no runs on this machine");
    co_free(runs);
    line_free(&l);
    return err ? co_say_error(err) : CO_EXIT_DONE;
}

/* --- stop --------------------------------------------------------------------------------------------- */
typedef struct stop_line {
    line line;
    bool all, wait;
    co_live_run *runs;
    int n;
} stop_line;

static const co_live_run *by_pid(const co_live_run *runs, int n, int pid)
{
    for (int i = 0; i < n; i++)
        if (runs[i].pid == pid)
            return &runs[i];
    return NULL;
}

/* Is this still the process that the list names? Call it after the pidfd was opened. */
static bool still_ours(const co_live_run *r)
{
    co_live_run *now = NULL;
    int n = 0;
    bool yes = co_live_list(&now, &n) == CO_OK;
    const co_live_run *same = by_pid(now, n, r->pid);

    yes = yes && same && strcmp(same->run_id, r->run_id) == 0;
    co_free(now);
    return yes;
}

static void tell(const stop_line *s, const co_live_run *r, const char *how)
{
    if (s->line.json)
        co_json_print(json_pack("{s:i, s:s, s:s}", "pid", r->pid, "dir", r->dir, "state", how));
    else
        printf("%d %s: %s\n", r->pid, r->guest ? "(guest)" : r->launch[0] ? "(launch)" : r->dir, how);
    fflush(stdout);
}

co_err live_stop(const co_live_run *r, int *fd)
{
    co_err err = CO_OK;
    int pidfd = (int)syscall(SYS_pidfd_open, r->pid, 0);

    if (pidfd < 0 || !still_ours(r))
        err = co_fail(CO_EINPUT, "pid %d has ended by itself", r->pid);
    else if (syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0) != 0)
        err = co_fail(CO_EFAIL, "stop pid %d: %m", r->pid);
    if (!err && fd)
        *fd = pidfd;
    else if (pidfd >= 0)
        close(pidfd);
    return err;
}

/* Asks one run; its pidfd, or -1 if there is nothing to wait for. */
static int ask(const stop_line *s, const co_live_run *r, int *status)
{
    int fd = -1;
    co_err err = live_stop(r, &fd);

    if (err == CO_EFAIL) {
        co_notice("%s", co_errmsg());
        *status = CO_EXIT_FAILED;
    } else
        tell(s, r, err ? "has ended by itself" : r->launch[0] ? "asked to stop" : "asked to save and stop");
    co_errclear();
    return fd;
}

static void wait_for_end(const stop_line *s, const co_live_run *r, int fd)
{
    struct pollfd ended = {.fd = fd, .events = POLLIN};

    while (poll(&ended, 1, -1) < 0 && errno == EINTR)
        ;
    tell(s, r, "stopped");
}

/* Asks all runs to stop before it waits for any. */
static int stop_marked(const stop_line *s, const bool *marked)
{
    int status = CO_EXIT_DONE;
    int *fd = co_array((size_t)s->n + 1, sizeof *fd);

    if (!fd)
        return co_say_error(CO_ENOMEM);
    for (int i = 0; i < s->n; i++)
        fd[i] = marked[i] ? ask(s, &s->runs[i], &status) : -1;
    for (int i = 0; i < s->n; i++) {
        if (fd[i] >= 0 && s->wait)
            wait_for_end(s, &s->runs[i], fd[i]);
        if (fd[i] >= 0)
            close(fd[i]);
    }
    co_free(fd);
    return status;
}

/* Marks the runs that the words name; false if a word names no run. */
static bool mark(const stop_line *s, bool *marked)
{
    for (int i = 0; i < s->line.n; i++) {
        const co_live_run *r = live_find(s->runs, s->n, s->line.words[i]);
        if (!r) {
            co_notice("no live run is \"%s\"%s", s->line.words[i],
                      s->n ? "; there are:" : "; there is none on this machine");
            live_print(s->runs, s->n, false, stderr);
            return false;
        }
        marked[r - s->runs] = true;
    }
    return true;
}

static int stop(const stop_line *s)
{
    int status = CO_EXIT_USAGE;
    bool *marked = co_array((size_t)s->n + 1, sizeof *marked);

    if (!marked)
        return co_say_error(CO_ENOMEM);
    for (int i = 0; i < s->n; i++)
        marked[i] = s->all;
    if (s->all && s->n == 0)
        co_say("no runs on this machine");
    if (mark(s, marked))
        status = stop_marked(s, marked);
    co_free(marked);
    return status;
}

int cmd_stop(int argc, char **argv)
{
    stop_line s = {0};
    int status;

    if (line_parse(&s.line, argc, argv, false,
                   (const co_flag[]){{"--all", .on = &s.all}, {"--wait", .on = &s.wait}, {0}}) != CO_OK)
        return co_say_error(CO_EINPUT);
    co_err err = CO_OK;
    if (!s.line.help && s.all == (s.line.n > 0))
        err = co_fail(CO_EINPUT, s.all ? "stop --all takes no further words"
                                       : "stop takes a pid, a run folder or --all (cohort ps lists them)");
    if (!err && !s.line.help)
        err = co_live_list(&s.runs, &s.n);
    if (err)
        status = co_say_error(err);
    else
        status = s.line.help ? show_usage("stop") : stop(&s);
    co_free(s.runs);
    line_free(&s.line);
    return status;
}
