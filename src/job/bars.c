/* bars.c -- unfinished lines on a terminal (progress bars, prompts): one line for each rank below everything else.
 *
 *     [0] loss 2.31
 *     [0]  45%|#########            | 450/1000      <- the live block: erased before anything else is written,
 *     [1]  44%|########             | 441/1000         drawn again after it, at most every CO_BAR_MS
 *
 * The block never fills the terminal: what there is no room for is counted in its last line ("and 5 more").
 *
 * Only where lines have prefixes: a single worker's bytes go to the terminal as they are.
 */
#include "job/job_int.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"

enum { BARS_MOST = 16 };

/* The terminal the block is on: standard error, where progress bars go, or else standard output. */
static co_outlet *terminal(console *c)
{
    for (int i = 1; i >= 0; i--)
        if (co_outlets_at(&c->out, i)->tty)
            return co_outlets_at(&c->out, i);
    return NULL;
}

void bars_erase(console *c)
{
    static const char up[] = "\033[A\r\033[K";
    co_outlet *o = terminal(c);

    for (; o && c->bars > 0; c->bars--)
        co_outlet_add(o, up, sizeof up - 1);
}

static struct winsize size_of(const co_outlet *o)
{
    struct winsize w = {0};

    if (ioctl(o->fd, TIOCGWINSZ, &w) != 0 || w.ws_row == 0)
        w.ws_row = 24;
    if (w.ws_col <= 10)
        w.ws_col = 80;
    return w;
}

/* Lines that the block may have. The cursor is below it: one line more, and the highest would scroll away with every drawing. */
static int room_of(const co_outlet *o)
{
    int room = size_of(o).ws_row - 1;

    return room < BARS_MOST ? room : BARS_MOST;
}

/* As many bytes of UTF-8 as fill at most `most` columns; a control character that is no colour ends it. */
static size_t fitting(const char *text, size_t len, int most)
{
    size_t at = 0;

    for (int col = 0; col < most && at < len; col++) {
        uint32_t code;
        while (at < len && text[at] == '\033')
            at += strcspn(text + at, "m") + 1;
        if (at >= len || (unsigned char)text[at] < 32)
            break;
        int n = co_utf8_get(&code, text + at, len - at);
        at += (size_t)(n ? n : 1);
    }
    return at < len ? at : len;
}

static void draw_one(console *c, co_outlet *o, int local_rank, const co_row *r)
{
    static const char plain[] = "\033[m";
    char label[CO_HOST_NAME + 16];
    const char *text = co_str_text(&r->text);
    int n =
        snprintf(label, sizeof label, "[%s%s%d] ", c->host, *c->host ? ":" : "", c->first_rank + local_rank);
    size_t fits = fitting(text, r->text.len, size_of(o).ws_col - n - 1);

    co_outlet_add(o, label, (size_t)n);
    co_outlet_add(o, text, fits);
    if (memchr(text, '\033', fits))
        co_outlet_add(o, plain, sizeof plain - 1);
    co_outlet_add(o, "\n", 1);
    c->bars++;
}

/* Is this row worth a line of the block? A line that is just being written soon has its newline. */
static bool stands(const stream *s, int i, uint64_t now)
{
    const co_lines *l = &s->lines;
    const co_row *r = &l->rows[i];

    return s->shown && !s->teed && !co_row_blank(r) &&
           (r->bar || l->returned || now - l->since_ns > CO_PARTIAL_MS * UINT64_C(1000000));
}

typedef struct block {
    int n;        /* rows that stand */
    bool open;    /* there is text that may come to stand */
    bool changed; /* since it was drawn */
} block;

/* What the block is to be; the first `most` of it are drawn. */
static block look(job *j, uint64_t now, co_outlet *o, int most)
{
    block b = {0};

    for (int i = 0; i < 2 * j->n; i++) {
        const stream *s = &j->workers[i / 2].s[i % 2];
        for (int k = 0; k <= s->lines.last; k++) {
            b.open |= !co_row_blank(&s->lines.rows[k]);
            if (!stands(s, k, now))
                continue;
            b.n++;
            b.changed |= s->lines.since_ns > j->console.drawn_ns;
            if (j->console.bars < most)
                draw_one(&j->console, o, i / 2, &s->lines.rows[k]);
        }
    }
    return b;
}

/* All that stand, or as many as there is room for and how many more there are. */
static void draw_block(job *j, uint64_t now, co_outlet *o, int n, int room)
{
    console *c = &j->console;
    char rest[32];

    bars_erase(c);
    look(j, now, o, n > room ? room - 1 : n);
    if (n <= room || room == 0)
        return;
    co_outlet_add(o, rest, (size_t)snprintf(rest, sizeof rest, "and %d more\n", n - room + 1));
    c->bars++;
}

static int draw(job *j, uint64_t now)
{
    console *c = &j->console;
    co_outlet *o = terminal(c);

    if (!o || !c->prefix)
        return -1;
    block b = look(j, now, o, 0);
    int room = room_of(o);
    if (!b.changed && c->bars == (b.n < room ? b.n : room))
        return b.open && !b.n ? CO_BAR_MS : -1;
    if (co_outlet_full(o) || now - c->drawn_ns < CO_BAR_MS * UINT64_C(1000000))
        return CO_BAR_MS;
    draw_block(j, now, o, b.n, room);
    c->drawn_ns = now;
    return -1;
}

int bars_turn(job *j)
{
    uint64_t now = co_now_ns();
    int first = -1;

    for (int i = 0; i < j->n; i++) {
        int ms = worker_turn(&j->workers[i], now);
        first = first < 0 || (ms >= 0 && ms < first) ? ms : first;
    }
    int ms = draw(j, now);
    return first < 0 || (ms >= 0 && ms < first) ? ms : first;
}
