/* bars.c -- unfinished lines on a terminal (progress bars, prompts): one line for each rank below everything
 * else.
 *
 *     [0] loss 2.31
 *     [0]  45%|#########            | 450/1000      <- the live block: erased before other text is written,
 *     [1]  44%|########             | 441/1000         drawn again after it, at most every CO_BAR_MS
 *
 * The block never fills the terminal: its last line counts the rows that do not fit ("and 5 more").
 *
 * There is a block only where lines have prefixes. A single worker's bytes go to the terminal unchanged.
 */
#include "term/screen.h"
#include "term/term_int.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BARS_MOST = 16 };

/* The terminal that shows the block: standard error, where progress bars go, or else standard output. */
static co_outlet *terminal(co_screen *c)
{
    for (int i = 1; i >= 0; i--)
        if (co_outlets_at(&c->out, i)->tty)
            return co_outlets_at(&c->out, i);
    return NULL;
}

void bars_erase(co_screen *c)
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

/* How many lines the block may have. The cursor is on the line below the block, so one more line would scroll
 * the top line away at every drawing. */
static int room_of(const co_outlet *o)
{
    int room = size_of(o).ws_row - 1;

    return room < BARS_MOST ? room : BARS_MOST;
}

/* How many bytes of UTF-8 fit into `most` columns; a control character other than a colour ends the text. */
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

static void draw_one(co_screen *c, co_outlet *o, int local_rank, const co_row *r)
{
    static const char plain[] = "\033[m";
    char label[CO_SCREEN_HOST + 16];
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

/* Is this row worth a line of the block? Text that was just written may soon get its newline and is not. */
static bool is_drawn(const co_lines *l, int i, uint64_t now)
{
    const co_row *r = &l->rows[i];

    return !co_row_blank(r) && (r->bar || l->returned || now - l->since_ns > CO_PARTIAL_MS * UINT64_C(1000000));
}

typedef struct block {
    int n;        /* rows to draw */
    bool open;    /* there is text that may become a row */
    bool changed; /* since the block was last drawn */
} block;

typedef struct sources {
    const co_bar_source *list;
    int n;
    uint64_t now_ns;
} sources;

/* Counts the rows of the block, and draws the first `most` of them. */
static block walk(co_screen *c, const sources *from, co_outlet *o, int most)
{
    block b = {0};

    for (int i = 0; i < from->n; i++) {
        const co_lines *lines = from->list[i].lines;
        for (int k = 0; k <= lines->last; k++) {
            b.open |= !co_row_blank(&lines->rows[k]);
            if (!is_drawn(lines, k, from->now_ns))
                continue;
            b.n++;
            b.changed |= lines->since_ns > c->drawn_ns;
            if (c->bars < most)
                draw_one(c, o, from->list[i].local_rank, &lines->rows[k]);
        }
    }
    return b;
}

/* All rows, or as many as there is room for and a line that counts the rest. */
static void draw_block(co_screen *c, const sources *from, co_outlet *o, int n, int room)
{
    char rest[32];

    bars_erase(c);
    walk(c, from, o, n > room ? room - 1 : n);
    if (n <= room || room == 0)
        return;
    co_outlet_add(o, rest, (size_t)snprintf(rest, sizeof rest, "and %d more\n", n - room + 1));
    c->bars++;
}

int co_screen_draw_bars(co_screen *c, const co_bar_source *list, int n, uint64_t now_ns)
{
    co_outlet *o = terminal(c);
    sources from = {list, n, now_ns};

    if (!o || !c->prefix)
        return -1;
    block b = walk(c, &from, o, 0);
    int room = room_of(o);
    if (!b.changed && c->bars == (b.n < room ? b.n : room))
        return b.open && !b.n ? CO_BAR_MS : -1;
    if (co_outlet_full(o) || now_ns - c->drawn_ns < CO_BAR_MS * UINT64_C(1000000))
        return CO_BAR_MS;
    draw_block(c, &from, o, b.n, room);
    c->drawn_ns = now_ns;
    return -1;
}
