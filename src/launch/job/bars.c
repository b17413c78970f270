/* bars.c -- unfinished lines on a terminal (progress bars, prompts): one line for each rank below everything else.
 *
 *     [0] loss 2.31
 *     [0]  45%|#########            | 450/1000      <- the live block: erased before anything else is written,
 *     [1]  44%|########             | 441/1000         drawn again after it, at most every BAR_MS
 *
 * Only where lines have prefixes: a single worker's bytes go to the terminal as they are.
 */
#include "launch/job_int.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"

enum { BARS_MOST = 16 };

/* The terminal the block is on: standard error, where progress bars go, or else standard output. */
static outlet *terminal(console *c)
{
    for (int i = 1; i >= 0; i--)
        if (outlets_at(&c->out, i)->tty)
            return outlets_at(&c->out, i);
    return NULL;
}

void bars_erase(console *c)
{
    static const char up[] = "\033[A\r\033[K";
    outlet *o = terminal(c);

    for (; o && c->bars > 0; c->bars--)
        outlet_add(o, up, sizeof up - 1);
}

static int columns(const outlet *o)
{
    struct winsize w;

    return ioctl(o->fd, TIOCGWINSZ, &w) == 0 && w.ws_col > 10 ? w.ws_col : 80;
}

/* As many bytes of UTF-8 as fill at most `most` columns; a control character ends it. */
static size_t fitting(const char *text, size_t len, int most)
{
    size_t at = 0;

    for (int col = 0; col < most && at < len && (unsigned char)text[at] >= 32; col++) {
        uint32_t code;
        int n = co_utf8_get(&code, text + at, len - at);
        at += (size_t)(n ? n : 1);
    }
    return at;
}

static void draw_one(console *c, outlet *o, int local_rank, const co_str *text)
{
    char label[CO_HOST_NAME + 16];
    int n =
        snprintf(label, sizeof label, "[%s%s%d] ", c->host, *c->host ? ":" : "", c->first_rank + local_rank);

    outlet_add(o, label, (size_t)n);
    outlet_add(o, co_str_text(text), fitting(co_str_text(text), text->len, columns(o) - n - 1));
    outlet_add(o, "\n", 1);
    c->bars++;
}

/* Is it worth a line of the block? A line that is just being written soon has its newline. */
static bool stands(const stream *s, uint64_t now)
{
    return s->shown && !s->teed && s->lines.text.len &&
           (s->lines.bar || s->lines.returned || now - s->lines.since_ns > PARTIAL_MS * UINT64_C(1000000));
}

int bars_turn(job *j)
{
    console *c = &j->console;
    outlet *o = terminal(c);
    uint64_t now = co_now_ns();
    bool open = false, changed = false;
    int n = 0;

    if (!o || !c->prefix)
        return -1;
    for (int i = 0; i < j->n; i++)
        for (int k = 0; k < 2; k++) {
            const stream *s = &j->workers[i].s[k];
            open |= s->lines.text.len > 0;
            n += stands(s, now);
            changed |= stands(s, now) && s->lines.since_ns > c->drawn_ns;
        }
    if (!changed && c->bars == (n < BARS_MOST ? n : BARS_MOST))
        return open && !n ? BAR_MS : -1;
    if (outlet_full(o) || now - c->drawn_ns < BAR_MS * UINT64_C(1000000))
        return BAR_MS;
    bars_erase(c);
    for (int i = 0; i < j->n; i++)
        for (int k = 0; k < 2; k++)
            if (stands(&j->workers[i].s[k], now) && c->bars < BARS_MOST)
                draw_one(c, o, i, &j->workers[i].s[k].lines.text);
    c->drawn_ns = now;
    return -1;
}
