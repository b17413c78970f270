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
} axis;

/* Spans all points of the plot, with about `want` ticks. */
void axis_fit(axis *a, const co_plot *p, bool vertical, int want);
/* 0 at the low end, 1 at the high one; nan for what has no place. */
double axis_at(const axis *a, double value);
void axis_tick_text(const axis *a, int tick, char text[32]);

#endif
