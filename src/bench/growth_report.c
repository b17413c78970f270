/* growth_report.c -- the figures of `cohort bench growth`: JSON, and a plot for each axis.
 *
 *     cost of a FLOP   time of a sample over its useful FLOPs; work that grows smoothly keeps it level
 *     rise             that cost at a point over the cost at the point before; above 1 it got dearer
 *     cliff            a rise of more than a quarter
 *
 * A cliff counts as ours alone where PyTorch has none between the same two points. */
#include "bench/growth_int.h"

#include "base/fs.h"
#include "track/plot.h"

static const double cliff = 1.25;
static const char *const side_name[2] = {"cohort", "torch"};

static json_t *both(double ours, double theirs)
{
    return json_pack("{s:f, s:f}", side_name[0], ours, side_name[1], theirs);
}

void growth_print_point(const growth *g, const growth_point *p)
{
    double u = p->units;
    json_t *j = json_pack("{s:s, s:s, s:i, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:f, s:o, s:f, s:s}",
                          "task", "growth", "axis", g->axis->name, "point", p->point, "model", p->model,
                          "batch", p->batch, "size", p->size, "ranks", p->ranks, "threads", p->threads, "steps",
                          p->steps, "rounds", g->rounds, "ms_per_sample", both(u * p->ms[0], u * p->ms[1]),
                          "ratio", p->ratio, "ms_per_gflop", both(p->ms[0] / p->gflop, p->ms[1] / p->gflop),
                          "gflop_per_sample", u * p->gflop, "compared_with", p->compared_with);

    if (g->axis->by_token)
        json_object_set_new(j, "ms_per_token", both(p->ms[0], p->ms[1]));
    co_json_print(j);
    fflush(stdout);
}

/* --- cliffs --------------------------------------------------------------------------------------------- */
/* From the point before i to i. */
static double rise(const growth *g, int side, int i)
{
    const growth_point *to = &g->at[i], *from = to - 1;

    return (to->ms[side] / to->gflop) / (from->ms[side] / from->gflop);
}

static json_t *rise_json(const growth *g, int side, int i)
{
    return json_pack("{s:i, s:i, s:f}", "from", g->at[i - 1].point, "to", g->at[i].point, "rise",
                     rise(g, side, i));
}

static json_t *largest_rise(const growth *g, int side)
{
    int most = 1;

    for (int i = 2; i < g->n; i++)
        most = rise(g, side, i) > rise(g, side, most) ? i : most;
    return rise_json(g, side, most);
}

static json_t *cliffs_of(const growth *g, int side, bool alone)
{
    json_t *list = json_array();

    for (int i = 1; i < g->n; i++)
        if (rise(g, side, i) > cliff && !(alone && rise(g, 1 - side, i) > cliff))
            json_array_append_new(list, rise_json(g, side, i));
    return list;
}

void growth_print_axis(const growth *g)
{
    char cpu[128];
    json_t *j = json_pack("{s:s, s:s, s:i}", "task", "growth-axis", "axis", g->axis->name, "points", g->n);

    cpu_fact("model name", cpu, sizeof cpu);
    json_object_set_new(
        j, "largest_rise",
        json_pack("{s:o, s:o}", side_name[0], largest_rise(g, 0), side_name[1], largest_rise(g, 1)));
    json_object_set_new(j, "cliff_above", json_real(cliff));
    json_object_set_new(
        j, "cliffs",
        json_pack("{s:o, s:o}", side_name[0], cliffs_of(g, 0, false), side_name[1], cliffs_of(g, 1, false)));
    json_object_set_new(j, "cliffs_only_cohort", cliffs_of(g, 0, true));
    json_object_set_new(j, "kernels", json_string(g->v.kernels));
    json_object_set_new(j, "versions", json_incref(g->v.versions));
    json_object_set_new(j, "cpu", json_string(cpu));
    json_object_set_new(j, "cpu_flags", cpu_vector_flags());
    co_json_print(j);
}

/* --- the plot ------------------------------------------------------------------------------------------- */
co_err growth_plot(const growth *g)
{
    double x[GROWTH_POINTS], ms[2][GROWTH_POINTS];
    co_plot_line line[2];
    char path[4096];
    co_str svg = {0};

    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < g->n; i++) {
            x[i] = g->at[i].point;
            ms[side][i] = g->at[i].ms[side];
        }
        line[side] =
            (co_plot_line){.name = side ? "PyTorch" : "cohort", .x = x, .y = ms[side], .n = (size_t)g->n};
    }
    co_plot_svg(&svg, &(co_plot){.title = g->axis->help,
                                 .x_label = g->axis->label,
                                 .y_label = g->axis->by_token ? "ms per token" : "ms per sample",
                                 .log_x = g->axis->doubles,
                                 .from_zero = true,
                                 .line = line,
                                 .lines = 2});
    snprintf(path, sizeof path, "%s/growth-%s.svg", g->plots, g->axis->name);
    co_err err = co_str_err(&svg);
    if (!err)
        err = co_fs_write_atomic(path, co_str_text(&svg), svg.len);
    co_str_fini(&svg);
    return err;
}
