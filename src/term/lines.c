/* lines.c -- turns bytes into lines as a terminal would finally show them.
 *
 * After a carriage return, new text replaces the text of the line (progress bars). A line is therefore the
 * last text before its newline. "\r\n" is a newline. A line of more than CO_LINE_MOST bytes is cut into
 * several.
 *
 * A program with several bars moves the cursor down and up again, so a newline after a bar may end the bar or
 * only move past it:
 *
 *     \r epochs 1/3 \n\r steps 40% \033[A \n\r steps 41% \033[A \r epochs 2/3 ...
 *
 *     rows[0]     epochs 2/3     <- at: where the cursor is
 *     rows[last]  steps 41%
 *
 * That is why a bar's row stays open after its newline. It becomes a line when an ordinary line has ended
 * below it, or when the cursor has not come back for CO_PARTIAL_MS. An ordinary line never waits. The text of
 * an open bar becomes a line every CO_BAR_LINE_MS, because in a file an epoch of an hour would otherwise be
 * an hour of silence.
 *
 * Colours are kept. Movements of the cursor are followed as far as bars need them and then removed: with a
 * prefix, or in a file, they would point to the wrong place.
 */
#include "term/term_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

bool co_row_blank(const co_row *r)
{
    const char *text = co_str_text(&r->text);

    for (size_t i = 0; i < r->text.len; i++) {
        if (text[i] == '\033') /* a colour */
            i += strcspn(text + i, "m");
        else if (text[i] != ' ')
            return false;
    }
    return true;
}

/* Removes the top row; the others move up. */
static void drop_top(co_lines *l)
{
    co_row top = l->rows[0];

    co_str_clear(&top.text);
    co_str_clear(&top.shown);
    memmove(l->rows, l->rows + 1, (size_t)l->last * sizeof *l->rows);
    l->rows[l->last] = (co_row){.text = top.text, .shown = top.shown};
    l->last -= l->last > 0;
    if (l->at > 0)
        l->at--;
    else
        /* the cursor was in this row and is now at the start of the next */
        l->home = true, l->returned = false;
}

static void emit_top(co_lines *l, co_line_fn each, void *ctx)
{
    each(ctx, co_str_text(&l->rows[0].text), l->rows[0].text.len);
    drop_top(l);
}

/* The cursor's row and all above it. */
static void emit(co_lines *l, co_line_fn each, void *ctx)
{
    for (int n = l->at + 1; n > 0; n--)
        emit_top(l, each, ctx);
}

static void newline(co_lines *l, co_line_fn each, void *ctx)
{
    co_row *r = &l->rows[l->at];

    if (!r->bar && (l->at == 0 || r->text.len)) {
        emit(l, each, ctx);
        return;
    }
    r->left_ns = l->since_ns;
    if (l->at == CO_ROWS_MOST - 1)
        emit_top(l, each, ctx);
    l->at++;
    if (l->last < l->at)
        l->last = l->at;
    l->home = true;
    l->returned = false;
}

/* Text without control characters; colours are text. */
static void add(co_lines *l, const char *text, size_t n, co_line_fn each, void *ctx)
{
    if (n == 0)
        return;
    if (l->home) {
        co_row *r = &l->rows[l->at];
        co_str_clear(&r->text);
        r->shown_ns = r->bar && l->returned ? r->shown_ns : l->since_ns;
        r->bar = l->returned;
        l->home = l->returned = false;
    }
    for (size_t fits; (fits = CO_LINE_MOST - l->rows[l->at].text.len) < n; text += fits, n -= fits) {
        co_str_addn(&l->rows[l->at].text, text, fits);
        emit(l, each, ctx);
        co_str_clear(&l->rows[0].text);
        l->rows[0].bar = l->home = false;
    }
    co_str_addn(&l->rows[l->at].text, text, n);
}

static void go_to_row(co_lines *l, int at)
{
    for (int i = l->at; i < at; i++)
        l->rows[i].left_ns = l->since_ns;
    l->at = at < 0 ? 0 : at > l->last ? l->last : at;
    l->home = true; /* unlike a terminal: text printed here without \r is not meant to follow the bar */
    l->returned = false;
}

/* Erases from the cursor on: the whole row if the cursor is at its start, nothing if it is after the text. */
static void erase(co_lines *l, int how, bool below)
{
    if (how == 2 || (how == 0 && l->home))
        co_str_clear(&l->rows[l->at].text);
    for (int i = l->at + 1; below && i <= l->last; i++)
        co_str_clear(&l->rows[i].text);
}

static void follow(co_lines *l, co_line_fn each, void *ctx)
{
    const co_escape *e = &l->escape;
    char last = e->text[e->len - 1];
    int given = atoi(e->text + 2), n = given > CO_ROWS_MOST ? CO_ROWS_MOST : given > 0 ? given : 1;

    if (last == 'm')
        add(l, e->text, e->len, each, ctx);
    else if (last == 'A' || last == 'F')
        go_to_row(l, l->at - n);
    else if (last == 'B' || last == 'E')
        go_to_row(l, l->at + n < l->last ? l->at + n : l->last);
    else if (last == 'K' || last == 'J')
        erase(l, given, last == 'J');
    else if ((last == 'G' && n == 1) || last == 'H' || last == 'f')
        l->home = l->returned = true;
}

static void control(co_lines *l, char c, co_line_fn each, void *ctx)
{
    if (c == '\n') {
        newline(l, each, ctx);
    } else if (c == '\r') {
        l->home = l->returned = true;
    } else {
        escape_begin(&l->escape);
    }
}

void co_lines_feed(co_lines *l, const char *bytes, size_t n, co_line_fn each, void *ctx)
{
    l->since_ns = co_now_ns();
    for (const char *end = bytes + n; bytes < end;) {
        size_t left = (size_t)(end - bytes), plain = 0;
        escape_state state = escape_feed(&l->escape, *bytes);
        if (state == ESCAPE_WHOLE)
            follow(l, each, ctx);
        if (state != ESCAPE_NONE) {
            bytes++;
            continue;
        }
        while (plain < left && bytes[plain] != '\n' && bytes[plain] != '\r' && bytes[plain] != '\033')
            plain++;
        add(l, bytes, plain, each, ctx);
        bytes += plain;
        if (bytes < end)
            control(l, *bytes++, each, ctx);
    }
}

int co_lines_settle(co_lines *l, uint64_t now_ns, co_line_fn each, void *ctx)
{
    bool some = false;

    for (; l->at > 0; some = true) {
        uint64_t due = l->rows[0].left_ns + CO_PARTIAL_MS * UINT64_C(1000000);
        if (due > now_ns)
            return some ? 0 : (int)((due - now_ns) / 1000000) + 1;
        emit_top(l, each, ctx);
    }
    return some ? 0 : -1;
}

static bool same(const co_str *a, const co_str *b)
{
    return a->len == b->len && memcmp(co_str_text(a), co_str_text(b), a->len) == 0;
}

int co_lines_tell_bars(co_lines *l, uint64_t now_ns, co_line_fn each, void *ctx)
{
    int first = -1;

    for (int i = l->at; i <= l->last; i++) {
        co_row *r = &l->rows[i];
        uint64_t due = r->shown_ns + CO_BAR_LINE_MS * UINT64_C(1000000);
        int ms = due > now_ns ? (int)((due - now_ns) / 1000000) + 1 : 0;
        if (!r->bar || co_row_blank(r))
            continue;
        if (ms == 0) {
            r->shown_ns = now_ns;
            if (!same(&r->text, &r->shown))
                each(ctx, co_str_text(&r->text), r->text.len);
            co_str_clear(&r->shown);
            co_str_addn(&r->shown, co_str_text(&r->text), r->text.len);
        }
        first = first < 0 || ms < first ? ms : first;
    }
    return first;
}

void co_lines_end(co_lines *l, co_line_fn each, void *ctx)
{
    int above = l->at;

    for (int i = 0, n = l->last + 1; i < n; i++) {
        const co_row *r = &l->rows[0];
        if (i < above || (r->text.len && !(r->bar && co_row_blank(r))))
            emit_top(l, each, ctx);
        else
            drop_top(l);
    }
}

void co_lines_fini(co_lines *l)
{
    for (int i = 0; i < CO_ROWS_MOST; i++) {
        co_str_fini(&l->rows[i].text);
        co_str_fini(&l->rows[i].shown);
    }
}
