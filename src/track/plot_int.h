/* plot_int.h -- axes: which values they span, and where the ticks stand. */
#ifndef CO_TRACK_PLOT_INT_H
#define CO_TRACK_PLOT_INT_H

#include "track/plot.h"

enum { MAX_TICKS = 24 };

typedef struct axis {
    bool log;
    double lo, hi; /* of the values, or of their decimal logarithms */
    int ticks;
    double tick[MAX_TICKS]; /* values */
    int decimals;           /* of a tick's text; -1: as short as it goes */
    double unit;            /* of a tick's text: 1e3 for "k" */
} axis;

/* Spans all points of the plot, with about `want` ticks. */
void axis_fit(axis *a, const co_plot *p, bool vertical, int want);
/* 0 at the low end, 1 at the high one; nan for what has no place. */
double axis_at(const axis *a, double value);
void axis_tick_text(const axis *a, int tick, char text[32]);

/* plot_svg.c: what plot_bars.c uses, too. */
enum { PLOT_COLOURS = 6 };
/* The beginning of the file, or of the part of a page, up to its title. */
void svg_begin(co_str *out, const char *part, const char *title, double w, double h);
void svg_text(co_str *out, double x, double y, const char *attributes, const char *text);
/* Names in rows from (x, y) on, no wider than `right`, each with a sign before it. Returns how many rows they
 * take; with out NULL, only counts. */
typedef enum { SIGN_LINE, SIGN_DASH, SIGN_BOX } svg_sign;
int svg_legend(co_str *out, const co_plot_line *line, int n, svg_sign sign, double x, double y, double right);

#endif
