/* run_plots.c -- the plots of one run: one for each subject. */
#include "book/book_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { METRIC_PLOTS = 6, BARS_MOST = 16, HOST_LINES = 6 };

static void show(page *p, const char *name, curves *c, co_plot plot)
{
    size_t most = 0;

    plot.line = c->line;
    plot.lines = c->n;
    for (int i = 0; i < c->n; i++)
        most = c->line[i].n > most ? c->line[i].n : most;
    if (most > 1)
        page_plot(p, name, &plot);
    curves_fini(c);
}

/* Values that span orders of magnitude read better on a logarithmic axis. */
static bool spans_much(const curves *c)
{
    double least = INFINITY, most = 0;

    for (int l = 0; l < c->n; l++)
        for (size_t i = 0; i < c->line[l].n; i++) {
            double y = c->line[l].y[i];
            if (y <= 0)
                return false;
            if (isfinite(y)) {
                least = fmin(least, y);
                most = fmax(most, y);
            }
        }
    return most > 100 * least;
}

static bool is_curve(const co_series *s)
{
    return s && s->n > 1;
}

/* --- loss and metrics --------------------------------------------------------------------------------- */
/* Values of single steps stay in the background where means of epochs exist. */
static void add_training(curves *c, const facts *f, const char *what, double scale)
{
    char name[2][96];

    snprintf(name[0], sizeof name[0], "train/%.80s_step", what);
    snprintf(name[1], sizeof name[1], "train/%.80s_epoch", what);
    const co_series *step = co_run_series(f->run, name[0]), *epoch = co_run_series(f->run, name[1]);
    co_plot_line *line = curves_add(c, step ? step->name : NULL, step, scale, 0, 0);
    if (line && is_curve(epoch))
        line->faint = line->counts = true;
    if (is_curve(epoch) || !step)
        curves_add(c, epoch ? epoch->name : NULL, epoch, scale, 0, 0);
}

static void loss_plot(page *p, const facts *f)
{
    curves c = {0};

    add_training(&c, f, "loss", 1);
    curves_add(&c, "val/loss", co_run_series(f->run, "val/loss"), 1, 0, 0);
    bool much = spans_much(&c);
    const char *label = much ? "loss (log scale)" : "loss";
    show(p, "loss", &c, (co_plot){.title = "Loss", .x_label = "step", .y_label = label, .log_y = much});
}

/* "acc" of acc and acc5: figures that share a plot. */
static size_t stem_of(const char *metric)
{
    size_t n = strlen(metric);

    while (n > 1 && metric[n - 1] >= '0' && metric[n - 1] <= '9')
        n--;
    return n;
}

static bool same_stem(const char *a, const char *b)
{
    return stem_of(a) == stem_of(b) && strncmp(a, b, stem_of(a)) == 0;
}

static void metric_plot(page *p, const facts *f, const char *metric, int number)
{
    bool share = words_is_share(metric);
    double scale = share ? 100 : 1;
    char title[96], file[32];
    curves c = {0};

    snprintf(title, sizeof title, "%.*s", (int)stem_of(metric), metric);
    add_training(&c, f, title, scale);
    for (size_t i = 0; i < co_run_series_count(f->run); i++) {
        const co_series *s = co_run_series_at(f->run, i);
        if (facts_is_metric(s->name) && same_stem(s->name + 4, metric))
            curves_add(&c, s->name, s, scale, 0, 0);
    }
    snprintf(file, sizeof file, "metric-%d", number);
    show(p, file, &c,
         (co_plot){.title = share ? "Accuracy" : title,
                   .x_label = "step",
                   .y_label = share ? "accuracy (%)" : title});
}

static void metric_plots(page *p, const facts *f)
{
    int number = 0;

    for (size_t i = 0; i < co_run_series_count(f->run) && number < METRIC_PLOTS; i++) {
        const co_series *s = co_run_series_at(f->run, i);
        bool first = facts_is_metric(s->name);
        for (size_t k = 0; k < i && first; k++) {
            const co_series *before = co_run_series_at(f->run, k);
            first = !(facts_is_metric(before->name) && same_stem(before->name + 4, s->name + 4));
        }
        if (first)
            metric_plot(p, f, s->name + 4, ++number);
    }
}

static void rate_plot(page *p, const facts *f)
{
    const co_series *lr = co_run_series(f->run, "lr");
    curves c = {0};

    curves_add(&c, "lr", lr, 1, 0, 0);
    show(p, "lr", &c,
         (co_plot){.title = "Learning rate", .x_label = "step", .y_label = "learning rate", .from_zero = true});
}

/* --- throughput --------------------------------------------------------------------------------------- */
/* Was the run stopped and continued between these times? */
static bool was_continued(const facts *f, double from, double to)
{
    for (size_t i = 0; i < co_run_event_count(f->run); i++) {
        const json_t *e = co_run_event(f->run, i);
        const char *name = co_json_str(e, "name");
        double t = NAN;
        if (name && strcmp(name, "resumed_at") == 0 && co_json_f64(e, "t", &t) && t >= from && t <= to)
            return true;
    }
    return false;
}

/* Samples a second between recorded steps, over stretches of at least a 60th of the time, so that single slow
 * steps and evaluations do not hide the course. */
static void throughput_plot(page *p, const facts *f)
{
    const co_series *s = co_run_series(f->run, "train/loss_step");
    double unit, span = co_run_last_t(f->run) - co_run_first_t(f->run);
    const char *label = time_unit(span, &unit);
    size_t from = 0, n = 0;

    if (!s || s->n < 3 || isnan(f->batch))
        return;
    double *x = co_array(s->n, sizeof *x), *y = co_array(s->n, sizeof *y);
    for (size_t i = 1; x && y && i < s->n; i++) {
        double took = s->point[i].t - s->point[from].t;
        if (took >= 0 && took < span / 60)
            continue;
        if (took > 0 && !was_continued(f, s->point[from].t, s->point[i].t)) {
            x[n] = (s->point[i].t - co_run_first_t(f->run)) / unit;
            y[n++] = f->batch * (double)(s->point[i].step - s->point[from].step) / took;
        }
        from = i;
    }
    co_plot_line line = {.x = x, .y = y, .n = n};
    if (x && y && n > 1)
        page_plot(p, "throughput",
                  &(co_plot){.title = "Throughput",
                             .x_label = label,
                             .y_label = "samples/s",
                             .from_zero = true,
                             .line = &line,
                             .lines = 1});
    co_free(x);
    co_free(y);
}

/* --- the machine -------------------------------------------------------------------------------------- */
/* system/NAME of the host with the record, and system/HOST/NAME of the others; divided by the threads of the
 * host, if asked. */
static void add_hosts(curves *c, const facts *f, const char *what, const char *own, bool of_threads,
                      double unit, char names[HOST_LINES][80])
{
    int used = 0;

    for (size_t i = 0; i < co_run_series_count(f->run) && used < HOST_LINES; i++) {
        const co_series *s = co_run_series_at(f->run, i);
        if (strncmp(s->name, "system/", 7) != 0)
            continue;
        const char *slash = strchr(s->name + 7, '/'), *last = slash ? slash + 1 : s->name + 7;
        if (strcmp(last, what) != 0)
            continue;
        if (slash)
            snprintf(names[used], 80, "%.*s", (int)(slash - s->name - 7), s->name + 7);
        else
            snprintf(names[used], 80, "%s", own);
        const char *host = slash ? names[used] : co_run_host(f->run, 0);
        double scale = of_threads ? 1 / facts_host_threads(f, host) : 1;
        curves_add(c, names[used], s, scale, co_run_first_t(f->run), unit);
        used++;
    }
}

/* GPU lines: every series whose name has gpu.N and ends with `what`. */
static void add_gpus(curves *c, const facts *f, const char *what, double unit)
{
    for (size_t i = 0; i < co_run_series_count(f->run); i++) {
        const co_series *s = co_run_series_at(f->run, i);
        const char *gpu = strstr(s->name, "gpu."), *end = gpu ? strrchr(gpu, '.') : NULL;
        if (strncmp(s->name, "system/", 7) == 0 && end && strcmp(end + 1, what) == 0)
            curves_add(c, s->name + 7, s, 1, co_run_first_t(f->run), unit);
    }
}

static void machine_plots(page *p, const facts *f)
{
    double unit, span = co_run_last_t(f->run) - co_run_first_t(f->run);
    const char *label = time_unit(span, &unit);
    char names[2][HOST_LINES][80];
    bool known = json_array_size(f->host_list) > 0; /* how many threads each host has */
    curves c = {0};

    add_hosts(&c, f, "memory_mb", f->hosts > 1 ? co_run_host(f->run, 0) : "run", false, unit, names[0]);
    show(p, "memory", &c,
         (co_plot){.title = "Memory of the run", .x_label = label, .y_label = "memory (MB)", .from_zero = true});
    add_hosts(&c, f, "run_cpu_percent", f->hosts > 1 ? co_run_host(f->run, 0) : "this run, of its threads",
              known, unit, names[0]);
    if (c.n == 1 && known)
        add_hosts(&c, f, "cpu_percent", "whole machine, of its cores", false, unit, names[1]);
    show(p, "utilisation", &c,
         (co_plot){.title = "CPU utilisation",
                   .x_label = label,
                   .y_label = !known         ? "% of one core"
                              : f->hosts > 1 ? "% of its threads"
                                             : "%",
                   .from_zero = true});
    add_gpus(&c, f, "percent", unit);
    show(p, "gpu", &c,
         (co_plot){.title = "GPU utilisation", .x_label = label, .y_label = "%", .from_zero = true});
    add_gpus(&c, f, "memory_mb", unit);
    show(p, "gpu-memory", &c,
         (co_plot){.title = "GPU memory", .x_label = label, .y_label = "memory (MB)", .from_zero = true});
}

/* --- where the time went ------------------------------------------------------------------------------ */
static const char *const split[] = {"input", "compute", "exchange", "wait", NULL};
enum { REST = 4 }; /* the part after these: start, checkpoints, end */

static double mean_of(const co_series *s)
{
    double sum = 0;
    size_t n = 0;

    for (size_t i = 0; s && i < s->n; i++)
        if (isfinite(s->point[i].value)) {
            sum += s->point[i].value;
            n++;
        }
    return n ? sum / (double)n : 0;
}

/* A row for each rank: "system/rank.0.compute_percent", "system/node2/rank.0.compute_percent". */
static int rank_rows(const facts *f, co_plot_bar *bar, char names[BARS_MOST][80])
{
    int n = 0;

    for (size_t i = 0; i < co_run_series_count(f->run) && n < BARS_MOST; i++) {
        const char *name = co_run_series_at(f->run, i)->name, *rank = strstr(name, "rank.");
        const char *dot = rank ? strrchr(rank, '.') : NULL;
        if (strncmp(name, "system/", 7) != 0 || !dot || strcmp(dot, ".compute_percent") != 0)
            continue;
        int host = rank > name + 7 ? (int)(rank - name - 8) : 0;
        snprintf(names[n], 80, "%.*s%srank %.*s", host, name + 7, host ? " " : "", (int)(dot - rank - 5),
                 rank + 5);
        bar[n] = (co_plot_bar){.name = names[n]};
        for (int k = 0; split[k]; k++) {
            char other[256];
            snprintf(other, sizeof other, "%.*s%s_percent", (int)(dot + 1 - name), name, split[k]);
            bar[n].share[k] = mean_of(co_run_series(f->run, other)) / 100;
        }
        n++;
    }
    return n;
}

static int host_rows(const facts *f, co_plot_bar *bar, char names[BARS_MOST][80])
{
    const json_t *host;
    size_t i;
    int n = 0;

    json_array_foreach(f->host_list, i, host)
    {
        char label[96];
        double all = 0, part;
        co_json_f64(host, "ranks_s", &all);
        if (n == BARS_MOST || !(all > 0) || !json_object_get(host, "compute_s"))
            continue;
        snprintf(names[n], 80, "%.79s", facts_host(f->host_list, i, label));
        bar[n] = (co_plot_bar){.name = names[n]};
        for (int k = 0; split[k]; k++) {
            char key[32];
            snprintf(key, sizeof key, "%s_s", split[k]);
            bar[n].share[k] = co_json_f64(host, key, &part) ? part / all : 0;
        }
        bar[n].share[REST] = 1; /* of what is left */
        n++;
    }
    return n;
}

static void split_plot(page *p, const facts *f)
{
    co_plot_bar bar[BARS_MOST];
    char names[BARS_MOST][80];
    int n = host_rows(f, bar, names);
    bool ranks = n == 0;

    if (ranks)
        n = rank_rows(f, bar, names);
    if (n)
        page_bars(p, "time-split",
                  &(co_plot_bars){
                      .title = ranks ? "Where the time of the ranks went" : "Where the ranks' time went",
                      .part_name = {"input", "compute", "exchange", "wait for ranks", ranks ? NULL : "other"},
                      .bar = bar,
                      .bars = n});
}

void run_plots(page *p, const facts *f)
{
    loss_plot(p, f);
    metric_plots(p, f);
    rate_plot(p, f);
    throughput_plot(p, f);
    machine_plots(p, f);
    split_plot(p, f);
    if (p->plots == 0)
        page_text(p, "There are too few values to plot.");
}
