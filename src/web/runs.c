/* runs.c -- the runs below the board's folder, and readers of those that somebody looks at. A name is looked
 * up in the list that was found on the disk; it is never used as a path. */
#include "web/web_int.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

enum { LIST_S = 2, POINTS = 1500 };

co_err runs_open(runs *r, const char *root)
{
    *r = (runs){.root = co_strdup(root)};
    if (!r->root)
        return CO_ENOMEM;
    for (size_t n = strlen(r->root); n > 1 && r->root[n - 1] == '/'; n--)
        r->root[n - 1] = '\0';
    return runs_list(r);
}

static void drop(open_run *o)
{
    co_run_close(o->run);
    co_free(o->dir);
    *o = (open_run){0};
}

void runs_close(runs *r)
{
    for (int i = 0; i < OPEN_MOST; i++)
        drop(&r->open[i]);
    co_run_list_fini(&r->list);
    co_free(r->root);
}

co_err runs_list(runs *r)
{
    co_run_list fresh;

    if (r->listed_s > 0 && co_now_s() - r->listed_s < LIST_S)
        return CO_OK;
    CO_TRY(co_runs_find(&fresh, r->root));
    co_run_list_fini(&r->list);
    r->list = fresh;
    r->listed_s = co_now_s();
    return CO_OK;
}

const char *runs_name(const runs *r, size_t i)
{
    const char *dir = r->list.dir[i];
    size_t n = strlen(r->root);

    return dir[n] == '/' ? dir + n + 1 : "."; /* the root itself is a run */
}

static const char *dir_of(const runs *r, const char *name)
{
    for (size_t i = 0; i < r->list.n; i++)
        if (strcmp(runs_name(r, i), name) == 0)
            return r->list.dir[i];
    return NULL;
}

/* Its place among the open ones: its own, a free one, or that of the run that was not used the longest. */
static open_run *place_of(runs *r, const char *dir)
{
    open_run *oldest = &r->open[0];

    for (int i = 0; i < OPEN_MOST; i++)
        if (r->open[i].dir && strcmp(r->open[i].dir, dir) == 0)
            return &r->open[i];
    for (int i = 0; i < OPEN_MOST; i++)
        if (r->open[i].used_s < oldest->used_s)
            oldest = &r->open[i];
    drop(oldest);
    return oldest;
}

co_run *runs_get(runs *r, const char *name)
{
    const char *dir = runs_list(r) == CO_OK ? dir_of(r, name) : NULL;
    co_err err = CO_OK;

    if (!dir)
        return NULL;
    open_run *o = place_of(r, dir);
    if (o->run)
        err = co_run_more(o->run);
    else if ((o->dir = co_strdup(dir)))
        err = co_run_open(&o->run, dir, &(co_run_limits){.points = POINTS, .events = 500});
    o->used_s = co_now_s();
    if (err || !o->run) {
        drop(o);
        co_errclear();
    }
    return o->run;
}
