/* plot.h -- curves for people: drawn with characters for the terminal, or as an SVG file that needs nothing
 * else.
 *
 *     co_plot p = {.title = "loss", .x_label = "step", .line = &(co_plot_line){.x = x, .y = y, .n = n}, .lines = 1};
 *     co_str text = {0};
 *     co_plot_terminal(&text, &p);
 *
 * Points that are not finite (or, on a logarithmic axis, not positive) are left out and break the line. A
 * plot without a single point is an empty frame. Texts may hold anything: what is not UTF-8 is replaced.
 */
#ifndef CO_TRACK_PLOT_H
#define CO_TRACK_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

typedef struct co_plot_line {
    const char *name;    /* for the legend; NULL: none */
    const double *x, *y; /* [n] */
    size_t n;
    bool faint; /* background: pale in the SVG, absent from the terminal; does not stretch the axes */
} co_plot_line;

typedef struct co_plot_mark {
    double x, y;
    const char *label;
} co_plot_mark;

typedef struct co_plot {
    const char *title, *x_label, *y_label; /* NULL: none */
    bool log_x, log_y;
    const co_plot_line *line;
    int lines;
    const co_plot_mark *mark;
    int marks;
    int width, height; /* cells of the terminal, pixels of the SVG; 0: as usual */
    bool ascii;        /* terminal: no characters beyond ASCII */
} co_plot;

void co_plot_terminal(co_str *out, const co_plot *p); /* lines that end with '\n' */
void co_plot_svg(co_str *out, const co_plot *p);      /* a whole file */

#endif
