/* once.c -- `cohort top --once`: all runs as text, or as one JSON object a script can read. */
#include "top/top_int.h"

#include <math.h>
#include <poll.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json.h"

enum { BETWEEN_MS = 200 }; /* CPU time of the machine and of launches is measured over this time */

static json_t *number_or_null(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *count_or_null(bool known, int64_t x)
{
    return known && x > 0 && x < INT32_MAX ? json_integer(x) : json_null();
}

static json_t *text_or_null(const char *text)
{
    return text[0] ? co_json_string(text) : json_null();
}

static json_t *hosts_json(const top_state *state, const top_run *run)
{
    json_t *all = json_array();

    for (int h = 0; h < run->hosts; h++) {
        json_t *one = co_use_json(&run->host[h]);
        json_object_set_new(one, "host", co_json_string(top_host_name(state, run, &run->host[h])));
        json_array_append_new(all, one);
    }
    return all;
}

static json_t *run_json(const top_state *state, const top_run *run)
{
    const co_progress *p = &run->progress;
    bool there = run->has_progress;
    json_t *j = json_object(), *losses = json_array();

    json_object_set_new(j, "pid", count_or_null(true, run->live.pid));
    json_object_set_new(j, "run_id", text_or_null(run->live.run_id));
    json_object_set_new(j, "task", text_or_null(run->live.task));
    json_object_set_new(j, "dir", text_or_null(run->live.dir));
    json_object_set_new(j, "launch", text_or_null(run->live.launch));
    json_object_set_new(j, "record_host", text_or_null(run->live.record_host));
    json_object_set_new(j, "state", json_string(top_state_text(run)));
    json_object_set_new(j, "started", number_or_null(run->live.started));
    json_object_set_new(j, "step", count_or_null(there, p->step));
    json_object_set_new(j, "steps", count_or_null(there, p->steps));
    json_object_set_new(j, "epoch", count_or_null(there, p->epoch));
    json_object_set_new(j, "epochs", count_or_null(there, p->epochs));
    json_object_set_new(j, "loss", number_or_null(there ? p->loss : NAN));
    json_object_set_new(j, "metric_name", text_or_null(run->metric));
    json_object_set_new(j, "metric", number_or_null(there ? p->metric : NAN));
    json_object_set_new(j, "samples_per_s",
                        number_or_null(there && p->samples_per_s > 0 ? p->samples_per_s : NAN));
    json_object_set_new(j, "left_s", number_or_null(there ? p->eta_s : NAN));
    json_object_set_new(j, "recoveries", json_integer(run->recoveries));
    json_object_set_new(j, "cpu_percent", number_or_null(run->cpu_percent));
    json_object_set_new(j, "memory_mb", number_or_null(run->memory_mb));
    json_object_set_new(j, "log", text_or_null(run->log));
    for (int i = 0; i < run->losses; i++)
        json_array_append_new(losses, number_or_null(run->loss[i]));
    json_object_set_new(j, "losses", losses);
    json_object_set_new(j, "hosts", hosts_json(state, run));
    return j;
}

static co_err print_json(const top_state *state, FILE *to)
{
    json_t *all = json_array();

    for (int i = 0; i < state->n; i++)
        json_array_append_new(all, run_json(state, &state->run[i]));
    json_t *j = json_pack("{s:f, s:s, s:o}", "t", state->now, "host", state->host, "runs", all);
    char *text = j ? co_json_text(j) : NULL;
    if (text)
        fprintf(to, "%s\n", text);
    co_free(text);
    json_decref(j);
    return text ? CO_OK : CO_ENOMEM;
}

static void print_text(const top_state *state, int cols, FILE *to)
{
    top_screen screen = {0};

    top_lines(state, 0, cols, &screen);
    for (int i = 0; i < screen.n; i++)
        fprintf(to, "%s\n", screen.line[i].text);
    top_screen_fini(&screen);
}

co_err co_top_once(const co_top_ask *ask, FILE *to, bool json)
{
    top_state state = {.chosen = -1, .only = ask->word != NULL, .utf8 = top_is_utf8()};
    top_source *source = top_source_new(ask);
    co_err err = source ? CO_OK : CO_ENOMEM;

    gethostname(state.host, sizeof state.host - 1);
    if (!err)
        err = top_gather(source, &state);
    if (!err) {
        poll(NULL, 0, BETWEEN_MS);
        err = top_gather(source, &state);
    }
    if (!err && json)
        err = print_json(&state, to);
    else if (!err) {
        state.view = ask->word ? TOP_RUN : TOP_RUNS;
        print_text(&state, ask->cols, to);
    }
    top_state_fini(&state);
    top_source_free(source);
    return err;
}
