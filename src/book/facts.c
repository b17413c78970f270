/* facts.c -- what a run says about itself: the numbers that tables and sentences need, from header, summary,
 * configuration and record. A run that still goes on has no summary; then the record tells what it can. */
#include "book/book_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "config/config.h"

enum { POINTS = 1200, EVENTS = 4000, CONFIG_MOST = 4096 };

/* --- the configuration -------------------------------------------------------------------------------- */
static void add_pair(void *ctx, const char *key, const char *value)
{
    facts *f = ctx;

    if (f->n_config == CONFIG_MOST)
        return;
    pair *new = &f->config[f->n_config];
    *new = (pair){co_strdup(key), co_strdup(value ? value : "null")};
    if (new->key &&new->value) {
        f->n_config++;
        return;
    }
    co_free(new->key);
    co_free(new->value);
}

/* A configuration that does not read counts as absent. */
static co_err read_config(facts *f)
{
    const char *text = co_run_config(f->run);

    f->config = co_array(CONFIG_MOST, sizeof *f->config);
    if (!f->config)
        return CO_ENOMEM;
    if (text && co_conf_parse_yaml(text, strlen(text), "config.yaml", add_pair, f) != CO_OK)
        co_errclear();
    return CO_OK;
}

const char *facts_config(const facts *f, const char *key)
{
    for (size_t i = f->n_config; i-- > 0;) /* the last one counts */
        if (strcmp(f->config[i].key, key) == 0)
            return f->config[i].value;
    return NULL;
}

const char *facts_config_or(const facts *f, const char *key, const char *other)
{
    const char *value = facts_config(f, key);

    return value ? value : other;
}

/* --- numbers ------------------------------------------------------------------------------------------ */
static double number(const json_t *from, const char *key)
{
    double x = NAN;

    co_json_f64(from, key, &x);
    return x;
}

static double config_number(const facts *f, const char *key)
{
    const char *text = facts_config(f, key);
    double x;

    return text && co_str_to_f64(text, &x) ? x : NAN;
}

static double either(double a, double b)
{
    return isnan(a) ? b : a;
}

double facts_last(const facts *f, const char *name)
{
    double x = number(json_object_get(f->summary, "metrics"), name);
    const co_series *s = co_run_series(f->run, name);

    return isnan(x) && s ? s->point[s->n - 1].value : x;
}

/* Losses and errors are better when they are less. */
static bool less_is_better(const char *name)
{
    static const char *const errors[] = {"loss", "mae", "rmse",       "mse", "error",
                                         "cer",  "wer", "perplexity", "ppl"};
    const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;

    for (size_t i = 0; i < CO_COUNT(errors); i++)
        if (strncmp(last, errors[i], strlen(errors[i])) == 0)
            return true;
    return false;
}

const co_point *facts_best(const facts *f, const char *name)
{
    const co_series *s = co_run_series(f->run, name);

    if (!s)
        return NULL;
    return less_is_better(name) ? co_series_least(s) : co_series_greatest(s);
}

bool facts_is_metric(const char *name)
{
    size_t len = strlen(name);

    return len > 4 && strncmp(name, "val/", 4) == 0 && strcmp(name, "val/loss") != 0 &&
           strcmp(name, "val/sentences") != 0 && strcmp(name + len - 5, "_best") != 0;
}

/* "acc" of val/acc: the first metric of an evaluation that is no loss. */
static const char *metric_of(const facts *f)
{
    for (size_t i = 0; i < co_run_series_count(f->run); i++) {
        const char *name = co_run_series_at(f->run, i)->name;
        if (facts_is_metric(name))
            return name + 4;
    }
    return "";
}

static void find_best(facts *f)
{
    const json_t *best = json_object_get(f->summary, "best");
    const char *key;
    json_t *v;

    f->best = f->best_step = NAN;
    json_object_foreach((json_t *)best, key, v)
    {
        if (strcmp(key, "step") == 0)
            continue;
        f->monitor = key;
        f->best = number(best, key);
        f->best_step = number(best, "step");
    }
    if (f->monitor || !*f->metric)
        return;
    for (size_t i = 0; i < co_run_series_count(f->run); i++) {
        const co_series *s = co_run_series_at(f->run, i);
        const co_point *p = strncmp(s->name, "val/", 4) == 0 && strcmp(s->name + 4, f->metric) == 0
                                ? facts_best(f, s->name)
                                : NULL;
        if (p) {
            f->monitor = s->name;
            f->best = p->value;
            f->best_step = (double)p->step;
        }
    }
}

static double last_step(const facts *f)
{
    double step = NAN;

    for (size_t i = 0; i < co_run_series_count(f->run); i++) {
        const co_series *s = co_run_series_at(f->run, i);
        step = fmax(either(step, 0), (double)s->point[s->n - 1].step);
    }
    return step;
}

static double ranks_of(const facts *f)
{
    const json_t *hosts = json_object_get(f->summary, "hosts"), *host;
    double sum = 0;
    size_t i;

    json_array_foreach(hosts, i, host)
    {
        sum += either(number(host, "ranks"), 0);
    }
    if (sum > 0)
        return sum;
    const json_t *segments = json_object_get(f->header, "segments");
    return number(json_array_get(segments, json_array_size(segments) ? json_array_size(segments) - 1 : 0),
                  "ranks");
}

static double utilisation_of(const facts *f)
{
    const json_t *host;
    double busy = 0, room = 0;
    size_t i;

    json_array_foreach(f->host_list, i, host)
    {
        busy += either(number(host, "cpu_user_s"), 0) + either(number(host, "cpu_sys_s"), 0);
        room += either(number(host, "room_s"), 0);
    }
    return room > 0 ? busy / room : NAN;
}

/* Samples a second since the first recorded step, of a run that has no summary yet. */
static double rate_so_far(const facts *f)
{
    const co_series *s = co_run_series(f->run, "train/loss_step");

    if (!s)
        return NAN;
    const co_point *first = &s->point[0], *last = &s->point[s->n - 1];
    double samples = f->batch * (double)(last->step - first->step);
    return last->t > first->t ? samples / (last->t - first->t) : NAN;
}

static void find_numbers(facts *f)
{
    const json_t *s = f->summary;

    f->wall_s = f->n_starts > 1 || (f->n_starts == 1 && f->starts_missing)
                    ? starts_wall(f)
                    : either(number(s, "wall_s"), co_run_last_t(f->run) - co_run_first_t(f->run));
    f->peak_bytes = number(s, "peak_memory_bytes");
    const co_series *memory = co_run_series(f->run, "system/memory_mb");
    if (isnan(f->peak_bytes) && memory && co_series_greatest(memory))
        f->peak_bytes = 1e6 * co_series_greatest(memory)->value;
    f->steps = either(number(s, "steps"), last_step(f));
    f->epochs = number(s, "epochs");
    f->samples = number(s, "samples");
    f->ranks = ranks_of(f);
    f->threads = number(s, "threads");
    size_t hosts = json_array_size(json_object_get(s, "hosts"));
    hosts = hosts ? hosts : co_run_host_count(f->run);
    f->hosts = hosts ? (double)hosts : NAN;
    f->batch = either(either(number(s, "global_batch"), number(f->header, "global_batch")),
                      config_number(f, "data.batch_size"));
    f->samples_per_s = either(number(s, "samples_per_s"), rate_so_far(f));
    f->lr = config_number(f, "optim.lr");
    f->parameters = number(s, "parameters");
    f->utilisation = utilisation_of(f);
    f->weights = co_json_str(s, "weights_sha256");
    f->weights = f->weights && *f->weights ? f->weights : NULL;
}

/* --- the door ----------------------------------------------------------------------------------------- */
static void name_run(facts *f, const char *dir)
{
    size_t n = strlen(dir);

    while (n > 1 && dir[n - 1] == '/')
        n--;
    size_t from = n;
    while (from > 0 && dir[from - 1] != '/')
        from--;
    snprintf(f->name, sizeof f->name, "%.*s", (int)(n - from), dir + from);
}

co_err facts_open(facts *f, const char *dir)
{
    *f = (facts){0};
    CO_TRY(co_run_open(&f->run, dir, &(co_run_limits){.points = POINTS, .events = EVENTS}));
    f->header = co_run_header(f->run);
    f->summary = co_run_summary(f->run);
    co_err err = read_config(f);
    if (!err)
        err = starts_read(f);
    if (err) {
        facts_close(f);
        return err;
    }
    name_run(f, dir);
    f->metric = metric_of(f);
    find_numbers(f);
    find_best(f);
    return CO_OK;
}

void facts_close(facts *f)
{
    for (size_t i = 0; i < f->n_config; i++) {
        co_free(f->config[i].key);
        co_free(f->config[i].value);
    }
    co_free(f->config);
    json_decref(f->host_list);
    co_free(f->start);
    co_run_close(f->run);
    *f = (facts){0};
}

static void put(json_t *to, const char *key, double x)
{
    if (!isnan(x))
        json_object_set_new(to, key, co_json_num(x));
}

static void put_text(json_t *to, const char *key, const char *text)
{
    if (text)
        json_object_set_new(to, key, co_json_string(text));
}

static json_t *last_values(const facts *f)
{
    json_t *v = json_object();

    for (size_t i = 0; i < co_run_series_count(f->run); i++) {
        const char *name = co_run_series_at(f->run, i)->name;
        if (strncmp(name, "val/", 4) == 0 || strncmp(name, "test/", 5) == 0)
            put(v, name, facts_last(f, name));
    }
    return v;
}

json_t *facts_json(const facts *f)
{
    json_t *v = json_object();

    put_text(v, "dir", co_run_dir(f->run));
    put_text(v, "state", co_run_state_name(co_run_state_of(f->run)));
    put_text(v, "model", facts_config(f, "model.name"));
    put_text(v, "data", facts_config(f, "data.name"));
    put_text(v, "weights_sha256", f->weights);
    put(v, "steps", f->steps);
    put(v, "epochs", f->epochs);
    put(v, "samples", f->samples);
    put(v, "wall_s", f->wall_s);
    put(v, "samples_per_s", f->samples_per_s);
    put(v, "peak_memory_bytes", f->peak_bytes);
    put(v, "utilisation", f->utilisation);
    put(v, "starts", f->n_starts ? (double)f->n_starts : NAN);
    put(v, "starts_missing", f->starts_missing ? (double)f->starts_missing : NAN);
    put(v, "ranks", f->ranks);
    put(v, "global_batch", f->batch);
    put(v, "lr", f->lr);
    json_object_set_new(v, "metrics", last_values(f));
    if (f->monitor) {
        put_text(v, "monitor", f->monitor);
        put(v, "best", f->best);
        put(v, "best_step", f->best_step);
    }
    return v;
}

static bool had_one_start(const facts *f)
{
    return json_array_size(json_object_get(f->header, "segments")) == 1;
}

/* Wall time includes evaluations and the final test. */
static bool evaluate_alike(const facts *a, const facts *b)
{
    static const char *const keys[] = {"test", "trainer.limit_val_batches", "trainer.limit_test_batches",
                                       "trainer.eval_every", "trainer.val_check_interval"};

    for (size_t i = 0; i < CO_COUNT(keys); i++) {
        const char *mine = facts_config(a, keys[i]), *theirs = facts_config(b, keys[i]);
        if (mine && theirs && strcmp(mine, theirs) != 0)
            return false;
    }
    return true;
}

double facts_speed_up(const facts *base, const facts *f)
{
    bool same_work = base->samples > 0 && base->samples == f->samples && had_one_start(base) &&
                     had_one_start(f) && evaluate_alike(base, f);

    if (same_work && base->wall_s > 0 && f->wall_s > 0)
        return base->wall_s / f->wall_s;
    return base->samples_per_s > 0 && f->samples_per_s > 0 ? f->samples_per_s / base->samples_per_s : NAN;
}

double facts_size(const facts *base, const facts *f)
{
    double threads = base->threads > 0 && f->threads > 0 ? f->threads / base->threads : 1;

    return base->ranks > 0 && f->ranks > 0 ? f->ranks / base->ranks * threads : NAN;
}

double facts_efficiency(const facts *base, const facts *f)
{
    return facts_speed_up(base, f) / facts_size(base, f);
}

double facts_host_threads(const facts *f, const char *name)
{
    const json_t *host;
    char own[96];
    size_t i;

    json_array_foreach(f->host_list, i, host)
    {
        if (strcmp(facts_host(f->host_list, i, own), name) == 0)
            return number(host, "ranks") * number(host, "threads");
    }
    return NAN;
}

const char *facts_host(const json_t *hosts, size_t i, char out[96])
{
    const char *name = co_json_str(json_array_get(hosts, i), "name");
    size_t before = 0;

    for (size_t k = 0; k < i && name; k++) {
        const char *other = co_json_str(json_array_get(hosts, k), "name");
        before += other && strcmp(other, name) == 0;
    }
    if (before)
        snprintf(out, 96, "%.80s (%zu)", name, before + 1);
    else
        snprintf(out, 96, "%.80s", name ? name : "");
    return out;
}
