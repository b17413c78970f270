/* sweep_check.c -- checks all jobs of a sweep before the first one starts, so that a mistake in any of them
 * leaves nothing behind.
 *
 * Each job is composed as its own `cohort train` will compose it, and compared with the run in its folder, if
 * there is one. Then it is planned. Opening data can take long, so a plan opens it only for the first job of
 * each combination of data and model; the others are planned as far as that goes without data. */
#include "cli/sweep_int.h"

#include <string.h>
#include <time.h>

#include "base/alloc.h"

/* The folder: run.dir, or a name made of the task and the time. */
static co_err name_root(sweep *s, const co_train_cfg *cfg)
{
    char date[32];
    time_t now = time(NULL);
    struct tm tm;

    strftime(date, sizeof date, "%Y-%m-%d_%H-%M-%S", localtime_r(&now, &tm));
    s->given = cfg->run_dir != NULL;
    s->root = cfg->run_dir ? co_strdup(cfg->run_dir) : co_sprintf("logs/%s/multiruns/%s", cfg->task_name, date);
    return s->root ? CO_OK : CO_ENOMEM;
}

/* The folder depends on the words, and the configuration may depend on the folder: this is the first half. */
static co_err find_root(sweep *s)
{
    line words = {.command = s->line->command, .config_dir = s->line->config_dir, .n = s->line->n};
    app one;

    words.words = (const char **)(uintptr_t)co_conf_jobs_words(s->jobs, 0);
    words.mistakes = s->line->mistakes;
    co_err err = app_open(&one, &words);
    if (!err)
        err = name_root(s, one.cfg);
    s->line->mistakes = words.mistakes;
    app_close(&one);
    return err;
}

/* The line of one job: its words, its folder, and before them the configuration that it continues with. */
static co_err job_line(line *out, const sweep *s, int job, const char *dir)
{
    char *word = co_conf_word("run.dir", dir);

    *out = (line){.command = s->line->command, .config_dir = s->line->config_dir, .n = s->line->n + 1};
    out->held = co_array((size_t)s->line->n + 3, sizeof *out->held);
    const char *kept = word ? co_pool_str(&out->pool, word) : NULL;
    co_free(word);
    if (!out->held || !kept)
        return CO_ENOMEM;
    out->words = out->held + 2;
    for (int i = 0; i < s->line->n; i++)
        out->words[i] = co_conf_jobs_words(s->jobs, job)[i];
    out->words[s->line->n] = kept;
    char *path = line_ckpt_path(out);
    bool automatic = path && (strcmp(path, "auto") == 0 || strcmp(path, "last") == 0);
    co_err err = automatic ? line_use_own(out, dir) : CO_OK;
    co_free(path);
    return err;
}

static void keep_opened(void *ctx, const char *key, const char *value)
{
    if (strncmp(key, "data.", 5) == 0 || strncmp(key, "model.", 6) == 0)
        co_str_addf(ctx, "%s=%s\n", key, value);
}

/* Is this the first job with this data and this model? */
static co_err is_new(bool *out, sweep *s, const app *one)
{
    co_str yaml = {0}, name = {0};

    co_conf_yaml(one->conf, &yaml);
    co_err err = co_str_err(&yaml);
    if (!err)
        err = co_conf_parse_yaml(co_str_text(&yaml), yaml.len, "the job's configuration", keep_opened, &name);
    if (!err)
        err = co_str_err(&name);
    *out = !err && !json_object_get(s->opened, co_str_text(&name));
    if (*out && json_object_set_new(s->opened, co_str_text(&name), json_true()) != 0)
        err = co_fail(CO_ENOMEM, "out of memory");
    co_str_fini(&yaml);
    co_str_fini(&name);
    return err;
}

/* ckpt_path=FOLDER must be there. With auto, each job finds its checkpoint when it starts. */
static co_err check_start(app *one, line *l)
{
    const char *path = one->cfg->ckpt_path;

    return path && strcmp(path, "auto") != 0 ? app_find_resume(one, l) : CO_OK;
}

static co_err check_plan(sweep *s, app *one, co_mistakes *wrong)
{
    bool first;

    CO_TRY(is_new(&first, s, one));
    one->spec.resume = one->resume;
    one->spec.ckpt_root = one->cfg->ckpt_enabled ? "" : NULL;
    return co_plan_check(&one->spec, app_sure(one) & ~(first ? 0u : (unsigned)CO_SURE_DATA), wrong);
}

static co_err check_app(sweep *s, int job, const char *dir, app *one, line *l)
{
    CO_TRY(app_open(one, l));
    CO_TRY(co_mistake(&l->mistakes, sweep_check_folder(s, job, dir, one)));
    CO_TRY(co_mistake(&l->mistakes, check_start(one, l)));
    return check_plan(s, one, &l->mistakes);
}

static co_err check_job(sweep *s, int job)
{
    char *dir = co_sprintf("%s/%d", s->root, job);
    line words = {0};
    app one = {0};
    co_err err = dir ? job_line(&words, s, job, dir) : CO_ENOMEM;

    words.mistakes = s->line->mistakes; /* of all jobs */
    if (!err)
        err = check_app(s, job, dir, &one, &words);
    s->line->mistakes = words.mistakes;
    words.mistakes = (co_mistakes){0};
    app_close(&one);
    line_free(&words);
    co_free(dir);
    return err;
}

co_err sweep_check(sweep *s)
{
    CO_TRY(find_root(s));
    for (int k = 0; k < co_conf_jobs_count(s->jobs); k++)
        CO_TRY(check_job(s, k));
    return co_mistakes_tell(&s->line->mistakes);
}
