/* replay.c -- hands the whole record of a run that is over to one tracker, in this process. */
#include "track/tracker.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/json.h"
#include "track/track_int.h"

struct replay {
    const co_tracker_def *def;
    void *self;
    co_names names;
    co_tracking_tell tell;
    void *ctx;
};

static co_err hand_over(struct replay *r, const char *text, size_t len, bool last)
{
    json_t *v = NULL;
    co_err err = co_json_parse(&v, text, len, "events.jsonl");

    if (err)
        return err == CO_ENOMEM ? err : CO_OK; /* a line that a crash cut */
    if (json_is_object(v))
        err = tracker_rename(v, r->names);
    if (json_is_object(v) && !err)
        err = r->def->take(r->self, &(co_record_line){.text = text, .len = len, .json = v, .replayed = !last});
    json_decref(v);
    return err;
}

static void tell_notices(struct replay *r)
{
    char text[600];

    while (r->def->notice && r->def->notice(r->self, text, sizeof text))
        r->tell(r->ctx, text);
}

/* The settings that the newest start had: keys logger.NAME.* of its run_start. */
static void recall(const co_tracker_def *def, void *cfg, co_names *names, const json_t *config)
{
    static const char *const families[] = {"lightning", "slash", "underscore"};
    const char *family = co_json_str(config, "logger.names");

    for (size_t i = 0; family && i < CO_COUNT(families); i++)
        if (strcmp(family, families[i]) == 0)
            *names = (co_names)i;
    for (const co_option *o = def->options; o && o->key; o++) {
        char key[128];
        snprintf(key, sizeof key, "logger.%s.%s", def->name, o->key);
        const json_t *v = json_object_get(config, key);
        char *text = json_is_string(v) ? co_strdup(json_string_value(v)) : v ? co_json_text(v) : NULL;
        if (text && strcmp(text, "null") != 0 && co_option_set(o, cfg, key, text) != CO_OK)
            co_errclear(); /* an expression, or a value of another version: its default holds */
        co_free(text);
    }
}

/* Goes through the record: finds the last start's settings and the last line. */
static co_err survey(const char *dir, const co_tracker_def *def, void *cfg, co_names *names, int64_t *last,
                     char *task, size_t size, double *t)
{
    record_reader *reader = NULL;
    const char *line;
    size_t len;
    int64_t offset;

    *last = -1;
    CO_TRY(reader_open(&reader, dir));
    co_err err;
    while ((err = reader_next(reader, &line, &len, &offset)) == CO_OK && line) {
        json_t *v = NULL;
        if (co_json_parse(&v, line, len, "events.jsonl") != CO_OK)
            continue;
        const char *name = co_json_str(v, "name");
        co_json_f64(v, "t", t);
        *last = name && strcmp(name, "run_end") == 0 ? offset : -1;
        if (name && strcmp(name, "run_start") == 0) {
            recall(def, cfg, names, json_object_get(v, "config"));
            snprintf(task, size, "%s", co_json_str(v, "task") ? co_json_str(v, "task") : "train");
        }
        json_decref(v);
    }
    reader_close(reader);
    return err;
}

static co_err play(struct replay *r, const char *dir, int64_t last, double t)
{
    record_reader *reader = NULL;
    const char *line;
    size_t len;
    int64_t offset, n = 0;
    char end[128];
    co_err err = reader_open(&reader, dir);

    while (!err && (err = reader_next(reader, &line, &len, &offset)) == CO_OK && line) {
        err = hand_over(r, line, len, offset == last);
        if (!err && ++n % 10000 == 0)
            err = r->def->flush(r->self);
        tell_notices(r);
    }
    reader_close(reader);
    if (!err && last < 0) { /* the run was killed: it has no end */
        int k = snprintf(end, sizeof end, "{\"name\":\"run_end\",\"status\":\"failed\",\"t\":%.3f}", t);
        err = hand_over(r, end, (size_t)k, true);
    }
    if (!err)
        err = r->def->flush(r->self);
    tell_notices(r);
    return err;
}

co_err co_tracker_replay(const char *dir, const char *tracker, const char *mode, co_tracking_tell tell,
                         void *ctx)
{
    struct replay r = {.tell = tell, .ctx = ctx};
    co_folder *folder = NULL;
    char task[128] = "train";
    int64_t last;
    double t = 0;

    for (int i = 0; co_trackers[i]; i++)
        if (strcmp(co_trackers[i]->name, tracker) == 0)
            r.def = co_trackers[i];
    CO_ASSERT(r.def, "the tracker is in the table");
    char *record = co_sprintf("%s/events.jsonl", dir);
    bool there = record && co_fs_exists(record);
    co_free(record);
    if (!there)
        return co_fail(CO_EINPUT, "%s is no run folder: it has no events.jsonl", dir);
    void *cfg = co_zalloc(r.def->cfg_size);
    co_err err = cfg ? co_options_default(r.def->options, cfg) : CO_ENOMEM;
    if (!err)
        err = co_folder_open(&folder, dir, "replay"); /* a run that goes on has the lease */
    if (!err)
        err = survey(dir, r.def, cfg, &r.names, &last, task, sizeof task, &t);
    if (!err && mode)
        err = co_option_set(co_option_find(r.def->options, "mode"), cfg, "mode", mode);
    if (!err)
        err = r.def->open(&r.self, &(co_run_facts){.dir = dir, .run_id = "", .task = task, .names = r.names},
                          cfg);
    if (!err) {
        err = play(&r, dir, last, t);
        r.def->close(r.self);
    }
    co_folder_close(folder);
    if (cfg)
        co_options_fini(r.def->options, cfg);
    co_free(cfg);
    return err;
}
