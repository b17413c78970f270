/* lines.c -- bytes to lines, as a terminal would end up showing them.
 *
 * A carriage return goes back to the beginning of the line: what comes after it takes the place of what was there
 * (progress bars). So a line is the last state before its newline. "\r\n" is a newline. A line of more than LINE_MOST
 * bytes is cut into several.
 */
#include "launch/job_int.h"

#include <string.h>

#include "base/clock.h"

static void emit(lines *l, line_fn each, void *ctx)
{
    each(ctx, co_str_text(&l->text), l->text.len);
    co_str_clear(&l->text);
    l->returned = l->bar = false;
}

/* Text without \r and \n. */
static void add(lines *l, const char *text, size_t n, line_fn each, void *ctx)
{
    if (n == 0)
        return;
    if (l->returned) {
        co_str_clear(&l->text);
        l->returned = false;
        l->bar = true;
    }
    while (l->text.len + n > LINE_MOST) {
        size_t fits = LINE_MOST - l->text.len;
        co_str_addn(&l->text, text, fits);
        emit(l, each, ctx);
        text += fits;
        n -= fits;
    }
    co_str_addn(&l->text, text, n);
}

void lines_feed(lines *l, const char *bytes, size_t n, line_fn each, void *ctx)
{
    for (const char *end = bytes + n; bytes < end;) {
        size_t left = (size_t)(end - bytes), plain = 0;
        while (plain < left && bytes[plain] != '\n' && bytes[plain] != '\r')
            plain++;
        add(l, bytes, plain, each, ctx);
        bytes += plain;
        if (bytes == end)
            break;
        if (*bytes++ == '\n')
            emit(l, each, ctx);
        else
            l->returned = true;
    }
    l->since_ns = co_now_ns();
}

void lines_end(lines *l, line_fn each, void *ctx)
{
    if (l->text.len)
        emit(l, each, ctx);
}

void lines_fini(lines *l)
{
    co_str_fini(&l->text);
}
