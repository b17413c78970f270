/* run_events.c -- what happened during the run, as sentences; and what its log warned of. */
#include "book/book_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"

enum { SHOWN = 60, WARNINGS = 40, LOG_MOST = 8 << 20 };

typedef void (*teller)(const json_t *e, char text[512]);

static const char *of(const json_t *e, const char *key)
{
    const char *text = co_json_str(e, key);

    return text ? text : "?";
}

static double num(const json_t *e, const char *key)
{
    double x = NAN;

    co_json_f64(e, key, &x);
    return x;
}

static void tell_recovery(const json_t *e, char text[512])
{
    snprintf(text, 512, "rank %s was replaced: %.200s while %.200s; nothing was lost",
             words_int(num(e, "rank")).text, of(e, "how"), of(e, "doing"));
}

static void tell_resumed(const json_t *e, char text[512])
{
    snprintf(text, 512, "continued from the checkpoint %.400s", of(e, "checkpoint"));
}

static void tell_not_saved(const json_t *e, char text[512])
{
    snprintf(text, 512, "a checkpoint was not saved: %.400s", of(e, "why"));
}

static void tell_view(const json_t *e, char text[512])
{
    const json_t *hosts = json_object_get(e, "hosts"), *host;
    size_t i, at = (size_t)snprintf(text, 512, "view %s of the hosts:", words_int(num(e, "view")).text);

    json_array_foreach(hosts, i, host)
    {
        if (at < 400)
            at += (size_t)snprintf(text + at, 512 - at, "%s %.60s (%s ranks, %s slices)", i ? "," : "",
                                   of(host, "host"), words_int(num(host, "ranks")).text,
                                   words_int(num(host, "slices")).text);
    }
}

static void tell_spike(const json_t *e, char text[512])
{
    snprintf(text, 512, "the loss rose to %s, from a mean of %s", words_value(num(e, "loss")).text,
             words_value(num(e, "mean")).text);
}

static void tell_skipped(const json_t *e, char text[512])
{
    (void)e;
    snprintf(text, 512, "the step was skipped: its gradient was not finite");
}

static void tell_stopped(const json_t *e, char text[512])
{
    (void)e;
    snprintf(text, 512, "the run stopped: the gradient of this step was not finite");
}

static void tell_lost(const json_t *e, char text[512])
{
    snprintf(text, 512, "%s events were lost: the disk took no more", words_int(num(e, "value")).text);
}

static void tell_rate(const json_t *e, char text[512])
{
    snprintf(text, 512, "the search for a learning rate found %s", words_value(num(e, "lr")).text);
}

static const struct {
    const char *name;
    teller tell;
} tellers[] = {
    {"recovery", tell_recovery},  {"resumed_at", tell_resumed}, {"checkpoint_failed", tell_not_saved},
    {"view", tell_view},          {"loss_spike", tell_spike},   {"skipped", tell_skipped},
    {"not_finite", tell_stopped}, {"events_lost", tell_lost},   {"lr_find", tell_rate}};

static teller teller_of(const json_t *e)
{
    const char *name = co_json_str(e, "name");

    for (size_t i = 0; name && i < CO_COUNT(tellers); i++)
        if (strcmp(name, tellers[i].name) == 0)
            return tellers[i].tell;
    return NULL;
}

static void event_row(page *p, const facts *f, const json_t *e, teller tell)
{
    char text[512];
    double t = num(e, "t") - co_run_first_t(f->run), step = num(e, "step");

    page_cell(p, t >= 0 ? words_time(t).text : "");
    page_cell(p, isnan(step) ? "" : words_int(step).text);
    tell(e, text);
    page_cell(p, text);
}

/* "None", as far as the record tells. */
static const char *no_events(const facts *f)
{
    if (co_run_events_dropped(f->run))
        return "None among those that were read.";
    if (f->starts_missing)
        return "None in the record.";
    return f->n_starts > 1 ? "None but the starts above." : "None: no rank was lost.";
}

static void dropped_events(page *p, const facts *f)
{
    if (co_run_events_dropped(f->run))
        page_text(p, "The newest %s events of events.jsonl were read; %s older ones are not on this page.",
                  words_int((double)co_run_event_count(f->run)).text,
                  words_int((double)co_run_events_dropped(f->run)).text);
}

static void events(page *p, const facts *f)
{
    static const char *const head[] = {"after", "step", "what happened"};
    size_t n = co_run_event_count(f->run), known = 0, shown = 0;

    for (size_t i = 0; i < n; i++)
        known += teller_of(co_run_event(f->run, i)) != NULL;
    page_heading(p, "Events");
    if (known == 0) {
        page_text(p, "%s", no_events(f));
        dropped_events(p, f);
        return;
    }
    page_table(p, head, "rrl");
    for (size_t i = 0; i < n && shown < SHOWN; i++) {
        teller tell = teller_of(co_run_event(f->run, i));
        if (tell)
            event_row(p, f, co_run_event(f->run, i), tell);
        shown += tell != NULL;
    }
    page_table_end(p);
    if (known > shown)
        page_text(p, "%s more are in events.jsonl.", words_int((double)(known - shown)).text);
    dropped_events(p, f);
}

/* --- warnings ----------------------------------------------------------------------------------------- */
/* The text of "[date time] warning   text"; NULL for other lines. */
static char *warning_of(const char *line, size_t len)
{
    const char *at = len && *line == '[' ? memchr(line, ']', len) : NULL;
    size_t head = at ? (size_t)(at - line) + 2 : 0;

    if (!at || len < head + 8 || strncmp(line + head, "warning", 7) != 0)
        return NULL;
    head += 7;
    while (head < len && (line[head] == ' ' || line[head] == ':'))
        head++;
    return co_sprintf("%.*s", (int)(len - head < 1000 ? len - head : 1000), line + head);
}

static int log_warnings(page *p, const facts *f)
{
    char *path = co_sprintf("%s/train.log", co_run_dir(f->run)), *text = NULL, *said[WARNINGS];
    int n = 0;

    if (path && co_fs_exists(path) && co_fs_read(&text, NULL, path, LOG_MOST) != CO_OK)
        co_errclear();
    for (const char *at = text ? text : ""; *at && n < WARNINGS;) {
        size_t len = strcspn(at, "\n");
        char *one = warning_of(at, len);
        bool known = !one;
        for (int i = 0; i < n && !known; i++)
            known = strcmp(said[i], one) == 0;
        if (known)
            co_free(one);
        else
            page_item(p, said[n++] = one);
        at += len + (at[len] == '\n');
    }
    for (int i = 0; i < n; i++)
        co_free(said[i]);
    co_free(text);
    co_free(path);
    return n;
}

/* What the record itself shows to be wrong. */
static int own_warnings(page *p, const facts *f)
{
    char text[256];
    double wait = NAN;
    int n = 0;

    if (co_run_bad_lines(f->run) > 0) {
        snprintf(text, sizeof text, "%s lines of events.jsonl are no JSON objects and were left out",
                 words_int((double)co_run_bad_lines(f->run)).text);
        page_item(p, text);
        n++;
    }
    if (co_json_f64(json_object_get(f->summary, "data"), "wait", &wait) && wait > 0.1) {
        snprintf(text, sizeof text, "the ranks waited for data %s of the time; more data.workers may help",
                 words_percent(wait).text);
        page_item(p, text);
        n++;
    }
    return n;
}

void run_events(page *p, const facts *f)
{
    events(p, f);
    page_heading(p, "Warnings");
    int n = own_warnings(p, f);
    n += log_warnings(p, f);
    if (n)
        page_items_end(p);
    else
        page_text(p, "None.");
}
