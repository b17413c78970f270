/* joblog.c -- job.log: the lines of all hosts in one file, in time order, on the host that keeps the roster.
 *
 * Every host stamps its lines with the roster's clock, writes them to its own merged.log and sends them here.
 * Lines wait MIX_MS before they are written, so that earlier lines of another host that arrive later can go
 * first. If a host prints faster than the network or our disk can take, its own merged.log has all lines;
 * job.log says how many are missing.
 */
#include "job/joblog_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "job/logs_int.h"
#include "job/times_int.h"

enum { MIX_MOST = 4 << 20 }; /* when this many bytes wait, all are written */

static void share(void *log, const char *text, size_t n);

static bool is_open(const joblog *l)
{
    return l->file.fd >= 0;
}

/* Another host keeps the roster now, so the job.log here is no longer complete. */
static void set_aside(joblog *l, long long round)
{
    char *path = co_sprintf("%s/job.log", l->files->run),
         *old = path ? co_sprintf("%s.%lld", path, round) : NULL;

    joblog_write(l, true);
    files_log_close(l->files, &l->file);
    if (old && rename(path, old) == 0)
        co_screen_sayf(l->screen,
                       "another host keeps the roster now and continues job.log; the part of this host is %s",
                       old);
    co_free(path);
    co_free(old);
}

void joblog_init(joblog *l, const co_job_spec *spec, files *f, co_roster *roster, co_screen *screen)
{
    *l = (joblog){.spec = spec, .files = f, .roster = roster, .screen = screen, .file.fd = -1};
}

void joblog_open(joblog *l, long long round)
{
    l->files->share = share;
    l->files->share_ctx = l;
    if (is_open(l) && !co_roster_keeps(l->roster))
        set_aside(l, round);
    if (is_open(l) || l->files->merged.fd < 0 || l->files->broken || l->spec->terms.max_hosts < 2 ||
        !co_roster_keeps(l->roster))
        return;
    char *path = co_sprintf("%s/job.log", l->files->run);
    l->file.fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    l->unsent = 0;
    if (is_open(l))
        flock(l->file.fd, LOCK_EX | LOCK_NB); /* the lock shows readers of job.log that we are alive */
    co_free(path);
}

static void mix(joblog *l, const char *line, size_t len)
{
    if (l->n == l->room) {
        int room = l->room ? 2 * l->room : 256;
        mixed *list = co_realloc(l->list, (size_t)room * sizeof *list);
        if (!list)
            return; /* no memory: only job.log misses the line, merged.log has it */
        l->list = list;
        l->room = room;
    }
    uint64_t now = co_now_ns();
    if (l->n == 0)
        l->oldest_ns = now;
    l->list[l->n++] = (mixed){.at = l->text.len, .len = len, .came_ns = now};
    co_str_addn(&l->text, line, len);
    if (co_str_err(&l->text))
        l->n--;
}

/* foreign: of another host. What is not a line of a log is left out. */
static void mix_all(joblog *l, const char *text, size_t n, bool foreign)
{
    const char *end;
    co_log_line line;

    for (; n && (end = memchr(text, '\n', n)); n -= (size_t)(end + 1 - text), text = end + 1) {
        size_t len = (size_t)(end + 1 - text);
        if (!foreign || log_line_parse(&line, text, len - 1))
            mix(l, text, len);
        if (l->text.len > MIX_MOST)
            joblog_write(l, true);
    }
}

static void add_note(joblog *l, co_str *out, long long count, const char *whose)
{
    files_line_head(out, l->files->host, -1, co_roster_clock_offset(l->roster));
    co_str_addf(out, "%lld lines of %s could not be taken into job.log: they are in merged.log there\n",
                count, whose);
}

/* Sends lines to the host that keeps the roster. If lines are missing there, the next text says how many. */
static void send_on(joblog *l, const char *text, size_t n)
{
    co_str all = {0};

    if (l->unsent)
        add_note(l, &all, l->unsent, l->files->host);
    if (n)
        co_str_addn(&all, text, n);
    if (all.len && co_roster_log(l->roster, all.p, all.len))
        l->unsent = 0;
    else
        for (size_t i = 0; i < n; i++)
            l->unsent += text[i] == '\n';
    co_str_fini(&all);
}

/* Whole lines of this host's merged.log. */
static void share(void *log, const char *text, size_t n)
{
    joblog *l = log;

    if (is_open(l))
        mix_all(l, text, n, false);
    send_on(l, text, n);
}

void joblog_receive(joblog *l)
{
    co_str note = {0};

    if (l->unsent && co_now_ns() >= l->tried_ns + RETRY_MS * UINT64_C(1000000)) {
        l->tried_ns = co_now_ns();
        send_on(l, NULL, 0);
    }
    if (!is_open(l))
        return;
    co_str_clear(&l->received);
    long long lost = co_roster_logged(l->roster, &l->received);
    mix_all(l, co_str_text(&l->received), l->received.len, true);
    if (lost) {
        add_note(l, &note, lost, "other hosts");
        mix_all(l, note.p, note.len, false);
    }
    co_str_fini(&note);
}

bool joblog_settled(joblog *l)
{
    if (l->hurries || (!is_open(l) && !l->unsent))
        return true;
    if (!l->over_ns)
        l->over_ns = co_now_ns();
    double since_s = (double)(co_now_ns() - l->over_ns) / 1e9;
    if (is_open(l) && !l->wait_said && since_s > TELL_S) {
        co_screen_sayf(
            l->screen,
            "waiting for the other hosts' last lines, which go into job.log; Ctrl-C ends without them");
        l->wait_said = true;
    }
    return (!l->unsent && co_roster_settled(l->roster)) ||
           since_s > (is_open(l) ? l->spec->grace_s : 0) + LAST_LINES_S;
}

int joblog_due_ms(const joblog *l)
{
    uint64_t now = co_now_ns(), at = l->oldest_ns + MIX_MS * UINT64_C(1000000);
    uint64_t next = l->wrote_ns + MIX_TURN_MS * UINT64_C(1000000);

    if (l->n == 0)
        return l->over_ns ? SETTLE_MS : l->unsent ? RETRY_MS : -1;
    at = at > next ? at : next;
    int ms = at <= now ? 0 : (int)((at - now) / 1000000) + 1;
    return l->over_ns && ms > SETTLE_MS ? SETTLE_MS : ms;
}

/* Orders lines by time; lines of the same time keep the order in which they came. */
static int compare(const void *a, const void *b, void *text)
{
    const mixed *x = a, *y = b;
    int c = memcmp((char *)text + x->at, (char *)text + y->at, CO_STAMP - 1);

    return c ? c : x->at < y->at ? -1 : x->at > y->at;
}

/* Removes the first n lines, which have been written. */
static void forget(joblog *l, int n)
{
    co_str rest = {0};

    l->oldest_ns = UINT64_MAX;
    for (int i = n; i < l->n; i++) {
        mixed m = l->list[i];
        l->list[i - n] = (mixed){.at = rest.len, .len = m.len, .came_ns = m.came_ns};
        co_str_addn(&rest, l->text.p + m.at, m.len);
        if (m.came_ns < l->oldest_ns)
            l->oldest_ns = m.came_ns;
    }
    l->n -= n;
    if (co_str_err(&rest))
        l->n = 0;
    if (n && l->n == 0) { /* keeps its memory */
        co_str_clear(&l->text);
        co_str_fini(&rest);
        return;
    }
    co_str_fini(&l->text);
    l->text = rest;
}

void joblog_write(joblog *l, bool all)
{
    uint64_t now = co_now_ns();
    int n = 0;

    if (l->n == 0 || (!all && joblog_due_ms(l) > 0))
        return;
    qsort_r(l->list, (size_t)l->n, sizeof *l->list, compare, l->text.p);
    for (int i = 0; i < l->n; i++)
        if (all || now - l->list[i].came_ns >= MIX_MS * UINT64_C(1000000))
            n = i + 1; /* and with it all earlier lines */
    for (int i = 0; i < n; i++)
        files_log_bytes(l->files, &l->file, l->text.p + l->list[i].at, l->list[i].len);
    files_log_push(l->files, &l->file);
    forget(l, n);
    l->wrote_ns = now;
}

/* What follows is the host's "ends:" line. In job.log readers would stop there, so only the host that keeps
 * it may write one. */
void joblog_finish(joblog *l)
{
    if (!is_open(l)) {
        l->files->share = NULL;
        return;
    }
    co_roster_finish(l->roster);
    joblog_receive(l);
}

void joblog_close(joblog *l)
{
    l->files->share = NULL;
    joblog_write(l, true);
    files_log_close(l->files, &l->file);
    co_str_fini(&l->text);
    co_str_fini(&l->received);
    co_free(l->list);
}
