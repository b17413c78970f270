/* tracker.c -- the table of trackers, and the thread that reads the record to one of them.
 *
 * A feed is a tracker with its thread. The owner (the supervisor) never waits for a feed while training: it
 * sets a flag and signals. The lock guards the fields below it and is held for a few instructions only, never
 * while a tracker works. Threads report through their feed; the owner speaks for them, since a thread that
 * held a lock of the terminal while the supervisor forks a saver would leave it locked in the child.
 *
 * Before each flush the feed reads the lease: a run that lost its folder writes nothing more into it.
 */
#include "track/tracker.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "track/track_int.h"

const co_tracker_def *const co_trackers[] = {&csv_def, &none_def, NULL};

enum { FLUSH_S = 5, FLUSH_SHARE = 50 }; /* at most every 5 s, and at most a 50th of the time */

struct feed {
    const co_tracker_def *def;
    char *dir, run_id[64];
    int64_t old_bytes; /* of the record, when this start began */
    void *self;
    bool told; /* the owner's: its failure was reported */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool news, ending, over;
    char why[512]; /* "" unless it failed */
};

struct co_tracking {
    struct feed *feed[CO_TRACKERS_MOST]; /* each allocated alone: one that hangs is left behind */
    int n;
};

/* --- the thread ----------------------------------------------------------------------------------------- */
static co_err hand_over(struct feed *f, const char *text, size_t len, int64_t offset)
{
    json_t *v = NULL;
    co_err err = co_json_parse(&v, text, len, "events.jsonl");

    if (err)
        return err == CO_ENOMEM ? err : CO_OK; /* a line that a crash cut */
    if (json_is_object(v))
        err = f->def->take(
            f->self, &(co_record_line){.text = text, .len = len, .json = v, .replayed = offset < f->old_bytes});
    json_decref(v);
    return err;
}

/* All lines that are there now; *n is how many. */
static co_err hand_over_all(struct feed *f, record_reader *r, int64_t *n)
{
    const char *line;
    size_t len;
    int64_t offset;

    for (;; ++*n) {
        CO_TRY(reader_next(r, &line, &len, &offset));
        if (!line)
            return CO_OK;
        CO_TRY(hand_over(f, line, len, offset));
    }
}

static co_err flush(struct feed *f)
{
    CO_TRY(lease_is_ours(f->dir, f->run_id));
    return f->def->flush(f->self);
}

/* Waits for more lines, the end, or `until`. True: the end. */
static bool wait_for_more(struct feed *f, double until_s)
{
    double left = until_s - co_now_s();
    struct timespec at;

    clock_gettime(CLOCK_REALTIME, &at);
    left = left < 0.01 ? 0.01 : left > 3600 ? 3600 : left;
    at.tv_sec += (time_t)left + 1; /* rounded up: nobody counts on the instant */
    pthread_mutex_lock(&f->lock);
    while (!f->news && !f->ending && pthread_cond_timedwait(&f->changed, &f->lock, &at) == 0)
        ;
    bool end = f->ending;
    f->news = false;
    pthread_mutex_unlock(&f->lock);
    return end;
}

static co_err read_record(struct feed *f, record_reader *r)
{
    double next_s = co_now_s() + FLUSH_S;
    int64_t waiting = 0; /* lines taken since the last flush */

    for (bool end = false;;) {
        CO_TRY(hand_over_all(f, r, &waiting));
        if (end)
            return flush(f);
        double now_s = co_now_s();
        if (waiting && now_s >= next_s) {
            CO_TRY(flush(f));
            double took_s = co_now_s() - now_s;
            next_s = co_now_s() + (took_s * FLUSH_SHARE > FLUSH_S ? took_s * FLUSH_SHARE : FLUSH_S);
            waiting = 0;
        }
        end = wait_for_more(f, waiting ? next_s : now_s + 3600);
    }
}

static void *run_feed(void *ctx)
{
    struct feed *f = ctx;
    record_reader *r = NULL;
    co_err err = reader_open(&r, f->dir);
    bool open = false;

    if (!err) {
        err = f->def->open(&f->self, f->dir);
        open = !err;
    }
    if (!err)
        err = read_record(f, r);
    char why[sizeof f->why] = "";
    if (err)
        snprintf(why, sizeof why, "%s", co_errmsg());
    if (open)
        f->def->close(f->self);
    reader_close(r);
    pthread_mutex_lock(&f->lock);
    memcpy(f->why, why, sizeof why);
    f->over = true;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

/* --- the owner's side ----------------------------------------------------------------------------------- */
static void free_feed(struct feed *f)
{
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    co_free(f->dir);
    co_free(f);
}

/* The thread takes no signals: they are the supervisor's. */
static co_err start_thread(struct feed *f)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&f->thread, NULL, run_feed, f);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed ? co_fail(CO_EFAIL, "logger=%s: no thread: %s", f->def->name, strerror(failed)) : CO_OK;
}

static co_err start_feed(struct feed **out, const co_folder *folder, const co_tracker_def *def)
{
    struct feed *f = co_zalloc(sizeof *f);
    struct stat st;

    if (!f)
        return CO_ENOMEM;
    f->def = def;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    snprintf(f->run_id, sizeof f->run_id, "%s", folder->run_id);
    f->dir = co_strdup(folder->path);
    char *path = co_sprintf("%s/events.jsonl", folder->path);
    f->old_bytes = path && stat(path, &st) == 0 ? st.st_size : 0;
    co_err err = f->dir && path ? start_thread(f) : CO_ENOMEM;
    co_free(path);
    if (err)
        free_feed(f);
    else
        *out = f;
    return err;
}

co_err co_tracking_open(co_tracking **out, const co_folder *f, const co_tracker_def *const *defs, int n)
{
    CO_ASSERT(n <= CO_TRACKERS_MOST, "there are not so many trackers");
    co_tracking *t = co_zalloc(sizeof *t);
    co_err err = t ? CO_OK : CO_ENOMEM;

    for (int i = 0; i < n && !err; i++) {
        err = start_feed(&t->feed[t->n], f, defs[i]);
        t->n += !err;
    }
    if (!err)
        *out = t;
    else
        co_tracking_close(t, CO_TRACKING_END_S, NULL, NULL);
    return err;
}

static void notify(struct feed *f, bool ending)
{
    pthread_mutex_lock(&f->lock);
    f->news = true;
    f->ending = f->ending || ending;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

void co_tracking_more(co_tracking *t)
{
    for (int i = 0; t && i < t->n; i++)
        notify(t->feed[i], false);
}

/* Reports a feed's failure, the first time it is asked. */
static void report(struct feed *f, const char *why, co_tracking_tell tell, void *ctx)
{
    char text[768];

    if (f->told || !why[0] || !tell)
        return;
    f->told = true;
    snprintf(text, sizeof text, "logger=%s was dropped: %s; events.jsonl has every value", f->def->name, why);
    tell(ctx, text);
}

void co_tracking_troubles(co_tracking *t, co_tracking_tell tell, void *ctx)
{
    char why[sizeof t->feed[0]->why];

    for (int i = 0; t && i < t->n; i++) {
        pthread_mutex_lock(&t->feed[i]->lock);
        memcpy(why, t->feed[i]->why, sizeof why);
        pthread_mutex_unlock(&t->feed[i]->lock);
        report(t->feed[i], why, tell, ctx);
    }
}

/* Is the feed through by `at` (CLOCK_REALTIME)? */
static bool wait_until_over(struct feed *f, const struct timespec *at)
{
    pthread_mutex_lock(&f->lock);
    while (!f->over && pthread_cond_timedwait(&f->changed, &f->lock, at) == 0)
        ;
    bool over = f->over;
    pthread_mutex_unlock(&f->lock);
    return over;
}

void co_tracking_close(co_tracking *t, double secs, co_tracking_tell tell, void *ctx)
{
    struct timespec at;
    char why[96];

    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec += (time_t)secs;
    at.tv_nsec += (long)((secs - (double)(time_t)secs) * 1e9);
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    for (int i = 0; t && i < t->n; i++)
        notify(t->feed[i], true);
    for (int i = 0; t && i < t->n; i++) {
        struct feed *f = t->feed[i];
        if (wait_until_over(f, &at)) {
            pthread_join(f->thread, NULL);
            report(f, f->why, tell, ctx);
            free_feed(f);
        } else { /* its memory stays: the thread still uses it */
            snprintf(why, sizeof why, "it was not through %g s after the run's end", secs);
            report(f, why, tell, ctx);
            pthread_detach(f->thread);
        }
    }
    co_free(t);
}
