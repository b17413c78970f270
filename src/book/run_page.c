/* run_page.c -- the book of one run, from the first line to the last. */
#include "book/book_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "ckpt/ckpt.h"

enum { GPU_TABLE_MOST = 64 << 10 };

/* --- the first lines ---------------------------------------------------------------------------------- */
static void state_line(page *p, const facts *f)
{
    co_run_state state = co_run_state_of(f->run);

    if (state == CO_RUN_RUNNING)
        page_note(p, "note",
                  "This run still goes on. This page shows its state a short while ago; it is made again "
                  "now and then, and at the end.");
    else if (state == CO_RUN_KILLED)
        page_note(p, "bad",
                  "This run was killed: it left no summary. What the record has is shown here; "
                  "cohort train run.dir=FOLDER ckpt_path=auto continues it.");
    else if (state == CO_RUN_STOPPED)
        page_note(p, "note", "This run was asked to stop before its end. It can be continued.");
    page_text(p, "%.100s on %.100s, %s: %s steps in %s%s, with %s.",
              facts_config_or(f, "model.name", "A model"), facts_config_or(f, "data.name", "data"),
              co_run_state_name(state), words_int(f->steps).text, words_time(f->wall_s).text,
              f->starts_missing ? " (not all of its starts)"
              : f->n_starts > 1 ? " over several starts"
                                : "",
              words_ranks(f->ranks, f->hosts).text);
    if (!isnan(co_run_first_t(f->run)))
        page_text(p, "From %s to %s.", words_date(co_run_first_t(f->run)).text,
                  words_date(co_run_last_t(f->run)).text);
}

static void blame(page *p, const facts *f)
{
    const char *what = co_json_str(co_run_blame(f->run), "what");

    if (co_run_state_of(f->run) != CO_RUN_FAILED)
        return;
    page_heading(p, "Why it failed");
    page_note(p, "bad", what && *what ? what : "The run failed and left no reason.");
}

/* --- checkpoints -------------------------------------------------------------------------------------- */
static void read_link(const char *root, const char *which, char name[256])
{
    char *path = co_sprintf("%s/%s", root, which);
    ssize_t n = path ? readlink(path, name, 255) : -1;

    name[n < 0 ? 0 : n] = '\0';
    co_free(path);
}

static void checkpoint_row(page *p, const co_ckpt_info *c, const char *last, const char *best)
{
    static const char *const marks[] = {"", " (best)", " (last)", " (best, last)"};
    bool is_last = strcmp(c->name, last) == 0, is_best = strcmp(c->name, best) == 0;

    page_cellf(p, "%.200s%s", c->name, marks[is_best + 2 * is_last]);
    page_cell(p, c->why_bad[0] ? "" : words_int((double)c->meta.step).text);
    page_cell(p, words_bytes((double)c->bytes).text);
    if (c->why_bad[0])
        page_cellf(p, "not usable: %s", c->why_bad);
    else
        page_cell_code(p, c->meta.weights_sha256);
}

static void checkpoints(page *p, const facts *f)
{
    static const char *const head[] = {"checkpoint", "step", "size", "weights (sha256)"};
    char *root = co_sprintf("%s/checkpoints", co_run_dir(f->run)), last[256], best[256];
    co_ckpt_info *list = NULL;
    int n = 0;

    page_heading(p, "Checkpoints");
    if (root && co_fs_is_dir(root) && co_ckpt_ls(&list, &n, root) != CO_OK)
        co_errclear();
    if (n == 0)
        page_text(p, "None were kept.");
    else {
        read_link(root, "last", last);
        read_link(root, "best", best);
        page_table(p, head, "lrrl");
        for (int i = 0; i < n; i++)
            checkpoint_row(p, &list[i], last, best);
        page_table_end(p);
    }
    co_ckpt_ls_free(list, n);
    co_free(root);
}

/* --- what was run ------------------------------------------------------------------------------------- */
static void settings(page *p, const facts *f)
{
    static const char *const head[] = {"key", "value", "default"};
    json_t *all = json_object_get(f->header, "settings"), *v;
    const char *key;

    if (!json_is_object(all))
        return;
    if (json_object_size(all) == 0) {
        page_text(p, "All keys have their defaults.");
        return;
    }
    page_text(p, "Keys that differ from their defaults (config.yaml has all):");
    page_table(p, head, "lll");
    json_object_foreach(all, key, v)
    {
        const char *value = co_json_str(v, "value"), *usual = co_json_str(v, "default");
        page_cell_code(p, key);
        page_cell(p, co_book_is_secret(key) ? "(hidden)" : value ? value : "");
        page_cell(p, usual ? usual : "");
    }
    page_table_end(p);
}

static void fact(page *p, const char *what, const char *value)
{
    if (!value || !*value)
        return;
    page_cell(p, what);
    page_cell_code(p, value);
}

static void data_fact(page *p, const facts *f)
{
    const json_t *data = json_object_get(f->header, "data");
    double train = NAN, val = NAN, test = NAN;
    char text[256];

    if (!co_json_f64(data, "train", &train) || !co_json_f64(data, "val", &val) ||
        !co_json_f64(data, "test", &test))
        return;
    snprintf(text, sizeof text, "%s train, %s val, %s test", words_int(train).text, words_int(val).text,
             words_int(test).text);
    page_cell(p, "samples");
    page_cell(p, text);
}

static void what_was_run(page *p, const facts *f)
{
    static const char *const head[] = {"what", "value"};
    const json_t *segments = json_object_get(f->header, "segments");
    const json_t *last =
        json_array_get(segments, json_array_size(segments) ? json_array_size(segments) - 1 : 0);
    const char *command = co_json_str(f->header, "command");

    page_heading(p, "What was run");
    if (command)
        page_code(p, command);
    page_table(p, head, "ll");
    fact(p, "run folder", co_run_dir(f->run));
    fact(p, "run id", co_json_str(f->header, "run_id"));
    fact(p, "cohort", co_json_str(f->header, "cohort"));
    fact(p, "kernels", co_json_str(f->header, "kernels"));
    fact(p, "git commit of the folder it was started in", co_json_str(f->header, "git"));
    fact(p, "data fingerprint", co_json_str(last, "data_sha256"));
    data_fact(p, f);
    fact(p, "seed", facts_config(f, "seed"));
    page_table_end(p);
    if (json_array_size(segments) > 1)
        page_text(p, "The line is that of the last of %zu starts; header.json has a segment for each.",
                  json_array_size(segments));
    settings(p, f);
}

static void reproduce(page *p, const facts *f)
{
    const char *line = co_json_str(f->summary, "reproduce");

    page_heading(p, "How to reproduce it");
    if (line) {
        page_code(p, line);
        if (f->weights)
            page_text(
                p,
                "The weights must come out the same to the bit, on any number of ranks and hosts: sha256 %s.",
                f->weights);
        return;
    }
    page_text(p, "%s",
              co_run_state_of(f->run) == CO_RUN_RUNNING
                  ? "The line is known at the end of the run."
                  : "No single line repeats this run; start from its configuration:");
    if (co_run_state_of(f->run) != CO_RUN_RUNNING)
        page_code(p, "cohort train experiment=config.yaml run.dir=null");
}

/* --- files -------------------------------------------------------------------------------------------- */
static void files(page *p, const facts *f)
{
    static const struct {
        const char *name, *what;
    } all[] = {
        {"config.yaml", "the resolved configuration"},  {"config_tree.log", "the same, drawn as a tree"},
        {"events.jsonl", "every value, one line each"}, {"csv/metrics.csv", "the scalars as a table"},
        {"tensorboard", "event files for TensorBoard"}, {"wandb", "the run for wandb sync"},
        {"train.log", "what stood on the screen"},      {"exec_time.log", "the execution time"},
        {"summary.json", "how it ended, for scripts"},  {"gpus.txt", "the GPUs, as nvidia-smi shows them"}};
    bool any = false;

    page_heading(p, "Files");
    for (size_t i = 0; i < CO_COUNT(all); i++) {
        char *path = co_sprintf("%s/%s", co_run_dir(f->run), all[i].name);
        if (path && co_fs_exists(path)) {
            page_link_item(p, all[i].name, all[i].name, all[i].what);
            any = true;
        }
        co_free(path);
    }
    if (any)
        page_items_end(p);
    else
        page_text(p, "None.");
}

/* What nvidia-smi would have shown. */
static void gpu_table(page *p, const facts *f)
{
    char *path = co_sprintf("%s/gpus.txt", co_run_dir(f->run)), *text = NULL;

    if (path && co_fs_exists(path) && co_fs_read(&text, NULL, path, GPU_TABLE_MOST) == CO_OK && *text) {
        page_heading(p, "GPUs");
        page_code(p, text);
    }
    co_errclear();
    co_free(text);
    co_free(path);
}

void run_page(page *p, const facts *f)
{
    char title[400];

    const char *task = facts_config_or(f, "task_name", "");
    bool named = *task && strcmp(task, f->name) != 0;
    snprintf(title, sizeof title, "Log book: %.100s%s%.200s", named ? task : "", named ? ", " : "", f->name);
    page_begin(p, title);
    state_line(p, f);
    blame(p, f);
    run_figures(p, f);
    page_heading(p, "Plots");
    run_plots(p, f);
    run_texts(p, f);
    run_hosts(p, f);
    run_starts(p, f);
    gpu_table(p, f);
    checkpoints(p, f);
    run_events(p, f);
    what_was_run(p, f);
    reproduce(p, f);
    files(p, f);
    page_text(p, "Written by cohort from the files of the run folder; cohort book FOLDER writes it again.");
    page_end(p);
}
