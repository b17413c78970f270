/* ending.c -- what a person reads when a run is over: its results, its folder, what to type next, and the
 * line that repeats the run. */
#include "cli/train_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static bool is_checkpoint_folder(const char *word)
{
    return strncmp(word + strspn(word, "+"), "callbacks.model_checkpoint.dirpath=", 35) == 0;
}

static bool is_time(const char *word)
{
    return strncmp(word + strspn(word, "+"), "trainer.max_time=", 17) == 0;
}

/* trainer.max_time, and the limit of steps that takes its place when the run is repeated. */
static bool is_limit(const char *word)
{
    return is_time(word) || strncmp(word + strspn(word, "+"), "trainer.max_steps=", 18) == 0;
}

/* trainer.max_time ended the run, or early stopping did before it: another run may be faster or slower. */
static bool ended_by_time(const training *s)
{
    return s->app.cfg->max_time && s->summary.status == CO_STATUS_DONE && s->summary.early;
}

/* One host repeats a run of several, to the bit. The batch of all ranks replaces a batch per rank. */
static bool is_about_ranks(const char *word)
{
    word += strspn(word, "+");
    return strncmp(word, "trainer.num_nodes=", 18) == 0 || strncmp(word, "data.batch_size_per_rank=", 25) == 0;
}

/* The line's words without those that say where the run is and what it continues from. With `base` (to repeat
 * the run), the checkpoints' folder and what depends on the number of ranks are left out too, and with `timed` the
 * limits of time and steps. */
static void add_words(co_str *out, const line *l, bool base, bool timed)
{
    if (l->config_dir) {
        co_str_add(out, " --config-dir");
        add_shell_word(out, l->config_dir);
    }
    for (int i = 0; i < l->n; i++)
        if (!word_is_place(l->words[i]) && !(timed && is_limit(l->words[i])) &&
            !(base && is_about_ranks(l->words[i])) &&
            (base ? !is_checkpoint_folder(l->words[i]) : l->words[i] != l->base))
            add_shell_word(out, l->words[i]);
}

static void add_setting(co_str *out, const char *key, const char *value)
{
    char *word = co_conf_word(key, value);

    add_shell_word(out, word ? word : "");
    co_free(word);
}

/* A run's config.yaml names that run's folder; to repeat the run, another folder is needed. */
static void add_new_place(co_str *out, const training *s, const line *l)
{
    char *file = line_value(l, "experiment");
    size_t n = file ? strlen(file) : 0;

    if (n > 5 && strcmp(file + n - 5, ".yaml") == 0)
        co_str_add(out, " run.dir=null ckpt_path=null");
    if (n > 5 && s->app.cfg->ckpt_dir)
        co_str_add(out, " callbacks.model_checkpoint.dirpath=null");
    co_free(file);
}

/* The steps that the run had time for, instead of the time. */
static void add_steps(co_str *out, const training *s, const line *l)
{
    bool by_word = false;

    for (int i = 0; i < l->n; i++)
        by_word |= is_time(l->words[i]);
    if (!by_word)
        co_str_add(out, " trainer.max_time=null"); /* a file sets it */
    co_str_addf(out, " trainer.max_steps=%lld", (long long)s->summary.steps);
}

char *ending_reproduce(const training *s, const line *l)
{
    const co_plan_facts *f = co_plan_facts_of(s->plan);
    bool timed = ended_by_time(s);
    co_str out = {0};

    if (timed && f->schedule_spans)
        return NULL; /* with another limit of steps, the learning rates would be others */
    co_str_addf(&out, "%s train", app_program());
    add_words(&out, l, true, timed);
    if (timed)
        add_steps(&out, s, l);
    add_new_place(&out, s, l);
    if (s->app.cfg->batch_size_per_rank) /* another machine may have another number of ranks */
        co_str_addf(&out, " data.batch_size=%lld", (long long)f->batch);
    if (!line_has(l, "seed"))
        co_str_addf(&out, " seed=%lld", (long long)s->app.cfg->seed);
    co_str_addf(&out, "  # kernels %s", f->kernels);
    if (f->data->fingerprint[0])
        co_str_addf(&out, ", data %.12s", f->data->fingerprint);
    return co_str_take(&out);
}

/* Of a run over hosts: where they meet. --nproc-per-node is the word trainer.devices by now. */
static void add_host_flags(co_str *out, const line *l)
{
    for (int i = 0; i < l->n_host_flags; i++)
        if (strncmp(l->host_flags[i], "--nproc-per-node", 16) != 0)
            add_shell_word(out, l->host_flags[i]);
}

static void continue_line(training *s, const line *l)
{
    co_str words = {0};

    if (s->app.hosts)
        add_host_flags(&words, l);
    add_words(&words, l, false, false);
    add_setting(&words, "run.dir", co_folder_path(s->folder));
    shout(s, "continue %swith: %s train%s ckpt_path=auto", getenv(SWEEP_JOB) ? "this job alone " : "",
          app_program(), co_str_text(&words));
    co_str_fini(&words);
}

static void results(training *s)
{
    const double LEAST_TIMED_S = 0.1;
    const co_train_summary *o = &s->summary;
    const char *metric = co_plan_facts_of(s->plan)->metric;
    co_str out = {0};

    if (!isnan(o->test_loss))
        co_str_addf(&out, "test loss %.4f %s %.4f (%s weights)", o->test_loss, metric, o->test_metric,
                    o->tested_best ? "best" : "last");
    if (!isnan(o->best))
        co_str_addf(&out, "%sbest %s %.4f at step %lld", out.len ? "; " : "", o->monitor, o->best,
                    (long long)o->best_step);
    if (out.len)
        tell(s, "results   %s", co_str_text(&out));
    co_str_clear(&out);
    int64_t before = co_plan_facts_of(s->plan)->start_step, own = o->steps > before ? o->steps - before : 0;
    co_str_addf(&out, "%lld step%s in %.2f s", (long long)own, own == 1 ? "" : "s", o->wall_s);
    if (before)
        co_str_addf(&out, " (%lld in all)", (long long)o->steps);
    if (o->samples_per_s > 0 && o->timed.wall_s >= LEAST_TIMED_S) /* the rate of a few milliseconds means nothing */
        co_str_addf(&out, ", %.0f samples/s", o->samples_per_s);
    tell(s, "%s, %d recover%s", co_str_text(&out), o->recoveries, o->recoveries == 1 ? "y" : "ies");
    if (o->weights_sha256[0])
        tell(s, "weights_sha256 %s", o->weights_sha256);
    tell(s, "run       %s", co_folder_path(s->folder));
    if (s->book.written)
        tell(s, "book      %s/book.html", co_folder_path(s->folder));
    co_str_fini(&out);
}

/* What continues a finished run: more steps, more patience, or just another start (max_time). */
static void add_more(co_str *out, const training *s)
{
    const co_train_cfg *c = s->app.cfg;
    bool early = s->summary.steps < co_plan_facts_of(s->plan)->steps;
    bool by_steps = strcmp(limit_key(s), "trainer.max_steps") == 0;

    if (early && c->early_patience > 0)
        co_str_addf(out, " callbacks.early_stopping.patience=%lld", 2 * (long long)c->early_patience);
    else if (!early)
        co_str_addf(out, " %s=%lld", limit_key(s), 2 * (long long)(by_steps ? c->max_steps : c->max_epochs));
}

/* What to predict: recommendations for a user, or some samples of a split. */
static char *predict_words(const co_dataset *data, bool has_split)
{
    if (data->io.users)
        return co_sprintf(" user=%lld", (long long)lowest_user(data));
    return has_split ? co_sprintf("%s --limit 10", data->count[CO_SPLIT_TEST] ? "" : " --split val") : NULL;
}

/* The commands that read the run's weights. */
static void add_readers(co_str *out, const training *s, const char *dir)
{
    const co_dataset *data = co_plan_facts_of(s->plan)->data;
    const char *program = app_program();
    bool best = s->summary.tested_best && s->summary.tested_step != s->summary.steps;
    bool has_split = data->count[CO_SPLIT_TEST] || data->count[CO_SPLIT_VAL];
    char *weights =
        co_sprintf("%s%s", dir, best ? "/checkpoints/best" : ""); /* those that the run's test used */
    char *predicts = predict_words(data, has_split);
    co_str from = {0};

    add_setting(&from, "ckpt_path", weights ? weights : dir);
    if (has_split)
        co_str_addf(out, "%s test%s%s\n", program, co_str_text(&from),
                    data->count[CO_SPLIT_TEST] ? "" : " --split val");
    if (predicts)
        co_str_addf(out, "%s predict%s%s\n", program, co_str_text(&from), predicts);
    co_free(weights);
    co_free(predicts);
    co_str_fini(&from);
}

static void next_commands(training *s)
{
    const char *dir = co_folder_path(s->folder), *program = app_program();
    co_str out = {0};

    add_readers(&out, s, dir);
    co_str_addf(&out, "%s ckpt ls", program);
    add_shell_word(&out, dir);
    co_str_addf(&out, "\n%s train", program);
    add_setting(&out, "run.dir", dir);
    co_str_add(&out, " ckpt_path=auto");
    add_more(&out, s);
    const char *label = "next", *at = co_str_text(&out);
    for (size_t n; *at; at += n + (at[n] == '\n'), label = "") {
        n = strcspn(at, "\n");
        tell(s, "%-10s%.*s", label, (int)n, at);
    }
    co_str_fini(&out);
}

void ending_tell(training *s, const line *l)
{
    const co_train_summary *o = &s->summary;

    if (o->status == CO_STATUS_FAILED)
        shout(s, "failed: %s", o->blame[0] ? o->blame : co_errmsg());
    results(s);
    if (o->status == CO_STATUS_DONE && o->saved[0])
        next_commands(s);
    if (o->status != CO_STATUS_DONE && o->saved[0])
        continue_line(s, l);
    if (s->changed)
        tell(s, "reproduce: not possible with one line: the configuration or data changed when the run was "
                "continued (see segments in header.json)");
    else if (ended_by_time(s) && co_plan_facts_of(s->plan)->schedule_spans)
        tell(s,
             "reproduce: not possible with one line: trainer.max_time ended the run at step %lld, and "
             "schedule=%s depends on the number of steps that were planned",
             (long long)o->steps, s->app.spec.schedule->name);
    else if (s->reproduce)
        tell(s, "reproduce: %s", s->reproduce);
}
