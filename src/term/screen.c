/* screen.c -- how people see the workers' output: each line with its rank, equal lines of many ranks folded
 * into one.
 *
 *     [0-7] x8 loading the data
 *     [3] loss 2.31
 *
 * Lines wait in a queue, in the order they came, for at most CO_FOLD_MS. A line joins an equal one in the
 * queue, unless its rank already has a line at that place or behind it; this keeps each rank's lines in
 * order. The head of the queue is printed when its time is over or when all ranks have joined it. With one
 * worker, or without prefixes, nothing is held.
 *
 * A slow reader makes the workers wait. While the job ends they do not wait: output is dropped and counted
 * while an outlet is overfull. Our own messages are never dropped.
 *
 * Cost per line: a search through the queue from its end. The queue is short (CO_FOLD_MS of output,
 * QUEUE_MOST lines).
 */
#include "term/screen.h"
#include "term/term_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

enum { QUEUE_MOST = 1024, SEARCH_MOST = 128 };

void co_screen_open(co_screen *c, int out_fd, int err_fd)
{
    *c = (co_screen){0};
    co_outlets_open(&c->out, out_fd, err_fd);
}

void co_screen_view_set(co_screen *c, const co_screen_view *view)
{
    c->first_rank = view->first_rank;
    c->nproc = view->nproc;
    c->prefix = view->prefix;
    snprintf(c->host, sizeof c->host, "%s", view->host);
}

static bool has(const co_held_line *s, int local_rank)
{
    return s->ranks[local_rank / 64] >> (local_rank % 64) & 1;
}

static void put(co_held_line *s, int local_rank)
{
    s->ranks[local_rank / 64] |= UINT64_C(1) << (local_rank % 64);
    s->n++;
}

/* "[0-3,5] x5 ", with "host:" inside when there are several. */
static void add_label(co_str *out, const co_screen *c, const co_held_line *s)
{
    const char *comma = "";

    co_str_addf(out, "[%s%s", c->host, *c->host ? ":" : "");
    for (int i = 0; i < c->nproc; i++) {
        int to = i;
        if (!has(s, i))
            continue;
        while (to + 1 < c->nproc && has(s, to + 1))
            to++;
        co_str_addf(out, "%s%d", comma, c->first_rank + i);
        if (to > i)
            co_str_addf(out, "-%d", c->first_rank + to);
        comma = ",";
        i = to;
    }
    co_str_add(out, "] ");
    if (s->n > 1)
        co_str_addf(out, "x%d ", s->n);
}

static void write_out(co_screen *c, int to, const char *text, size_t len)
{
    bars_erase(c);
    co_outlet_add(co_outlets_at(&c->out, to), text, len);
}

/* Is there room for what a worker has printed? */
static bool takes(co_screen *c, int to, size_t len)
{
    if (!c->hurries || !co_outlet_overfull(co_outlets_at(&c->out, to)))
        return true;
    c->not_shown += len;
    return false;
}

static void send_head(co_screen *c)
{
    co_held_line *s = &c->queue[c->head];
    co_str line = {0};

    add_label(&line, c, s);
    co_str_addn(&line, s->text, s->len);
    co_str_addn(&line, "\n", 1);
    if (takes(c, s->stream, line.len))
        write_out(c, s->stream, co_str_text(&line), line.len);
    co_str_fini(&line);
    co_free(s->text);
    c->head++;
    c->n--;
    if (c->n == 0)
        c->head = 0;
}

/* The entry that this line may join, or NULL. */
static co_held_line *equal_one(co_screen *c, int local_rank, int to, const char *text, size_t len)
{
    co_held_line *found = NULL;

    for (int i = c->head + c->n - 1, steps = 0; i >= c->head && steps < SEARCH_MOST; i--, steps++) {
        co_held_line *s = &c->queue[i];
        if (has(s, local_rank))
            break;
        if (s->stream == to && s->len == len && memcmp(s->text, text, len) == 0)
            found = s;
    }
    return found;
}

static co_held_line *new_one(co_screen *c)
{
    if (c->head + c->n == c->room && c->head) {
        memmove(c->queue, c->queue + c->head, (size_t)c->n * sizeof *c->queue);
        c->head = 0;
    }
    if (c->n == c->room) {
        co_held_line *more = co_realloc(c->queue, (size_t)(c->room ? 2 * c->room : 64) * sizeof *more);
        if (!more)
            return NULL;
        c->queue = more;
        c->room = c->room ? 2 * c->room : 64;
    }
    co_held_line *s = &c->queue[c->head + c->n++];
    *s = (co_held_line){.at_ns = co_now_ns()};
    return s;
}

void co_screen_line(co_screen *c, int local_rank, int to, const char *text, size_t len)
{
    co_held_line *s = equal_one(c, local_rank, to, text, len);

    if (s) {
        put(s, local_rank);
    } else {
        char *copy = co_alloc(len + 1);
        if (!copy || !(s = new_one(c))) { /* no memory to hold it: it is not shown, but files have it */
            co_free(copy);
            return;
        }
        memcpy(copy, text, len);
        s->text = copy;
        s->len = len;
        s->stream = to;
        put(s, local_rank);
    }
    if (c->n > QUEUE_MOST)
        send_head(c);
}

void co_screen_teed(co_screen *c, int to, const char *prefix, const char *text, size_t len)
{
    if (!takes(c, to, strlen(prefix) + len + 1))
        return;
    write_out(c, to, prefix, strlen(prefix));
    co_outlet_add(co_outlets_at(&c->out, to), text, len);
    co_outlet_add(co_outlets_at(&c->out, to), "\n", 1);
}

void co_screen_raw(co_screen *c, int to, const char *bytes, size_t n)
{
    if (takes(c, to, n))
        write_out(c, to, bytes, n);
}

void co_screen_say(co_screen *c, const char *text)
{
    co_screen_flush(c, true);
    write_out(c, 1, text, strlen(text));
    co_outlet_add(co_outlets_at(&c->out, 1), "\n", 1);
}

void co_screen_sayf(co_screen *c, const char *fmt, ...)
{
    char text[1100];
    va_list ap;

    va_start(ap, fmt);
    int n = snprintf(text, sizeof text, "cohort: ");
    vsnprintf(text + n, sizeof text - (size_t)n, fmt, ap);
    va_end(ap);
    co_screen_say(c, text);
}

int co_screen_due_ms(const co_screen *c)
{
    if (!c->n)
        return -1;
    uint64_t due = c->queue[c->head].at_ns + CO_FOLD_MS * UINT64_C(1000000), now = co_now_ns();
    return due <= now ? 0 : (int)((due - now) / 1000000) + 1;
}

static bool say_broken(co_screen *c)
{
    char line[256];
    bool said = false;

    for (int to; (to = co_outlets_broken(&c->out, line, sizeof line)) >= 0; said = true)
        write_out(c, to, line, strlen(line));
    return said;
}

void co_screen_flush(co_screen *c, bool all)
{
    while (c->n && (all || c->queue[c->head].n == c->nproc || co_screen_due_ms(c) == 0))
        send_head(c);
    say_broken(c);
}

void co_screen_close(co_screen *c, int patience_ms)
{
    co_screen_flush(c, true);
    bars_erase(c);
    co_outlets_drain(&c->out, patience_ms);
    if (say_broken(c))
        co_outlets_drain(&c->out, patience_ms);
    co_outlets_close(&c->out);
    co_free(c->queue);
}
