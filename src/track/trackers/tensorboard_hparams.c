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
    const char *text = json_is_string(v) ? json_string_value(v) : "null";

    if (json_is_number(v))
        co_proto_f64(out, 2, json_number_value(v));
    else if (json_is_boolean(v))
        co_proto_choice(out, 4, json_is_true(v));
    else
        co_proto_text_n(out, 3, text, strlen(text));
}

static void add_hparam(co_str *start, const char *key, const json_t *v)
{
    size_t entry = co_proto_begin(start, 1); /* SessionStartInfo.hparams */

    co_proto_text(start, 1, key);
    size_t value = co_proto_begin(start, 2);
    add_value(start, v);
    co_proto_end(start, value);
    co_proto_end(start, entry);
}

static void add_plugin(co_str *summary, const char *tag, int member, const co_str *message)
{
    size_t value = tb_value_begin(summary, tag), metadata = co_proto_begin(summary, 9);
    size_t plugin = co_proto_begin(summary, 1);

    co_proto_text(summary, 1, "hparams");
    size_t content = co_proto_begin(summary, 2);
    co_proto_text_n(summary, member, co_str_text(message), message->len);
    co_proto_end(summary, content);
    co_proto_end(summary, plugin);
    co_proto_end(summary, metadata);
    co_proto_end(summary, value);
    summary->failed |= message->failed;
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
    co_proto_text(&start, 4, name); /* group_name */
    co_proto_f64(&start, 5, t);     /* start_time_secs */
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
    co_proto_int(&end, 1, done ? STATUS_SUCCESS : STATUS_FAILURE);
    co_proto_f64(&end, 2, t); /* end_time_secs */
    add_plugin(summary, "_hparams_/session_end_info", DATA_END, &end);
    co_str_fini(&end);
    return true;
}
