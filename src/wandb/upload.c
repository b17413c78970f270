/* upload.c -- the thread that sends a run to the service, from the run's files.
 *
 *     ask the service how far it is -> create or update the run -> every few seconds: lines, files
 *
 * Files that take longer than the time between two requests of lines wait for the next turn, so that metrics,
 * heartbeats and the answers that may say Stop are never held up by pictures.
 *
 * A line counts as sent when the service has answered. Whatever fails is tried again, later and later (2 s
 * to 60 s, or when the service says), from the same line: each request says which line it begins with, so a
 * request that arrived twice does no harm. Only counters are kept in memory; the lines wait on the disk.
 */
#include "wandb/upload_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

enum { HEARTBEAT_S = 30, REFUSALS = 3 };

/* --- what the tracker hands over, under the lock --- */
static co_err replace(uploader *u, char **text, const char *with)
{
    char *copy = co_strdup(with);

    if (!copy)
        return CO_ENOMEM;
    pthread_mutex_lock(&u->lock);
    co_free(*text);
    *text = copy;
    pthread_mutex_unlock(&u->lock);
    return CO_OK;
}

co_err upload_config(uploader *u, const char *config_json)
{
    CO_TRY(replace(u, &u->config, config_json));
    pthread_mutex_lock(&u->lock);
    pthread_cond_signal(&u->wake);
    pthread_mutex_unlock(&u->lock);
    return CO_OK;
}

co_err upload_summary(uploader *u, const char *summary_json)
{
    return replace(u, &u->summary, summary_json);
}

co_err upload_file(uploader *u, const char *name)
{
    char *copy = co_strdup(name);
    co_err err = copy ? CO_OK : CO_ENOMEM;

    pthread_mutex_lock(&u->lock);
    for (size_t i = u->sent_files; i < u->n_files && copy; i++)
        if (strcmp(u->file[i], name) == 0) { /* it waits already */
            co_free(copy);
            copy = NULL;
        }
    if (!err && copy && u->n_files == u->room) {
        size_t room = u->room ? 2 * u->room : 16;
        char **more = co_realloc(u->file, room * sizeof *more);
        err = more ? CO_OK : CO_ENOMEM;
        u->file = more ? more : u->file;
        u->room = more ? room : u->room;
    }
    if (!err && copy)
        u->file[u->n_files++] = copy;
    pthread_mutex_unlock(&u->lock);
    if (err)
        co_free(copy);
    return err;
}

/* --- what the user should hear --- */
static void note(uploader *u, const char *fmt, const char *a, const char *b)
{
    pthread_mutex_lock(&u->lock);
    if (u->n_notices < NOTICE_MOST)
        snprintf(u->notice[u->n_notices++], sizeof u->notice[0], fmt, a, b);
    pthread_mutex_unlock(&u->lock);
}

bool upload_notice(uploader *u, char *out, size_t len)
{
    pthread_mutex_lock(&u->lock);
    bool any = u->n_notices > 0;
    if (any) {
        snprintf(out, len, "%s", u->notice[0]);
        memmove(u->notice[0], u->notice[1], (size_t)--u->n_notices * sizeof u->notice[0]);
    }
    pthread_mutex_unlock(&u->lock);
    return any;
}

bool upload_knows(uploader *u, saved_run *bases)
{
    pthread_mutex_lock(&u->lock);
    bool fresh = u->bases_fresh;
    if (fresh) {
        bases->known = true;
        memcpy(bases->base, u->base, sizeof u->base);
        bases->base_step = u->base_step;
    }
    u->bases_fresh = false;
    pthread_mutex_unlock(&u->lock);
    return fresh;
}

/* --- the thread --- */
static co_err refuse_by_rule(const uploader *u, const run_status *status, bool ours)
{
    const wandb_settings *set = u->job.set;

    if (set->resume == CO_WANDB_MUST && !status->exists)
        return co_fail(CO_EINPUT, "resume=must, but the service has no run %s in the project %s", set->id,
                       set->project);
    if (set->resume == CO_WANDB_NEVER && status->exists && !ours)
        return co_fail(CO_EINPUT, "resume=never, but the service has a run %s already; take another id",
                       set->id);
    return CO_OK;
}

/* Where to go on. A run of this folder: where the service is. A foreign one with the same id: after its end
 * if the user wants that (resume=allow), else from the beginning, over the old lines, as wandb does. */
static co_err ask_status(uploader *u)
{
    run_status status;
    bool ours = u->base_known;

    CO_TRY(api_status(&u->api, &status));
    CO_TRY(refuse_by_rule(u, &status, ours));
    bool joins = status.exists && u->job.set->resume != CO_WANDB_RESUME_UNSET;
    if (!ours)
        for (int i = 0; i < N_CHANNELS; i++)
            u->base[i] = joins ? status.lines[i] : 0;
    if (!ours)
        u->base_step = joins ? status.last_step + 1 : 0;
    for (int i = 0; i < N_CHANNELS; i++) {
        int64_t skip = ours && status.exists ? status.lines[i] - u->base[i] : 0;
        u->channel[i].skip = skip > 0 ? skip : 0;
    }
    pthread_mutex_lock(&u->lock);
    u->bases_fresh = !ours;
    pthread_mutex_unlock(&u->lock);
    u->base_known = u->asked = true;
    return CO_OK;
}

static void tell_page(uploader *u)
{
    const char *base = u->job.set->base_url;
    bool public = strcmp(base, "https://api.wandb.ai") == 0;
    char path[500];

    snprintf(path, sizeof path, "%s/%s/runs/%s", u->api.entity, u->api.project, u->job.set->id);
    if (!u->job.set->silent && !u->job.set->rank) /* rank 0's page leads to the others */
        note(u, "%s/%s", public ? "https://wandb.ai" : base, path);
}

static co_err update_run(uploader *u)
{
    bool first = !u->api.entity;

    pthread_mutex_lock(&u->lock);
    char *config = u->config;
    u->config = NULL;
    pthread_mutex_unlock(&u->lock);
    if (!config)
        return CO_OK;
    co_err err = api_upsert(&u->api, config, NULL);
    pthread_mutex_lock(&u->lock);
    if (err && !u->config) { /* again later, unless a newer one has come */
        u->config = config;
        config = NULL;
    }
    pthread_mutex_unlock(&u->lock);
    co_free(config);
    if (!err && first)
        tell_page(u);
    return err;
}

static const char *next_file(uploader *u)
{
    pthread_mutex_lock(&u->lock);
    const char *name = u->sent_files < u->n_files ? u->file[u->sent_files] : NULL;
    pthread_mutex_unlock(&u->lock);
    return name;
}

/* Sends files until it is time for lines again; *more: some are left. A file that cannot be read, or that the
 * service refuses three times, is left out: lines must not wait for it. */
static co_err send_files(uploader *u, bool *more)
{
    double until_s = co_now_s() + u->job.set->transmit_s;
    const char *name;

    for (*more = false; (name = next_file(u)) != NULL;) {
        co_err err = api_send_file(&u->api, u->job.files, name);
        if (err == CO_EFAIL || (err == CO_EINPUT && ++u->refusals == REFUSALS)) {
            note(u, "%s was not uploaded: %s", name, co_errmsg());
            err = CO_OK;
        }
        CO_TRY(err);
        u->refusals = 0;
        pthread_mutex_lock(&u->lock);
        u->sent_files++; /* the list stays: upload_stop frees it */
        pthread_mutex_unlock(&u->lock);
        if (co_now_s() >= until_s) {
            *more = next_file(u) != NULL;
            return CO_OK;
        }
    }
    return CO_OK;
}

bool upload_stop_asked(uploader *u)
{
    return atomic_load(&u->stop_asked);
}

/* A run that was stopped on its page and is continued may find that the service still says so: only what
 * is new since this start counts. */
static void hear_stop(uploader *u)
{
    if (!u->api.stopped)
        u->may_stop = true;
    else if (u->may_stop)
        atomic_store(&u->stop_asked, true);
}

static co_err send_lines(uploader *u, bool last)
{
    for (;;) {
        co_str body = {0};
        batch sent = {0};
        co_err err = batch_build(&body, u, &sent, last);
        bool due = sent.any || sent.finishes || co_now_s() - u->sent_s >= HEARTBEAT_S;
        if (!err && due)
            err = api_stream(&u->api, co_str_text(&body), body.len);
        co_str_fini(&body);
        if (!err && due) {
            u->sent_s = co_now_s();
            hear_stop(u);
        }
        if (err)
            batch_undo(u, &sent);
        else
            batch_commit(u, &sent);
        CO_TRY(err);
        if (!sent.more)
            return CO_OK;
    }
}

/* All lines that are there now, and files for a while; *more: files are left. */
static co_err send_turn(uploader *u, bool last, bool *more)
{
    *more = false;
    if (!u->api.http)
        CO_TRY(api_open(&u->api, u->job.set, &u->give_up));
    if (!u->asked)
        CO_TRY(ask_status(u));
    CO_TRY(update_run(u));
    if (!u->api.entity)
        return CO_OK; /* nothing is known of the run yet */
    CO_TRY(send_lines(u, false));
    CO_TRY(send_files(u, more));
    return send_lines(u, last && !*more);
}

/* Of the clock of co_now_s. */
static struct timespec at_second(double t)
{
    return (struct timespec){.tv_sec = (time_t)t, .tv_nsec = (long)((t - (double)(time_t)t) * 1e9)};
}

/* Waits until there is a reason to go on. Returns whether the run is over. */
static bool rest(uploader *u, double secs, bool was_finishing, bool asked_to_wait)
{
    struct timespec until = at_second(co_now_s() + secs);

    pthread_mutex_lock(&u->lock);
    while (!atomic_load(&u->give_up) && (asked_to_wait || u->finishing == was_finishing))
        if (pthread_cond_timedwait(&u->wake, &u->lock, &until) == ETIMEDOUT)
            break;
    bool finishing = u->finishing;
    pthread_mutex_unlock(&u->lock);
    return finishing;
}

static void report(uploader *u, co_err err)
{
    if (err && !u->in_trouble)
        note(u, "cannot upload: %s%s; it tries again, and nothing is lost", co_errmsg(), "");
    else if (!err && u->in_trouble)
        note(u, "the upload goes on%s%s", "", "");
    u->in_trouble = err;
    if (err) {
        pthread_mutex_lock(&u->lock);
        snprintf(u->why, sizeof u->why, "%s", co_errmsg());
        pthread_mutex_unlock(&u->lock);
    }
}

static double pause_after(uploader *u, co_err err, double *backoff)
{
    const wandb_settings *set = u->job.set;

    if (!err) {
        *backoff = set->retry_min_s;
        return set->transmit_s;
    }
    double secs = u->api.retry_after_s >= 0 ? u->api.retry_after_s : *backoff;
    *backoff = *backoff * 2 < set->retry_max_s ? *backoff * 2 : set->retry_max_s;
    return secs < 3600 ? secs : 3600;
}

static void *upload_main(void *arg)
{
    uploader *u = arg;
    double backoff = u->job.set->retry_min_s;
    bool finishing = false;

    while (!atomic_load(&u->give_up)) {
        bool more;
        co_err err = send_turn(u, finishing, &more);
        if (err == CO_ESTOP)
            break;
        report(u, err);
        if (!err && more) {
            backoff = u->job.set->retry_min_s;
            continue;
        }
        if (!err && finishing) {
            pthread_mutex_lock(&u->lock);
            u->done = true;
            pthread_cond_broadcast(&u->finished);
            pthread_mutex_unlock(&u->lock);
            break;
        }
        finishing = rest(u, pause_after(u, err, &backoff), finishing, err && u->api.retry_after_s >= 0);
    }
    return NULL;
}

/* --- start and end --- */
co_err upload_start(uploader **out, const upload_job *job)
{
    uploader *u = co_zalloc(sizeof *u);
    pthread_condattr_t clock;

    if (!u)
        return CO_ENOMEM;
    u->job = *job;
    u->base_known = job->saved->known;
    memcpy(u->base, job->saved->base, sizeof u->base);
    u->base_step = job->saved->base_step;
    u->exit_code = -1;
    pthread_mutex_init(&u->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&u->wake, &clock);
    pthread_cond_init(&u->finished, &clock);
    pthread_condattr_destroy(&clock);
    if (co_thread_start(&u->thread, upload_main, u) != 0) {
        co_free(u);
        return co_fail(CO_ENOMEM, "wandb: no thread for the upload");
    }
    *out = u;
    return CO_OK;
}

void upload_finish(uploader *u, int exit_code)
{
    pthread_mutex_lock(&u->lock);
    u->finishing = true;
    u->exit_code = exit_code;
    pthread_cond_signal(&u->wake);
    pthread_mutex_unlock(&u->lock);
}

co_err upload_wait(uploader *u, double until_s, double secs)
{
    struct timespec until = at_second(until_s);
    char why[sizeof u->why];

    pthread_mutex_lock(&u->lock);
    while (!u->done)
        if (pthread_cond_timedwait(&u->finished, &u->lock, &until) == ETIMEDOUT)
            break;
    bool done = u->done;
    snprintf(why, sizeof why, "%s", u->why);
    pthread_mutex_unlock(&u->lock);
    return done ? CO_OK
                : co_fail(CO_ETIMEOUT, "not everything was uploaded after %g s%s%s", secs, *why ? ": " : "",
                          why);
}

void upload_stop(uploader *u)
{
    if (!u)
        return;
    atomic_store(&u->give_up, true);
    pthread_mutex_lock(&u->lock);
    pthread_cond_signal(&u->wake);
    pthread_mutex_unlock(&u->lock);
    pthread_join(u->thread, NULL);
    api_close(&u->api);
    for (size_t i = 0; i < u->n_files; i++)
        co_free(u->file[i]);
    co_free(u->file);
    co_free(u->config);
    co_free(u->summary);
    pthread_cond_destroy(&u->wake);
    pthread_cond_destroy(&u->finished);
    pthread_mutex_destroy(&u->lock);
    co_free(u);
}
