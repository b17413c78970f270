/* ops_report.c -- what `cohort bench ops` prints: a row per call, sorted by time, and totals by operator. */
#include "bench/ops_int.h"

#include <stdlib.h>
#include <string.h>

static int by_time(const void *a, const void *b)
{
    double x = ((const ops_row *)a)->ms[0], y = ((const ops_row *)b)->ms[0];

    return (x < y) - (x > y);
}

static void add_row(ops_row *sum, const ops_row *row)
{
    sum->calls += row->calls;
    sum->bytes += row->bytes;
    sum->flops += row->flops;
    sum->useful += row->useful;
    sum->counted |= row->counted;
    for (int r = 0; r < OPS_RANKS; r++)
        sum->ms[r] += row->ms[r];
}

/* The rows of each operator added up, slowest first; how many there are. `all` gets the sum of everything. */
static int add_up(const ops *o, ops_row by_op[CO_OP_COUNT], ops_row *all)
{
    int n = 0;

    *all = (ops_row){0};
    for (int i = 0; i < o->n; i++) {
        int k = 0;
        while (k < n && by_op[k].facts->op != o->row[i].facts->op)
            k++;
        if (k == n)
            by_op[n++] = (ops_row){.facts = o->row[i].facts};
        add_row(&by_op[k], &o->row[i]);
        add_row(all, &o->row[i]);
    }
    qsort(by_op, (size_t)n, sizeof *by_op, by_time);
    return n;
}

/* Shares of the peaks of one process while so many compute. */
static double of_fma(const ops *o, const ops_row *row, int ranks)
{
    return row->useful / (row->ms[ranks - 1] * 1e-3) / o->peak[ranks - 1].flops_per_s;
}

static double of_bandwidth(const ops *o, const ops_row *row, int ranks)
{
    return row->bytes / (row->ms[ranks - 1] * 1e-3) / o->peak[ranks - 1].bytes_per_s;
}

/* "layer1.0.conv1" of "conv2d 'layer1.0.conv1'", "#7" of "relu#7"; how long it is. */
static int label(const co_call_facts *f, const char **out)
{
    const char *at = f->name + strlen(co_op_name(f->op));

    at += strspn(at, " '");
    *out = at;
    return (int)strcspn(at, "'");
}

/* --- for people --------------------------------------------------------------------------------------- */
/* The figures that calls and totals share: GFLOP, useful share, MB, shares of the peaks. */
static void put_figures(co_str *out, const ops *o, const ops_row *row)
{
    if (row->counted)
        co_str_addf(out, " %8.4f %6.1f", row->flops * 1e-9, 100 * row->useful / row->flops);
    else
        co_str_addf(out, " %8s %6s", "", "");
    co_str_addf(out, " %8.3f", row->bytes * 1e-6);
    if (row->counted && o->peak[0].flops_per_s > 0)
        co_str_addf(out, " %6.1f", 100 * of_fma(o, row, 1));
    else
        co_str_addf(out, " %6s", "");
    co_str_addf(out, " %6.1f", 100 * of_bandwidth(o, row, 1));
}

static void put_time(co_str *out, const ops_row *row, const ops_row *all)
{
    co_str_addf(out, "%9.3f %9.3f %5.1f", row->ms[0], row->ms[1], 100 * row->ms[0] / all->ms[0]);
}

/* All inputs, and the first output: the others are statistics. */
static void put_shapes(co_str *out, const co_call_facts *f)
{
    char text[96];

    for (int i = 0; i < f->n_in; i++)
        co_str_addf(out, "%s ", co_shape_text(text, sizeof text, &f->in[i]));
    co_str_addf(out, "-> %s", co_shape_text(text, sizeof text, &f->out[0]));
}

static void put_call(co_str *out, const ops *o, const ops_row *row, const ops_row *all)
{
    const char *name;
    int len = label(row->facts, &name);

    put_time(out, row, all);
    put_figures(out, o, row);
    co_str_addf(out, "  %-9s %-20s %s %.*s  ", row->facts->algorithm, co_op_name(row->facts->op),
                row->facts->backward ? "<" : ">", len, name);
    put_shapes(out, row->facts);
    co_str_add(out, "\n");
}

static const char heads[] = "   1 rank   2 ranks     %    GFLOP useful       MB  fma %  mem %";

static void put_peaks(co_str *out, const ops *o)
{
    for (int r = 0; r < OPS_RANKS; r++) {
        co_str_addf(out, "%s: ", r == 0 ? "peak of one process alone" : "of each of two at once");
        if (o->peak[r].flops_per_s > 0)
            co_str_addf(out, "%.1f GFLOP/s, ", o->peak[r].flops_per_s * 1e-9);
        co_str_addf(out, "%.1f GB/s%s", o->peak[r].bytes_per_s * 1e-9, r == 0 ? "; " : "\n");
    }
}

void ops_print_text(ops *o, const char *title)
{
    ops_row by_op[CO_OP_COUNT], all;
    co_str text = {0};
    int n = add_up(o, by_op, &all);

    qsort(o->row, (size_t)o->n, sizeof *o->row, by_time);
    co_str_addf(&text, "%s: %d calls on a slice of %d samples; times in ms, medians of %d rounds\n", title,
                o->n, o->samples, o->rounds);
    put_peaks(&text, o);
    co_str_addf(&text, "\n%s  %-9s %-20s > forward, < backward: name  inputs -> output\n", heads, "algorithm",
                "operator");
    for (int i = 0; i < o->n; i++)
        put_call(&text, o, &o->row[i], &all);
    co_str_addf(&text, "\n%s  calls  operator\n", heads);
    for (int i = 0; i <= n; i++) {
        const ops_row *row = i < n ? &by_op[i] : &all;
        put_time(&text, row, &all);
        put_figures(&text, o, row);
        co_str_addf(&text, "  %5d  %s\n", row->calls, i < n ? co_op_name(row->facts->op) : "all");
    }
    fputs(co_str_text(&text), stdout);
    co_str_fini(&text);
}

/* --- for scripts -------------------------------------------------------------------------------------- */
static json_t *shapes_json(const co_shape *s, int n)
{
    json_t *list = json_array();

    for (int i = 0; i < n; i++) {
        json_t *dims = json_array();
        for (int k = 0; k < s[i].nd; k++)
            json_array_append_new(dims, json_integer((json_int_t)s[i].d[k]));
        json_array_append_new(list, dims);
    }
    return list;
}

static void put_numbers(json_t *j, const ops *o, const ops_row *row)
{
    static const char *const of_fma_keys[] = {"of_fma", "of_fma_two"}, *const of_memory_keys[] = {
                                                                           "of_bandwidth",
                                                                           "of_bandwidth_two"};

    if (row->counted) {
        json_object_set_new(j, "flops", co_json_num(row->flops));
        json_object_set_new(j, "useful_flops", co_json_num(row->useful));
    }
    json_object_set_new(j, "bytes", co_json_num(row->bytes));
    json_object_set_new(j, "ms", co_json_num(row->ms[0]));
    json_object_set_new(j, "ms_two", co_json_num(row->ms[1]));
    for (int ranks = 1; ranks <= OPS_RANKS; ranks++) {
        if (row->counted && o->peak[ranks - 1].flops_per_s > 0)
            json_object_set_new(j, of_fma_keys[ranks - 1], co_json_num(of_fma(o, row, ranks)));
        json_object_set_new(j, of_memory_keys[ranks - 1], co_json_num(of_bandwidth(o, row, ranks)));
    }
}

static json_t *call_json(const ops *o, const ops_row *row)
{
    const co_call_facts *f = row->facts;
    const char *name;
    int len = label(f, &name);
    json_t *j = json_pack("{s:s, s:i, s:s, s:o, s:s, s:o, s:o, s:s}", "task", "ops call", "call", row->call,
                          "op", co_op_name(f->op), "name", json_stringn(name, (size_t)len), "pass",
                          f->backward ? "backward" : "forward", "in", shapes_json(f->in, f->n_in), "out",
                          shapes_json(f->out, f->n_out), "algorithm", f->algorithm);

    put_numbers(j, o, row);
    return j;
}

static json_t *peaks_json(const ops *o, bool bandwidth)
{
    json_t *list = json_array();

    for (int r = 0; r < OPS_RANKS; r++)
        json_array_append_new(
            list, co_json_num((bandwidth ? o->peak[r].bytes_per_s : o->peak[r].flops_per_s) * 1e-9));
    return list;
}

void ops_print_json(const ops *o)
{
    ops_row by_op[CO_OP_COUNT], all;
    int n = add_up(o, by_op, &all);

    for (int i = 0; i < o->n; i++)
        co_json_print(call_json(o, &o->row[i]));
    for (int i = 0; i <= n; i++) {
        const ops_row *row = i < n ? &by_op[i] : &all;
        json_t *j = json_pack("{s:s, s:s, s:i}", "task", i < n ? "ops operator" : "ops", "op",
                              i < n ? co_op_name(row->facts->op) : "all", "calls", row->calls);
        put_numbers(j, o, row);
        if (i == n) {
            json_object_set_new(j, "samples", json_integer(o->samples));
            json_object_set_new(j, "rounds", json_integer(o->rounds));
            json_object_set_new(j, "peak_gflops", peaks_json(o, false));
            json_object_set_new(j, "peak_gbytes_per_s", peaks_json(o, true));
        }
        co_json_print(j);
    }
}
