/* worker.c -- one worker: its pipes, its lines, the reports of its guard. */
#include "job/worker_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "proc/guard.h"
#include "proc/look.h"

/* The length of "[rank3]: ", which PyTorch writes before each line of a traceback. */
static size_t rank_mark(const char *text, size_t len)
{
    size_t n = sizeof "[rank" - 1;

    if (len <= n || memcmp(text, "[rank", n) != 0)
        return 0;
    while (n < len && text[n] >= '0' && text[n] <= '9')
        n++;
    return len - n >= 3 && memcmp(text + n, "]: ", 3) == 0 ? n + 3 : 0;
}

static bool begins(const char *text, size_t len, const char *head)
{
    size_t n = strlen(head);

    return len >= n && memcmp(text, head, n) == 0;
}

/* Python reports a syntax error without the first line of a traceback:
 *
 *       File "x.py", line 1
 *         def f(
 *              ^
 *     SyntaxError: '(' was never closed
 */
static bool ends_unread(const worker *w, const char *text, size_t len)
{
    static const char *const errors[] = {"SyntaxError: ", "IndentationError: ", "TabError: "};
    bool is = false;

    for (size_t i = 0; i < CO_COUNT(errors); i++)
        is |= begins(text, len, errors[i]);
    return is && w->saw_place;
}

/* The last line of a traceback is the first one after it that is not indented. */
static void follow_traceback(worker *w, const char *text, size_t len)
{
    static const char head[] = "Traceback (most recent call last):";
    size_t mark = rank_mark(text, len);

    text += mark;
    len -= mark;
    bool indented = len && (text[0] == ' ' || text[0] == '\t');
    if (begins(text, len, head)) {
        w->in_traceback = true;
    } else if (len && !indented && (w->in_traceback || ends_unread(w, text, len))) {
        w->in_traceback = false;
        snprintf(w->exception, sizeof w->exception, "%.*s", (int)(len < 255 ? len : 255), text);
    }
    w->saw_place = indented && (w->saw_place || begins(text, len, "  File \""));
}

static void keep_tail(tail *t, const char *text, size_t len)
{
    char *line = t->line[t->n++ % TAIL_LINES];
    size_t n = len < TAIL_WIDTH - 1 ? len : TAIL_WIDTH - 1;

    memcpy(line, text, n);
    line[n] = '\0';
}

static void take_line(void *ctx, const char *text, size_t len)
{
    stream *s = ctx;
    worker *w = s->w;

    follow_traceback(w, text, len);
    keep_tail(&w->tail, text, len);
    w->events->line(w->events->ctx, s, text, len);
}

static void take_bar(void *ctx, const char *text, size_t len)
{
    const stream *s = ctx;

    s->w->events->bar(s->w->events->ctx, s, text, len);
}

static void end_stream(stream *s)
{
    co_lines_end(&s->lines, take_line, s);
    close(s->fd);
    s->fd = -1;
}

/* Reads at most four buffers, so that a program that floods its pipe does not keep us here. */
static void read_stream(stream *s)
{
    static char buf[1 << 16];
    worker *w = s->w;

    for (int i = 0; i < 4 && s->fd >= 0; i++) {
        ssize_t n = read(s->fd, buf, sizeof buf);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            end_stream(s);
            return;
        }
        w->active_ns = w->printed_ns = co_now_ns();
        w->events->bytes(w->events->ctx, s, buf, (size_t)n);
        co_lines_feed(&s->lines, buf, (size_t)n, take_line, s);
    }
}

/* If a progress bar in the other stream seems to have ended, read that stream first: either the bar goes on
 * there, or its last line comes before this stream's lines. */
void worker_read(worker *w, int which)
{
    stream *other = &w->s[!which];

    if (other->lines.at > 0) {
        read_stream(other);
        co_lines_settle(&other->lines, UINT64_MAX, take_line, other);
    }
    read_stream(&w->s[which]);
}

int worker_turn(worker *w, uint64_t now_ns)
{
    int first = -1;

    for (int k = 0; k < 2; k++) {
        co_lines *l = &w->s[k].lines;
        int ms[] = {co_lines_settle(l, now_ns, take_line, &w->s[k]),
                    co_lines_tell_bars(l, now_ns, take_bar, &w->s[k])};
        for (int i = 0; i < 2; i++)
            first = first < 0 || (ms[i] >= 0 && ms[i] < first) ? ms[i] : first;
    }
    return first;
}

void worker_close(worker *w, int which)
{
    for (int i = 0; i < 4; i++) /* the largest pipe that a user may have: 1 MiB */
        worker_read(w, which);
    if (w->s[which].fd >= 0)
        end_stream(&w->s[which]);
}

bool worker_failed(const worker *w)
{
    return w->ended && w->status != 0;
}

static void guard_went(worker *w)
{
    char rank[32];

    close(w->sock);
    w->sock = -1;
    while (waitpid(w->guard, NULL, 0) < 0 && errno == EINTR)
        ;
    if (w->ended)
        return;
    /* Somebody killed the guard: the worker died with it, and we adopted its other processes. */
    w->ended = true;
    w->status = SIGKILL;
    w->when_ns = (int64_t)(co_wall_s() * 1e9);
    snprintf(rank, sizeof rank, "RANK=%d", w->rank);
    co_proc_kill_adopted(w->pid ? w->pid : -1, w->mark, rank);
}

/* The guard gave up on processes that cannot be killed, perhaps the worker itself. We do not wait for
 * them. */
static void hear_stuck(worker *w, const co_guard_report *g)
{
    char name[32], others[32] = "", text[256];

    co_proc_text(name, sizeof name, g->who, "comm");
    name[strcspn(name, "\n")] = '\0';
    if (g->n > 1)
        snprintf(others, sizeof others, " and %d more", g->n - 1);
    snprintf(text, sizeof text, "rank %d: process %d%s%s%s%s %s%s; left alone", w->rank, g->who,
             *name ? " (" : "", name, *name ? ")" : "", others,
             g->status ? "cannot be killed: "
                       : "was killed and has not ended: the kernel or a debugger holds it",
             g->status ? strerror(g->status) : "");
    w->events->say(w->events->ctx, text);
    if (w->ended)
        return;
    w->ended = true;
    w->status = SIGKILL;
    w->when_ns = g->when_ns;
}

static void say_left(const worker *w, int n)
{
    char text[128];

    snprintf(text, sizeof text, "rank %d ended and left %d process%s running: asked to end", w->rank, n,
             n > 1 ? "es" : "");
    w->events->say(w->events->ctx, text);
}

void worker_take_reports(worker *w)
{
    co_guard_report g;
    ssize_t n;

    while ((n = recv(w->sock, &g, sizeof g, MSG_DONTWAIT)) == (ssize_t)sizeof g) {
        w->pid = g.pid;
        if (g.kind == CO_GUARD_LEFT && g.n > 0)
            say_left(w, g.n);
        if (g.kind == CO_GUARD_STUCK)
            hear_stuck(w, &g);
        if (g.kind != CO_GUARD_ENDED && g.kind != CO_GUARD_NOT_STARTED)
            continue;
        w->ended = true;
        w->when_ns = g.when_ns;
        w->not_started = g.kind == CO_GUARD_NOT_STARTED ? g.status : 0;
        w->status = w->not_started ? 127 << 8 : g.status;
        worker_read(w, 0);
        worker_read(w, 1);
    }
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        guard_went(w);
}
