/* collect.c -- one log book of all runs below a folder: a row for each with a link to its own book, and the
 * curves of the newest. */
#include "book/book_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"

enum { CURVES_SHOWN = 6 };

typedef struct found {
    const char *dir; /* the list's */
    double began;    /* for the order */
} found;

typedef struct search {
    found *run;
    int n;
    bool more; /* than we take */
} search;

static bool there(const char *dir, const char *name)
{
    char *path = co_sprintf("%s/%s", dir, name);
    bool yes = path && co_fs_exists(path);

    co_free(path);
    return yes;
}

static int newest_first(const void *a, const void *b)
{
    const found *x = a, *y = b;

    if (x->began != y->began)
        return x->began < y->began ? 1 : -1;
    return strcmp(x->dir, y->dir);
}

/* --- rows --------------------------------------------------------------------------------------------- */
static void number_cell(page *p, double x, words text)
{
    page_cell(p, isnan(x) ? "" : text.text);
}

static void run_row(page *p, const facts *f, const char *below)
{
    char *book = co_sprintf("%s/book", below);
    double test = facts_last(f, "test/acc");

    page_cell_book(p, book ? book : "", below);
    page_cell(p, words_date(co_run_first_t(f->run)).text);
    page_cell(p, co_run_state_name(co_run_state_of(f->run)));
    page_cell(p, facts_config_or(f, "model.name", ""));
    page_cell(p, facts_config_or(f, "data.name", ""));
    number_cell(p, f->ranks, words_int(f->ranks));
    number_cell(p, f->batch, words_int(f->batch));
    number_cell(p, f->epochs, words_int(f->epochs));
    const char *over = f->starts_missing ? "over " : "";
    page_cellf(p, "%s%s", over, isnan(f->wall_s) ? "" : words_time(f->wall_s).text);
    number_cell(p, f->samples_per_s, words_rate(f->samples_per_s));
    if (f->monitor)
        page_cellf(p, "%.60s %s", f->monitor, words_metric(f->monitor, f->best).text);
    else
        page_cell(p, "");
    number_cell(p, test, words_percent(test));
    page_cellf(p, "%.12s", f->weights ? f->weights : "");
    co_free(book);
}

/* The curve of the newest run's metric, of the runs that have it. */
static void curves_of(page *p, const search *s, const char *root)
{
    facts f[CURVES_SHOWN];
    curves c = {0};
    int n = 0;
    char name[96] = "";

    for (int i = 0; i < s->n && n < CURVES_SHOWN; i++) {
        if (facts_open(&f[n], s->run[i].dir) != CO_OK) {
            co_errclear();
            continue;
        }
        if (!*name && *f[n].metric)
            snprintf(name, sizeof name, "val/%.80s", f[n].metric);
        curves_add(&c, s->run[i].dir + strlen(root) + 1, *name ? co_run_series(f[n].run, name) : NULL,
                   words_is_share(name) ? 100 : 1, 0, 0);
        n++;
    }
    if (c.n)
        page_plot(p, "runs",
                  &(co_plot){.title = name,
                             .x_label = "step",
                             .y_label = words_is_share(name) ? "accuracy (%)" : name,
                             .dashed = true,
                             .line = c.line,
                             .lines = c.n});
    curves_fini(&c);
    for (int i = 0; i < n; i++)
        facts_close(&f[i]);
}

static co_err rows(page *p, search *s, const char *root, json_t *out)
{
    static const char *const head[] = {"run",   "started",  "state",  "model", "data",
                                       "ranks", "batch",    "epochs", "time",  "samples/s",
                                       "best",  "test acc", "weights"};
    co_err err = CO_OK;

    page_table(p, head, "lllllrrrrrlrl");
    for (int i = 0; i < s->n && !err; i++) {
        facts f;
        err = facts_open(&f, s->run[i].dir);
        if (err)
            break;
        run_row(p, &f, s->run[i].dir + strlen(root) + 1);
        json_array_append_new(out, facts_json(&f));
        facts_close(&f);
        if (!there(s->run[i].dir, "book.html") && co_book_write(s->run[i].dir, NULL) != CO_OK)
            co_errclear(); /* a folder that we may not write to is listed all the same */
    }
    page_table_end(p);
    return err;
}

static co_err write_book(search *s, const char *root, co_str *text, json_t *out)
{
    page p = {.plain = text};

    page_begin(&p, "Log book");
    page_text(&p, "%d run%s, the newest first. Each has a log book of its own.%s", s->n, s->n == 1 ? "" : "s",
              s->more ? " There are more; these are the first that were found." : "");
    co_err err = rows(&p, s, root, out);
    if (!err) {
        page_heading(&p, "Curves of the newest runs");
        curves_of(&p, s, root);
        page_end(&p);
        err = page_write(&p, root, "book");
    }
    if (!err && text)
        co_str_addf(text, "\nbook      %s/book.html\n", root);
    page_fini(&p);
    return err;
}

/* When each run began, for the order. */
static co_err date_all(search *s)
{
    for (int i = 0; i < s->n; i++) {
        co_run *run;
        CO_TRY(co_run_open(&run, s->run[i].dir, &(co_run_limits){.points = 64, .events = 1}));
        s->run[i].began = isnan(co_run_first_t(run)) ? 0 : co_run_first_t(run);
        co_run_close(run);
    }
    qsort(s->run, (size_t)s->n, sizeof *s->run, newest_first);
    return CO_OK;
}

/* Without slashes at its end. */
static char *root_of(const char *dir)
{
    char *root = co_strdup(dir);

    for (size_t n = root ? strlen(root) : 0; n > 1 && root[n - 1] == '/'; n--)
        root[n - 1] = '\0';
    return root;
}

static co_err take_all(search *s, const co_run_list *list)
{
    s->run = co_array(list->n + 1, sizeof *s->run);
    if (!s->run)
        return CO_ENOMEM;
    for (size_t i = 0; i < list->n; i++)
        s->run[s->n++].dir = list->dir[i];
    s->more = list->more;
    return date_all(s);
}

co_err co_book_collect(const char *dir, co_str *text, json_t **out)
{
    search s = {0};
    co_run_list list = {0};
    char *root = root_of(dir);
    json_t *all = json_array();
    co_err err = root && all ? co_runs_find(&list, root) : CO_ENOMEM;

    if (!err && list.n == 0)
        err = co_fail(CO_EINPUT, "%s has no runs below it (a run folder has header.json and events.jsonl)",
                      root);
    if (!err)
        err = take_all(&s, &list);
    if (!err)
        err = write_book(&s, root, text, all);
    co_run_list_fini(&list);
    co_free(s.run);
    co_free(root);
    if (err)
        json_decref(all);
    else
        *out = all;
    return err;
}
