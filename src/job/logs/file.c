/* file.c -- one merged.log, read forwards in pieces:
 *
 *     2026-11-16T10:04:05.123456Z [host:rank] text           rank "-": the launcher itself
 *
 * Stamps never decrease within a file (in a job.log by a few seconds at most), so a time is found by binary
 * search: about twenty reads in a file of gigabytes. To find the last lines, a window at the end is read and
 * made four times as large until it holds enough of them.
 */
#include "job/logs_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { SOURCE_ROOM = 1 << 18, WINDOW = 1 << 16, LOOSE_S = 60 };

/* --- lines --------------------------------------------------------------------------------------------- */
static bool is_stamp(const char *p)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd.ddddddZ";

    for (size_t i = 0; i < sizeof form - 1; i++)
        if (form[i] == 'd' ? p[i] < '0' || p[i] > '9' : p[i] != form[i])
            return false;
    return true;
}

/* The length of a prefix "[host:rank] "; 0: there is none. */
static size_t take_place(co_log_line *out, const char *p, size_t n)
{
    size_t most = n < CO_HOST_NAME + 16 ? n : CO_HOST_NAME + 16;
    const char *end = most > 1 && *p == '[' ? memchr(p, ']', most) : NULL;
    const char *colon = end ? memrchr(p, ':', (size_t)(end - p)) : NULL;
    char rank[16];
    char *stop;

    if (!colon || colon - p > CO_HOST_NAME || end - colon < 2 || end - colon > (ptrdiff_t)sizeof rank)
        return 0;
    snprintf(rank, sizeof rank, "%.*s", (int)(end - colon - 1), colon + 1);
    snprintf(out->host, sizeof out->host, "%.*s", (int)(colon - p - 1), p + 1);
    long number = strtol(rank, &stop, 10);
    if (strcmp(rank, "-") == 0)
        number = -1;
    else if (*stop || number < 0 || number > INT32_MAX)
        return 0;
    out->rank = (int)number;
    return (size_t)(end - p) + 1 + (end + 1 < p + n && end[1] == ' ');
}

bool log_line_parse(co_log_line *out, const char *p, size_t n)
{
    enum { HEAD = CO_STAMP - 1 };

    if (n < HEAD + 2 || !is_stamp(p) || p[HEAD] != ' ')
        return false;
    size_t place = take_place(out, p + HEAD + 1, n - HEAD - 1);
    if (!place)
        return false;
    snprintf(out->stamp, sizeof out->stamp, "%.*s", (int)HEAD, p);
    out->text = p + HEAD + 1 + place;
    out->len = n - HEAD - 1 - place;
    return true;
}

co_err wanted_ranks(wanted *w, const char *text)
{
    for (const char *at = text; at;) {
        char *end;
        long from = strtol(at, &end, 10), to = from;
        bool good = end > at && from >= 0 && *at != '-' && *at != '+';
        if (*at == '-' && (at[1] == ',' || !at[1])) { /* the launcher's */
            good = true;
            from = to = -1;
            end = (char *)at + 1;
        }
        if (good && *end == '-') {
            at = end + 1;
            to = strtol(at, &end, 10);
            good = end > at && to >= from && *at != '-' && *at != '+';
        }
        if (!good || to > INT32_MAX || (*end && *end != ',') || w->n == RANGES)
            return co_fail(CO_EINPUT,
                           "logs: --rank=%s: ranks and ranges are needed, commas between: 0,4-7; - is "
                           "the launcher",
                           text);
        w->range[w->n].from = (int)from;
        w->range[w->n++].to = (int)to;
        at = *end ? end + 1 : NULL;
    }
    return CO_OK;
}

static bool is_wanted(const wanted *w, const co_log_line *l)
{
    bool in = w->n == 0;

    if ((w->host && strcmp(w->host, l->host) != 0) || strcmp(l->stamp, w->since) < 0)
        return false;
    for (int i = 0; i < w->n && !in; i++)
        in = l->rank >= w->range[i].from && l->rank <= w->range[i].to;
    return in;
}

/* --- the file ------------------------------------------------------------------------------------------ */
co_err source_open(log_source *s, const char *path)
{
    *s = (log_source){
        .fd = open(path, O_RDONLY | O_CLOEXEC), .path = co_strdup(path), .buf = co_alloc(SOURCE_ROOM)};
    s->last.rank = s->rank[0] = s->rank[1] = -1;
    gethostname(s->me, sizeof s->me - 1);
    co_err err = s->fd < 0 ? co_fail(CO_EIO, "open %s: %m", path) : s->path && s->buf ? CO_OK : CO_ENOMEM;
    if (err)
        source_close(s);
    return err;
}

void source_close(log_source *s)
{
    if (s->fd >= 0)
        close(s->fd);
    co_free(s->path);
    co_free(s->buf);
    *s = (log_source){.fd = -1};
}

static void seek(log_source *s, off_t at)
{
    s->at = at;
    s->start = s->len = 0;
    s->pending = false;
}

/* Reads more bytes after those in the buffer; *more is false if there are none for now. */
static co_err fill(log_source *s, bool *more)
{
    if (s->start) {
        memmove(s->buf, s->buf + s->start, s->len);
        s->start = 0;
    }
    ssize_t n = pread(s->fd, s->buf + s->len, SOURCE_ROOM - s->len, s->at);
    if (n < 0 && errno != EINTR)
        return co_fail(CO_EIO, "read %s: %m", s->path);
    *more = n > 0;
    s->len += n > 0 ? (size_t)n : 0;
    s->at += n > 0 ? n : 0;
    return CO_OK;
}

/* The next line of the file: *p, *n (without its newline). NULL: no line. A line longer than the buffer comes
 * in pieces. */
static co_err raw_line(log_source *s, const char **p, size_t *n, bool whole)
{
    bool more = true;
    size_t seen = 0;

    for (;;) {
        const char *at = s->buf + s->start, *end = memchr(at + seen, '\n', s->len - seen);
        bool full = !end && s->start == 0 && s->len == SOURCE_ROOM;
        if (end || full || (!more && s->len && !whole)) {
            *p = at;
            *n = end ? (size_t)(end - at) : s->len;
            s->torn = !end && !full;
            size_t used = *n + (end != NULL);
            s->start += used;
            s->len -= used;
            return CO_OK;
        }
        *p = NULL;
        if (!more)
            return CO_OK;
        seen = s->len;
        CO_TRY(fill(s, &more));
    }
}

/* Parses a line of the file; text NULL: it is not a line of a log. */
static co_err next_line(log_source *s, co_log_line *out, bool whole)
{
    const char *p;
    size_t n;

    CO_TRY(raw_line(s, &p, &n, whole));
    if (p && log_line_parse(out, p, n)) {
        s->last = *out;
        s->here = s->here || (!s->foreign && strcmp(out->host, s->me) == 0);
        if (out->rank < 0 && out->len >= 5 && memcmp(out->text, "ends:", 5) == 0)
            s->ended = true;
        if (out->rank >= 0 && (s->rank[0] < 0 || out->rank < s->rank[0]))
            s->rank[0] = out->rank;
        if (out->rank > s->rank[1])
            s->rank[1] = out->rank;
        return CO_OK;
    }
    if (s->torn) /* a disk was full in the middle of its head */
        p = NULL;
    *out = s->last;
    out->text = p;
    out->len = p ? n : 0;
    return CO_OK;
}

co_err source_next(log_source *s, const wanted *w, bool whole)
{
    while (!s->pending) {
        CO_TRY(next_line(s, &s->line, whole));
        if (!s->line.text)
            return CO_OK;
        s->pending = is_wanted(w, &s->line) && strcmp(s->line.stamp, s->after) > 0;
        s->read_ns = co_now_ns();
    }
    return CO_OK;
}

static off_t size_of(const log_source *s)
{
    struct stat st;

    return fstat(s->fd, &st) == 0 ? st.st_size : 0;
}

/* Moves to the first line that begins at or after `at`. */
static co_err seek_line(log_source *s, off_t at)
{
    const char *p;
    size_t n;

    seek(s, at > 0 ? at - 1 : 0);
    return at > 0 ? raw_line(s, &p, &n, true) : CO_OK;
}

/* The stamp that is `seconds` earlier. */
static void earlier(char out[CO_STAMP], const char *stamp, int seconds)
{
    struct tm tm = {0};

    snprintf(out, CO_STAMP, "%s", stamp);
    if (strptime(stamp, "%Y-%m-%dT%H:%M:%S", &tm))
        co_stamp(out, (double)(timegm(&tm) - seconds));
}

co_err source_since(log_source *s, const char *since)
{
    off_t low = s->at, high = size_of(s);
    char about[CO_STAMP];
    co_log_line l;

    if (s->loose) {
        earlier(about, since, LOOSE_S);
        since = about;
    }

    while (high - low > WINDOW) {
        off_t mid = low + (high - low) / 2;
        CO_TRY(seek_line(s, mid));
        s->last = (co_log_line){.rank = -1};
        do
            CO_TRY(next_line(s, &l, true));
        while (l.text && !*l.stamp);
        if (l.text && strcmp(l.stamp, since) < 0)
            low = mid;
        else
            high = mid;
    }
    return seek_line(s, low);
}

static co_err count(log_source *s, const wanted *w, long long skip, long long *n)
{
    *n = 0;
    for (;;) {
        if (skip > 0 && *n == skip)
            return CO_OK;
        CO_TRY(source_next(s, w, true));
        if (!s->pending)
            return CO_OK;
        s->pending = false;
        ++*n;
    }
}

co_err source_tail(log_source *s, const wanted *w, long long most, long long *n)
{
    off_t first = s->at - (off_t)s->len, size = size_of(s), window = WINDOW;
    off_t from;
    long long skipped;

    do {
        from = size - window > first ? size - window : first;
        CO_TRY(seek_line(s, from));
        CO_TRY(count(s, w, 0, n));
        window *= 4;
    } while (*n < most && from > first);
    CO_TRY(seek_line(s, from));
    if (*n > most) {
        CO_TRY(count(s, w, *n - most, &skipped));
        *n = most;
    }
    return CO_OK;
}

co_err source_span(char first[CO_STAMP], char last[CO_STAMP], char host[CO_HOST_NAME], const char *path)
{
    log_source s;
    co_log_line l;
    struct stat st = {0};

    CO_TRY(source_open(&s, path));
    fstat(s.fd, &st);
    co_stamp(last, (double)st.st_mtim.tv_sec);
    co_err err = next_line(&s, &l, true);
    snprintf(first, CO_STAMP, "%s", !err && l.text && *l.stamp ? l.stamp : last);
    snprintf(host, CO_HOST_NAME, "%s", s.last.host);
    if (!err)
        err = seek_line(&s, st.st_size > WINDOW ? st.st_size - WINDOW : 0);
    s.last.stamp[0] = '\0';
    do
        err = err ? err : next_line(&s, &l, true);
    while (!err && l.text);
    if (*s.last.stamp)
        snprintf(last, CO_STAMP, "%s", s.last.stamp);
    if (flock(s.fd, LOCK_SH | LOCK_NB) != 0) /* its launcher still writes it */
        snprintf(last, CO_STAMP, "9999-12-31T23:59:59.999999Z");
    source_close(&s);
    return err;
}

/* The launcher holds a lock on its file. The lock is a reliable sign only on this host. */
void source_look(log_source *s)
{
    if (s->ended || !s->here || flock(s->fd, LOCK_SH | LOCK_NB) != 0)
        return;
    flock(s->fd, LOCK_UN);
    s->gone = true;
}
