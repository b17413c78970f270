/* plot_svg.c -- a plot as one SVG file without scripts, fonts or other files.
 *
 * Colours are classes of a style sheet inside, with a second set for viewers that ask for a dark scheme.
 * All texts are escaped, and what XML 1.0 cannot hold (control characters, bytes that are not UTF-8)
 * becomes U+FFFD. */
#include "track/plot_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 720, HEIGHT = 420, LEAST = 200, MOST = 8192 };
enum { LEFT = 70, RIGHT = 24, TOP = 60, BOTTOM = 58, COLOURS = 6 };

typedef struct picture {
    const co_plot *p;
    axis x, y;
    double w, h; /* of the whole */
} picture;

static const char style[] =
    "<style>\n"
    "  svg { background: #ffffff; color: #24292f; }\n"
    "  text { font: 13px system-ui, sans-serif; fill: #24292f; }\n"
    "  .title { font-size: 16px; font-weight: 600; }\n"
    "  .number { font-size: 12px; fill: #57606a; }\n"
    "  .page { fill: #ffffff; }\n"
    "  .grid { stroke: #d8dee4; stroke-width: 1; }\n"
    "  .frame { stroke: #57606a; stroke-width: 1; fill: none; }\n"
    "  .line { stroke-width: 2; fill: none; stroke-linejoin: round; }\n"
    "  .faint { stroke-width: 1; opacity: 0.35; }\n"
    "  .mark { stroke: #cf222e; stroke-width: 1.5; stroke-dasharray: 4 4; }\n"
    "  .dot { fill: #cf222e; }\n"
    "  .c0 { stroke: #0969da; } .c1 { stroke: #bc4c00; } .c2 { stroke: #1a7f37; }\n"
    "  .c3 { stroke: #8250df; } .c4 { stroke: #bf3989; } .c5 { stroke: #6e7781; }\n"
    "  @media (prefers-color-scheme: dark) {\n"
    "    svg { background: #0d1117; color: #e6edf3; }\n"
    "    text { fill: #e6edf3; } .number { fill: #8d96a0; } .page { fill: #0d1117; }\n"
    "    .grid { stroke: #30363d; } .frame { stroke: #8d96a0; }\n"
    "    .mark { stroke: #ff7b72; } .dot { fill: #ff7b72; }\n"
    "    .c0 { stroke: #58a6ff; } .c1 { stroke: #f0883e; } .c2 { stroke: #3fb950; }\n"
    "    .c3 { stroke: #bc8cff; } .c4 { stroke: #f778ba; } .c5 { stroke: #b1bac4; }\n"
    "  }\n"
    "</style>\n";

static void add_escaped(co_str *out, const char *text)
{
    while (*text) {
        uint32_t code = 0;
        int n = co_utf8_get(&code, text, 4);
        bool bad = n == 0 || (code < 0x20 && code != '\t' && code != '\n' && code != '\r') ||
                   code == 0xFFFE || code == 0xFFFF;
        if (bad)
            co_str_add(out, "&#xFFFD;");
        else if (strchr("&<>\"'", (int)code) && code < 0x80)
            co_str_addf(out, "&#%u;", (unsigned)code);
        else
            co_str_addn(out, text, (size_t)n);
        text += n ? n : 1;
    }
}

static double x_of(const picture *c, double at)
{
    return LEFT + at * (c->w - LEFT - RIGHT);
}

static double y_of(const picture *c, double at)
{
    return c->h - BOTTOM - at * (c->h - TOP - BOTTOM);
}

static void add_label(co_str *out, double x, double y, const char *attributes, const char *text)
{
    if (!text || !*text)
        return;
    co_str_addf(out, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes);
    add_escaped(out, text);
    co_str_add(out, "</text>\n");
}

static void add_straight(co_str *out, const char *class, double x0, double y0, double x1, double y1)
{
    co_str_addf(out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class, x0, y0,
                x1, y1);
}

static void add_axes(const picture *c, co_str *out)
{
    char text[32];

    for (int t = 0; t < c->x.ticks; t++) {
        double x = x_of(c, axis_at(&c->x, c->x.tick[t]));
        axis_tick_text(&c->x, t, text);
        add_straight(out, "grid", x, y_of(c, 0), x, y_of(c, 1));
        add_straight(out, "frame", x, y_of(c, 0), x, y_of(c, 0) + 5);
        add_label(out, x, y_of(c, 0) + 19, "class=\"number\" text-anchor=\"middle\"", text);
    }
    for (int t = 0; t < c->y.ticks; t++) {
        double y = y_of(c, axis_at(&c->y, c->y.tick[t]));
        axis_tick_text(&c->y, t, text);
        add_straight(out, "grid", x_of(c, 0), y, x_of(c, 1), y);
        add_straight(out, "frame", x_of(c, 0) - 5, y, x_of(c, 0), y);
        add_label(out, x_of(c, 0) - 9, y + 4, "class=\"number\" text-anchor=\"end\"", text);
    }
    for (int clip = 0; clip < 2; clip++)
        co_str_addf(out, "%s<rect class=\"frame\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>%s\n",
                    clip ? "<clipPath id=\"inside\">" : "", x_of(c, 0), y_of(c, 1), x_of(c, 1) - x_of(c, 0),
                    y_of(c, 0) - y_of(c, 1), clip ? "</clipPath>" : "");
}

/* Gaps where a point is missing; a point between two gaps is a dot (a line of length 0 with round ends). */
static void add_line(const picture *c, co_str *out, int i)
{
    const co_plot_line *l = &c->p->line[i];
    bool pen = false;

    co_str_addf(out, "<path class=\"line%s c%d\" clip-path=\"url(#inside)\" stroke-linecap=\"round\" d=\"",
                l->faint ? " faint" : "", i % COLOURS);
    for (size_t k = 0; k < l->n; k++) {
        double x = axis_at(&c->x, l->x[k]), y = axis_at(&c->y, l->y[k]);
        bool there = !isnan(x) && !isnan(y);
        x = fmin(fmax(x, -9), 10); /* a faint line may leave the frame, but not by a thousand digits */
        y = fmin(fmax(y, -9), 10);
        if (there && !pen)
            co_str_addf(out, "M%.2f %.2fh0", x_of(c, x), y_of(c, y));
        else if (there)
            co_str_addf(out, "L%.2f %.2f", x_of(c, x), y_of(c, y));
        pen = there;
    }
    co_str_add(out, "\"/>\n");
}

/* In a row above the frame. Only the viewer knows how wide a text is; we assume 8 pixels a letter. */
static void add_legend(const picture *c, co_str *out)
{
    double x = LEFT, y = TOP - 10;

    for (int i = 0; i < c->p->lines && c->p->lines > 1; i++) {
        const co_plot_line *l = &c->p->line[i];
        if (!l->name)
            continue;
        co_str_addf(out, "<line class=\"line%s c%d\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
                    l->faint ? " faint" : "", i % COLOURS, x, y - 4, x + 24, y - 4);
        add_label(out, x + 30, y, "class=\"number\"", l->name);
        x += 50 + 8 * (double)strlen(l->name);
    }
}

/* A dashed line down to the axis; the words on the side where there is room. */
static void add_mark(const picture *c, co_str *out, const co_plot_mark *m)
{
    double ax = axis_at(&c->x, m->x), ay = axis_at(&c->y, m->y);

    if (isnan(ax) || isnan(ay))
        return;
    double x = x_of(c, ax), y = y_of(c, ay);
    add_straight(out, "mark", x, y_of(c, 0), x, y_of(c, 1));
    co_str_addf(out, "<circle class=\"dot\" cx=\"%.2f\" cy=\"%.2f\" r=\"5\"/>\n", x, y);
    add_label(out, ax > 0.6 ? x - 9 : x + 9, y_of(c, 1) + 18, ax > 0.6 ? "text-anchor=\"end\"" : "", m->label);
}

static double between(int asked, int usual)
{
    int n = asked ? asked : usual;

    return n < LEAST ? LEAST : n > MOST ? MOST : n;
}

void co_plot_svg(co_str *out, const co_plot *p)
{
    picture c = {.p = p, .w = between(p->width, WIDTH), .h = between(p->height, HEIGHT)};

    axis_fit(&c.x, p, false, (int)(c.w / 90) + 1);
    axis_fit(&c.y, p, true, (int)(c.h / 60) + 1);
    co_str_addf(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
        "role=\"img\">\n",
        c.w, c.h, c.w, c.h);
    if (p->title) {
        co_str_add(out, "<title>");
        add_escaped(out, p->title);
        co_str_add(out, "</title>\n");
    }
    co_str_add(out, style);
    co_str_add(out, "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n");
    add_label(out, c.w / 2, 25, "class=\"title\" text-anchor=\"middle\"", p->title);
    add_axes(&c, out);
    for (int i = 0; i < p->lines; i++)
        add_line(&c, out, i);
    for (int i = 0; i < p->marks; i++)
        add_mark(&c, out, &p->mark[i]);
    add_legend(&c, out);
    add_label(out, (x_of(&c, 0) + x_of(&c, 1)) / 2, c.h - 14, "text-anchor=\"middle\"", p->x_label);
    if (p->y_label) {
        double y = (y_of(&c, 0) + y_of(&c, 1)) / 2;
        char turned[64];
        snprintf(turned, sizeof turned, "text-anchor=\"middle\" transform=\"rotate(-90 18 %.1f)\"", y);
        add_label(out, 18, y, turned, p->y_label);
    }
    co_str_add(out, "</svg>\n");
}
