/* find.c -- finds the files that an argument of `cohort logs` names. Runs lie in <log_dir>/<run id>_<8
 * random>/merged.log, one folder for each host; hosts may share one log_dir, or each host's log_dir was
 * copied into a common folder.
 *
 *     a merged.log, a folder with one   that file
 *     a folder above them               the newest run there: the file that began last, and the files with
 *                                       the same id that overlap with it in time (its other hosts). Jobs
 *                                       without an id share the id "none": if one host has two such files at
 *                                       one time, they are two jobs, and the later one is shown
 *     no file or folder                 a run id: the newest run with this id below this folder
 */
#include "job/logs_int.h"

#include <stdio.h>
#include <string.h>

#include "base/fs.h"

enum { FILES_MOST = 4096, LOOKS_MOST = 20000, DEEP = 2 };

typedef struct candidate {
    char *path;
    char id[CO_HOST_NAME], host[CO_HOST_NAME];
    char first[CO_STAMP], last[CO_STAMP];
} candidate;

typedef struct search {
    candidate *list;
    int n, looks;
    bool trained; /* a run of `cohort train` was found */
} search;

void found_free(found *f)
{
    for (int i = 0; i < f->n; i++)
        co_free(f->paths[i]);
    co_free(f->paths);
    *f = (found){0};
}

static void search_free(search *s)
{
    for (int i = 0; i < s->n; i++)
        co_free(s->list[i].path);
    co_free(s->list);
}

/* "job_x7tq0a_b" is a folder of the run id "job". */
static void id_of(char out[CO_HOST_NAME], const char *folder)
{
    const char *slash = strrchr(folder, '/');
    size_t n;

    snprintf(out, CO_HOST_NAME, "%s", slash && slash[1] ? slash + 1 : folder);
    n = strlen(out);
    if (n > 9 && out[n - 9] == '_')
        out[n - 9] = '\0';
}

static co_err add(search *s, char *take_path, const char *folder)
{
    candidate *list = s->n < FILES_MOST ? co_realloc(s->list, (size_t)(s->n + 1) * sizeof *list) : NULL;

    if (!list) {
        co_free(take_path);
        return s->n < FILES_MOST
                   ? CO_ENOMEM
                   : co_fail(CO_EINPUT, "logs: more than %d runs in %s: name one", FILES_MOST, folder);
    }
    s->list = list;
    candidate *c = &list[s->n];
    *c = (candidate){.path = take_path};
    id_of(c->id, folder);
    s->n++;
    return source_span(c->first, c->last, c->host, take_path);
}

static bool is_there(const char *folder, const char *name)
{
    char *path = co_sprintf("%s/%s", folder, name);
    bool is = path && co_fs_exists(path);

    co_free(path);
    return is;
}

static co_err look(search *s, const char *folder, int deep)
{
    char **names;
    size_t n;
    co_err err = CO_OK;

    if (is_there(folder, "merged.log")) {
        char *path = co_sprintf("%s/merged.log", folder);
        return path ? add(s, path, folder) : CO_ENOMEM;
    }
    s->trained |= is_there(folder, "events.jsonl");
    if (deep == 0 || co_fs_list(&names, &n, folder) != CO_OK) {
        co_errclear();
        return CO_OK;
    }
    for (size_t i = 0; i < n && !err && s->looks < LOOKS_MOST; i++) {
        char *path = names[i][0] == '.' ? NULL : co_sprintf("%s/%s", folder, names[i]);
        s->looks++;
        if (path && co_fs_is_dir(path))
            err = look(s, path, deep - 1);
        co_free(path);
    }
    co_fs_list_free(names, n);
    return err;
}

static bool overlap(const candidate *a, const candidate *b)
{
    return strcmp(a->id, b->id) == 0 && strcmp(a->first, b->last) <= 0 && strcmp(a->last, b->first) >= 0;
}

/* Is it a file of another job without an id? It is if the same host began a later job that also overlaps with
 * `newest`. */
static bool is_others(const search *s, const candidate *c, const candidate *newest)
{
    for (int i = 0; i < s->n && strcmp(c->id, "none") == 0; i++) {
        const candidate *d = &s->list[i];
        int later = strcmp(d->first, c->first);
        if (strcmp(d->host, c->host) == 0 && overlap(d, newest) && (later > 0 || (later == 0 && d > c)))
            return true;
    }
    return false;
}

/* The newest run (of this id, if one is given) and the files that overlap with it. */
static co_err choose(found *out, const search *s, const char *id)
{
    const candidate *newest = NULL;

    for (int i = 0; i < s->n; i++)
        if ((!id || strcmp(s->list[i].id, id) == 0) && (!newest || strcmp(s->list[i].first, newest->first) >= 0))
            newest = &s->list[i];
    for (int i = 0; newest && i < s->n; i++) {
        const candidate *c = &s->list[i];
        if (!overlap(c, newest) || is_others(s, c, newest))
            continue;
        char **paths = co_realloc(out->paths, (size_t)(out->n + 1) * sizeof *paths);
        if (paths)
            out->paths = paths;
        if (!paths || !(paths[out->n] = co_strdup(c->path)))
            return CO_ENOMEM;
        out->n++;
    }
    return CO_OK;
}

static co_err nothing(const char *word, bool is_id, const search *s)
{
    if (s->trained && !is_id)
        return co_fail(CO_EINPUT,
                       "logs: %s is of `cohort train`: `cohort attach %s` watches it, events.jsonl in it has "
                       "every value",
                       word, word);
    if (is_id)
        return co_fail(CO_EINPUT,
                       "logs: no folder %s, and no run of that id in this folder or below: name the folder "
                       "that --log-dir named",
                       word);
    return co_fail(CO_EINPUT,
                   "logs: no run with a merged.log in %s: `cohort launch --log-dir=%s ...` writes one", word,
                   word);
}

co_err logs_find(found *out, const char *word)
{
    bool is_dir = !word || co_fs_is_dir(word), is_id = !is_dir && !co_fs_exists(word);
    search s = {0};
    co_err err;

    *out = (found){0};
    if (!is_dir && !is_id) {
        out->named = true;
        char *path = co_strdup(word);
        err = path ? add(&s, path, word) : CO_ENOMEM;
    } else {
        err = look(&s, is_dir && word ? word : ".", DEEP);
    }
    if (!err)
        err = choose(out, &s, is_id ? word : NULL);
    if (!err && out->n == 0)
        err = nothing(word ? word : "this folder", is_id, &s);
    search_free(&s);
    if (err)
        found_free(out);
    return err;
}
