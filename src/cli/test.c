/* test.c -- `cohort test` and `cohort predict`: runs a checkpoint's weights on a split, in this process.
 *
 * If the checkpoint is in a run folder, the run's config.yaml is the configuration, and words override it. So
 * the result is the one that training printed for the same state. */
#include "cli/eval_int.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

static const char *bare_word(const line *l)
{
    for (int i = 0; i < l->n; i++)
        if (!strchr(l->words[i], '=') && *l->words[i] != '~')
            return l->words[i];
    return NULL;
}

static co_err add_base(eval_line *t)
{
    char *path = line_value(&t->line, "ckpt_path");
    bool none = !path || !*path || strcmp(path, "null") == 0, weights = line_has(&t->line, "weights");
    co_err err = CO_OK;
    const char *stray = none ? bare_word(&t->line) : NULL;

    if (stray)
        err = co_fail(CO_EINPUT,
                      "%s: %s is neither a run's folder nor a checkpoint's; `cohort` alone lists runs",
                      t->line.command, stray);
    else if (!none && weights)
        err = co_fail(CO_EINPUT, "%s: ckpt_path and weights both say what to load; give one", t->line.command);
    else if (none && weights)
        err = CO_OK; /* weights=FILE: the words must name model and data */
    else if (none)
        err =
            co_fail(CO_EINPUT,
                    "%s needs ckpt_path=FOLDER: a checkpoint's folder or a run's (or weights=FILE with model "
                    "and data)",
                    t->line.command);
    else if (strcmp(path, "auto") == 0)
        err = co_fail(CO_EINPUT, "%s: ckpt_path=auto is for cohort train; give the run's folder",
                      t->line.command);
    else if (!line_has(&t->line, "experiment"))
        err = line_use_run(&t->line, path);
    co_free(path);
    return err;
}

/* --- what both share ---------------------------------------------------------------------------------- */
static co_err read_split(eval_line *t)
{
    if (strcmp(t->split_name, "val") != 0 && strcmp(t->split_name, "test") != 0)
        return co_fail(CO_EINPUT, "%s: --split %s: there are val and test", t->line.command, t->split_name);
    t->split = strcmp(t->split_name, "val") == 0 ? CO_SPLIT_VAL : CO_SPLIT_TEST;
    return CO_OK;
}

static co_err read_limit(eval_line *t)
{
    long long n = -1;

    if (t->limit_text && (!co_str_to_i64(t->limit_text, &n) || n < 0))
        return co_fail(CO_EINPUT, "%s: --limit %s is not a number of samples", t->line.command, t->limit_text);
    t->limit = n;
    return CO_OK;
}

/* Without the run, its configuration is not known, and words that override it cannot be checked. */
static co_err find_base(eval_line *t)
{
    co_err err = add_base(t);

    CO_TRY(co_mistake(&t->line.mistakes, err));
    return err ? co_mistakes_tell(&t->line.mistakes) : CO_OK;
}

static co_err find_weights(eval_line *t)
{
    const char *path = t->app.cfg->ckpt_path;
    co_err err = path && *path ? find_checkpoint(&t->app.resume, path) : CO_OK;

    return err ? co_fail_in(err, "ckpt_path") : CO_OK;
}

/* If the data cannot be opened, and no split was named, the vocabulary in the checkpoint may do. */
static co_err make_plan(eval_line *t)
{
    co_train_spec *spec = &t->app.spec;
    co_err err = co_plan_to_look(&t->plan, spec);

    if (err != CO_EINPUT || !t->lines || spec->vocabulary_only || !spec->resume || !spec->data->open_vocabulary)
        return err;
    char *why = co_strdup(co_errmsg());
    spec->vocabulary_only = true;
    if (co_plan_to_look(&t->plan, spec) == CO_OK) {
        co_notice("%s; the lines of standard input are read instead", why ? why : "the data cannot be opened");
        err = CO_OK;
    } else if (why)
        err = co_fail(CO_EINPUT, "%s", why);
    co_free(why);
    return err;
}

co_err eval_line_open(eval_line *t)
{
    co_mistakes *wrong = &t->line.mistakes;

    CO_TRY(co_mistake(wrong, read_split(t)));
    CO_TRY(co_mistake(wrong, read_limit(t)));
    CO_TRY(find_base(t));
    CO_TRY(app_open(&t->app, &t->line));
    CO_TRY(co_mistake(wrong, find_weights(t)));
    t->app.spec.resume = t->app.resume;
    t->app.spec.check_data = check_data;
    bool translates_lines = t->lines && t->app.spec.model && t->app.spec.model->decoder;
    t->app.spec.vocabulary_only = t->lines_told || translates_lines;
    if (wrong->n)
        CO_TRY(co_plan_check_look(&t->app.spec, app_sure(&t->app), wrong));
    CO_TRY(co_mistakes_tell(wrong));
    return make_plan(t);
}

void eval_line_close(eval_line *t)
{
    co_plan_free(t->plan);
    app_close(&t->app);
    line_free(&t->line);
}

static int close_eval(eval_line *t, int status)
{
    eval_line_close(t);
    return status;
}

/* --- test --------------------------------------------------------------------------------------------- */
static void print_result(const eval_line *t, const co_eval_result *r, const co_hits *hits,
                         const co_translation_scores *scores, const char *sha)
{
    const co_plan_facts *f = co_plan_facts_of(t->plan);
    const char *unit = co_is_text(&f->data->io) ? "token" : "sample";

    bool rmse = co_has_rmse(&f->data->io);

    if (!t->line.json) {
        char more[128] = "";
        if (rmse)
            snprintf(more, sizeof more, "  rmse %.4f  " HIT_RATE_NAME " %.4f  " NDCG_NAME " %.4f",
                     co_rmse(r->loss), hits->hit_rate, hits->ndcg);
        if (scores->sentences)
            snprintf(more, sizeof more, "  BLEU %.2f  cer %.4f  wer %.4f  of %lld sentence%s%s", scores->bleu,
                     scores->cer, scores->wer, (long long)scores->sentences,
                     scores->sentences == 1 ? "" : "s", few_sentences(scores->sentences));
        printf("%s loss %.4f  %s %.4f%s  (%lld %s%s)  weights_sha256 %s\n", t->split_name, r->loss, f->metric,
               r->metric, more, (long long)r->count, unit, r->count == 1 ? "" : "s", sha);
        return;
    }
    json_t *j = json_object();
    json_object_set_new(j, "split", json_string(t->split_name));
    json_object_set_new(j, "loss", co_json_num(r->loss));
    json_object_set_new(j, f->metric, co_json_num(r->metric));
    if (rmse) {
        json_object_set_new(j, "rmse", co_json_num(co_rmse(r->loss)));
        json_object_set_new(j, HIT_RATE_NAME, co_json_num(hits->hit_rate));
        json_object_set_new(j, NDCG_NAME, co_json_num(hits->ndcg));
    }
    if (scores->sentences) {
        json_object_set_new(j, "bleu", co_json_num(scores->bleu));
        json_object_set_new(j, "cer", co_json_num(scores->cer));
        json_object_set_new(j, "wer", co_json_num(scores->wer));
        json_object_set_new(j, "sentences", json_integer(scores->sentences));
    }
    json_object_set_new(j, "count", json_integer(r->count));
    json_object_set_new(j, "step", json_integer(r->step));
    json_object_set_new(j, "weights_sha256", json_string(sha));
    co_json_print(j);
}

/* Accuracy by class, for the test split and only if there are few classes. */
static void print_classes(const eval_line *t)
{
    enum { SHOWN = 100 };
    co_class_result *c;
    int n;

    if (t->line.json || co_plan_classes(t->plan, &c, &n) != CO_OK)
        return;
    for (int i = 0; i < n && n <= SHOWN; i++) {
        if (c[i].count == 0)
            continue;
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)c[i].label);
        co_say("  class %-24s %.4f  (%lld of %lld)", c[i].name ? c[i].name : number,
               (double)c[i].right / (double)c[i].count, (long long)c[i].right, (long long)c[i].count);
    }
    co_free(c);
}

int cmd_test(int argc, char **argv)
{
    eval_line t = {.split_name = "test"};
    co_eval_result r;
    co_hits hits = {0};
    co_translation_scores scores = {0};
    int beam = 1;
    char sha[65];

    if (line_parse(&t.line, argc, argv, true,
                   (const co_flag[]){{"--split", "val|test", .value = &t.split_name},
                                     {"--beam", "N", .value = &t.beam_text},
                                     {"--limit", "N", .value = &t.limit_text},
                                     {0}}) != CO_OK)
        return co_say_error(CO_EINPUT);
    if (t.line.help)
        return close_eval(&t, show_usage("test"));
    co_err err = read_beam(t.beam_text, &beam);
    if (!err)
        err = eval_line_open(&t);
    if (!err)
        err = co_evaluate(t.plan, t.split, &r, sha);
    if (!err && co_plan_facts_of(t.plan)->data->io.users)
        err = co_hit_rates(t.plan, t.split, HITS_AT, 0, &hits);
    if (!err && translates(&t))
        err = score_translations(&t, beam, &scores);
    if (err)
        return close_eval(&t, co_say_error(err));
    if (t.app.resume)
        co_say("checkpoint %s, step %lld", t.app.resume, (long long)r.step);
    else
        co_say("weights %s", t.app.cfg->weights);
    if (t.app.cfg->ema > 0 && t.app.resume)
        co_say("the average of the weights (optim.ema) is evaluated");
    if (r.bad)
        co_say("%lld sample%s could not be read: left out (%s)", (long long)r.bad, r.bad == 1 ? "" : "s",
               r.bad_names);
    print_classes(&t);
    print_result(&t, &r, &hits, &scores, sha);
    return close_eval(&t, CO_EXIT_DONE);
}

/* --- predict ------------------------------------------------------------------------------------------ */
typedef struct shown {
    const co_dataset *data;
    bool logits; /* were asked for */
} shown;

/* NULL: only its number is known. */
static const char *name_of(const shown *s, const co_prediction *r)
{
    return r->task == CO_TASK_CLASSIFY && s->data->class_name ? s->data->class_name(s->data, r->choice) : NULL;
}

static void print_prediction(void *ctx, const co_prediction *r)
{
    const shown *s = ctx;
    const char *name = name_of(s, r);

    printf("%lld", (long long)r->id);
    if (r->unreadable) {
        printf(" unreadable %s\n", r->file ? r->file : "");
        return;
    }
    if (r->text) {
        json_t *text = json_string(r->text);
        char *quoted = json_dumps(text, JSON_ENCODE_ANY);
        printf(" %s %.6f", quoted ? quoted : "\"\"", r->probability);
        co_free(quoted);
        json_decref(text);
    } else if (r->task != CO_TASK_REGRESS)
        printf(" %lld %.6f", (long long)r->choice, r->probability);
    for (int64_t i = 0; i < r->n && (s->logits || r->task == CO_TASK_REGRESS); i++)
        printf(" %.9g", (double)r->values[i]);
    printf("%s%s%s%s\n", name ? " " : "", name ? name : "", r->file ? " " : "", r->file ? r->file : "");
}

static void print_prediction_json(void *ctx, const co_prediction *r)
{
    const shown *s = ctx;
    const char *name = name_of(s, r);
    json_t *j = json_pack("{s:I}", "id", (json_int_t)r->id);

    if (r->file)
        json_object_set_new(j, "file", json_string(r->file));
    if (r->unreadable) {
        json_object_set_new(j, "unreadable", json_true());
        co_json_print(j);
        return;
    }
    if (r->task == CO_TASK_CLASSIFY)
        json_object_set_new(j, "label", json_integer(r->label));
    if (r->text)
        json_object_set_new(j, "token", json_string(r->text));
    else if (r->task != CO_TASK_REGRESS)
        json_object_set_new(j, "class", json_integer(r->choice));
    if (name)
        json_object_set_new(j, "name", json_string(name));
    if (r->task != CO_TASK_REGRESS)
        json_object_set_new(j, "probability", co_json_num(r->probability));
    if (s->logits || r->task == CO_TASK_REGRESS) {
        json_t *values = json_array();
        for (int64_t i = 0; i < r->n; i++)
            json_array_append_new(values, co_json_num((double)r->values[i]));
        json_object_set_new(j, r->task == CO_TASK_REGRESS ? "values" : "logits", values);
    }
    co_json_print(j);
}

/* Notes the mistake, so that those of the rest of the line come with it. */
static co_err refuse_split(eval_line *t, const char *file)
{
    return co_mistake(&t->line.mistakes,
                      co_fail(CO_EINPUT,
                              "predict: --split %s: %s is predicted, which is in no split; leave one out",
                              t->split_name, file));
}

/* --- the command -------------------------------------------------------------------------------------- */
/* user=N without a run: the newest that fits. The word is the caller's (co_free). */
static char *add_newest(own_files *own)
{
    char *dir = newest_run_of_ratings(), *word = dir ? co_sprintf("ckpt_path=%s", dir) : NULL;

    if (word) {
        co_say("run %s", dir);
        own->argv[own->argc++] = word;
    }
    co_free(dir);
    return word;
}

static bool names_weights(const own_files *own)
{
    for (int i = 1; i < own->argc; i++)
        if (strncmp(own->argv[i], "ckpt_path=", 10) == 0 || strncmp(own->argv[i], "weights=", 8) == 0 ||
            (*own->argv[i] != '-' && !strchr(own->argv[i], '=')))
            return true;
    return false;
}

/* A run on ratings whose line names neither a user nor a split. */
static co_err no_user(const co_dataset *data)
{
    return co_fail(CO_EINPUT, "predict: for whom? user=N recommends to user N, such as user=%lld%s",
                   (long long)lowest_user(data),
                   data->count[CO_SPLIT_VAL] ? "; --split val predicts the ratings held out" : "");
}

static co_err predict(eval_line *t, const own_files *own, const wish *w, shown *s, int *status)
{
    if (own->n)
        return predict_own_files(t, own, s->logits, status);
    if (w->wanted)
        return predict_wish(t, w);
    if (translates(t)) {
        int beam;
        CO_TRY(read_beam(t->beam_text, &beam));
        return t->lines ? predict_lines(t, beam, status) : predict_pairs(t, beam);
    }
    void (*print)(void *ctx, const co_prediction *r) = t->line.json ? print_prediction_json : print_prediction;
    s->data = co_plan_facts_of(t->plan)->data;
    if (continues_lines(t))
        return predict_next(t, print, s);
    if (t->lines_told)
        return co_fail(CO_EINPUT,
                       "predict --lines: a run on data=%s does not read lines; runs on text and on "
                       "pairs of sentences do",
                       t->app.spec.data->name);
    if (t->lines && s->data->io.users && s->data->count[t->split] == 0)
        return no_user(s->data);
    return co_predict(t->plan, t->split, t->limit, print, s);
}

int cmd_predict(int argc, char **argv)
{
    eval_line t = {.split_name = "test"};
    const char *split = NULL;
    shown s = {0};
    own_files own = {0};
    wish w;
    int status = CO_EXIT_DONE;

    if (take_own_files(&own, argc, argv) != CO_OK)
        return co_say_error(CO_EINPUT);
    co_err err = take_wish(&w, &own.argc, own.argv);
    char *newest = !err && w.wanted && !names_weights(&own) ? add_newest(&own) : NULL;
    if (!err)
        err = line_parse(&t.line, own.argc, own.argv, true,
                         (const co_flag[]){{"--split", "val|test", .value = &split},
                                           {"--limit", "N", .value = &t.limit_text},
                                           {"--logits", .on = &s.logits},
                                           {"--beam", "N", .value = &t.beam_text},
                                           {"--lines", .on = &t.lines_told},
                                           {0}});
    if (err) {
        co_free(own.argv);
        co_free(newest);
        return co_say_error(CO_EINPUT);
    }
    if (t.line.help)
        status = show_usage("predict");
    else {
        t.split_name = split ? split : t.split_name;
        t.lines = !split && !own.n && !w.wanted;
        err = split && own.n ? refuse_split(&t, own.paths[0]) : CO_OK;
        if (!err && t.lines_told && !t.lines)
            err =
                co_fail(CO_EINPUT,
                        "predict: --lines are read from standard input: leave out --split, files and user=N");
        if (!err)
            err = eval_line_open(&t);
        if (!err)
            err = predict(&t, &own, &w, &s, &status);
    }
    status = close_eval(&t, err ? co_say_error(err) : status);
    co_free(own.argv);
    co_free(newest);
    return status;
}
