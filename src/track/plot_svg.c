/* plot_svg.c -- a plot as one SVG file without scripts, fonts or other files, or as a part of an HTML page.
 *
 * Colours are classes of a style sheet inside, with a second set for viewers that ask for a dark scheme.
 * All texts are escaped, and what XML 1.0 cannot hold (control characters, bytes that are not UTF-8)
 * becomes U+FFFD. */
#include "track/plot_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 720, HEIGHT = 420, LEAST = 200, MOST = 8192 };
enum { LEFT = 74, RIGHT = 20, TOP = 44, BOTTOM = 54, LEGEND_ROW = 18 };

typedef struct picture {
    const co_plot *p;
    axis x, y;
    double w, h; /* of the whole */
    double top;  /* of the frame: below title and legend */
} picture;

static const char style[] =
    ".plot { background: #ffffff; color: #24292f; }\n"
    ".plot text { font: 13px system-ui, sans-serif; fill: #24292f; }\n"
    ".plot .title { font-size: 15px; font-weight: 600; }\n"
    ".plot .number { font-size: 12px; fill: #57606a; }\n"
    ".plot .page { fill: #ffffff; }\n"
    ".plot .grid { stroke: #d8dee4; stroke-width: 1; }\n"
    ".plot .frame { stroke: #57606a; stroke-width: 1; fill: none; }\n"
    ".plot .line { stroke-width: 2; fill: none; stroke-linejoin: round; }\n"
    ".plot .faint { stroke-width: 1; opacity: 0.55; }\n"
    ".plot .single { stroke-width: 7; }\n"
    ".plot .d1 { stroke-dasharray: 9 7; } .plot .d2 { stroke-dasharray: 3 6; }\n"
    ".plot .d3 { stroke-dasharray: 14 6 3 6; } .plot .d4 { stroke-dasharray: 6 3; }\n"
    ".plot .d5 { stroke-dasharray: 1 4; }\n"
    ".plot .mark { stroke: #cf222e; stroke-width: 1.5; stroke-dasharray: 4 4; }\n"
    ".plot .dot { fill: #cf222e; }\n"
    ".plot .c0 { stroke: #0969da; } .plot .c1 { stroke: #bc4c00; } .plot .c2 { stroke: #1a7f37; }\n"
    ".plot .c3 { stroke: #8250df; } .plot .c4 { stroke: #bf3989; } .plot .c5 { stroke: #6e7781; }\n"
    ".plot .b0 { fill: #0969da; } .plot .b1 { fill: #bc4c00; } .plot .b2 { fill: #1a7f37; }\n"
    ".plot .b3 { fill: #8250df; } .plot .b4 { fill: #bf3989; } .plot .b5 { fill: #8c959f; }\n"
    "@media (prefers-color-scheme: dark) {\n"
    "  .plot { background: #0d1117; color: #e6edf3; }\n"
    "  .plot text { fill: #e6edf3; } .plot .number { fill: #9da7b3; } .plot .page { fill: #0d1117; }\n"
    "  .plot .grid { stroke: #30363d; } .plot .frame { stroke: #8d96a0; }\n"
    "  .plot .faint { opacity: 0.75; }\n"
    "  .plot .mark { stroke: #ff7b72; } .plot .dot { fill: #ff7b72; }\n"
    "  .plot .c0 { stroke: #58a6ff; } .plot .c1 { stroke: #f0883e; } .plot .c2 { stroke: #3fb950; }\n"
    "  .plot .c3 { stroke: #bc8cff; } .plot .c4 { stroke: #f778ba; } .plot .c5 { stroke: #b1bac4; }\n"
    "  .plot .b0 { fill: #388bfd; } .plot .b1 { fill: #db6d28; } .plot .b2 { fill: #2ea043; }\n"
    "  .plot .b3 { fill: #a371f7; } .plot .b4 { fill: #db61a2; } .plot .b5 { fill: #768390; }\n"
    "}\n";

void co_plot_style(co_str *out)
{
    co_str_add(out, style);
}

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
    return c->h - BOTTOM - at * (c->h - c->top - BOTTOM);
}

void svg_text(co_str *out, double x, double y, const char *attributes, const char *text)
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

static void add_frame(const picture *c, co_str *out)
{
    co_str_addf(out, "<rect class=\"frame\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
                x_of(c, 0), y_of(c, 1), x_of(c, 1) - x_of(c, 0), y_of(c, 0) - y_of(c, 1));
}

static void add_axes(const picture *c, co_str *out)
{
    char text[32];

    for (int t = 0; t < c->x.ticks; t++) {
        double x = x_of(c, axis_at(&c->x, c->x.tick[t]));
        axis_tick_text(&c->x, t, text);
        add_straight(out, "grid", x, y_of(c, 0), x, y_of(c, 1));
        add_straight(out, "frame", x, y_of(c, 0), x, y_of(c, 0) + 5);
        svg_text(out, x, y_of(c, 0) + 19, "class=\"number\" text-anchor=\"middle\"", text);
    }
    for (int t = 0; t < c->y.ticks; t++) {
        double y = y_of(c, axis_at(&c->y, c->y.tick[t]));
        axis_tick_text(&c->y, t, text);
        add_straight(out, "grid", x_of(c, 0), y, x_of(c, 1), y);
        add_straight(out, "frame", x_of(c, 0) - 5, y, x_of(c, 0), y);
        svg_text(out, x_of(c, 0) - 9, y + 4, "class=\"number\" text-anchor=\"end\"", text);
    }
    co_str_addf(out, "<clipPath id=\"%sinside\">", c->p->part ? c->p->part : "");
    add_frame(c, out);
    co_str_add(out, "</clipPath>\n");
    add_frame(c, out);
}

/* The class that dashes line i; "" for the first. */
static const char *dash_of(bool dashed, int i, char out[8])
{
    out[0] = '\0';
    if (dashed && i % PLOT_COLOURS > 0)
        snprintf(out, 8, " d%d", i % PLOT_COLOURS);
    return out;
}

/* Gaps where a point is missing; a point between two gaps is a dot (a line of length 0 with round ends). */
static void add_line(const picture *c, co_str *out, int i)
{
    const co_plot_line *l = &c->p->line[i];
    bool pen = false;
    char dash[8];

    co_str_addf(out,
                "<path class=\"line%s%s%s c%d\" clip-path=\"url(#%sinside)\" stroke-linecap=\"round\" d=\"",
                l->faint ? " faint" : "", l->n == 1 ? " single" : "",
                dash_of(c->p->dashed && l->n > 1, i, dash), i % PLOT_COLOURS, c->p->part ? c->p->part : "");
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

/* Only the viewer knows how wide a text is; we assume 7 pixels a letter. */
static double width_of(const char *name)
{
    return 7 * (double)strlen(name);
}

int svg_legend(co_str *out, const co_plot_line *line, int n, svg_sign sign, double x, double y, double right)
{
    double at = x;
    int rows = n > 0;
    char dash[8];

    for (int i = 0; i < n; i++) {
        double w = 48 + width_of(line[i].name ? line[i].name : "");
        if (at > x && at + w - 18 > right) {
            at = x;
            rows++;
        }
        double base = y + (rows - 1) * LEGEND_ROW;
        if (out && sign == SIGN_BOX)
            co_str_addf(out, "<rect class=\"b%d\" x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\"/>\n",
                        i % PLOT_COLOURS, at + 8, base - 10);
        else if (out)
            co_str_addf(out, "<line class=\"line%s%s c%d\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
                        line[i].faint ? " faint" : "", dash_of(sign == SIGN_DASH, i, dash), i % PLOT_COLOURS,
                        at, base - 4, at + 21, base - 4);
        if (out)
            svg_text(out, at + 26, base, "class=\"number\"", line[i].name);
        at += w;
    }
    return rows;
}

static int legend_of(const picture *c, co_str *out)
{
    bool any = false;

    for (int i = 0; i < c->p->lines; i++)
        any |= c->p->line[i].name != NULL;
    if (!any || c->p->lines < 2)
        return 0;
    return svg_legend(out, c->p->line, c->p->lines, c->p->dashed ? SIGN_DASH : SIGN_LINE, LEFT, TOP,
                      c->w - RIGHT);
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
    svg_text(out, ax > 0.6 ? x - 9 : x + 9, y_of(c, 1) + 18, ax > 0.6 ? "text-anchor=\"end\"" : "", m->label);
}

static double between(int asked, int usual)
{
    int n = asked ? asked : usual;

    return n < LEAST ? LEAST : n > MOST ? MOST : n;
}

void svg_begin(co_str *out, const char *part, const char *title, double w, double h)
{
    if (!part)
        co_str_add(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    co_str_addf(
        out, "<svg class=\"plot\"%s viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" role=\"img\">\n",
        part ? "" : " xmlns=\"http://www.w3.org/2000/svg\"", w, h, w, h);
    if (title) {
        co_str_add(out, "<title>");
        add_escaped(out, title);
        co_str_add(out, "</title>\n");
    }
    if (!part)
        co_str_addf(out, "<style>\n%s</style>\n", style);
    co_str_add(out, "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n");
    svg_text(out, w / 2, 22, "class=\"title\" text-anchor=\"middle\"", title);
}

void co_plot_svg(co_str *out, const co_plot *p)
{
    picture c = {.p = p, .w = between(p->width, WIDTH), .h = between(p->height, HEIGHT)};
    double rows = legend_of(&c, NULL);

    c.top = TOP - 8 + rows * LEGEND_ROW;
    c.h += rows > 1 ? (rows - 1) * LEGEND_ROW : 0;
    axis_fit(&c.x, p, false, (int)(c.w / 90) + 1);
    axis_fit(&c.y, p, true, (int)(c.h / 60) + 1);
    svg_begin(out, p->part, p->title, c.w, c.h);
    add_axes(&c, out);
    for (int i = 0; i < p->lines; i++)
        add_line(&c, out, i);
    for (int i = 0; i < p->marks; i++)
        add_mark(&c, out, &p->mark[i]);
    legend_of(&c, out);
    svg_text(out, (x_of(&c, 0) + x_of(&c, 1)) / 2, c.h - 12, "text-anchor=\"middle\"", p->x_label);
    if (p->y_label) {
        double y = (y_of(&c, 0) + y_of(&c, 1)) / 2;
        char turned[64];
        snprintf(turned, sizeof turned, "text-anchor=\"middle\" transform=\"rotate(-90 16 %.1f)\"", y);
        svg_text(out, 16, y, turned, p->y_label);
    }
    co_str_add(out, "</svg>\n");
}
