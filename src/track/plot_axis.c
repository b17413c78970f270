/* plot_axis.c -- the range of an axis and its ticks.
 *
 * The range covers the values; the vertical axis has a margin. Ticks are round numbers: 1, 2 or 5 times a
 * power of ten, or on a logarithmic axis the powers of ten, if there are at least two of them. */
#include "track/plot_int.h"

#include <math.h>
#include <stdio.h>

#define HUGEST 1e300 /* beyond, differences overflow */
#define AIR    0.03  /* of the height above and below a curve */

/* The value as the axis counts it, or nan. */
static double place(bool log_, double v)
{
    if (!isfinite(v) || fabs(v) > HUGEST || (log_ && v < 1 / HUGEST))
        return NAN;
    return log_ ? log10(v) : v;
}

static void span(axis *a, double at)
{
    if (isnan(at))
        return;
    a->lo = fmin(a->lo, at);
    a->hi = fmax(a->hi, at);
}

static void add_tick(axis *a, double value)
{
    double at = place(a->log, value), slack = 1e-9 * (a->hi - a->lo);

    if (a->ticks < MAX_TICKS && at >= a->lo - slack && at <= a->hi + slack)
        a->tick[a->ticks++] = value;
}

static void linear_ticks(axis *a, double lo, double hi, int want)
{
    double raw = (hi - lo) / want, power = pow(10, floor(log10(raw))), m = raw / power;
    double step = (m <= 1 ? 1 : m <= 2 ? 2 : m <= 5 ? 5 : 10) * power;
    double first = ceil(lo / step - 1e-9), most = fmax(fabs(lo), fabs(hi));

    for (int i = 0; i < MAX_TICKS && (first + i) * step <= hi + 1e-9 * step; i++)
        add_tick(a, (first + i) * step);
    static const double units[] = {1e9, 1e6, 1e3};
    for (size_t i = 0; i < CO_COUNT(units) && a->unit == 1; i++)
        if (most >= (units[i] > 1e3 ? 1 : 10) * units[i] && most < 1e12 && step >= 0.1 * units[i])
            a->unit = units[i];
    double shown = step / a->unit;
    if (most >= 1e-3 && most < 1e12 && shown >= 1e-9 && most / a->unit < 1e6)
        a->decimals = shown >= 1 ? 0 : (int)ceil(-log10(shown) - 1e-9);
}

static void log_ticks(axis *a, int want)
{
    static const double between[] = {1, 2, 5};
    int first = (int)floor(a->lo), last = (int)ceil(a->hi), stride = (last - first) / want + 1;

    if (a->hi - a->lo < 0.7) { /* not even a 2 and a 5 for certain */
        linear_ticks(a, pow(10, a->lo), pow(10, a->hi), want);
        return;
    }
    bool fine = a->hi - a->lo < 2;
    for (int d = first; d <= last; d += stride)
        for (size_t i = 0; i < (fine ? CO_COUNT(between) : 1); i++)
            add_tick(a, between[i] * pow(10, d));
}

void axis_fit(axis *a, const co_plot *p, bool vertical, int want)
{
    *a = (axis){
        .log = vertical ? p->log_y : p->log_x, .lo = INFINITY, .hi = -INFINITY, .decimals = -1, .unit = 1};
    for (int l = 0; l < p->lines; l++)
        for (size_t i = 0; i < p->line[l].n && (!p->line[l].faint || p->line[l].counts); i++)
            span(a, place(a->log, vertical ? p->line[l].y[i] : p->line[l].x[i]));
    for (int m = 0; m < p->marks; m++)
        span(a, place(a->log, vertical ? p->mark[m].y : p->mark[m].x));
    if (a->lo > a->hi)
        a->lo = 0, a->hi = 1;
    double most = fmax(fabs(a->lo), fabs(a->hi));
    if (a->hi - a->lo <= 1e-12 * most || a->hi - a->lo < 1e-290) { /* one value: in the middle */
        double half = most > 1e-290 ? 0.1 * most : 1;
        a->lo -= half;
        a->hi += half;
    }
    bool zero = vertical && p->from_zero && !a->log && a->lo >= 0;
    a->lo = zero ? 0 : a->lo;
    double air = vertical ? AIR * (a->hi - a->lo) : 0;
    a->lo -= zero ? 0 : air;
    a->hi += air;
    if (a->log)
        log_ticks(a, want);
    else
        linear_ticks(a, a->lo, a->hi, want);
}

double axis_at(const axis *a, double value)
{
    return (place(a->log, value) - a->lo) / (a->hi - a->lo);
}

void axis_tick_text(const axis *a, int tick, char text[32])
{
    const char *unit = a->unit == 1e3 ? "k" : a->unit == 1e6 ? "M" : a->unit == 1e9 ? "G" : "";

    if (a->decimals >= 0 && a->unit > 1 && a->tick[tick] == 0)
        snprintf(text, 32, "0");
    else if (a->decimals >= 0)
        snprintf(text, 32, "%.*f%s", a->decimals, a->tick[tick] / a->unit, unit);
    else
        snprintf(text, 32, "%.4g", a->tick[tick]);
}
