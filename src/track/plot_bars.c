/* plot_bars.c -- lying bars, each cut into parts: where the time of every rank went, say.
 *
 *     rank 0  [input|compute        |wait  ]
 *     rank 1  [input|compute           |wait]
 */
#include "track/plot_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 720, TOP = 44, ROW = 26, LEGEND_ROW = 18, BOTTOM = 40, RIGHT = 20, LEFT_MOST = 160 };

static int parts_of(const co_plot_bars *p)
{
    int n = 0;

    while (n < CO_BAR_PARTS && p->part_name[n])
        n++;
    return n;
}

/* Room for the names, at 7 pixels a letter. */
static double left_of(const co_plot_bars *p)
{
    double most = 40;

    for (int i = 0; i < p->bars; i++)
        most = fmax(most, 16 + 7 * (double)strlen(p->bar[i].name ? p->bar[i].name : ""));
    return fmin(most, LEFT_MOST);
}

static double share_of(double x, double left)
{
    return isfinite(x) && x > 0 ? fmin(x, left) : 0;
}

static void add_bar(co_str *out, const co_plot_bars *p, int row, double left, double y)
{
    double at = 0, w = (p->width ? p->width : WIDTH) - left - RIGHT;
    int parts = parts_of(p);

    svg_text(out, left - 8, y + 16, "class=\"number\" text-anchor=\"end\"", p->bar[row].name);
    for (int k = 0; k < parts; k++) {
        double share = share_of(p->bar[row].share[k], 1 - at);
        if (share > 0)
            co_str_addf(out,
                        "<rect class=\"b%d\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"18\"><title>%s "
                        "%.1f %%</title></rect>\n",
                        k, left + at * w, y + 3, share * w, p->part_name[k], 100 * share);
        at += share;
    }
}

static void add_scale(co_str *out, double left, double w, double from, double to)
{
    for (int percent = 0; percent <= 100; percent += 25) {
        char text[16];
        double x = left + w * percent / 100;
        co_str_addf(out, "<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", x, from,
                    x, to);
        snprintf(text, sizeof text, "%d %%", percent);
        svg_text(out, x, to + 17,
                 percent == 100 ? "class=\"number\" text-anchor=\"end\""
                                : "class=\"number\" text-anchor=\"middle\"",
                 text);
    }
}

void co_plot_bars_svg(co_str *out, const co_plot_bars *p)
{
    co_plot_line names[CO_BAR_PARTS] = {{0}};
    int parts = parts_of(p);
    double width = p->width ? p->width : WIDTH, left = left_of(p);

    for (int k = 0; k < parts; k++)
        names[k].name = p->part_name[k];
    int rows = svg_legend(NULL, names, parts, SIGN_BOX, 8, TOP, width - RIGHT);
    double top = TOP - 8 + rows * LEGEND_ROW, bottom = top + p->bars * ROW + 6;
    svg_begin(out, p->part, p->title, width, bottom + BOTTOM - 12);
    svg_legend(out, names, parts, SIGN_BOX, 8, TOP, width - RIGHT);
    add_scale(out, left, width - left - RIGHT, top, bottom);
    for (int i = 0; i < p->bars; i++)
        add_bar(out, p, i, left, top + 2 + i * ROW);
    co_str_add(out, "</svg>\n");
}
