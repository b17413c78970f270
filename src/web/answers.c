/* answers.c -- the pages and the data of the board: a table of paths.
 *
 *     /                    the page, with its script and style
 *     /api/runs            the list of runs
 *     /api/run?run=NAME    one run: state, configuration, summary, events, names of its series
 *     /api/series?run=NAME&names=PREFIX   its series, thinned, as {"name": [[step, t, value], ...]}
 *     /api/part?run=NAME&names=SERIES&by=step|time&from=X&to=Y   a part of one series, thinned only if that is long
 *     /api/log?run=NAME    the end of train.log
 *     /book?run=NAME       its log book
 */
#include "web/web_int.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/json.h"
#include "book/book.h"
#include "config/config.h"

enum { PART_MS = 3000 }; /* how long a record may be read for a part of a series */
enum { LOG_TAIL = 64 << 10, BOOK_MOST = 64 << 20, EVENTS_SHOWN = 200 };

static const unsigned char page_html[] = {
#include "board.html.inc"
};
static const unsigned char page_js[] = {
#include "board.js.inc"
};
static const unsigned char page_css[] = {
#include "board.css.inc"
};
static const unsigned char dygraph_js[] = {
#include "dygraph.min.js.inc"
};
static const unsigned char dygraph_css[] = {
#include "dygraph.min.css.inc"
};

static void refuse(answer *out, int status, const char *why)
{
    out->status = status;
    out->type = "text/plain; charset=utf-8";
    co_str_clear(&out->body);
    co_str_addf(&out->body, "%s\n", why);
}

static void take_json(answer *out, json_t *take)
{
    char *text = take ? co_json_text(take) : NULL;

    json_decref(take);
    out->type = "application/json";
    co_str_add(&out->body, text ? text : "null");
    co_free(text);
}

/* --- the list ----------------------------------------------------------------------------------------- */
static void add_listed(void *ctx, const char *dir, const char *name)
{
    co_run *run;

    if (co_run_open(&run, dir, &(co_run_limits){.no_record = true}) != CO_OK) {
        co_errclear();
        return;
    }
    json_t *v = json_pack("{s:o, s:s}", "name", co_json_string(name), "state",
                          co_run_state_name(co_run_state_of(run)));
    const char *id = co_json_str(co_run_header(run), "run_id");
    if (v && id)
        json_object_set_new(v, "id", co_json_string(id));
    json_t *best = json_object_get(co_run_summary(run), "best");
    if (v && json_is_object(best))
        json_object_set(v, "best", best);
    co_run_close(run);
    json_array_append_new(ctx, v);
}

static void give_list(answer *out, runs *r, const ask *a)
{
    json_t *all = json_array();

    (void)a;
    runs_each(r, add_listed, all);
    take_json(out, all);
}

/* --- one run ------------------------------------------------------------------------------------------ */
static void add_key(void *ctx, const char *key, const char *value)
{
    json_object_set_new(ctx, key,
                        co_json_string(co_book_is_secret(key) ? "(hidden)"
                                       : value                ? value
                                                              : "null"));
}

static json_t *config_of(const co_run *run)
{
    const char *text = co_run_config(run);
    json_t *v = json_object();

    if (text && co_conf_parse_yaml(text, strlen(text), "config.yaml", add_key, v) != CO_OK)
        co_errclear();
    return v;
}

static int64_t lines_of(const co_run *run)
{
    int64_t n = 0;

    for (size_t i = 0; i < co_run_series_count(run); i++)
        n += co_run_series_at(run, i)->lines;
    return n;
}

static json_t *facts_of(const co_run *run)
{
    json_t *names = json_array(), *thinned = json_array(), *events = json_array(), *v;
    for (size_t i = 0; i < co_run_series_count(run); i++) {
        const co_series *s = co_run_series_at(run, i);
        json_array_append_new(names, co_json_string(s->name));
        if (s->thinned)
            json_array_append_new(thinned, co_json_string(s->name));
    }
    size_t n = co_run_event_count(run), first = n > EVENTS_SHOWN ? n - EVENTS_SHOWN : 0;
    for (size_t i = first; i < n; i++)
        json_array_append(events, (json_t *)co_run_event(run, i));
    v = json_pack("{s:s, s:I, s:f, s:o, s:o, s:o, s:o}", "state", co_run_state_name(co_run_state_of(run)),
                  "version", (json_int_t)(lines_of(run) + (json_int_t)n), "share_read", co_run_share_read(run),
                  "names", names, "thinned", thinned, "events", events, "config", config_of(run));
    if (v && co_run_summary(run))
        json_object_set(v, "summary", (json_t *)co_run_summary(run));
    return v;
}

static void give_run(answer *out, runs *r, const ask *a)
{
    open_run *open = a->run ? runs_take(r, a->run) : NULL;

    if (!open) {
        refuse(out, 404, "no such run");
        return;
    }
    take_json(out, facts_of(open->run));
    runs_put(r, open);
}

/* --- series ------------------------------------------------------------------------------------------- */
static void add_number(co_str *out, double x)
{
    if (isfinite(x))
        co_str_addf(out, "%.9g", x);
    else
        co_str_add(out, "null");
}

static void add_series(co_str *out, const co_series *s, double first_t)
{
    for (size_t i = 0; i < s->n; i++) {
        co_str_addf(out, "%s[%lld,", i ? "," : "", (long long)s->point[i].step);
        if (isnan(s->point[i].t))
            co_str_add(out, "null");
        else
            co_str_addf(out, "%.3f", s->point[i].t - first_t);
        co_str_add(out, ",");
        add_number(out, s->point[i].value);
        co_str_add(out, "]");
    }
}

static void add_all_series(co_str *out, const co_run *run, const char *prefix)
{
    bool any = false;

    co_str_add(out, "{");
    for (size_t i = 0; i < co_run_series_count(run); i++) {
        const co_series *s = co_run_series_at(run, i);
        bool system = strncmp(s->name, "system/", 7) == 0,
             wanted = strncmp(s->name, prefix, strlen(prefix)) == 0;
        if (!wanted || (!*prefix && system)) /* the machine's figures only if they are asked for */
            continue;
        json_t *name = co_json_string(s->name);
        char *quoted = name ? json_dumps(name, JSON_ENCODE_ANY) : NULL;
        json_decref(name);
        co_str_addf(out, "%s%s:[", any ? "," : "", quoted ? quoted : "\"\"");
        co_free(quoted);
        add_series(out, s, co_run_first_t(run));
        co_str_add(out, "]");
        any = true;
    }
    co_str_add(out, "}");
}

static void give_series(answer *out, runs *r, const ask *a)
{
    open_run *open = a->run ? runs_take(r, a->run) : NULL;

    if (!open) {
        refuse(out, 404, "no such run");
        return;
    }
    out->type = "application/json";
    add_all_series(&out->body, open->run, a->names ? a->names : "");
    runs_put(r, open);
}

/* --- a part of a series -------------------------------------------------------------------------------- */
static bool read_bound(const char *text, double *out)
{
    char *end = NULL;

    *out = text && *text ? strtod(text, &end) : NAN;
    return end && !*end && isfinite(*out);
}

/* When the run began, on the axis of its series. */
static bool beginning_of(runs *r, const char *name, double *first_t)
{
    open_run *open = name ? runs_take(r, name) : NULL;

    if (!open)
        return false;
    *first_t = co_run_first_t(open->run);
    runs_put(r, open);
    return true;
}

/* The record is read from its beginning, by a reader of its own that keeps only these points. */
static void give_part(answer *out, runs *r, const ask *a)
{
    co_window w = {.name = a->names, .by_time = a->by && strcmp(a->by, "time") == 0};
    co_run_limits limits = {.points = POINTS_SHOWN, .events = 1, .most_ms = PART_MS, .window = &w};
    double first_t = 0;
    co_run *run;

    if (!a->names || !read_bound(a->from, &w.from) || !read_bound(a->to, &w.to)) {
        refuse(out, 400, "give names, from and to");
        return;
    }
    char *dir = beginning_of(r, a->run, &first_t) ? runs_dir(r, a->run) : NULL;
    w.from += w.by_time ? first_t : 0;
    w.to += w.by_time ? first_t : 0;
    if (dir && co_run_open(&run, dir, &limits) == CO_OK) {
        const co_series *s = co_run_series(run, w.name);
        out->type = "application/json";
        co_str_addf(&out->body, "{\"complete\":%s,\"points\":[", co_run_share_read(run) < 1 ? "false" : "true");
        if (s)
            add_series(&out->body, s, first_t);
        co_str_add(&out->body, "]}");
        co_run_close(run);
    } else {
        co_errclear();
        refuse(out, 404, "no such run");
    }
    co_free(dir);
}

/* --- files of a run ----------------------------------------------------------------------------------- */
/* A regular file of the run folder, its last `most` bytes; NULL: there is none, or it is a link. */
static char *end_of_file(const char *dir, const char *name, size_t most, size_t *len)
{
    char *path = co_sprintf("%s/%s", dir, name), *text = NULL;
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    struct stat st;
    ssize_t n = -1;

    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        off_t from = st.st_size > (off_t)most ? st.st_size - (off_t)most : 0;
        text = co_alloc((size_t)(st.st_size - from) + 1);
        n = text ? pread(fd, text, (size_t)(st.st_size - from), from) : -1;
    }
    if (fd >= 0)
        close(fd);
    co_free(path);
    if (n < 0) {
        co_free(text);
        return NULL;
    }
    *len = (size_t)n;
    return text;
}

static void give_file(answer *out, runs *r, const ask *a, const char *name, size_t most, const char *type)
{
    char *dir = a->run ? runs_dir(r, a->run) : NULL;
    size_t len = 0;
    char *text = dir ? end_of_file(dir, name, most, &len) : NULL;

    if (text) {
        out->type = type;
        co_str_addn(&out->body, text, len);
    } else
        refuse(out, 404, dir ? "not there yet" : "no such run");
    co_free(text);
    co_free(dir);
}

static void give_log(answer *out, runs *r, const ask *a)
{
    give_file(out, r, a, "train.log", LOG_TAIL, "text/plain; charset=utf-8");
}

static void give_book(answer *out, runs *r, const ask *a)
{
    out->is_book = true;
    give_file(out, r, a, "book.html", BOOK_MOST, "text/html; charset=utf-8");
}

/* --- the table ---------------------------------------------------------------------------------------- */
static const struct {
    const char *path, *type;
    const unsigned char *bytes;
    size_t len;
    void (*make)(answer *out, runs *r, const ask *a);
} table[] = {{"/", "text/html; charset=utf-8", page_html, sizeof page_html, NULL},
             {"/board.js", "text/javascript; charset=utf-8", page_js, sizeof page_js, NULL},
             {"/board.css", "text/css; charset=utf-8", page_css, sizeof page_css, NULL},
             {"/dygraph.js", "text/javascript; charset=utf-8", dygraph_js, sizeof dygraph_js, NULL},
             {"/dygraph.css", "text/css; charset=utf-8", dygraph_css, sizeof dygraph_css, NULL},
             {"/api/runs", NULL, NULL, 0, give_list},
             {"/api/run", NULL, NULL, 0, give_run},
             {"/api/series", NULL, NULL, 0, give_series},
             {"/api/part", NULL, NULL, 0, give_part},
             {"/api/log", NULL, NULL, 0, give_log},
             {"/book", NULL, NULL, 0, give_book}};

void answer_make(answer *out, runs *r, const ask *a)
{
    for (size_t i = 0; i < CO_COUNT(table); i++) {
        if (strcmp(a->path, table[i].path) != 0)
            continue;
        out->status = 200;
        out->type = table[i].type;
        if (table[i].make)
            table[i].make(out, r, a);
        else
            co_str_addn(&out->body, (const char *)table[i].bytes, table[i].len);
        if (out->body.failed)
            refuse(out, 500, "no memory");
        return;
    }
    refuse(out, 404, "there is no such page");
}
