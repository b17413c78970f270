/* plot.h -- curves for people: drawn with characters for the terminal, or as an SVG file that needs
 * nothing else.
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
    bool faint;  /* background: pale in the SVG, absent from the terminal; does not stretch the axes */
    bool counts; /* a faint one that stretches the axes all the same */
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
    /* SVG: part of an HTML page that has co_plot_style's rules; the name is used for ids and is unique there.
     * NULL: a file of its own. */
    const char *part;
    bool from_zero; /* the y axis begins at 0 */
    bool dashed;    /* SVG: lines after the first are dashed, so that equal ones can be told apart */
} co_plot;

/* Bars that lie: a row for each name, cut into parts. Shares of 1; what is left of the row stays empty. */
enum { CO_BAR_PARTS = 6 };
typedef struct co_plot_bar {
    const char *name;
    double share[CO_BAR_PARTS];
} co_plot_bar;

typedef struct co_plot_bars {
    const char *title;
    const char *part_name[CO_BAR_PARTS]; /* for the legend; NULL ends them */
    const co_plot_bar *bar;
    int bars;
    int width;        /* as in co_plot */
    const char *part; /* as in co_plot */
} co_plot_bars;

void co_plot_terminal(co_str *out, const co_plot *p); /* lines that end with '\n' */
void co_plot_svg(co_str *out, const co_plot *p);
void co_plot_bars_svg(co_str *out, const co_plot_bars *p);
void co_plot_style(co_str *out); /* the rules of CSS that both use, light and dark */

#endif
