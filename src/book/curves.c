/* curves.c -- series of a run as lines of a plot. */
#include "book/book_int.h"

#include <math.h>

co_plot_line *curves_add(curves *c, const char *name, const co_series *s, double scale, double origin,
                         double unit)
{
    if (!s || c->n == CURVES)
        return NULL;
    double *x = co_array(s->n, sizeof *x), *y = co_array(s->n, sizeof *y);
    if (!x || !y) {
        co_free(x);
        co_free(y);
        return NULL;
    }
    for (size_t i = 0; i < s->n; i++) {
        x[i] = unit > 0 ? (s->point[i].t - origin) / unit : (double)s->point[i].step;
        y[i] = scale * s->point[i].value;
    }
    c->line[c->n] = (co_plot_line){.name = name, .x = x, .y = y, .n = s->n};
    return &c->line[c->n++];
}

void curves_fini(curves *c)
{
    for (int i = 0; i < c->n; i++) {
        co_free((double *)c->line[i].x);
        co_free((double *)c->line[i].y);
    }
    *c = (curves){0};
}

const char *time_unit(double span_s, double *unit)
{
    bool short_one = !(span_s > 180), middle = span_s <= 3 * 3600;

    *unit = short_one ? 1 : middle ? 60 : 3600;
    return short_one ? "time (s)" : middle ? "time (min)" : "time (h)";
}
