/* train.c -- `cohort train`: compose, plan, open the run folder, run, write the record. Until the plan holds, nothing is
 * made: bad input leaves nothing behind. */
#include "cli/train_int.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"

static co_err prepare_folder(session *s)
{
    CO_TRY(co_folder_open(&s->folder, s->app.run_dir, s->app.cfg->task_name));
    const char *path = co_folder_path(s->folder);
    s->ckpt_root = co_sprintf("%s/checkpoints", path);
    s->log_dir = co_sprintf("%s/ranks", path);
    if (!s->ckpt_root || !s->log_dir)
        return CO_ENOMEM;
    CO_TRY(co_fs_mkdirs(s->log_dir));
    if (s->app.cfg->ckpt_enabled)
        CO_TRY(co_fs_mkdirs(s->ckpt_root));
    co_plan_place(s->plan, s->app.cfg->ckpt_enabled ? s->ckpt_root : NULL, s->log_dir);
    CO_TRY(record_open(s));
    return co_live_register(s->folder, s->app.cfg->task_name);
}

static co_err open_session(session *s, const line *l)
{
    CO_TRY(app_open(&s->app, l));
    CO_TRY(app_find_resume(&s->app));
    s->app.spec.resume = s->app.resume;
    s->app.spec.ckpt_root = s->app.cfg->ckpt_enabled ? "" : NULL; /* known once the folder is open */
    CO_TRY(co_plan_new(&s->plan, &s->app.spec));
    CO_TRY(co_console_open(&s->console, STDERR_FILENO, (co_console_style)s->app.cfg->console));
    co_err err = prepare_folder(s);
    if (err && s->folder) {
        co_folder_discard(s->folder);
        s->folder = NULL;
    }
    return err == CO_EIO ? CO_EINPUT : err; /* nothing was started: a path that does not do is bad input */
}

static void close_session(session *s)
{
    co_live_unregister();
    co_console_close(s->console);
    co_folder_close(s->folder);
    co_plan_free(s->plan);
    app_close(&s->app);
    co_free(s->ckpt_root);
    co_free(s->log_dir);
}

static void continue_line(const session *s, const line *l)
{
    co_str words = {0};

    for (int i = 0; i < l->n; i++)
        if (strncmp(l->words[i], "ckpt_path=", 10) != 0 && strncmp(l->words[i], "run.dir=", 8) != 0)
            co_str_addf(&words, " %s", l->words[i]);
    say("continue with: cohort train%s run.dir=%s ckpt_path=auto", co_str_text(&words),
        co_folder_path(s->folder));
    co_str_fini(&words);
}

static int report(session *s, const line *l, co_err err)
{
    const co_train_summary *o = &s->summary;
    const char *metric = co_plan_facts_of(s->plan)->metric;

    if (o->status == CO_STATUS_FAILED)
        say("failed: %s", o->blame[0] ? o->blame : co_errmsg());
    else if (!isnan(o->test_metric))
        say("test %s %.4f  loss %.4f", metric, o->test_metric, o->test_loss);
    say("%lld steps in %.2f s, %.0f samples/s, %d recoveries", (long long)o->steps, o->wall_s,
        o->samples_per_s, o->recoveries);
    if (o->weights_sha256[0])
        say("weights_sha256 %s", o->weights_sha256);
    if (o->status != CO_STATUS_DONE && o->saved[0])
        continue_line(s, l);
    printf("%s\n", co_folder_path(s->folder));
    if (o->status == CO_STATUS_STOPPED)
        return EXIT_STOPPED;
    return err ? EXIT_FAILED : EXIT_DONE;
}

static int run_line(session *s, const line *l)
{
    co_err err = open_session(s, l);
    if (err) {
        say("cohort: %s", co_errmsg());
        return exit_of(err);
    }
    record_first_screen(s);
    co_train_hooks hooks = record_hooks(s);
    err = co_train_run(s->plan, &hooks, &s->summary);
    if (err && !s->summary.weights_sha256[0] && !s->summary.blame[0])
        snprintf(s->summary.blame, sizeof s->summary.blame, "%s", co_errmsg());
    co_err wrote = record_close(s);
    int status = report(s, l, err);
    if (wrote) {
        say("cohort: %s", co_errmsg());
        return status == EXIT_DONE ? EXIT_FAILED : status;
    }
    return status;
}

int cmd_train(int argc, char **argv)
{
    session s = {.began_ns = co_now_ns()};
    line l;

    if (line_parse(&l, argc, argv) != CO_OK)
        return fail_usage();
    if (l.help) {
        co_str text = {0};
        show_usage("train");
        co_conf_help(app_conf_spec(l.config_dir), l.n ? l.words[0] : NULL, false, &text);
        printf("\n%s", co_str_text(&text));
        co_str_fini(&text);
        line_free(&l);
        return EXIT_DONE;
    }
    int status = run_line(&s, &l);
    if (s.plan || s.app.conf)
        close_session(&s);
    line_free(&l);
    return status;
}
