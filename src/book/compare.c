/* compare.c -- runs side by side: the table that people typed by hand after training on one and on two
 * machines, the curves over one another, and a sentence for each difference. The first run is the base. */
#include "book/book_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"

typedef struct comparison {
    facts run[CO_BOOK_COMPARED];
    int n;
    bool top5; /* some run has val/acc5 */
    char metric[96], metric_head[96];
} comparison;

/* --- names -------------------------------------------------------------------------------------------- */
/* Runs of one name are called by their folders. */
static void tell_apart(comparison *c)
{
    bool twice[CO_BOOK_COMPARED] = {false};

    for (int i = 0; i < c->n; i++)
        for (int k = 0; k < c->n; k++)
            twice[i] |= i != k && strcmp(c->run[i].name, c->run[k].name) == 0;
    for (int i = 0; i < c->n; i++)
        if (twice[i])
            snprintf(c->run[i].name, sizeof c->run[i].name, "%s", co_run_dir(c->run[i].run));
}

static co_err open_all(comparison *c, const char *const *dirs, int n)
{
    for (c->n = 0; c->n < n; c->n++)
        CO_TRY(facts_open(&c->run[c->n], dirs[c->n]));
    tell_apart(c);
    const char *metric = c->run[0].metric;
    snprintf(c->metric, sizeof c->metric, "val/%.80s", *metric ? metric : "loss");
    if (strcmp(metric, "acc") == 0)
        snprintf(c->metric_head, sizeof c->metric_head, "Acc@1");
    else
        snprintf(c->metric_head, sizeof c->metric_head, "%s", c->metric);
    for (int i = 0; i < n; i++)
        c->top5 |= !isnan(facts_last(&c->run[i], "val/acc5"));
    return CO_OK;
}

static void close_all(comparison *c)
{
    for (int i = 0; i < c->n; i++)
        facts_close(&c->run[i]);
}

/* --- the table ---------------------------------------------------------------------------------------- */
static double of(const json_t *host, const char *key)
{
    double x = NAN;

    co_json_f64(host, key, &x);
    return x;
}

static void time_cell(page *p, double secs)
{
    page_cell(p, isnan(secs) ? "" : words_time(secs).text);
}

static void metric_cell(page *p, const facts *f, const char *name)
{
    double x = facts_last(f, name);

    page_cell(p, isnan(x) ? "" : words_metric(name, x).text);
}

/* What is of the whole run stands in the row of its first host. */
static void run_cells(page *p, const comparison *c, const facts *f)
{
    double up = facts_speed_up(&c->run[0], f), each = facts_efficiency(&c->run[0], f);

    page_cell(p, f->samples_per_s > 0 ? words_rate(f->samples_per_s).text : "");
    if (isnan(up))
        page_cell(p, "");
    else
        page_cellf(p, "%.2f", up);
    if (isnan(each))
        page_cell(p, "");
    else
        page_cellf(p, "%.0f %%", 100 * each);
    metric_cell(p, f, c->metric);
    if (c->top5)
        metric_cell(p, f, "val/acc5");
}

static void host_row(page *p, const comparison *c, const facts *f, const json_t *hosts, size_t i)
{
    const json_t *host = json_array_get(hosts, i);
    bool first = i == 0;
    char name[96];

    page_cell(p, first ? f->name : "");
    page_cell(p, facts_host(hosts, i, name));
    page_cell(p, isnan(of(host, "ranks")) ? "" : words_int(of(host, "ranks")).text);
    time_cell(p, host ? of(host, "wall_s") : f->wall_s);
    time_cell(p, of(host, "cpu_user_s"));
    time_cell(p, of(host, "cpu_sys_s"));
    time_cell(p, of(host, "cpu_user_s") + of(host, "cpu_sys_s"));
    page_cell(p, isnan(of(host, "utilisation")) ? "" : words_percent(of(host, "utilisation")).text);
    if (first)
        run_cells(p, c, f);
    else
        for (int k = 0; k < (c->top5 ? 5 : 4); k++)
            page_cell(p, "");
}

static void table(page *p, const comparison *c)
{
    const char *head[] = {"run",        "host",         "ranks",       "wall time", "user CPU",
                          "system CPU", "total CPU",    "utilisation", "samples/s", "speed-up",
                          "efficiency", c->metric_head, "Acc@5"};

    page_heading(p, "Times and results");
    page_table(p, head, c->top5 ? "llrrrrrrrrrrr" : "llrrrrrrrrrr");
    for (int i = 0; i < c->n; i++) {
        size_t n = json_array_size(c->run[i].host_list);
        for (size_t h = 0; h < (n ? n : 1); h++)
            host_row(p, c, &c->run[i], c->run[i].host_list, h);
    }
    page_table_end(p);
    page_text(p,
              "Speed-up and efficiency are against %s, the first run. "
              "%s of the last validation, merged over all ranks.",
              c->run[0].name, c->top5 ? "Acc@1 and Acc@5 are" : "The metric is that");
    for (int i = 0; i < c->n; i++)
        if (c->run[i].starts_missing)
            page_text(p,
                      "The record of %s lacks %zu of its starts: its times and sums are those of the others.",
                      c->run[i].name, c->run[i].starts_missing);
}

/* --- curves ------------------------------------------------------------------------------------------- */
static void curve_plot(page *p, const comparison *c, const char *file, const char *name, bool by_time,
                       co_plot plot)
{
    double unit = 0, span = 0, scale = words_is_share(name) ? 100 : 1;
    curves all = {0};

    for (int i = 0; i < c->n; i++)
        span = fmax(span, co_run_last_t(c->run[i].run) - co_run_first_t(c->run[i].run));
    plot.x_label = by_time ? time_unit(span, &unit) : "step";
    for (int i = 0; i < c->n; i++)
        curves_add(&all, c->run[i].name, co_run_series(c->run[i].run, name), scale,
                   co_run_first_t(c->run[i].run), unit);
    plot.dashed = true;
    plot.line = all.line;
    plot.lines = all.n;
    if (all.n)
        page_plot(p, file, &plot);
    curves_fini(&all);
}

static void plots(page *p, const comparison *c)
{
    bool share = words_is_share(c->metric);
    const char *label = share ? "accuracy (%)" : c->metric;

    page_heading(p, "Curves");
    curve_plot(p, c, "loss", "train/loss_step", false, (co_plot){"Training loss", .y_label = "loss"});
    curve_plot(p, c, "val-loss", "val/loss", false, (co_plot){"Validation loss", .y_label = "loss"});
    curve_plot(p, c, "metric", c->metric, false,
               (co_plot){.title = share ? "Acc@1" : c->metric, .y_label = label});
    curve_plot(p, c, "metric-time", c->metric, true,
               (co_plot){.title = share ? "Acc@1 over time" : "Over time", .y_label = label});
}

/* --- sentences ---------------------------------------------------------------------------------------- */
struct hearing {
    page *p;
    co_str *text;
    json_t *list;
};

static void hear(void *ctx, const char *sentence)
{
    struct hearing *h = ctx;

    page_item(h->p, sentence);
    if (h->text)
        co_str_addf(h->text, "  %s\n", sentence);
    json_array_append_new(h->list, co_json_string(sentence));
}

static void differences(page *p, const comparison *c, co_str *text, json_t *out)
{
    for (int i = 1; i < c->n; i++) {
        struct hearing h = {p, text, json_array()};
        char head[600];
        snprintf(head, sizeof head, "%s against %s", c->run[i].name, c->run[0].name);
        page_heading(p, head);
        if (text)
            co_str_addf(text, "\n%s:\n", head);
        differ_runs(&c->run[0], &c->run[i], hear, &h);
        page_items_end(p);
        json_object_set_new(json_array_get(out, (size_t)i), "differences", h.list);
    }
}

/* --- the door ----------------------------------------------------------------------------------------- */
static json_t *figures(const comparison *c)
{
    json_t *all = json_array();

    for (int i = 0; i < c->n; i++) {
        json_t *v = facts_json(&c->run[i]);
        double up = facts_speed_up(&c->run[0], &c->run[i]), each = facts_efficiency(&c->run[0], &c->run[i]);
        if (!isnan(up))
            json_object_set_new(v, "speed_up", json_real(up));
        if (!isnan(each))
            json_object_set_new(v, "efficiency", json_real(each));
        if (json_array_size(c->run[i].host_list))
            json_object_set_new(v, "hosts", json_deep_copy(c->run[i].host_list));
        json_array_append_new(all, v);
    }
    return all;
}

static co_err compare(comparison *c, const char *to, co_str *text, json_t **out)
{
    page p = {.plain = text};
    json_t *all = figures(c);

    page_begin(&p, "Runs side by side");
    page_text(&p, "%d runs; the first one, %s, is the base.", c->n, c->run[0].name);
    table(&p, c);
    differences(&p, c, text, all);
    plots(&p, c);
    page_end(&p);
    co_err err = co_fs_mkdirs(to);
    if (!err)
        err = page_write(&p, to, "book");
    if (!err && text)
        co_str_addf(text, "\nbook      %s/book.html\n", to);
    page_fini(&p);
    if (err)
        json_decref(all);
    else
        *out = all;
    return err;
}

co_err co_book_compare(const char *const *dirs, int n, const char *to, co_str *text, json_t **out)
{
    comparison c = {0};

    if (n < 2 || n > CO_BOOK_COMPARED)
        return co_fail(CO_EINPUT, "compare: %d run%s; give 2 to %d run folders, the base first", n,
                       n == 1 ? "" : "s", CO_BOOK_COMPARED);
    co_err err = open_all(&c, dirs, n);
    if (!err)
        err = compare(&c, to, text, out);
    close_all(&c);
    return err;
}
