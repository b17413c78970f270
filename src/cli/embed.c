/* embed.c -- train, evaluate and predict for a program that uses cohort as a library: the commands without
 * their screens.
 *
 * Messages go to the job's `text`. A job that wants to stop says so by what its callbacks return. Signals
 * are blocked while the run goes on, because the supervisor reads them; the signal mask and handlers are
 * restored at the end. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/eval_int.h"
#include "cli/train_int.h"

static void mute(void *ctx, const char *text) {}

static void listen_to(const co_cli_job *job)
{
    if (job->text)
        co_say_to(job->text, job->ctx);
    else
        co_say_to(mute, NULL);
}

/* --- training ----------------------------------------------------------------------------------------- */
typedef struct kept {
    sigset_t mask;
    struct sigaction hup, pipe;
} kept;

static void keep_signals(kept *k)
{
    sigprocmask(SIG_SETMASK, NULL, &k->mask);
    sigaction(SIGHUP, NULL, &k->hup);
    sigaction(SIGPIPE, NULL, &k->pipe);
}

static void restore_signals(const kept *k)
{
    static const int ours[] = {SIGINT, SIGTERM, SIGUSR1};
    const struct timespec now = {0};
    sigset_t set;

    /* A request to stop that came too late, or a second one, must not end the program: the run has ended
     * anyway. */
    sigemptyset(&set);
    for (size_t i = 0; i < CO_COUNT(ours); i++)
        if (!sigismember(&k->mask, ours[i]))
            sigaddset(&set, ours[i]);
    while (sigtimedwait(&set, NULL, &now) > 0)
        ;
    sigaction(SIGHUP, &k->hup, NULL);
    sigaction(SIGPIPE, &k->pipe, NULL);
    sigprocmask(SIG_SETMASK, &k->mask, NULL);
}

static void on_step(void *ctx, const co_step_result *r)
{
    training *s = ctx;

    s->record.step(s->record.ctx, r);
    if (s->job->step && s->job->step(s->job->ctx, r))
        s->stop_asked = true;
}

static void on_eval(void *ctx, const co_eval_result *r)
{
    training *s = ctx;

    s->record.eval(s->record.ctx, r);
    if (s->job->eval && s->job->eval(s->job->ctx, r))
        s->stop_asked = true;
}

co_train_hooks job_hooks(training *s)
{
    co_train_hooks all = s->record = record_hooks(s);

    CO_ASSERT(all.ctx == s, "the record's context is the training");
    all.step = on_step;
    all.eval = on_eval;
    return all;
}

/* The run folder was already complete: the results come from its summary. */
static void tell_done(const training *s, co_cli_done *out)
{
    char *path = co_sprintf("%s/summary.json", s->app.run_dir);
    json_t *j = NULL;
    long long n;

    snprintf(out->run_dir, sizeof out->run_dir, "%s", s->app.run_dir);
    out->summary.status = CO_STATUS_DONE;
    if (path && co_json_read(&j, path, 1 << 20) == CO_OK) {
        const char *sha = co_json_str(j, "weights_sha256");
        snprintf(out->summary.weights_sha256, sizeof out->summary.weights_sha256, "%s", sha ? sha : "");
        out->summary.steps = co_json_i64(j, "steps", &n) ? n : 0;
        out->summary.epochs = co_json_i64(j, "epochs", &n) ? n : 0;
        out->summary.samples = co_json_i64(j, "samples", &n) ? n : 0;
    }
    json_decref(j);
    co_free(path);
}

static co_err train(training *s, line *l, co_cli_done *out)
{
    co_err wrote = CO_OK, err = training_open(s, l);

    if (err)
        return err;
    if (!s->folder) {
        tell_done(s, out);
        return CO_OK;
    }
    err = training_run(s, &wrote);
    out->summary = s->summary;
    snprintf(out->run_dir, sizeof out->run_dir, "%s", co_folder_path(s->folder));
    if (err) /* the record may have changed the message since */
        return s->summary.blame[0] ? co_fail(err, "%s", s->summary.blame) : err;
    return wrote;
}

/* The words in the form that line_parse expects: the command comes first. */
static co_err line_of(line *l, const co_cli_job *job, const char *name)
{
    const char **argv = co_array((size_t)job->n + 2, sizeof *argv);

    if (!argv)
        return CO_ENOMEM;
    argv[0] = name;
    for (int i = 0; i < job->n; i++)
        argv[i + 1] = job->words[i];
    co_err err = line_parse(l, job->n + 1, (char **)(uintptr_t)argv, true, NULL);
    co_free(argv);
    return err;
}

co_err co_cli_train(const co_cli_job *job, co_cli_done *out)
{
    training s = {.began_ns = co_now_ns(), .job = job};
    line l;
    kept k;

    listen_to(job);
    keep_signals(&k);
    co_err err = line_of(&l, job, "train");
    if (!err) {
        err = train(&s, &l, out);
        if (s.plan || s.app.conf)
            training_close(&s);
        line_free(&l);
    }
    restore_signals(&k);
    co_say_to(NULL, NULL);
    return err;
}

/* --- evaluating and predicting ------------------------------------------------------------------------ */
static co_err open_job(eval_line *t, const co_cli_job *job, co_split split, int64_t limit)
{
    *t = (eval_line){.split_name = split == CO_SPLIT_VAL ? "val" : "test", .limit = limit};
    if (split != CO_SPLIT_VAL && split != CO_SPLIT_TEST)
        return co_fail(CO_EINPUT, "evaluation is on VAL or TEST");
    listen_to(job);
    CO_TRY(line_of(&t->line, job, "test"));
    return eval_line_open(t);
}

static void close_job(eval_line *t)
{
    eval_line_close(t);
    co_say_to(NULL, NULL);
}

co_err co_cli_evaluate(const co_cli_job *job, co_split split, co_eval_result *out, char weights_sha256[65])
{
    eval_line t;
    co_err err = open_job(&t, job, split, -1);

    if (!err)
        err = co_evaluate(t.plan, t.split, out, weights_sha256);
    close_job(&t);
    return err;
}

co_err co_cli_predict(const co_cli_job *job, co_split split, int64_t limit,
                      void (*each)(void *ctx, const co_prediction *r))
{
    eval_line t;
    co_err err = open_job(&t, job, split, limit);

    if (!err)
        err = co_predict(t.plan, t.split, limit, each, job->ctx);
    close_job(&t);
    return err;
}
