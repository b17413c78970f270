/* run.c -- the run: what the caller hands over goes into the transaction log, into the channels of the
 * uploader and into the summary. */
#include "wandb/run_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"

#define STATS_SPAN_S 0.5 /* figures of the machine that are this close belong together */

static bool is_off(const co_wandb *w)
{
    return w->set.mode == CO_WANDB_DISABLED;
}

/* --- rows --- */
static co_err add_times(item_list *items, const co_wandb *w, double t)
{
    CO_TRY(items_set_num(items, "_timestamp", t));
    return items_set_num(items, "_runtime", t > w->start ? t - w->start : 0);
}

static co_err close_row(co_wandb *w)
{
    row_maker *r = &w->rows;
    char step[24];

    if (!r->open)
        return CO_OK;
    snprintf(step, sizeof step, "%lld", (long long)r->step);
    CO_TRY(items_set(&r->row, STEP_METRIC, step));
    CO_TRY(add_times(&r->row, w, r->t));
    int64_t row_step = rows_close(r);
    co_str *line = &w->channel[CH_HISTORY].pending;
    if (w->up) {
        co_str_addf(line, "%lld ", (long long)row_step);
        items_json(line, &r->row);
        co_str_add(line, "}\n");
    }
    snprintf(step, sizeof step, "%lld", (long long)row_step);
    CO_TRY(items_set(&r->row, "_step", step));
    entry_history(&w->log, row_step, &r->row);
    items_clear(&r->row);
    return CO_OK;
}

static co_err close_stats(co_wandb *w)
{
    co_str *line = &w->channel[CH_EVENTS].pending;

    if (!w->stats.n)
        return CO_OK;
    entry_stats(&w->log, w->stats_t, &w->stats);
    if (w->up) {
        co_str_add(line, "{\"_wandb\":true,\"_timestamp\":");
        json_num(line, w->stats_t);
        co_str_add(line, ",\"_runtime\":");
        json_num(line, w->stats_t > w->start ? w->stats_t - w->start : 0);
        for (size_t i = 0; i < w->stats.n; i++)
            co_str_addf(line, ",\"system.%s\":%s", w->stats.at[i].key, w->stats.at[i].json);
        co_str_add(line, "}\n");
    }
    items_clear(&w->stats);
    return CO_OK;
}

/* The first record of the log needs the configuration, so it is written when the first line comes. */
static co_err begin_once(co_wandb *w, double t)
{
    if (w->config)
        return CO_OK;
    json_t *none = json_object();
    co_err err = none ? co_wandb_begin(w, none, t) : CO_ENOMEM;

    json_decref(none);
    return err;
}

/* The summary has the last value of each key, also of the row that is still open. */
static co_err summarise(co_wandb *w, const char *name, const char *json)
{
    CO_TRY(items_set(&w->summary, name, json));
    CO_TRY(items_set_num(&w->summary, STEP_METRIC, (double)w->rows.step));
    CO_TRY(items_set_num(&w->summary, "_step", (double)rows_step(&w->rows)));
    w->summary_changed = true;
    return add_times(&w->summary, w, w->rows.t);
}

static co_err open_row(co_wandb *w, int64_t step, const char *name, double t, bool *is_new)
{
    row_maker *r = &w->rows;

    CO_TRY(begin_once(w, t));
    CO_TRY(co_seen_add_at(&r->seen, is_new, step, name));
    if (!*is_new)
        return CO_OK;
    if (r->open && r->step != step)
        CO_TRY(close_row(w));
    r->open = true;
    r->step = step;
    r->t = t;
    w->last_t = t;
    return CO_OK;
}

/* Takes the text. */
static co_err add_value(co_wandb *w, int64_t step, const char *name, co_str *json, double t)
{
    bool is_new = false;
    co_err err = co_str_err(json);

    if (!err)
        err = open_row(w, step, name, t, &is_new);
    if (!err && is_new)
        err = items_set(&w->rows.row, name, co_str_text(json));
    if (!err && is_new)
        err = summarise(w, name, co_str_text(json));
    co_str_fini(json);
    return err;
}

co_err co_wandb_scalar(co_wandb *w, int64_t step, const char *name, double value, double t)
{
    co_str text = {0};

    if (is_off(w))
        return CO_OK;
    json_num(&text, value);
    return add_value(w, step, name, &text, t);
}

co_err co_wandb_value(co_wandb *w, int64_t step, const char *name, const json_t *value, double t)
{
    co_str text = {0};

    if (is_off(w))
        return CO_OK;
    json_write(&text, value, JSON_DEPTH);
    return add_value(w, step, name, &text, t);
}

co_err co_wandb_stat(co_wandb *w, const char *name, double value, double t)
{
    if (is_off(w))
        return CO_OK;
    CO_TRY(begin_once(w, t));
    if (w->stats.n && (fabs(t - w->stats_t) > STATS_SPAN_S || items_have(&w->stats, name)))
        CO_TRY(close_stats(w));
    w->stats_t = t;
    w->last_t = t;
    return items_set_num(&w->stats, name, value);
}

const char *co_wandb_files(const co_wandb *w)
{
    return w->files;
}

co_err co_wandb_media(co_wandb *w, const char *path)
{
    if (is_off(w))
        return CO_OK;
    entry_file(&w->log, path, FILE_MEDIA);
    return w->up ? upload_file(w->up, path) : CO_OK;
}

/* --- starts --- */
static co_err send_config(co_wandb *w)
{
    if (!w->up)
        return CO_OK;
    char *text = folder_config_json(w->config, &w->machine, &w->set, w->start);
    co_err err = text ? upload_config(w->up, text) : CO_ENOMEM;

    co_free(text);
    if (!err)
        err = upload_file(w->up, "wandb-metadata.json");
    return err ? err : upload_file(w->up, "config.yaml");
}

static co_err first_begin(co_wandb *w, double t)
{
    w->start = w->last_t = w->output_t = t;
    log_head(&w->log.out);
    entry_header(&w->log);
    entry_run(&w->log, &w->set, w->config, t);
    entry_environment(&w->log, &w->set, &w->machine, t);
    entry_telemetry(&w->log);
    entry_metrics(&w->log);
    CO_TRY(folder_metadata(w->files, &w->set, &w->machine, t));
    entry_file(&w->log, "wandb-metadata.json", FILE_WANDB);
    return CO_OK;
}

co_err co_wandb_begin(co_wandb *w, const json_t *config, double t)
{
    if (is_off(w))
        return CO_OK;
    json_t *nested = folder_nest(config), *before = w->config;
    if (!nested)
        return CO_ENOMEM;
    w->config = nested;
    co_err err = close_row(w);
    if (!err && !before)
        err = first_begin(w, t);
    bool changed = !before || !json_equal(before, nested);
    if (!err && before && changed)
        entry_config(&w->log, nested);
    if (!err && changed)
        err = folder_config(w->files, nested);
    if (!err && changed)
        err = send_config(w);
    json_decref(before);
    return err;
}

/* --- flush and end --- */
static void summary_json(co_str *out, const co_wandb *w)
{
    co_str_add(out, "{");
    items_json(out, &w->summary);
    if (w->summary.n)
        co_str_addf(out, ",\"_wandb\":{\"runtime\":%lld}", (long long)(w->last_t - w->start));
    co_str_add(out, "}");
}

static co_err write_summary(co_wandb *w)
{
    co_str text = {0};
    char *path = co_sprintf("%s/wandb-summary.json", w->files);

    summary_json(&text, w);
    co_err err = path ? co_str_err(&text) : CO_ENOMEM;
    if (!err)
        err = co_fs_write_lightly(path, text.p, text.len);
    if (!err && w->up && w->summary.n)
        err = upload_summary(w->up, text.p);
    if (!err && w->summary_changed)
        entry_summary(&w->log, &w->summary, (int64_t)(w->last_t - w->start));
    w->summary_changed = w->summary_changed && err;
    co_str_fini(&text);
    co_free(path);
    return err;
}

static co_err flush_files(co_wandb *w)
{
    co_err err = spool_flush(&w->log.out);

    for (int i = 0; i < N_CHANNELS && !err && w->up; i++)
        err = spool_flush(&w->channel[i]);
    for (int i = 0; i < N_CHANNELS && !w->up; i++)
        co_str_clear(&w->channel[i].pending);
    return err ? err : spool_flush(&w->output_file);
}

co_err co_wandb_flush(co_wandb *w)
{
    if (is_off(w) || w->ended)
        return CO_OK;
    if (w->config)
        CO_TRY(output_take(w));
    if (w->summary_changed || !w->config)
        CO_TRY(write_summary(w));
    CO_TRY(flush_files(w));
    if (w->up && upload_knows(w->up, &w->saved))
        CO_TRY(folder_save(&w->saved, w->run_dir));
    return CO_OK;
}

/* All that an end writes; the present start's is also the last that is sent. */
static co_err write_end(co_wandb *w, int exit_code, double t, bool present)
{
    CO_TRY(begin_once(w, t));
    CO_TRY(close_row(w));
    CO_TRY(close_stats(w));
    w->last_t = t;
    if (!present)
        return CO_OK;
    CO_TRY(output_take(w));
    w->summary_changed = true;
    CO_TRY(write_summary(w));
    entry_end(&w->log, exit_code, (int64_t)(t - w->start));
    CO_TRY(co_wandb_flush(w));
    w->ended = true;
    if (!w->up)
        return CO_OK;
    co_err err = upload_file(w->up, "wandb-summary.json");
    if (!err)
        err = upload_file(w->up, "output.log");
    upload_finish(w->up, exit_code);
    return err;
}

static co_err wait_for_upload(co_wandb *w, double until_s, double secs)
{
    co_err err = upload_wait(w->up, until_s, secs);

    if (upload_knows(w->up, &w->saved) && folder_save(&w->saved, w->run_dir) != CO_OK && !err)
        err = CO_EIO;
    return err ? co_fail_in(err, "%s", w->set.base_url) : CO_OK;
}

/* The first error of several runs, with its message. */
struct first_error {
    co_err err;
    char why[1024];
};

static void keep_first(struct first_error *first, co_err err)
{
    if (!err || first->err)
        return;
    first->err = err;
    snprintf(first->why, sizeof first->why, "%s", co_errmsg());
}

/* The trouble of one run is no reason to give up the others. */
co_err co_wandb_end_all(co_wandb *const *runs, int n, int exit_code, double t, double secs)
{
    double until_s = co_now_s() + secs;
    struct first_error first = {0};

    for (int i = 0; i < n; i++)
        keep_first(&first, is_off(runs[i]) ? CO_OK : write_end(runs[i], exit_code, t, secs > 0));
    for (int i = 0; i < n && secs > 0; i++)
        if (runs[i]->up && runs[i]->ended)
            keep_first(&first, wait_for_upload(runs[i], until_s, secs));
    return first.err ? co_fail(first.err, "%s", first.why) : CO_OK;
}

co_err co_wandb_end(co_wandb *w, int exit_code, double t, double secs)
{
    return co_wandb_end_all(&w, 1, exit_code, t, secs);
}

bool co_wandb_notice(co_wandb *w, char *out, size_t size)
{
    if (w->notice[0]) {
        snprintf(out, size, "%s", w->notice);
        w->notice[0] = '\0';
        return true;
    }
    return w->up && upload_notice(w->up, out, size);
}

bool co_wandb_stop_asked(const co_wandb *w)
{
    return w->up && upload_stop_asked(w->up);
}

/* --- open and close --- */
void co_wandb_close(co_wandb *w)
{
    if (!w)
        return;
    upload_stop(w->up);
    spool_close(&w->log.out);
    for (int i = 0; i < N_CHANNELS; i++)
        spool_close(&w->channel[i]);
    spool_close(&w->output_file);
    if (w->output_fd >= 0)
        close(w->output_fd);
    co_str_fini(&w->log.record);
    co_str_fini(&w->output_rest);
    rows_fini(&w->rows);
    items_fini(&w->stats);
    items_fini(&w->summary);
    json_decref(w->config);
    saved_fini(&w->saved);
    settings_fini(&w->set);
    co_free(w->run_dir);
    co_free(w->output_path);
    co_free(w->folder);
    co_free(w->files);
    co_free(w);
}

co_err co_wandb_open(co_wandb **out, const co_wandb_cfg *cfg, const co_wandb_facts *facts)
{
    co_wandb *w = co_zalloc(sizeof *w);

    if (!w)
        return CO_ENOMEM;
    w->output_fd = w->log.out.fd = w->output_file.fd = -1;
    w->rows.last_step = -1;
    co_err err = settings_read(&w->set, cfg, facts);
    if (!err && !is_off(w)) {
        w->run_dir = co_strdup(facts->run_dir);
        w->output_path = co_sprintf("%s/%s", facts->run_dir, facts->output ? facts->output : "train.log");
        err = w->run_dir && w->output_path ? run_open_folder(w, facts->of) : CO_ENOMEM;
    }
    if (err)
        co_wandb_close(w);
    else
        *out = w;
    return err;
}
