/* train.c -- `cohort train`: compose, plan, open the run folder, run, write the record. Nothing is created
 * before the plan is complete, so bad input leaves nothing behind. */
#include "cli/over_int.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "job/meet.h"
#include "proc/crew.h"

/* Somebody may be using the folder; who it is, co_folder_open says. */
static bool is_leased(const char *path)
{
    char *lease = co_sprintf("%s/lease.json", path);
    bool there = lease && co_fs_exists(lease);

    co_free(lease);
    return there;
}

/* Does the record say that the run already has all the steps that this line asks for? */
static bool is_done(const training *s)
{
    const co_plan_facts *f = co_plan_facts_of(s->plan);
    char *path = s->app.resume && s->app.run_dir ? co_sprintf("%s/summary.json", s->app.run_dir) : NULL;
    json_t *j = NULL;
    long long steps = -1;
    bool done = path && co_fs_exists(path) && co_json_read(&j, path, 1 << 20) == CO_OK &&
                co_json_i64(j, "steps", &steps) && steps == f->steps && f->start_step == f->steps;
    const char *status = done ? co_json_str(j, "status") : NULL;

    done = status && strcmp(status, "done") == 0;
    json_decref(j);
    co_free(path);
    co_errclear();
    return done;
}

/* Tells how data or configuration differ from the checkpoint's, where that is allowed. header.json records
 * it. */
static void tell_changes(training *s)
{
    co_ckpt_meta m = {0};

    if (!s->app.resume || co_ckpt_read_meta(&m, s->app.resume) != CO_OK)
        return;
    s->changed = true;
    if (strcmp(m.data_sha256, co_plan_facts_of(s->plan)->data->fingerprint) != 0)
        tell(s, "changed   the data is not that of the checkpoint: a new segment begins");
    else if (strcmp(m.config_sha256, s->app.spec.config_sha256) != 0)
        tell(s, "changed   the configuration is not that of the checkpoint: a new segment begins%s%s",
             s->differences ? ": " : "", s->differences ? s->differences : "");
    else
        s->changed = false;
    co_ckpt_meta_fini(&m);
}

/* Where the run starts from, and whether it saves. A search for a learning rate does neither. */
static void settle_spec(app *a)
{
    a->spec.resume = a->resume;
    a->spec.check_data = check_data;
    a->spec.ckpt_root = a->cfg->ckpt_enabled ? "" : NULL; /* known once the folder is open */
}

/* Composes the configuration and finds what it continues. CO_EINPUT has all mistakes of the line; if there
 * are any, those that only a plan finds come with them. */
static co_err compose(training *s, line *l)
{
    co_mistakes *wrong = &l->mistakes;

    CO_TRY(co_mistake(wrong, line_use_continued(l)));
    CO_TRY(app_open(&s->app, l));
    const co_train_cfg *cfg = s->app.cfg;
    if (cfg->run_dir && cfg->ckpt_path && cfg->ckpt_path[0] && !s->app.hosts && is_leased(cfg->run_dir))
        CO_TRY(co_folder_is_free(cfg->run_dir)); /* its run removes old checkpoints while we would read them */
    CO_TRY(co_mistake(wrong, app_find_resume(&s->app, l)));
    if (s->app.run_dir)
        CO_TRY(co_mistake(wrong, is_leased(s->app.run_dir) ? CO_OK : refuse_to_mix(s, s->app.run_dir)));
    if (s->app.cfg->ckpt_dir && s->app.cfg->ckpt_enabled)
        CO_TRY(co_mistake(wrong, refuse_foreign(s)));
    if (!wrong->n)
        return CO_OK;
    settle_spec(&s->app);
    CO_TRY(co_plan_check(&s->app.spec, app_sure(&s->app), wrong));
    return co_mistakes_tell(wrong);
}

static co_err make_plan(training *s)
{
    download_bar bar = bar_begin();

    settle_spec(&s->app);
    s->app.spec.fetch_tell = bar_tell;
    s->app.spec.fetch_ctx = &bar;
    co_err err = co_plan_new(&s->plan, &s->app.spec);
    bar_end(&bar);
    s->app.spec.fetch_tell = NULL;
    return err;
}

co_err training_plan(training *s, line *l)
{
    CO_TRY(compose(s, l));
    return make_plan(s);
}

co_err training_open(training *s, line *l)
{
    CO_TRY(compose(s, l));
    if (s->app.hosts)
        CO_TRY(co_hosts_line_enter(s->app.hosts));
    CO_TRY(tune_search(s, l));
    CO_TRY(make_plan(s));
    s->line = l;
    s->differences = app_differences(&s->app, l); /* before the run's config.yaml is written anew */
    if (is_done(s))
        return CO_OK;
    over_come_late(s);
    co_signals_hold(); /* from here on the supervisor handles signals: there is a run to save */
    CO_TRY(s->job ? co_console_open(&s->console, -1, CO_CONSOLE_QUIET)
                  : co_console_open(&s->console, STDERR_FILENO, (co_console_style)s->app.cfg->console));
    co_err err = spot_open(s);
    if (!err)
        err = over_open(s);
    if (!err && !over_guest(s))
        err = training_folder(s);
    if (!err && over_guest(s))
        over_list_guest(s);
    if (!err && s->folder)
        err = tune_record(s);
    if (err && s->folder) {
        co_folder_discard(s->folder);
        s->folder = NULL;
    }
    return err == CO_EIO ? CO_EINPUT : err; /* nothing was started, so an unusable path is bad input */
}

void training_close(training *s)
{
    spot_close(s);
    over_close(s);
    machine_close(s);
    co_live_unregister();
    co_console_close(s->console);
    if (s->log)
        fclose(s->log);
    co_folder_close(s->folder);
    co_plan_free(s->plan);
    app_close(&s->app);
    co_free(s->ckpt_root);
    co_free(s->log_dir);
    co_free(s->reproduce);
    co_free(s->differences);
    tune_free(s);
}

static int report(training *s, const line *l, co_err err)
{
    const co_train_summary *o = &s->summary;

    if (over_guest(s) && o->status == CO_STATUS_STOPPED && o->saved[0])
        tell(s, "saved     %s: what this host held at the end", o->saved);
    ending_tell(s, l);
    profile_tell(s);
    if (l->json) {
        json_t *j = summary_of(s);
        json_object_set_new(j, "dir", json_string(co_folder_path(s->folder)));
        co_json_print(j);
    } else
        printf("%s\n", co_folder_path(s->folder));
    if (o->status == CO_STATUS_STOPPED)
        return CO_EXIT_STOPPED;
    return err ? CO_EXIT_FAILED : CO_EXIT_DONE;
}

/* Ratings: how often held-out items would have been recommended. A large set is judged by some of its users,
 * so that this takes about a second at most; `cohort test` judges by all. */
static void judge_ratings(training *s)
{
    enum { MOST_PREDICTIONS = 20000000 };
    const co_dataset *data = co_plan_facts_of(s->plan)->data;

    if (!data->io.users || s->over || !s->folder || s->summary.status != CO_STATUS_DONE ||
        data->count[CO_SPLIT_VAL] == 0)
        return;
    if (co_hit_rates(s->plan, CO_SPLIT_VAL, HITS_AT, MOST_PREDICTIONS, &s->hits) != CO_OK) {
        shout(s, "hit rates were not computed: %s", co_errmsg());
        co_errclear();
        return;
    }
    co_event_scalar(s->folder, s->summary.steps, "val/" HIT_RATE_NAME, s->hits.hit_rate);
    co_event_scalar(s->folder, s->summary.steps, "val/" NDCG_NAME, s->hits.ndcg);
    tell(s,
         "val " HIT_RATE_NAME " %.4f  " NDCG_NAME
         " %.4f  (%lld held-out rating%s of %lld user%s, each against all"
         " items that the user has not rated)",
         s->hits.hit_rate, s->hits.ndcg, (long long)s->hits.cases, s->hits.cases == 1 ? "" : "s",
         (long long)s->hits.users, s->hits.users == 1 ? "" : "s");
}

co_err training_run(training *s, co_err *wrote)
{
    *wrote = CO_OK;
    if (s->folder) {
        record_track(s);
        record_first_screen(s);
        tell_changes(s);
    }
    co_train_hooks hooks = s->job ? job_hooks(s) : record_hooks(s);
    co_err err = s->over ? co_train_run_over(s->plan, &s->over->given, over_hooks(s), &s->summary)
                         : co_train_run(s->plan, &hooks, &s->summary);
    if (!err)
        judge_ratings(s);
    if (err && !s->summary.weights_sha256[0] && !s->summary.blame[0])
        snprintf(s->summary.blame, sizeof s->summary.blame, "%s", co_errmsg());
    if (!s->folder)
        return err; /* a guest, which did not have to write */
    over_listen(s, true);
    record_end_progress(s);
    s->reproduce = ending_reproduce(s, s->line);
    *wrote = record_close(s);
    if (!*wrote)
        book_end(s);
    return err;
}

const char *limit_key(const training *s)
{
    bool by_steps = s->app.cfg->max_steps == co_plan_facts_of(s->plan)->steps;

    return by_steps ? "trainer.max_steps" : "trainer.max_epochs";
}

static int run_line(training *s, line *l)
{
    co_err err = training_open(s, l);
    if (err) {
        over_decline(s);
        return co_say_error(err);
    }
    if (!s->folder && !s->over) {
        co_say("%s has all its %lld steps; raise %s to go on", s->app.run_dir,
               (long long)co_plan_facts_of(s->plan)->steps, limit_key(s));
        if (s->differences)
            co_say("this line differs from the run, and nothing was trained with it: %s", s->differences);
        printf("%s\n", s->app.run_dir);
        return CO_EXIT_DONE;
    }
    co_err wrote;
    err = training_run(s, &wrote);
    char lost[1024]; /* a copy: writing the report may replace the error message */
    snprintf(lost, sizeof lost, "%s", wrote ? co_errmsg() : "");
    if (over_guest(s) && s->over->comes_back && over_can_return(l)) {
        over_close(s); /* its port, its roster */
        over_return(s, l);
    }
    int status = s->folder ? report(s, l, err) : over_report(s, l, err);
    if (wrote) {
        co_notice("the record is not whole: %s", lost);
        return status == CO_EXIT_DONE ? CO_EXIT_FAILED : status;
    }
    return status;
}

/* --cfg job: prints the configuration as YAML and runs nothing. With --resolve, values from the environment
 * are printed too. */
static int show_config(line *l, const char *what, bool resolve)
{
    co_conf *c;
    co_str text = {0};

    if (strcmp(what, "job") != 0) {
        co_notice("--cfg %s: only --cfg job exists; there is no configuration but the job's", what);
        return CO_EXIT_USAGE;
    }
    co_err err = co_mistake(&l->mistakes, line_use_continued(l));
    if (!err)
        err = co_conf_compose_all(&c, &l->mistakes, app_conf_spec(l->config_dir), l->words, l->n);
    if (!err && co_mistakes_tell(&l->mistakes) != CO_OK) {
        err = CO_EINPUT;
        co_conf_free(c);
    }
    if (err)
        return co_say_error(err);
    if (resolve)
        co_conf_yaml_all(c, &text);
    else
        co_conf_yaml(c, &text);
    err = co_str_err(&text);
    if (!err)
        fputs(co_str_text(&text), stdout);
    co_str_fini(&text);
    co_conf_free(c);
    return err ? co_say_error(err) : CO_EXIT_DONE;
}

/* --hosts: checks the words here, then starts the training on each host. */
static int conduct(line *l, const co_hosts_ask *ask)
{
    co_conf *c = NULL;
    co_err err = co_conf_compose_all(&c, &l->mistakes, app_conf_spec(l->config_dir), l->words, l->n);

    if (!err)
        err = co_mistakes_tell(&l->mistakes);
    co_conf_free(c);
    return err ? co_say_error(err) : co_hosts_line_conduct(ask, l->rest, l->n_rest);
}

/* The flags of `cohort train` itself. */
typedef struct switches {
    bool markdown, multirun, resolve, background;
    const char *cfg;
} switches;

static co_err parse(line *l, switches *on, int argc, char **argv)
{
    const co_flag flags[] = {{"--markdown", .on = &on->markdown}, /* of --help: how docs/keys.md is made */
                             {"--multirun", .on = &on->multirun},
                             {"-m", .on = &on->multirun},
                             {"--cfg", "job", .value = &on->cfg},
                             {"-c", "job", .value = &on->cfg},
                             {"--resolve", .on = &on->resolve},
                             {"--detach", .on = &on->background},
                             {0}};

    return line_parse(l, argc, argv, true, flags);
}

static int run_once(line *l, bool background)
{
    training s = {.began_ns = co_now_ns()};
    int status = CO_EXIT_FAILED;

    if (!background || detach(&s, l, &status))
        status = run_line(&s, l);
    if (s.plan || s.app.conf)
        training_close(&s);
    return status;
}

static int run(line *l, const switches *on, char **argv)
{
    const co_hosts_ask ask = {l->host_flags, NULL, argv};
    bool conducts = !l->hosts && co_hosts_line_conducts(&ask);

    if (on->multirun) {
        co_mistake(&l->mistakes, line_refuse_hosts(l, "a sweep (-m) runs"));
        l->typed = NULL;
    }
    if (on->background && (on->multirun || conducts)) {
        co_fail(CO_EINPUT, "--detach starts one run here; %s",
                on->multirun ? "a sweep (-m) waits for each of its own"
                             : "--hosts waits for those of the other hosts");
        co_mistake(&l->mistakes, CO_EINPUT);
    }
    if (on->cfg)
        return show_config(l, on->cfg, on->resolve);
    if (on->multirun)
        return sweep_run(l);
    return conducts ? conduct(l, &ask) : run_once(l, on->background);
}

int train_with(int argc, char **argv, co_hosts_line *hosts)
{
    line l;
    switches on = {0};

    signal(SIGHUP, SIG_IGN);
    if (parse(&l, &on, argc, argv) != CO_OK)
        return co_say_error(CO_EINPUT);
    int status;
    l.typed = getenv(SWEEP_JOB) ? NULL : argv; /* a job of a sweep has one host */
    if (l.help)
        status = train_help(&l, on.markdown);
    else {
        if (hosts)
            co_mistake(&l.mistakes, line_take_hosts(&l, hosts));
        status = run(&l, &on, argv);
    }
    line_free(&l);
    return status;
}

int cmd_train(int argc, char **argv)
{
    return train_with(argc, argv, NULL);
}
