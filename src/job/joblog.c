/* joblog.c -- job.log: the lines of all hosts in one file, in the order of time, on the host that keeps the roster.
 *
 * Every host stamps its lines with the roster's clock and sends them there besides writing them to its own merged.log. They wait
 * MIX_MS, so that what another host said earlier, but came later, still stands before. A host that prints faster than the network
 * or our disk takes has all of it in its own merged.log; here a line says how many are missing.
 */
#include "job/job_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "job/logs_int.h"

enum {
    MIX_MOST = 4 << 20, /* bytes that wait; then all are written */
    RETRY_MS = 200,     /* from one try to tell what could not be sent to the next */
    SETTLE_MS = 20,     /* the job is over here: from look to look for the others' last co_lines */
    TELL_S = 3,         /* waiting for them so long is said; */
    LAST_LINES_S = 2    /* they have their grace period and this */
};

static bool is_open(const job *j)
{
    return j->all.file.fd >= 0;
}

/* Another host keeps the roster now: what is here is not the whole any more. */
static void set_aside(job *j)
{
    char *path = co_sprintf("%s/job.log", j->files.run),
         *old = path ? co_sprintf("%s.%lld", path, (long long)j->round.number) : NULL;

    joblog_write(j, true);
    files_log_close(&j->files, &j->all.file);
    if (old && rename(path, old) == 0)
        job_say(j, "another host keeps the roster now and goes on with job.log; what this one has is %s", old);
    co_free(path);
    co_free(old);
}

void joblog_open(job *j)
{
    const co_job_spec *spec = j->spec;

    j->files.shared = j;
    if (is_open(j) && !co_roster_keeps(j->roster))
        set_aside(j);
    if (is_open(j) || j->files.merged.fd < 0 || j->files.broken || spec->terms.max_hosts < 2 ||
        !co_roster_keeps(j->roster))
        return;
    char *path = co_sprintf("%s/job.log", j->files.run);
    j->all.file.fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    j->all.unsent = 0;
    if (is_open(j))
        flock(j->all.file.fd, LOCK_EX | LOCK_NB); /* as of merged.log */
    co_free(path);
}

static void mix(joblog *l, const char *line, size_t len)
{
    if (l->n == l->room) {
        int room = l->room ? 2 * l->room : 256;
        mixed *list = co_realloc(l->list, (size_t)room * sizeof *list);
        if (!list)
            return; /* of a log that is a copy */
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

/* Lines of another host: what is none is not taken, nor is its last, after which readers expect no more. */
static bool is_welcome(const char *line, size_t len)
{
    co_log_line l;

    return log_line_parse(&l, line, len - 1) && (l.rank >= 0 || l.len < 5 || memcmp(l.text, "ends:", 5) != 0);
}

static void mix_all(job *j, const char *text, size_t n, bool foreign)
{
    const char *end;

    for (; n && (end = memchr(text, '\n', n)); n -= (size_t)(end + 1 - text), text = end + 1) {
        size_t len = (size_t)(end + 1 - text);
        if (!foreign || is_welcome(text, len))
            mix(&j->all, text, len);
        if (j->all.text.len > MIX_MOST)
            joblog_write(j, true);
    }
}

static void add_note(job *j, co_str *out, long long count, const char *whose)
{
    files_line_head(out, j->host, -1, co_roster_clock_offset(j->roster));
    co_str_addf(out, "%lld lines of %s could not be taken into job.log: they are in merged.log there\n",
                count, whose);
}

/* To the host that keeps the roster: what is missing there is told together with what comes next. */
static void send_on(job *j, const char *text, size_t n)
{
    joblog *l = &j->all;
    co_str all = {0};

    if (l->unsent)
        add_note(j, &all, l->unsent, j->host);
    if (n)
        co_str_addn(&all, text, n);
    if (all.len && co_roster_log(j->roster, all.p, all.len))
        l->unsent = 0;
    else
        for (size_t i = 0; i < n; i++)
            l->unsent += text[i] == '\n';
    co_str_fini(&all);
}

void joblog_share(job *j, const char *text, size_t n)
{
    if (is_open(j))
        mix_all(j, text, n, false);
    send_on(j, text, n);
}

void joblog_hear(job *j)
{
    joblog *l = &j->all;
    co_str note = {0};

    if (l->unsent && co_now_ns() >= l->tried_ns + RETRY_MS * UINT64_C(1000000)) {
        l->tried_ns = co_now_ns();
        send_on(j, NULL, 0);
    }
    if (!is_open(j))
        return;
    co_str_clear(&l->heard);
    long long lost = co_roster_logged(j->roster, &l->heard);
    mix_all(j, co_str_text(&l->heard), l->heard.len, true);
    if (lost) {
        add_note(j, &note, lost, "other hosts");
        mix_all(j, note.p, note.len, false);
    }
    co_str_fini(&note);
}

bool joblog_settled(job *j)
{
    joblog *l = &j->all;

    if (!j->over || l->hurries || (!is_open(j) && !l->unsent))
        return true;
    if (!l->over_ns)
        l->over_ns = co_now_ns();
    double since_s = (double)(co_now_ns() - l->over_ns) / 1e9;
    if (is_open(j) && !l->told && since_s > TELL_S) {
        job_say(j, "waiting for the last lines of the other hosts, for job.log; Ctrl-C does without them");
        l->told = true;
    }
    return (!l->unsent && co_roster_settled(j->roster)) ||
           since_s > (is_open(j) ? j->spec->grace_s : 0) + LAST_LINES_S;
}

int joblog_due_ms(const job *j)
{
    const joblog *l = &j->all;
    uint64_t now = co_now_ns(), at = l->oldest_ns + MIX_MS * UINT64_C(1000000);
    uint64_t next = l->wrote_ns + MIX_TURN_MS * UINT64_C(1000000);

    if (l->n == 0)
        return l->over_ns ? SETTLE_MS : l->unsent ? RETRY_MS : -1;
    at = at > next ? at : next;
    int ms = at <= now ? 0 : (int)((at - now) / 1000000) + 1;
    return l->over_ns && ms > SETTLE_MS ? SETTLE_MS : ms;
}

/* By time; what came first, first. */
static int compare(const void *a, const void *b, void *text)
{
    const mixed *x = a, *y = b;
    int c = memcmp((char *)text + x->at, (char *)text + y->at, CO_STAMP - 1);

    return c ? c : x->at < y->at ? -1 : x->at > y->at;
}

/* The first n lines have been written. */
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

void joblog_write(job *j, bool all)
{
    joblog *l = &j->all;
    uint64_t now = co_now_ns();
    int n = 0;

    if (l->n == 0 || (!all && joblog_due_ms(j) > 0))
        return;
    qsort_r(l->list, (size_t)l->n, sizeof *l->list, compare, l->text.p);
    for (int i = 0; i < l->n; i++)
        if (all || now - l->list[i].came_ns >= MIX_MS * UINT64_C(1000000))
            n = i + 1; /* and with it all that is earlier */
    for (int i = 0; i < n; i++)
        files_log_bytes(&j->files, &l->file, l->text.p + l->list[i].at, l->list[i].len);
    files_log_push(&j->files, &l->file);
    forget(l, n);
    l->wrote_ns = now;
}

void joblog_finish(job *j)
{
    if (!is_open(j))
        return;
    co_roster_finish(j->roster);
    joblog_hear(j);
}

void joblog_close(job *j)
{
    joblog *l = &j->all;

    j->files.shared = NULL;
    joblog_write(j, true);
    files_log_close(&j->files, &l->file);
    co_str_fini(&l->text);
    co_str_fini(&l->heard);
    co_free(l->list);
}
