/* run_read.c -- a run folder, read as it grows: its files (run_files.c), its scalars (run_series.c), and the
 * other lines of its record in order. */
#include "track/run_read_int.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"

enum { POINTS = 4000, POINTS_LEAST = 64, POINTS_MOST = 1 << 20, EVENTS = 4000, HOSTS_MOST = 256 };
enum { LINES_A_LOOK = 256 }; /* lines that are read between two looks at the clock */
enum { LINE_KEPT = 64 << 10, EVENT_BYTES = 16 << 20 }; /* of text; as JSON about 20 times as much */

typedef struct event {
    json_t *json;
    size_t bytes;
} event;

struct co_run {
    char *dir;
    co_run_limits limits;
    run_files files;
    record_reader *reader;
    struct stat record; /* which file the reader has open */
    int64_t read_to;    /* how much of it was read */
    bool behind;        /* there was no time for the rest */
    series_table series;
    event *events; /* a ring of limits.events */
    size_t first_event, n_events, event_bytes;
    int64_t dropped, bad_lines;
    double first_t, last_t;
    co_run_state state;
    char *host[HOSTS_MOST];
    size_t hosts;
};

const char *co_run_state_name(co_run_state state)
{
    static const char *const names[CO_RUN_STATES] = {"running", "done", "stopped", "failed", "killed"};

    return names[state];
}

/* --- events --------------------------------------------------------------------------------------------- */
static void drop_oldest(co_run *run)
{
    event *oldest = &run->events[run->first_event];

    json_decref(oldest->json);
    run->event_bytes -= oldest->bytes;
    run->first_event = (run->first_event + 1) % run->limits.events;
    run->n_events--;
    run->dropped++;
}

/* What stays of a line that is too long to keep. */
static json_t *stub_of(const json_t *line, size_t len)
{
    static const char *const kept[] = {"name", "step", "t"};
    json_t *stub = json_pack("{s:I}", "left_out_bytes", (json_int_t)len);

    for (size_t i = 0; stub && i < CO_COUNT(kept); i++) {
        json_t *v = json_object_get(line, kept[i]);
        if (json_is_number(v) || (json_is_string(v) && json_string_length(v) <= 1024))
            json_object_set(stub, kept[i], v);
    }
    return stub;
}

/* Pictures, histograms and tables are for trackers, which read the record themselves. Every validation may
 * write a hundred of them. Among the events, they would push out starts and lost ranks. */
static bool is_media(const json_t *line)
{
    static const char *const kinds[] = {"image", "histogram", "table"};

    for (size_t i = 0; i < CO_COUNT(kinds); i++)
        if (json_is_object(json_object_get(line, kinds[i])))
            return true;
    return false;
}

static co_err keep_event(co_run *run, json_t *line, size_t len)
{
    json_t *kept = len > LINE_KEPT ? stub_of(line, len) : json_incref(line);
    size_t bytes = len > LINE_KEPT ? 256 : len;

    if (!kept)
        return co_fail(CO_ENOMEM, "events.jsonl: no memory");
    while (run->n_events && (run->n_events == run->limits.events || run->event_bytes + bytes > EVENT_BYTES))
        drop_oldest(run);
    run->events[(run->first_event + run->n_events++) % run->limits.events] = (event){kept, bytes};
    run->event_bytes += bytes;
    return CO_OK;
}

/* --- lines ---------------------------------------------------------------------------------------------- */
static void see_time(co_run *run, double t)
{
    if (isnan(t))
        return;
    run->first_t = isnan(run->first_t) || t < run->first_t ? t : run->first_t;
    run->last_t = isnan(run->last_t) || t > run->last_t ? t : run->last_t;
}

static co_err take_scalar(co_run *run, const scalar *s)
{
    const co_window *w = run->limits.window;

    see_time(run, s->at.t);
    if (w) {
        double x = w->by_time ? s->at.t : (double)s->at.step;
        if (!(x >= w->from && x <= w->to) || s->name_len != strlen(w->name) ||
            memcmp(s->name, w->name, s->name_len) != 0)
            return CO_OK;
    }
    return series_add(&run->series, s);
}

static co_err take_json(co_run *run, const char *line, size_t len)
{
    json_t *v = NULL;
    scalar s;
    double t = NAN;
    co_err err = co_json_parse(&v, line, len, "events.jsonl");

    if (err == CO_ENOMEM)
        return err;
    co_errclear();
    if (err || !json_is_object(v)) {
        run->bad_lines++;
        json_decref(v);
        return CO_OK;
    }
    if (scalar_json_read(&s, v))
        err = take_scalar(run, &s);
    else {
        if (co_json_f64(v, "t", &t) && fabs(t) < 1e12)
            see_time(run, t);
        if (!is_media(v))
            err = keep_event(run, v, len);
    }
    json_decref(v);
    return err;
}

static co_err take_line(co_run *run, const char *line, size_t len)
{
    scalar s;

    if (len == 0)
        return CO_OK;
    if (!scalar_line_read(&s, line, len))
        return take_json(run, line, len);
    return take_scalar(run, &s);
}

static void forget_record(co_run *run)
{
    reader_close(run->reader);
    run->reader = NULL;
    series_fini(&run->series);
    run->series.points_most = run->limits.points;
    while (run->n_events)
        drop_oldest(run);
    run->dropped = run->bad_lines = run->read_to = 0;
    run->behind = false;
    run->first_t = run->last_t = NAN;
}

/* events.jsonl is another file now, or shorter than what we read. */
static bool was_replaced(const co_run *run, const struct stat *now)
{
    return run->read_to > 0 && (now->st_ino != run->record.st_ino || now->st_dev != run->record.st_dev ||
                                now->st_size < run->read_to);
}

/* To the end of the record, or as far as limits.most_ms allows. */
static co_err read_record(co_run *run)
{
    const char *line;
    size_t len;
    int64_t offset;
    double until_s = run->limits.most_ms ? co_now_s() + 1e-3 * run->limits.most_ms : INFINITY;

    if (!run->reader)
        CO_TRY(reader_open(&run->reader, run->dir));
    run->behind = false;
    for (int i = 1; !run->behind; i++) {
        CO_TRY(reader_next(run->reader, &line, &len, &offset));
        if (!line)
            break;
        run->read_to = offset + (int64_t)len + 1;
        CO_TRY(take_line(run, line, len));
        run->behind = i % LINES_A_LOOK == 0 && co_now_s() > until_s;
    }
    series_settle(&run->series);
    return CO_OK;
}

/* --- hosts ---------------------------------------------------------------------------------------------- */
static void forget_hosts(co_run *run)
{
    for (size_t i = 0; i < run->hosts; i++)
        co_free(run->host[i]);
    run->hosts = 0;
}

static void add_hosts(co_run *run, const json_t *list)
{
    size_t i;
    json_t *v;

    json_array_foreach(list, i, v)
    {
        const char *name = co_json_str(v, "name") ? co_json_str(v, "name") : co_json_str(v, "host");
        bool known = !name || run->hosts == HOSTS_MOST;
        for (size_t k = 0; k < run->hosts && !known; k++)
            known = strcmp(run->host[k], name) == 0;
        char *own = known ? NULL : co_strdup(name);
        if (own)
            run->host[run->hosts++] = own;
    }
}

static void find_hosts(co_run *run)
{
    forget_hosts(run);
    add_hosts(run, json_object_get(run->files.summary, "hosts"));
    for (size_t i = 0; i < run->n_events && !run->files.summary; i++)
        add_hosts(run, json_object_get(co_run_event(run, i), "hosts"));
}

/* --- the door ------------------------------------------------------------------------------------------- */
co_err co_run_more(co_run *run)
{
    struct stat now = {0};
    char *path = co_sprintf("%s/events.jsonl", run->dir);

    if (!path)
        return CO_ENOMEM;
    bool there = lstat(path, &now) == 0;
    co_free(path);
    if (there && was_replaced(run, &now))
        forget_record(run);
    run->record = now;
    CO_TRY(files_more(&run->files, run->dir));
    if (there && S_ISREG(now.st_mode) && !run->limits.no_record)
        CO_TRY(read_record(run));
    CO_TRY(files_state(&run->state, &run->files, run->dir));
    find_hosts(run);
    return CO_OK;
}

static co_err check_folder(const char *dir)
{
    char *header = co_sprintf("%s/header.json", dir), *record = co_sprintf("%s/events.jsonl", dir);
    co_err err = header && record ? CO_OK : CO_ENOMEM;

    if (!err && !co_fs_exists(dir))
        err = co_fail(CO_EINPUT, "%s does not exist; give the folder of a run", dir);
    else if (!err && !co_fs_exists(header) && !co_fs_exists(record))
        err = co_fail(CO_EINPUT, "%s is no run folder: it has neither header.json nor events.jsonl", dir);
    co_free(header);
    co_free(record);
    return err;
}

static size_t or_usual(size_t wanted, size_t usual, size_t least, size_t most)
{
    size_t n = wanted ? wanted : usual;

    return n < least ? least : n > most ? most : n;
}

co_err co_run_open(co_run **out, const char *dir, const co_run_limits *limits)
{
    CO_TRY(check_folder(dir));
    co_run *run = co_zalloc(sizeof *run);
    if (!run)
        return CO_ENOMEM;
    run->limits.no_record = limits && limits->no_record;
    run->limits.most_ms = limits ? limits->most_ms : 0;
    run->limits.window = limits ? limits->window : NULL;
    run->limits.points = or_usual(limits ? limits->points : 0, POINTS, POINTS_LEAST, POINTS_MOST);
    run->limits.events = or_usual(limits ? limits->events : 0, EVENTS, 1, POINTS_MOST);
    run->dir = co_strdup(dir);
    run->events = co_array(run->limits.events, sizeof *run->events);
    forget_record(run);
    co_err err = run->dir && run->events ? co_run_more(run) : CO_ENOMEM;
    if (err)
        co_run_close(run);
    else
        *out = run;
    return err;
}

void co_run_close(co_run *run)
{
    if (!run)
        return;
    forget_record(run);
    forget_hosts(run);
    files_fini(&run->files);
    co_free(run->events);
    co_free(run->dir);
    co_free(run);
}

const char *co_run_dir(const co_run *run)
{
    return run->dir;
}

co_run_state co_run_state_of(const co_run *run)
{
    return run->state;
}

const json_t *co_run_header(const co_run *run)
{
    return run->files.header;
}

const json_t *co_run_summary(const co_run *run)
{
    return run->files.summary;
}

const json_t *co_run_blame(const co_run *run)
{
    return run->files.blame;
}

const char *co_run_config(const co_run *run)
{
    return run->files.config;
}

size_t co_run_series_count(const co_run *run)
{
    return run->series.n;
}

const co_series *co_run_series_at(const co_run *run, size_t i)
{
    return &run->series.all[i].shown;
}

const co_series *co_run_series(const co_run *run, const char *name)
{
    const series *s = series_find(&run->series, name, strlen(name));

    return s ? &s->shown : NULL;
}

static const co_point *extreme(const co_series *s, double sign)
{
    const co_point *best = NULL;

    for (size_t i = 0; i < s->n; i++)
        if (isfinite(s->point[i].value) && (!best || sign * s->point[i].value > sign * best->value))
            best = &s->point[i];
    return best;
}

const co_point *co_series_least(const co_series *s)
{
    return extreme(s, -1);
}

const co_point *co_series_greatest(const co_series *s)
{
    return extreme(s, 1);
}

size_t co_run_event_count(const co_run *run)
{
    return run->n_events;
}

const json_t *co_run_event(const co_run *run, size_t i)
{
    return run->events[(run->first_event + i) % run->limits.events].json;
}

int64_t co_run_events_dropped(const co_run *run)
{
    return run->dropped;
}

int64_t co_run_bad_lines(const co_run *run)
{
    return run->bad_lines;
}

double co_run_share_read(const co_run *run)
{
    double size = (double)run->record.st_size;

    return !run->behind || size <= 0 ? 1 : fmin((double)run->read_to / size, 0.999);
}

double co_run_first_t(const co_run *run)
{
    return run->first_t;
}

double co_run_last_t(const co_run *run)
{
    return run->last_t;
}

size_t co_run_host_count(const co_run *run)
{
    return run->hosts;
}

const char *co_run_host(const co_run *run, size_t i)
{
    return i < run->hosts ? run->host[i] : "";
}
