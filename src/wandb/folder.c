/* folder.c -- the folder of a run: its name, and the small files in it.
 *
 *     SAVE_DIR/wandb/offline-run-20261117_132114-ID/run-ID.wandb     (online: run-...)
 *                                                  files/config.yaml, wandb-metadata.json, media/ ...
 *     SAVE_DIR/wandb/latest-run                     a link to the last one
 *     RUN/wandb/run.json (run-rank3.json: rank 3's) what the run folder remembers: the id, the folder's name,
 *                                                   and how many lines the service had before this run
 */
#include "wandb/wandb_int.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"

enum { ID_LEN = 8, JSON_MOST = 1 << 20 };

static co_err random_text(char *out, size_t len)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";

    for (size_t i = 0; i < len; i++) {
        unsigned char byte;
        do
            if (getrandom(&byte, 1, 0) != 1)
                return co_fail(CO_EIO, "getrandom: %m");
        while (byte >= 252); /* 7 x 36: every letter is as likely as any other */
        out[i] = letters[byte % 36];
    }
    out[len] = '\0';
    return CO_OK;
}

static char *saved_path(const char *run_dir, const char *rank)
{
    return co_sprintf("%s/wandb/run%s%s.json", run_dir, rank ? "-" : "", rank ? rank : "");
}

static bool recall(saved_run *out, const wandb_settings *set, const json_t *v)
{
    static const char *const names[N_CHANNELS] = {"history_base", "events_base", "output_base"};
    const char *id = co_json_str(v, "id"), *folder = co_json_str(v, "folder");
    long long n;

    if (!id || !folder || strchr(folder, '/') || !co_json_f64(v, "started", &out->started) ||
        (set->id && strcmp(set->id, id) != 0) || settings_check_id("id", id) != CO_OK)
        return false;
    out->known = co_json_i64(v, "step_base", &n);
    out->base_step = out->known && n > 0 ? n : 0;
    for (int i = 0; i < N_CHANNELS; i++) {
        out->known = out->known && co_json_i64(v, names[i], &n);
        out->base[i] = out->known && n > 0 ? n : 0;
    }
    out->id = co_strdup(id);
    out->folder = co_strdup(folder);
    return true;
}

static co_err new_run(saved_run *out, const wandb_settings *set)
{
    char id[ID_LEN + 1], date[32];

    CO_TRY(random_text(id, ID_LEN));
    out->started = set->started > 0 ? set->started : co_wall_s();
    out->id = co_strdup(set->id ? set->id : id);
    co_date(date, sizeof date, "%Y%m%d_%H%M%S", out->started);
    out->folder = out->id ? co_sprintf("%s-%s", date, out->id) : NULL;
    return out->folder ? CO_OK : CO_ENOMEM;
}

co_err folder_saved(saved_run *out, const wandb_settings *set, const char *run_dir)
{
    saved_run saved = {0};
    json_t *v = NULL;
    char *path = saved_path(run_dir, set->rank);
    co_err err = path ? CO_OK : CO_ENOMEM;
    bool there = false;

    if (!err && co_fs_exists(path)) {
        err = co_json_read(&v, path, JSON_MOST);
        there = !err && recall(&saved, set, v);
        err = err == CO_EFORMAT ? CO_OK : err; /* damaged: a new one replaces it */
    }
    json_decref(v);
    if (!err && there && (!saved.id || !saved.folder))
        err = CO_ENOMEM;
    if (!err && !there) {
        saved = (saved_run){.rank = set->rank};
        err = new_run(&saved, set);
        if (!err)
            err = folder_save(&saved, run_dir);
    }
    co_free(path);
    saved.rank = set->rank;
    if (err)
        saved_fini(&saved);
    else
        *out = saved;
    return err;
}

co_err folder_save(const saved_run *saved, const char *run_dir)
{
    json_t *v = json_pack("{ss ss sf}", "id", saved->id, "folder", saved->folder, "started", saved->started);
    char *path = saved_path(run_dir, saved->rank);

    if (v && saved->known) {
        json_object_set_new(v, "history_base", json_integer(saved->base[CH_HISTORY]));
        json_object_set_new(v, "events_base", json_integer(saved->base[CH_EVENTS]));
        json_object_set_new(v, "output_base", json_integer(saved->base[CH_OUTPUT]));
        json_object_set_new(v, "step_base", json_integer(saved->base_step));
    }
    co_err err = v && path ? co_json_write(v, path) : CO_ENOMEM;
    json_decref(v);
    co_free(path);
    return err;
}

void saved_fini(saved_run *saved)
{
    co_free(saved->id);
    co_free(saved->folder);
    *saved = (saved_run){0};
}

void folder_machine(machine_facts *out)
{
    struct utsname u;
    char path[sizeof out->root];

    *out = (machine_facts){.cpus = (int)sysconf(_SC_NPROCESSORS_ONLN)};
    if (uname(&u) == 0)
        snprintf(out->os, sizeof out->os, "%.60s-%.80s-%.60s", u.sysname, u.release, u.machine);
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    co_utf8_clean(out->executable, sizeof out->executable, path);
    if (getcwd(path, sizeof path))
        co_utf8_clean(out->root, sizeof out->root, path);
    if (random_text(out->writer, 32) != CO_OK)
        snprintf(out->writer, sizeof out->writer, "cohort");
}

static json_t *environment(const wandb_settings *set, const machine_facts *m, double start)
{
    char stamp[CO_STAMP];

    co_stamp(stamp, start);
    return json_pack("{ss ss ss ss ss ss si si ss}", "os", m->os, "startedAt", stamp, "program", set->program,
                     "root", m->root, "host", set->host, "executable", m->executable, "cpu_count", m->cpus,
                     "cpu_count_logical", m->cpus, "writerId", m->writer);
}

co_err folder_metadata(const char *files, const wandb_settings *set, const machine_facts *m, double start)
{
    json_t *v = environment(set, m, start);
    char *path = co_sprintf("%s/wandb-metadata.json", files);
    co_err err = v && path ? co_json_write(v, path) : CO_ENOMEM;

    json_decref(v);
    co_free(path);
    return err;
}

/* {"a.b": 1} -> {"a": {"b": 1}}. A key whose way is taken by another value stays flat. */
json_t *folder_nest(const json_t *flat)
{
    json_t *nested = json_object(), *value;
    const char *key;
    char part[128];

    if (!nested)
        return NULL;
    json_object_foreach((json_t *)flat, key, value)
    {
        json_t *at = nested;
        const char *last = key;
        for (size_t n; (n = strcspn(last, ".")) && last[n] && n < sizeof part && json_is_object(at);
             last += n + 1) {
            snprintf(part, sizeof part, "%.*s", (int)n, last);
            if (!json_object_get(at, part) && json_object_set_new(at, part, json_object()) != 0) {
                json_decref(nested);
                return NULL;
            }
            at = json_object_get(at, part);
        }
        bool fits = json_is_object(at) && !json_object_get(at, last);
        if (json_object_set(fits ? at : nested, fits ? last : key, value) != 0) {
            json_decref(nested);
            return NULL;
        }
    }
    return nested;
}

/* JSON is YAML, too: one key a line, its value as wandb wraps it. */
co_err folder_config(const char *files, const json_t *config)
{
    char *path = co_sprintf("%s/config.yaml", files);
    co_str out = {0};
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)config, key, value)
    {
        json_quote(&out, key, strlen(key));
        co_str_add(&out, ":\n    value: ");
        json_write(&out, value, JSON_DEPTH);
        co_str_add(&out, "\n");
    }
    co_err err = path ? co_str_err(&out) : CO_ENOMEM;
    if (!err)
        err = co_fs_write_lightly(path, co_str_text(&out), out.len);
    co_str_fini(&out);
    co_free(path);
    return err;
}

/* What the service calls config: each value wrapped, and what wandb knows of the run below _wandb. The
 * lists are messages with the numbers of their fields: m of MetricRecord (define_metric), t of
 * TelemetryRecord. */
char *folder_config_json(const json_t *config, const machine_facts *m, const wandb_settings *set, double start)
{
    json_t *all = json_object(), *value;
    const char *key;
    json_t *own = json_pack("{s:{s:[{ss s[i] s[]} {ss si s[i] s[]}] ss s:{ss ss ss} s:{so}}}", "value", "m",
                            "1", STEP_METRIC, "6", 3, "7", "2", "*", "5", 1, "6", 1, "7", "cli_version",
                            WANDB_VERSION, "t", "5", WANDB_VERSION, "12", WANDB_VERSION, "13", "linux-x86_64",
                            "e", m->writer, environment(set, m, start));
    bool ok = all && own;

    json_object_foreach((json_t *)config, key, value) ok =
        ok && json_object_set_new(all, key, json_pack("{sO}", "value", value)) == 0;
    ok = ok && json_object_set(all, "_wandb", own) == 0;
    co_str text = {0};
    json_write(&text, all, JSON_DEPTH);
    json_decref(all);
    json_decref(own);
    if (!ok)
        co_str_fini(&text);
    return co_str_take(&text);
}
