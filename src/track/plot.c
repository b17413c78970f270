/* plot.c -- a curve in the terminal: braille characters, of which each has 2 x 4 dots.
 *
 *     2.31 ┤⠉⠉⠒⠤⡀
 *     1.20 ┤      ⠈●⡀  ⡰⠁
 *          └┬──────┬───┬
 *         1e-6   1e-3  1
 *
 * Costs a byte per cell while it is drawn. In ASCII a cell has one dot, a '*'.
 */
#include "track/plot_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum { WIDTH = 72, HEIGHT = 14, LEAST_WIDTH = 24, LEAST_HEIGHT = 4, MOST = 400, MARGIN_MOST = 12 };

typedef struct canvas {
    const co_plot *p;
    axis x, y;
    int w, h, margin; /* cells; margin: left of the frame */
    int dx, dy;       /* dots of a cell */
    uint8_t *dots;    /* [h][w] */
    bool *marked;     /* [h][w] */
} canvas;

/* Which dot a fraction of the axis falls on. */
static int dot_of(double at, int dots)
{
    int i = (int)(at * dots);

    return i < 0 ? 0 : i >= dots ? dots - 1 : i;
}

static void set_dot(canvas *c, int x, int y)
{
    static const uint8_t bit[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    int down = c->h * c->dy - 1 - y;

    c->dots[down / c->dy * c->w + x / c->dx] |= bit[down % c->dy][x % c->dx];
}

static void draw_segment(canvas *c, int x0, int y0, int x1, int y1)
{
    int across = x1 > x0 ? x1 - x0 : x0 - x1, up = y1 > y0 ? y1 - y0 : y0 - y1;
    int n = across > up ? across : up;

    for (int i = 0; i <= n; i++)
        set_dot(c, n ? x0 + (x1 - x0) * i / n : x0, n ? y0 + (y1 - y0) * i / n : y0);
}

static void draw_line(canvas *c, const co_plot_line *l)
{
    int x0 = -1, y0 = -1;

    for (size_t i = 0; i < l->n; i++) {
        double x = axis_at(&c->x, l->x[i]), y = axis_at(&c->y, l->y[i]);
        if (isnan(x) || isnan(y)) {
            x0 = -1;
            continue;
        }
        int x1 = dot_of(x, c->w * c->dx), y1 = dot_of(y, c->h * c->dy);
        draw_segment(c, x0 < 0 ? x1 : x0, x0 < 0 ? y1 : y0, x1, y1);
        x0 = x1;
        y0 = y1;
    }
}

static void draw_mark(canvas *c, const co_plot_mark *m)
{
    double x = axis_at(&c->x, m->x), y = axis_at(&c->y, m->y);

    if (!isnan(x) && !isnan(y))
        c->marked[(c->h - 1 - dot_of(y, c->h)) * c->w + dot_of(x, c->w)] = true;
}

static const char *either(const canvas *c, const char *fine, const char *ascii)
{
    return c->p->ascii ? ascii : fine;
}

static void add_cell(const canvas *c, co_str *out, int row, int col)
{
    uint8_t dots = c->dots[row * c->w + col];
    char text[4];

    if (c->marked[row * c->w + col])
        co_str_add(out, either(c, "●", "O"));
    else if (c->p->ascii || !dots)
        co_str_add(out, dots ? "*" : " ");
    else
        co_str_addn(out, text, (size_t)co_utf8_put(text, 0x2800u + dots));
}

/* No blanks at the end of a line: what is copied from a terminal is compared and quoted. */
static void end_line(co_str *out)
{
    while (out->len && out->p[out->len - 1] == ' ')
        out->p[--out->len] = '\0';
    co_str_add(out, "\n");
}

static void add_rows(const canvas *c, co_str *out)
{
    for (int row = 0; row < c->h; row++) {
        char text[32] = "";
        for (int t = 0; t < c->y.ticks; t++)
            if (c->h - 1 - dot_of(axis_at(&c->y, c->y.tick[t]), c->h) == row)
                axis_tick_text(&c->y, t, text);
        co_str_addf(out, "%*s %s", c->margin, text, text[0] ? either(c, "┤", "+") : either(c, "│", "|"));
        for (int col = 0; col < c->w; col++)
            add_cell(c, out, row, col);
        end_line(out);
    }
}

/* The frame's lower edge, and the numbers under its ticks where there is room. */
static void add_x_axis(const canvas *c, co_str *out)
{
    char numbers[MOST + 64];
    int used = 0;

    co_str_addf(out, "%*s %s", c->margin, "", either(c, "└", "+"));
    for (int col = 0; col < c->w; col++) {
        bool tick = false;
        for (int t = 0; t < c->x.ticks; t++)
            tick |= dot_of(axis_at(&c->x, c->x.tick[t]), c->w) == col;
        co_str_add(out, tick ? either(c, "┬", "+") : either(c, "─", "-"));
    }
    co_str_add(out, "\n");
    memset(numbers, ' ', sizeof numbers);
    for (int t = 0; t < c->x.ticks; t++) {
        char text[32];
        axis_tick_text(&c->x, t, text);
        int len = (int)strlen(text), at = c->margin + 2 + dot_of(axis_at(&c->x, c->x.tick[t]), c->w) - len / 2;
        if (at < used || at + len > (int)sizeof numbers)
            continue;
        memcpy(numbers + at, text, (size_t)len);
        used = at + len + 1;
    }
    co_str_addn(out, numbers, (size_t)used);
    end_line(out);
}

/* A text as the terminal may have it: no control characters, nothing that is not UTF-8. */
static void add_text(co_str *out, const char *text)
{
    while (*text) {
        uint32_t code;
        int n = co_utf8_get(&code, text, 4);
        if (n == 0 || code < 0x20 || (code >= 0x7F && code < 0xA0))
            co_str_add(out, "?");
        else
            co_str_addn(out, text, (size_t)n);
        text += n ? n : 1;
    }
}

static void add_centred(const canvas *c, co_str *out, const char *text)
{
    int room = (c->w - (int)strlen(text)) / 2;

    co_str_addf(out, "%*s", c->margin + 2 + (room > 0 ? room : 0), "");
    add_text(out, text);
    end_line(out);
}

static void add_marks(const canvas *c, co_str *out)
{
    for (int m = 0; m < c->p->marks; m++) {
        co_str_addf(out, "%*s%s ", c->margin + 2, "", either(c, "●", "O"));
        add_text(out, c->p->mark[m].label ? c->p->mark[m].label : "");
        end_line(out);
    }
}

static int between(int x, int lo, int hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

static void lay_out(canvas *c)
{
    const co_plot *p = c->p;
    int width = between(p->width ? p->width : WIDTH, LEAST_WIDTH, MOST);

    c->h = between(p->height ? p->height : HEIGHT, LEAST_HEIGHT, MOST);
    c->dx = p->ascii ? 1 : 2;
    c->dy = p->ascii ? 1 : 4;
    axis_fit(&c->y, p, true, c->h / 3 + 1);
    for (int t = 0; t < c->y.ticks; t++) {
        char text[32];
        axis_tick_text(&c->y, t, text);
        c->margin = between((int)strlen(text), c->margin, MARGIN_MOST);
    }
    c->w = width - c->margin - 2;
    axis_fit(&c->x, p, false, c->w / 9 + 1);
}

void co_plot_terminal(co_str *out, const co_plot *p)
{
    canvas c = {.p = p};

    lay_out(&c);
    c.dots = co_array((size_t)c.w * (size_t)c.h, sizeof *c.dots);
    c.marked = co_array((size_t)c.w * (size_t)c.h, sizeof *c.marked);
    if (!c.dots || !c.marked) {
        out->failed = true;
        goto out;
    }
    for (int l = 0; l < p->lines; l++)
        if (!p->line[l].faint)
            draw_line(&c, &p->line[l]);
    for (int m = 0; m < p->marks; m++)
        draw_mark(&c, &p->mark[m]);
    if (p->title)
        add_centred(&c, out, p->title);
    if (p->y_label) {
        co_str_addf(out, "%*s", c.margin > (int)strlen(p->y_label) ? c.margin - (int)strlen(p->y_label) : 0,
                    "");
        add_text(out, p->y_label);
        end_line(out);
    }
    add_rows(&c, out);
    add_x_axis(&c, out);
    if (p->x_label)
        add_centred(&c, out, p->x_label);
    add_marks(&c, out);
out:
    co_free(c.dots);
    co_free(c.marked);
}
