/* runs.c -- the runs below the board's folder, and readers of those that somebody looks at. A name is looked
 * up in the list that was found on the disk; it is never used as a path.
 *
 * Every connection has a thread. `lock` guards the list and the table of open runs; no disk is read while it
 * is held. One connection at a time looks for runs again, every LIST_S seconds at most; the others use the
 * old list. Each open run has a lock of its own, which is held while its record is read. So a record on a
 * slow disk, or a very long one, keeps only those waiting who asked for that run; and since a reader stops
 * after READ_MS, not even them for long: they are answered with what was read so far.
 *
 * Open runs that nobody uses are kept for the next request, up to IDLE_MOST.
 */
#include "web/web_int.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

enum { LIST_S = 2, EVENTS = 500, READ_MS = 100, IDLE_MOST = 12 };

co_err runs_open(runs *r, const char *root)
{
    *r = (runs){.root = co_strdup(root), .find = co_runs_find};
    if (!r->root)
        return CO_ENOMEM;
    for (size_t n = strlen(r->root); n > 1 && r->root[n - 1] == '/'; n--)
        r->root[n - 1] = '\0';
    pthread_mutex_init(&r->lock, NULL);
    for (int i = 0; i < OPEN_MOST; i++)
        pthread_mutex_init(&r->open[i].lock, NULL);
    r->ready = true;
    return r->find(&r->list, r->root);
}

static void drop(open_run *o)
{
    co_run_close(o->run);
    co_free(o->dir);
    o->run = NULL;
    o->dir = NULL;
    o->used_s = 0;
}

void runs_close(runs *r)
{
    for (int i = 0; i < OPEN_MOST && r->ready; i++) {
        drop(&r->open[i]);
        pthread_mutex_destroy(&r->open[i].lock);
    }
    if (r->ready)
        pthread_mutex_destroy(&r->lock);
    co_run_list_fini(&r->list);
    co_free(r->root);
}

/* --- the list; these are called with r->lock held, and so they return ----------------------------------- */
/* Gives the lock back while it reads the disk. */
static void list_again(runs *r)
{
    co_run_list fresh = {0};

    if (r->listing || (r->listed_s > 0 && co_now_s() - r->listed_s < LIST_S))
        return;
    r->listing = true;
    pthread_mutex_unlock(&r->lock);
    bool found = r->find(&fresh, r->root) == CO_OK;
    if (!found)
        co_errclear(); /* the old list stays */
    pthread_mutex_lock(&r->lock);
    r->listing = false;
    if (!found)
        return;
    co_run_list_fini(&r->list);
    r->list = fresh;
    r->listed_s = co_now_s();
}

static const char *name_of(const runs *r, const char *dir)
{
    size_t n = strlen(r->root);

    return dir[n] == '/' ? dir + n + 1 : "."; /* the root itself is a run */
}

static const char *dir_of(runs *r, const char *name)
{
    list_again(r);
    for (size_t i = 0; i < r->list.n; i++)
        if (strcmp(name_of(r, r->list.dir[i]), name) == 0)
            return r->list.dir[i];
    return NULL;
}

/* Closes the runs that were not used the longest, until at most IDLE_MOST are open without a user. */
static void close_idle(runs *r)
{
    for (;;) {
        open_run *oldest = NULL;
        int idle = 0;
        for (open_run *o = r->open; o < r->open + OPEN_MOST; o++) {
            if (!o->dir || o->users)
                continue;
            idle++;
            oldest = !oldest || o->used_s < oldest->used_s ? o : oldest;
        }
        if (idle <= IDLE_MOST)
            return;
        drop(oldest);
    }
}

/* Its place among the open ones, or a free one: each connection uses one at most, so some are always idle. */
static open_run *place_of(runs *r, const char *dir)
{
    open_run *empty = NULL;

    for (open_run *o = r->open; o < r->open + OPEN_MOST; o++) {
        if (o->dir && strcmp(o->dir, dir) == 0)
            return o;
        empty = !empty && !o->dir ? o : empty;
    }
    if (empty)
        empty->dir = co_strdup(dir);
    return empty && empty->dir ? empty : NULL;
}

/* --- for the answers ------------------------------------------------------------------------------------ */
void runs_each(runs *r, void (*fn)(void *ctx, const char *dir, const char *name), void *ctx)
{
    char **dirs = NULL;
    size_t n = 0;

    pthread_mutex_lock(&r->lock);
    list_again(r);
    dirs = co_array(r->list.n + 1, sizeof *dirs);
    for (; dirs && n < r->list.n && (dirs[n] = co_strdup(r->list.dir[n])); n++)
        ;
    pthread_mutex_unlock(&r->lock);
    for (size_t i = 0; i < n; i++) {
        fn(ctx, dirs[i], name_of(r, dirs[i]));
        co_free(dirs[i]);
    }
    co_free(dirs);
}

char *runs_dir(runs *r, const char *name)
{
    pthread_mutex_lock(&r->lock);
    const char *dir = dir_of(r, name);
    char *copy = dir ? co_strdup(dir) : NULL;
    pthread_mutex_unlock(&r->lock);
    return copy;
}

open_run *runs_take(runs *r, const char *name)
{
    co_err err;

    pthread_mutex_lock(&r->lock);
    const char *dir = dir_of(r, name);
    open_run *o = dir ? place_of(r, dir) : NULL;
    if (o)
        o->users++;
    pthread_mutex_unlock(&r->lock);
    if (!o)
        return NULL;
    pthread_mutex_lock(&o->lock);
    if (o->run)
        err = co_run_more(o->run);
    else
        err = co_run_open(&o->run, o->dir,
                          &(co_run_limits){.points = POINTS_SHOWN, .events = EVENTS, .most_ms = READ_MS});
    if (!err)
        return o;
    co_errclear();
    co_run_close(o->run); /* whatever it was, the next request begins anew */
    o->run = NULL;
    runs_put(r, o);
    return NULL;
}

void runs_put(runs *r, open_run *o)
{
    pthread_mutex_unlock(&o->lock);
    pthread_mutex_lock(&r->lock);
    o->used_s = co_now_s();
    o->users--;
    close_idle(r);
    pthread_mutex_unlock(&r->lock);
}
