/* merge.c -- merges several files into one stream by always taking the line with the smallest stamp.
 *
 * While the files grow, the earliest line waits up to a fifth of a second for a later line from every other
 * host: a host with a slow disk may still deliver an earlier one. Once a second the arguments are resolved
 * again, because a host that joins late has a folder of its own. If there is only one folder, its job.log is
 * read instead.
 */
#include "job/logs_int.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "job/times_int.h"

#define HOLD_NS 200000000u
enum { NEWEST_MOST = 1024 };

struct co_logs {
    co_logs_spec spec;
    wanted wanted;
    log_source *s;
    int n;
    /* lines to skip at first: each file was read for --tail, but only the last lines of all are shown */
    long long skip;
    uint64_t looked_ns;
    bool named; /* an argument is a file */
    bool whole; /* the first source is a job.log: it has all hosts */
    char *own;  /* if whole: the merged.log beside it */
};

static bool has_path(const co_logs *l, const char *path)
{
    for (int i = 0; i < l->n; i++)
        if (strcmp(l->s[i].path, path) == 0)
            return true;
    return false;
}

static co_err add_source(co_logs *l, const char *path)
{
    if (has_path(l, path))
        return CO_OK;
    log_source *s = l->n < NEWEST_MOST ? co_realloc(l->s, (size_t)(l->n + 1) * sizeof *s) : NULL;
    if (!s)
        return l->n < NEWEST_MOST ? CO_ENOMEM : co_fail(CO_EINPUT, "logs: more than %d files", NEWEST_MOST);
    l->s = s;
    CO_TRY(source_open(&s[l->n], path));
    l->n++;
    return CO_OK;
}

/* Do the files that were found later still belong to the same run, perhaps with more hosts? */
static bool is_same_run(const co_logs *l, const found *f)
{
    for (int i = 0; i < f->n; i++)
        if (has_path(l, f->paths[i]))
            return true;
    return false;
}

static co_err add_all(co_logs *l, bool again)
{
    found f;

    for (int i = 0; i < (l->spec.n ? l->spec.n : 1); i++) {
        CO_TRY(logs_find(&f, l->spec.n ? l->spec.words[i] : NULL));
        co_err err = CO_OK;
        l->named = l->named || f.named;
        for (int k = 0; k < f.n && !err && (!again || is_same_run(l, &f)); k++)
            err = add_source(l, f.paths[k]);
        found_free(&f);
        CO_TRY(err);
    }
    return CO_OK;
}

/* There is a folder of one host only. If that host kept the roster, its job.log has the lines of all
 * hosts. */
static co_err take_job_log(co_logs *l)
{
    char *path = l->n == 1 && !l->named ? co_strdup(l->s[0].path) : NULL;
    char *slash = path ? strrchr(path, '/') : NULL;
    co_err err = CO_OK;

    if (slash) {
        snprintf(slash + 1, strlen(slash), "job.log"); /* shorter than merged.log */
        l->whole = co_fs_exists(path);
    }
    if (l->whole) {
        char first[CO_STAMP], last[CO_STAMP], host[CO_HOST_NAME];
        l->own = co_strdup(l->s[0].path);
        err = l->own ? source_span(first, last, host, l->own) : CO_ENOMEM;
        source_close(&l->s[0]);
        l->n = 0;
        if (!err)
            err = add_source(l, path);
        if (!err) {
            l->s[0].loose = true;
            l->s[0].here = strcmp(host, l->s[0].me) == 0;
            l->s[0].foreign = !l->s[0].here;
        }
    }
    co_free(path);
    return err;
}

/* job.log is written a moment later than merged.log. Lines that a killed launcher could not write to job.log
 * are in its merged.log. */
static co_err add_rest(co_logs *l)
{
    char first[CO_STAMP], last[CO_STAMP], host[CO_HOST_NAME];

    if (!l->whole || l->n != 1 || l->s[0].foreign)
        return CO_OK;
    CO_TRY(source_span(first, last, host, l->s[0].path));
    if (*last == '9') /* its launcher still writes it */
        return CO_OK;
    CO_TRY(add_source(l, l->own));
    snprintf(l->s[1].after, sizeof l->s[1].after, "%s", last);
    return CO_OK;
}

static co_err go_to_start(co_logs *l)
{
    long long total = 0, n;

    for (int i = 0; i < l->n; i++) {
        if (*l->wanted.since)
            CO_TRY(source_since(&l->s[i], l->wanted.since));
        if (l->spec.tail < 0)
            continue;
        CO_TRY(source_tail(&l->s[i], &l->wanted, l->spec.tail, &n));
        total += n;
    }
    l->skip = l->spec.tail >= 0 && total > l->spec.tail ? total - l->spec.tail : 0;
    return CO_OK;
}

co_err co_logs_open(co_logs **out, const co_logs_spec *spec)
{
    co_logs *l = co_zalloc(sizeof *l);

    if (!l)
        return CO_ENOMEM;
    l->spec = *spec;
    l->wanted.host = spec->host;
    snprintf(l->wanted.since, sizeof l->wanted.since, "%s", spec->since);
    co_err err = spec->ranks ? wanted_ranks(&l->wanted, spec->ranks) : CO_OK;
    if (!err)
        err = add_all(l, false);
    if (!err)
        err = take_job_log(l);
    if (!err)
        err = add_rest(l);
    if (!err)
        err = go_to_start(l);
    if (err) {
        co_logs_close(l);
        return err;
    }
    l->looked_ns = co_now_ns();
    *out = l;
    return CO_OK;
}

void co_logs_close(co_logs *l)
{
    for (int i = 0; l && i < l->n; i++)
        source_close(&l->s[i]);
    if (l) {
        co_free(l->s);
        co_free(l->own);
    }
    co_free(l);
}

/* Finds hosts that joined late and launchers that were killed. */
static co_err look_again(co_logs *l)
{
    int had = l->n;

    l->looked_ns = co_now_ns();
    if (!l->whole && add_all(l, true) != CO_OK)
        co_errclear(); /* a folder is being made or removed: the next search finds out */
    for (int i = 0; i < had; i++)
        if (!l->s[i].pending)
            source_look(&l->s[i]);
    return add_rest(l);
}

/* The source whose line comes next; NULL: there is none, or the line must wait for other hosts. */
static log_source *next_source(co_logs *l)
{
    log_source *first = NULL;
    bool all = true;

    for (int i = 0; i < l->n; i++) {
        log_source *s = &l->s[i];
        if (s->pending && (!first || strcmp(s->line.stamp, first->line.stamp) < 0))
            first = s;
        all &= s->pending || s->ended || s->gone;
    }
    bool wait = first && l->spec.follow && !all && co_now_ns() - first->read_ns < HOLD_NS;
    return wait ? NULL : first;
}

co_err co_logs_next(co_logs *l, co_log_line *line)
{
    for (;;) {
        for (int i = 0; i < l->n; i++)
            CO_TRY(source_next(&l->s[i], &l->wanted, l->spec.follow && !l->s[i].gone));
        log_source *s = next_source(l);
        if (!s) {
            line->text = NULL;
            if (l->spec.follow && co_now_ns() - l->looked_ns > FOLLOW_LOOK_MS * UINT64_C(1000000))
                return look_again(l);
            if (l->spec.follow && !co_logs_over(l))
                poll(NULL, 0, FOLLOW_TURN_MS);
            return CO_OK;
        }
        s->pending = false;
        if (l->skip > 0) {
            l->skip--;
            continue;
        }
        *line = s->line;
        return CO_OK;
    }
}

bool co_logs_over(const co_logs *l)
{
    for (int i = 0; i < l->n; i++)
        if (l->s[i].pending || !(l->s[i].ended || l->s[i].gone))
            return false;
    return true;
}

void co_logs_has(const co_logs *l, char *out, size_t size)
{
    size_t n = 0;

    snprintf(out, size, "nothing");
    for (int i = 0; i < l->n && n < size; i++) {
        const log_source *s = &l->s[i];
        char ranks[64] = "the launcher";
        if (s->rank[0] >= 0)
            snprintf(ranks, sizeof ranks, s->rank[0] < s->rank[1] ? "ranks %d to %d" : "rank %d", s->rank[0],
                     s->rank[1]);
        n += (size_t)snprintf(out + n, size - n, "%s%s on %s", i ? ", " : "", ranks,
                              l->whole ? "all hosts" : s->last.host);
    }
}

const char *co_logs_cut(const co_logs *l)
{
    for (int i = 0; i < l->n; i++)
        if (l->s[i].gone && !l->s[i].ended)
            return l->s[i].me; /* we can know it for this host only */
    return NULL;
}
