/* starts.c -- the starts of a run that was continued: when each began, how far it came, what it took; and
 * what all of them took together, by host.
 *
 * Every start writes run_start into the record and, unless it is killed, run_end with its wall time and
 * hosts. Of a start that was killed, the wall time is that from its first line to its last; its CPU time is
 * not known.
 */
#include "book/book_int.h"

#include <math.h>
#include <string.h>

static double of(const json_t *from, const char *key)
{
    double x = NAN;

    co_json_f64(from, key, &x);
    return x;
}

static double or_zero(double x)
{
    return isnan(x) ? 0 : x;
}

/* The last line of the record before this time; nan if none is known. */
static double last_line_before(const facts *f, double t)
{
    double last = NAN;

    for (size_t i = 0; i < co_run_series_count(f->run); i++) {
        const co_series *s = co_run_series_at(f->run, i);
        for (size_t k = s->n; k-- > 0;)
            if (s->point[k].t < t)
                last = fmax(or_zero(last), s->point[k].t);
    }
    for (size_t i = 0; i < co_run_event_count(f->run); i++) {
        double at = of(co_run_event(f->run, i), "t");
        if (at < t)
            last = fmax(or_zero(last), at);
    }
    return last;
}

/* A start without an end was killed, unless it is the last one of a run that goes on. */
static void close_start(const facts *f, start *s, double next_t)
{
    if (s->ended)
        return;
    bool runs = isnan(next_t) && co_run_state_of(f->run) == CO_RUN_RUNNING;
    double last = isnan(next_t) ? co_run_last_t(f->run) : last_line_before(f, next_t);

    s->ended = runs ? "still runs" : "killed";
    s->wall_s = last >= s->t ? last - s->t : NAN;
}

static void read_end(start *s, const json_t *e)
{
    const json_t *host;
    size_t i;

    s->ended = co_json_str(e, "status") ? co_json_str(e, "status") : "ended";
    s->wall_s = of(e, "wall_s");
    s->last_step = of(e, "step");
    s->hosts = json_object_get(e, "hosts");
    json_array_foreach(s->hosts, i, host)
    {
        s->cpu_s = or_zero(s->cpu_s) + or_zero(of(host, "cpu_user_s")) + or_zero(of(host, "cpu_sys_s"));
    }
}

static bool is_named(const json_t *e, const char *wanted)
{
    const char *name = co_json_str(e, "name");

    return name && strcmp(name, wanted) == 0;
}

static co_err find_starts(facts *f)
{
    start *s = NULL;
    size_t n = 0;

    for (size_t i = 0; i < co_run_event_count(f->run); i++)
        n += is_named(co_run_event(f->run, i), "run_start");
    f->start = co_array(n + 1, sizeof *f->start);
    if (!f->start)
        return CO_ENOMEM;
    for (size_t i = 0; i < co_run_event_count(f->run); i++) {
        const json_t *e = co_run_event(f->run, i);
        if (is_named(e, "run_start")) {
            if (s)
                close_start(f, s, of(e, "t"));
            s = &f->start[f->n_starts++];
            *s = (start){of(e, "t"), of(e, "step"), NAN, NAN, NAN, NULL, NULL};
        } else if (s && is_named(e, "run_end"))
            read_end(s, e);
    }
    if (s)
        close_start(f, s, NAN);
    return CO_OK;
}

/* header.json has a segment for each start. If the record has lines of fewer starts, sums over them are not
 * those of the run. The figures of the last start are in the summary, even if the record has none. */
static size_t count_missing(const facts *f)
{
    size_t all = json_array_size(json_object_get(f->header, "segments"));
    size_t known = starts_known(f);

    return all > known ? all - known : 0;
}

/* --- hosts ---------------------------------------------------------------------------------------------- */
/* Host i of `hosts` in the list: the same name, and as many of that name before it. */
static json_t *same_host(json_t *list, const json_t *hosts, size_t i)
{
    char wanted[96], name[96];

    facts_host(hosts, i, wanted);
    for (size_t k = 0; k < json_array_size(list); k++)
        if (strcmp(facts_host(list, k, name), wanted) == 0)
            return json_array_get(list, k);
    return NULL;
}

static void add_number(json_t *to, const char *key, double x)
{
    json_object_set_new(to, key, json_real(or_zero(of(to, key)) + or_zero(x)));
}

static void add_host(json_t *to, const json_t *host)
{
    static const char *const sums[] = {"wall_s",     "cpu_user_s", "cpu_sys_s",  "input_s",       "compute_s",
                                       "exchange_s", "wait_s",     "sent_bytes", "received_bytes"};

    for (size_t i = 0; i < CO_COUNT(sums); i++)
        if (json_object_get(host, sums[i]))
            add_number(to, sums[i], of(host, sums[i]));
    add_number(to, "room_s", of(host, "wall_s") * of(host, "ranks") * of(host, "threads"));
    add_number(to, "ranks_s", of(host, "wall_s") * of(host, "ranks"));
    json_object_set_new(
        to, "peak_memory_bytes",
        json_real(fmax(or_zero(of(to, "peak_memory_bytes")), or_zero(of(host, "peak_memory_bytes")))));
    json_object_set(to, "ranks", json_object_get(host, "ranks"));
    json_object_set(to, "threads", json_object_get(host, "threads"));
    if (of(to, "room_s") > 0)
        json_object_set_new(to, "utilisation",
                            json_real((of(to, "cpu_user_s") + of(to, "cpu_sys_s")) / of(to, "room_s")));
}

static void add_hosts(json_t *list, const json_t *hosts)
{
    const json_t *host;
    size_t i;

    json_array_foreach(hosts, i, host)
    {
        json_t *to = same_host(list, hosts, i);
        if (!to) {
            to = json_object();
            json_object_set(to, "name", json_object_get(host, "name"));
            json_array_append_new(list, to);
        }
        add_host(to, host);
    }
}

/* What the starts took together. The hosts of the last start are those of the summary. */
co_err starts_read(facts *f)
{
    f->host_list = json_array();
    if (!f->host_list)
        return CO_ENOMEM;
    CO_TRY(find_starts(f));
    f->starts_missing = count_missing(f);
    for (size_t i = 0; i + 1 < f->n_starts; i++) {
        add_hosts(f->host_list, f->start[i].hosts);
        f->cpu_unknown += !f->start[i].hosts;
    }
    const json_t *last = json_object_get(f->summary, "hosts");
    add_hosts(f->host_list, last);
    f->cpu_unknown += f->n_starts > 1 && !last;
    return CO_OK;
}

size_t starts_known(const facts *f)
{
    return f->n_starts ? f->n_starts : 1;
}

double starts_wall(const facts *f)
{
    double wall = 0;

    for (size_t i = 0; i < f->n_starts; i++)
        wall += or_zero(f->start[i].wall_s);
    return wall;
}

/* --- for the page --------------------------------------------------------------------------------------- */
static void start_rows(page *p, const facts *f)
{
    static const char *const head[] = {"start",     "began",     "from step", "to step",
                                       "wall time", "total CPU", "ended"};

    page_table(p, head, "rlrrrrl");
    for (size_t i = 0; i < f->n_starts; i++) {
        const start *s = &f->start[i];
        page_cellf(p, "%zu", i + 1);
        page_cell(p, words_date(s->t).text);
        page_cell(p, words_int(s->first_step).text);
        page_cell(p, isnan(s->last_step) ? "not known" : words_int(s->last_step).text);
        page_cell(p, words_time(s->wall_s).text);
        page_cell(p, isnan(s->cpu_s) ? "not known" : words_time(s->cpu_s).text);
        page_cell(p, s->ended);
    }
    page_table_end(p);
}

void run_starts(page *p, const facts *f)
{
    if (f->n_starts < 2 && !f->starts_missing)
        return;
    page_heading(p, "Starts");
    if (f->n_starts)
        start_rows(p, f);
    if (f->starts_missing)
        page_text(
            p,
            "header.json has %zu starts; the record that was read has lines of %zu. Times and sums on this "
            "page are those of %s alone.",
            starts_known(f) + f->starts_missing, f->n_starts,
            f->n_starts > 1 ? "these starts" : "the last start");
    if (f->cpu_unknown)
        page_text(p, "The CPU time of starts that were killed is not known, and not part of any sum.");
}
