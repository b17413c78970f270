/* run_figures.c -- the tables of numbers of one run: results, figures to hand in, hosts, checkpoints. */
#include "book/book_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* --- results ------------------------------------------------------------------------------------------ */
static bool ends(const char *text, const char *with)
{
    size_t n = strlen(text), m = strlen(with);

    return n >= m && strcmp(text + n - m, with) == 0;
}

/* Evaluations and means of epochs; values of single steps only if no epoch was finished. */
static bool is_result(const facts *f, const char *name)
{
    if (ends(name, "/sentences"))
        return false; /* run_texts.c says how many beside the score */
    if (begins(name, "val/") || begins(name, "test/"))
        return true;
    if (!begins(name, "train/") || strcmp(name, "train/data_wait") == 0)
        return false;
    return !ends(name, "_step") || !co_run_series(f->run, "train/loss_epoch");
}

static void result_row(page *p, const facts *f, const char *name)
{
    const co_point *best = facts_best(f, name);
    char label[96];

    page_cell(p, words_label(name, label));
    page_cell(p, words_metric(name, facts_last(f, name)).text);
    if (begins(name, "test/")) { /* measured once, with the weights that the line below names */
        long long step = -1;
        co_json_i64(json_object_get(f->summary, "tested"), "step", &step);
        page_cell(p, "");
        page_cell(p, step >= 0 ? words_int((double)step).text : "");
        return;
    }
    page_cell(p, best ? words_metric(name, best->value).text : "none is finite");
    page_cell(p, best ? words_int((double)best->step).text : "");
}

static void results(page *p, const facts *f)
{
    static const char *const head[] = {"figure", "last", "best", "at step"};
    bool any = false;

    page_heading(p, "Results");
    for (size_t i = 0; i < co_run_series_count(f->run); i++)
        any = any || is_result(f, co_run_series_at(f->run, i)->name);
    if (!any) {
        page_text(p, "Nothing was measured yet.");
        return;
    }
    page_table(p, head, "lrrr");
    for (size_t i = 0; i < co_run_series_count(f->run); i++) {
        const char *name = co_run_series_at(f->run, i)->name;
        if (is_result(f, name))
            result_row(p, f, name);
    }
    page_table_end(p);
    const json_t *tested = json_object_get(f->summary, "tested");
    long long step;
    if (co_json_str(tested, "weights") && co_json_i64(tested, "step", &step))
        page_text(p, "The test used the %s weights, those of step %s.", co_json_str(tested, "weights"),
                  words_int((double)step).text);
}

/* --- figures ------------------------------------------------------------------------------------------ */
static void row(page *p, const char *what, const char *value)
{
    page_cell(p, what);
    page_cell(p, value && *value ? value : "not measured");
}

static void batch_row(page *p, const facts *f)
{
    char text[400];
    double each = f->ranks > 0 ? f->batch / f->ranks : NAN;
    const char *accumulate = facts_config_or(f, "trainer.accumulate", "1");

    if (isnan(f->batch))
        snprintf(text, sizeof text, "not known");
    else if (each == floor(each) && f->ranks > 1)
        snprintf(text, sizeof text, "%s = %s x %s (samples of a rank x ranks)", words_int(f->batch).text,
                 words_int(each).text, words_int(f->ranks).text);
    else if (f->ranks > 1)
        snprintf(text, sizeof text, "%s samples, divided among %s ranks", words_int(f->batch).text,
                 words_int(f->ranks).text);
    else
        snprintf(text, sizeof text, "%s samples, all on one rank", words_int(f->batch).text);
    if (strcmp(accumulate, "1") != 0)
        snprintf(text + strlen(text), sizeof text - strlen(text), "; %.20s batches are accumulated",
                 accumulate);
    row(p, "Batch size (global)", text);
}

/* Mean and maximum of a figure of the machine. */
static bool of_machine(const facts *f, const char *name, double *mean, double *most)
{
    const json_t *v = json_object_get(json_object_get(f->summary, "system"), name);

    return co_json_f64(v, "mean", mean) && co_json_f64(v, "max", most);
}

static void utilisation_rows(page *p, const facts *f)
{
    char text[256], name[40];
    double mean, most;
    bool any = false;

    snprintf(text, sizeof text, "%s",
             isnan(f->utilisation) ? "not measured" : words_percent(f->utilisation).text);
    if (of_machine(f, "cpu_percent", &mean, &most))
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 " (whole machine: mean %.0f %%, max %.0f %%)", mean, most);
    row(p, "CPU utilisation", text);
    for (int i = 0; i < 64; i++) {
        snprintf(name, sizeof name, "gpu.%d.percent", i);
        if (!of_machine(f, name, &mean, &most))
            continue;
        any = true;
        snprintf(text, sizeof text, "mean %.0f %%, max %.0f %%", mean, most);
        snprintf(name, sizeof name, "GPU %d utilisation", i);
        row(p, name, text);
        snprintf(name, sizeof name, "gpu.%d.memory_mb", i);
        if (of_machine(f, name, &mean, &most)) {
            snprintf(text, sizeof text, "%s at most", words_bytes(1e6 * most).text);
            snprintf(name, sizeof name, "GPU %d memory", i);
            row(p, name, text);
        }
    }
    if (!any) {
        row(p, "GPU utilisation", "no GPU was used");
        row(p, "GPU memory", "no GPU was used");
    }
}

static void time_rows(page *p, const facts *f)
{
    char text[256];
    double first = NAN;

    snprintf(text, sizeof text, "%s", words_time(f->wall_s).text);
    if (f->starts_missing)
        snprintf(text + strlen(text), sizeof text - strlen(text), " in %zu of %zu starts; see below",
                 starts_known(f), starts_known(f) + f->starts_missing);
    else if (f->n_starts > 1)
        snprintf(text + strlen(text), sizeof text - strlen(text), " in %zu starts, within %s", f->n_starts,
                 words_time(co_run_last_t(f->run) - co_run_first_t(f->run)).text);
    row(p, "Training time", text);
    if (co_json_f64(f->summary, "first_step_s", &first) && first > 0)
        row(p, "Time to the first step", words_time(first).text);
    snprintf(text, sizeof text, "%s samples/s", words_rate(f->samples_per_s).text);
    row(p, "Throughput", f->samples_per_s > 0 ? text : "");
}

/* Rows whose value needs no more than a line. */
static void what_rows(page *p, const facts *f)
{
    char text[256];

    snprintf(text, sizeof text, "%.100s%s%s%s", facts_config_or(f, "model.name", "not known"),
             isnan(f->parameters) ? "" : ", ", isnan(f->parameters) ? "" : words_int(f->parameters).text,
             isnan(f->parameters) ? "" : " parameters");
    row(p, "Model", text);
    row(p, "Data set", facts_config_or(f, "data.name", "not known"));
    snprintf(text, sizeof text, "%.20s: %s", facts_config_or(f, "trainer.strategy", "ddp"),
             words_ranks(f->ranks, f->hosts).text);
    row(p, "Strategy", text);
    batch_row(p, f);
    row(p, "Largest batch size", "not measured");
    snprintf(text, sizeof text, "%.40s, %.40s, %.40s schedule", facts_config_or(f, "optim.lr", ""),
             facts_config_or(f, "optim.name", ""), facts_config_or(f, "schedule.name", ""));
    row(p, "Learning rate", facts_config(f, "optim.lr") ? text : "not known");
    row(p, "Epochs", isnan(f->epochs) ? "" : words_int(f->epochs).text);
    row(p, "Steps", words_int(f->steps).text);
}

static void place_rows(page *p, const facts *f)
{
    const char *to = facts_config(f, "callbacks.model_checkpoint.dirpath");

    row(p, "Checkpoints in S3", to && begins(to, "s3://") ? to : "not used");
}

static void figures(page *p, const facts *f)
{
    static const char *const head[] = {"figure", "value"};
    char text[256];
    double planned = NAN;

    page_heading(p, "Figures");
    page_table(p, head, "ll");
    what_rows(p, f);
    if (f->monitor) {
        char label[96];
        snprintf(text, sizeof text, "%s at step %s", words_metric(f->monitor, f->best).text,
                 words_int(f->best_step).text);
        char what[112];
        snprintf(what, sizeof what, "Best %s", words_label(f->monitor, label));
        row(p, what, text);
    }
    time_rows(p, f);
    co_json_f64(f->summary, "planned_memory_bytes", &planned);
    snprintf(text, sizeof text, "%s%s%s%s", isnan(f->peak_bytes) ? "" : words_bytes(f->peak_bytes).text,
             isnan(planned) ? "" : " (planned: ", isnan(planned) ? "" : words_bytes(planned).text,
             isnan(planned) ? "" : ")");
    row(p, "Peak memory", text);
    utilisation_rows(p, f);
    place_rows(p, f);
    page_cell(p, "Weights (sha256)");
    if (f->weights)
        page_cell_code(p, f->weights);
    else
        page_cell(p, "not known");
    page_table_end(p);
}

void run_figures(page *p, const facts *f)
{
    results(p, f);
    figures(p, f);
}

/* --- hosts -------------------------------------------------------------------------------------------- */
static double of(const json_t *host, const char *key)
{
    double x = NAN;

    co_json_f64(host, key, &x);
    return x;
}

static bool used_network(const json_t *hosts)
{
    const json_t *host;
    size_t i;

    json_array_foreach(hosts, i, host)
    {
        if (of(host, "sent_bytes") + of(host, "received_bytes") > 0)
            return true;
    }
    return false;
}

static void host_row(page *p, const json_t *hosts, size_t i, bool network)
{
    const json_t *host = json_array_get(hosts, i);
    char name[96];

    page_cell(p, facts_host(hosts, i, name));
    page_cellf(p, "%s x %s", words_int(of(host, "ranks")).text, words_int(of(host, "threads")).text);
    page_cell(p, words_time(of(host, "wall_s")).text);
    page_cell(p, words_time(of(host, "cpu_user_s")).text);
    page_cell(p, words_time(of(host, "cpu_sys_s")).text);
    page_cell(p, words_time(of(host, "cpu_user_s") + of(host, "cpu_sys_s")).text);
    page_cell(p, words_percent(of(host, "utilisation")).text);
    page_cell(p, words_bytes(of(host, "peak_memory_bytes")).text);
    if (network) {
        page_cell(p, words_bytes(of(host, "sent_bytes")).text);
        page_cell(p, words_bytes(of(host, "received_bytes")).text);
    }
}

void run_hosts(page *p, const facts *f)
{
    static const char *const head[] = {"host",       "ranks x threads", "wall time",   "user CPU",
                                       "system CPU", "total CPU",       "utilisation", "peak memory",
                                       "sent",       "received"};
    const json_t *hosts = f->host_list;
    bool network = used_network(hosts);

    page_heading(p, "Hosts");
    if (json_array_size(hosts) == 0) {
        page_text(p, "%s",
                  co_run_state_of(f->run) == CO_RUN_RUNNING ? "Measured at the end of the run."
                                                            : "Not measured: the run left no summary.");
        return;
    }
    page_table(p, head, network ? "lrrrrrrrrr" : "lrrrrrrr");
    for (size_t i = 0; i < json_array_size(hosts); i++)
        host_row(p, hosts, i, network);
    page_table_end(p);
    if (f->n_starts < 2 && f->starts_missing)
        page_text(p, "Figures of the last start alone.");
    if (f->n_starts > 1)
        page_text(p, "Sums over the %zu starts%s; ranks and threads are those of the last.",
                  f->n_starts - (size_t)f->cpu_unknown, f->cpu_unknown ? " that were not killed" : "");
}
