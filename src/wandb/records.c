/* records.c -- the records of the transaction log: messages of wandb's schema, wandb_internal.proto.
 *
 * Each function appends one Record to the log. The numbers are those of the schema; docs/formats/wandb.md
 * lists them.
 */
#include "wandb/wandb_int.h"

#include <stdio.h>

enum { /* Record's fields: which message it carries */
       NUM = 1,
       HISTORY = 2,
       SUMMARY = 3,
       CONFIG = 5,
       FILES = 6,
       STATS = 7,
       TELEMETRY = 11,
       METRIC = 12,
       OUTPUT_RAW = 13,
       RUN = 17,
       EXIT = 18,
       FINAL = 20,
       HEADER = 21,
       FOOTER = 22,
       ENVIRONMENT = 26
};

static size_t begin(record_log *log, int kind)
{
    co_str_clear(&log->record);
    co_proto_int(&log->record, NUM, ++log->n);
    return co_proto_begin(&log->record, kind);
}

static void end(record_log *log, size_t at)
{
    co_proto_end(&log->record, at);
    if (log->record.failed)
        log->out.pending.failed = true;
    else
        log_record(&log->out, log->record.p, log->record.len);
}

/* ConfigItem, SummaryItem, HistoryItem: { nested_key 2, value_json 16 }; `nested`: the key's second part */
static void add_item(co_str *s, int field, const char *key, const char *nested, const char *json)
{
    size_t at = co_proto_begin(s, field);

    co_proto_text(s, 2, key);
    co_proto_text(s, 2, nested);
    co_proto_text(s, 16, json);
    co_proto_end(s, at);
}

/* { key 1, value_json 16 }: of the configuration and of StatsRecord */
static void add_plain_item(co_str *s, int field, const char *key, const char *json)
{
    size_t at = co_proto_begin(s, field);

    co_proto_text(s, 1, key);
    co_proto_text(s, 16, json);
    co_proto_end(s, at);
}

static void add_telemetry(co_str *s)
{
    co_proto_text(s, 5, WANDB_VERSION);
    co_proto_text(s, 12, WANDB_VERSION);
    co_proto_text(s, 13, "linux-x86_64");
}

void entry_header(record_log *log)
{
    size_t at = begin(log, HEADER), version = co_proto_begin(&log->record, 1);

    co_proto_text(&log->record, 1, WANDB_VERSION "+cohort");
    co_proto_text(&log->record, 2, "0.70.0"); /* what wandb 0.31 itself asks for */
    co_proto_end(&log->record, version);
    end(log, at);
}

static void add_config(co_str *s, const json_t *config)
{
    co_str text = {0};
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)config, key, value)
    {
        co_str_clear(&text);
        json_write(&text, value, JSON_DEPTH);
        add_plain_item(s, 1, key, co_str_text(&text));
    }
    s->failed = s->failed || text.failed;
    co_str_fini(&text);
}

void entry_config(record_log *log, const json_t *config)
{
    size_t at = begin(log, CONFIG);

    add_config(&log->record, config);
    end(log, at);
}

void entry_run(record_log *log, const wandb_settings *set, const json_t *config, double start)
{
    co_str *s = &log->record;
    size_t at = begin(log, RUN);

    co_proto_text(s, 1, set->id);
    co_proto_text(s, 2, set->entity);
    co_proto_text(s, 3, set->project);
    size_t values = co_proto_begin(s, 4);
    add_config(s, config);
    co_proto_end(s, values);
    co_proto_text(s, 6, set->group);
    co_proto_text(s, 7, set->job_type);
    co_proto_text(s, 8, set->name);
    co_proto_text(s, 9, set->notes);
    for (size_t i = 0; i < json_array_size(set->tags); i++)
        co_proto_text(s, 10, json_string_value(json_array_get(set->tags, i)));
    co_proto_text(s, 12, set->sweep);
    co_proto_text(s, 13, set->host);
    co_proto_time(s, 17, start);
    size_t telemetry = co_proto_begin(s, 19);
    add_telemetry(s);
    co_proto_end(s, telemetry);
    if (set->commit || set->remote) {
        size_t git = co_proto_begin(s, 21);
        co_proto_text(s, 1, set->remote);
        co_proto_text(s, 2, set->commit);
        co_proto_end(s, git);
    }
    end(log, at);
}

void entry_environment(record_log *log, const wandb_settings *set, const machine_facts *m, double start)
{
    co_str *s = &log->record;
    size_t at = begin(log, ENVIRONMENT);

    co_proto_text(s, 1, m->os);
    co_proto_time(s, 3, start);
    co_proto_text(s, 6, set->program);
    co_proto_text(s, 11, m->root);
    co_proto_text(s, 12, set->host);
    co_proto_text(s, 14, m->executable);
    co_proto_int(s, 16, m->cpus);
    co_proto_int(s, 17, m->cpus);
    co_proto_text(s, 199, m->writer);
    end(log, at);
}

void entry_telemetry(record_log *log)
{
    size_t at = begin(log, TELEMETRY);

    add_telemetry(&log->record);
    end(log, at);
}

/* define_metric("global_step"), then define_metric("*", step_metric="global_step", step_sync=True) */
void entry_metrics(record_log *log)
{
    co_str *s = &log->record;
    size_t at = begin(log, METRIC);

    co_proto_text(s, 1, STEP_METRIC);
    size_t options = co_proto_begin(s, 6);
    co_proto_int(s, 3, 1);
    co_proto_end(s, options);
    end(log, at);

    at = begin(log, METRIC);
    co_proto_text(s, 2, "*");
    co_proto_text(s, 4, STEP_METRIC);
    options = co_proto_begin(s, 6);
    co_proto_int(s, 1, 1);
    co_proto_int(s, 3, 1);
    co_proto_end(s, options);
    end(log, at);
}

void entry_history(record_log *log, int64_t row_step, const item_list *items)
{
    co_str *s = &log->record;
    size_t at = begin(log, HISTORY);

    for (size_t i = 0; i < items->n; i++)
        add_item(s, 1, items->at[i].key, NULL, items->at[i].json);
    size_t step = co_proto_begin(s, 2);
    co_proto_int(s, 1, row_step);
    co_proto_end(s, step);
    end(log, at);
}

void entry_summary(record_log *log, const item_list *items, int64_t runtime_s)
{
    co_str *s = &log->record;
    char seconds[24];
    size_t at = begin(log, SUMMARY);

    for (size_t i = 0; i < items->n; i++)
        add_item(s, 1, items->at[i].key, NULL, items->at[i].json);
    snprintf(seconds, sizeof seconds, "%lld", (long long)runtime_s);
    add_item(s, 1, "_wandb", "runtime", seconds);
    end(log, at);
}

void entry_stats(record_log *log, double t, const item_list *items)
{
    co_str *s = &log->record;
    size_t at = begin(log, STATS);

    co_proto_time(s, 2, t);
    for (size_t i = 0; i < items->n; i++)
        add_plain_item(s, 3, items->at[i].key, items->at[i].json);
    end(log, at);
}

/* A line without its newline, as if to standard output (type 1): wandb marks standard error as "ERROR". */
void entry_output(record_log *log, double t, const char *line, size_t len)
{
    co_str *s = &log->record;
    size_t at = begin(log, OUTPUT_RAW);

    co_proto_int(s, 1, 1);
    co_proto_time(s, 2, t);
    size_t text = co_proto_begin(s, 3);
    co_str_addn(s, line, len);
    co_str_add(s, "\n");
    co_proto_end(s, text);
    end(log, at);
}

void entry_file(record_log *log, const char *path, int type)
{
    co_str *s = &log->record;
    size_t at = begin(log, FILES), file = co_proto_begin(s, 1);

    co_proto_text(s, 1, path);
    co_proto_int(s, 3, type);
    co_proto_end(s, file);
    end(log, at);
}

void entry_end(record_log *log, int exit_code, int64_t runtime_s)
{
    static const int empty[] = {FINAL, FOOTER};
    size_t at = begin(log, EXIT);

    co_proto_int(&log->record, 1, exit_code);
    co_proto_int(&log->record, 2, runtime_s);
    end(log, at);
    for (size_t i = 0; i < CO_COUNT(empty); i++) {
        at = begin(log, empty[i]);
        end(log, at);
    }
}
