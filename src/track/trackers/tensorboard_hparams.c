/* tensorboard_hparams.c -- the HParams page: a run is a session with settings, and its scalars are the metrics.
 *
 * There is no `experiment` record: the page takes the columns from the sessions, so that runs with different
 * settings lie side by side.
 */
#include "track/trackers/tensorboard_int.h"

#include <string.h>

#include "base/json.h"

enum { DATA_START = 3, DATA_END = 4 }; /* of HParamsPluginData */
enum { STATUS_SUCCESS = 1, STATUS_FAILURE = 2 };

/* What the settings of a run are: not where it ran, nor what it wrote. */
static const char *const shown[] = {"model.", "data.", "optim.", "schedule.", "loss.", "trainer.", "seed"};

static bool is_shown(const char *key)
{
    for (size_t i = 0; i < CO_COUNT(shown); i++)
        if (strncmp(key, shown[i], strlen(shown[i])) == 0)
            return strcmp(key, "data.dir") != 0;
    return false;
}

/* google.protobuf.Value */
static void add_value(co_str *out, const json_t *v)
{
    if (json_is_number(v))
        proto_f64(out, 2, json_number_value(v));
    else if (json_is_boolean(v))
        proto_int(out, 4, json_is_true(v));
    else
        proto_text(out, 3, json_is_string(v) ? json_string_value(v) : "null");
}

static void add_hparam(co_str *start, const char *key, const json_t *v)
{
    co_str entry = {0}, value = {0};

    add_value(&value, v);
    proto_text(&entry, 1, key);
    proto_sub(&entry, 2, &value);
    proto_sub(start, 1, &entry); /* SessionStartInfo.hparams */
    co_str_fini(&value);
    co_str_fini(&entry);
}

static void add_plugin(co_str *summary, const char *tag, int member, co_str *message)
{
    co_str content = {0}, plugin = {0}, metadata = {0}, value = {0};

    proto_sub(&content, member, message);
    proto_text(&plugin, 1, "hparams");
    proto_sub(&plugin, 2, &content);
    proto_sub(&metadata, 1, &plugin);
    proto_text(&value, 1, tag);
    proto_sub(&value, 9, &metadata);
    proto_sub(summary, 1, &value);
    co_str_fini(&content);
    co_str_fini(&plugin);
    co_str_fini(&metadata);
    co_str_fini(&value);
}

void hparams_start(co_str *summary, const json_t *line, const char *name)
{
    json_t *config = json_object_get(line, "config"), *value;
    co_str start = {0};
    const char *key;
    double t = 0;

    json_object_foreach(config, key, value)
    {
        if (is_shown(key))
            add_hparam(&start, key, value);
    }
    if (json_object_get(line, "parameters"))
        add_hparam(&start, "model/params/total", json_object_get(line, "parameters"));
    co_json_f64(line, "t", &t);
    proto_text(&start, 4, name); /* group_name */
    proto_f64(&start, 5, t);     /* start_time_secs */
    add_plugin(summary, "_hparams_/session_start_info", DATA_START, &start);
    co_str_fini(&start);
}

bool hparams_end(co_str *summary, const json_t *line)
{
    const char *status = co_json_str(line, "status");
    bool done = status && strcmp(status, "done") == 0, failed = status && strcmp(status, "failed") == 0;
    co_str end = {0};
    double t = 0;

    if (!done && !failed)
        return false;
    co_json_f64(line, "t", &t);
    proto_int(&end, 1, done ? STATUS_SUCCESS : STATUS_FAILURE);
    proto_f64(&end, 2, t); /* end_time_secs */
    add_plugin(summary, "_hparams_/session_end_info", DATA_END, &end);
    co_str_fini(&end);
    return true;
}
