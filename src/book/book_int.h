/* book_int.h -- what the files of this room share: the page (page.c), words for people (words.c), and the
 * facts of a run (facts.c). */
#ifndef CO_BOOK_BOOK_INT_H
#define CO_BOOK_BOOK_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "book/book.h"
#include "track/plot.h"
#include "track/run_read.h"

/* --- page.c: one text, written as Markdown and as HTML at the same time ------------------------------- */
enum { PAGE_PLOTS = 24, PAGE_PLOT_WIDTH = 480, PAGE_PLOT_HEIGHT = 300 };

typedef struct page {
    co_str md, html;
    struct {
        char name[64]; /* "loss": plots/loss.svg */
        co_str svg;
    } plot[PAGE_PLOTS];
    int plots;
    bool in_plots; /* plots that follow each other share rows */
    /* The open table. */
    int columns, column;
    const char *align; /* a letter for each column: l or r */
    co_str *plain;     /* the caller's: tables are printed here too, for a terminal. NULL: nowhere */
    co_str cells;      /* of the open table, each ended by a NUL */
} page;

void page_begin(page *p, const char *title);
void page_end(page *p);
co_err page_err(const page *p);
void page_fini(page *p);

void page_heading(page *p, const char *text); /* of a section */
void page_text(page *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void page_note(page *p, const char *kind, const char *text); /* set apart; kind "bad" or "note" */
void page_code(page *p, const char *text);
void page_item(page *p, const char *text); /* of a list */
void page_items_end(page *p);
void page_link_item(page *p, const char *href, const char *text, const char *more);

/* Cells follow, row by row. Texts are escaped. */
void page_table(page *p, const char *const *head, const char *align);
void page_cell(page *p, const char *text);
void page_cellf(page *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void page_cell_code(page *p, const char *text);
void page_cell_book(page *p, const char *book, const char *text); /* links to BOOK.md, or BOOK.html */
void page_table_end(page *p);

void page_plot(page *p, const char *name, const co_plot *plot);
void page_bars(page *p, const char *name, const co_plot_bars *bars);
/* Writes NAME.md, NAME.html and plots/ into the folder. */
co_err page_write(const page *p, const char *dir, const char *name);

/* --- words.c ------------------------------------------------------------------------------------------ */
typedef struct words {
    char text[64];
} words;                                                   /* by value: words_time(3.2).text */
words words_int(double n);                                 /* 12,345 */
words words_time(double secs);                             /* 3.21 s, 42.0 s, 2 min 05 s, 1 h 14 min 47 s */
words words_bytes(double bytes);                           /* 11.3 MB */
words words_rate(double per_s);                            /* 1,807 */
words words_percent(double share);                         /* 99.44 % */
words words_value(double x);                               /* four digits */
words words_date(double t);                                /* 2026-11-17 13:25:05 */
words words_ranks(double ranks, double hosts);             /* 2 ranks on 1 host; hosts may be nan */
words words_metric(const char *name, double x);            /* a share as percent, others as words_value */
const char *words_label(const char *metric, char out[96]); /* val/acc -> "val/acc (Acc@1)" */
bool words_is_share(const char *metric);                   /* accuracies */
/* --- facts.c: what one run says about itself, from all its files -------------------------------------- */
typedef struct pair {
    char *key, *value;
} pair;

/* One start of a run. nan: not known. */
typedef struct start {
    double t, first_step, last_step, wall_s, cpu_s;
    const char *ended;   /* "done", "stopped", "failed", "killed", "still runs" */
    const json_t *hosts; /* of its run_end; NULL: it has none */
} start;

typedef struct facts {
    co_run *run;
    char name[256]; /* how this run is called beside others */
    const json_t *header, *summary;
    pair *config;
    size_t n_config;
    /* nan or -1: not known */
    double wall_s, samples_per_s, peak_bytes, steps, epochs, samples, ranks, threads, hosts, batch, lr,
        parameters, utilisation;
    const char *weights, *metric; /* metric: "acc", "mae", ...; "" if there is none */
    const char *monitor;          /* the name of the best value; NULL */
    double best, best_step;
    start *start;
    size_t n_starts;       /* that the record has */
    size_t starts_missing; /* that header.json has, and neither the record nor the summary */
    int cpu_unknown;       /* starts that left no CPU time */
    json_t *host_list;     /* as in summary.json, but of all starts together */
} facts;

co_err facts_open(facts *f, const char *dir);
void facts_close(facts *f);
const char *facts_config(const facts *f, const char *key); /* NULL if the configuration has no such key */
const char *facts_config_or(const facts *f, const char *key, const char *other);
/* The last value of a scalar: of the summary's metrics, or of the record. nan if there is none. */
double facts_last(const facts *f, const char *name);
/* The point with the best value of a metric: least of a loss or an error, greatest of the others. */
const co_point *facts_best(const facts *f, const char *name);
/* A metric of the validation: not val/loss, not val/sentences, not a best value so far (val/acc_best). */
bool facts_is_metric(const char *name);
/* The name of host i of a summary; of several with one name, the second is "name (2)". */
const char *facts_host(const json_t *hosts, size_t i, char out[96]);
double facts_host_threads(const facts *f, const char *name); /* ranks times threads of that host; nan */
json_t *facts_json(const facts *f);
/* How many times as fast as the base: by wall time if both trained on as many samples in one start and evaluated on as
 * many, else by samples a second. Size: how many times the ranks, times their threads. Efficiency: speed-up over size.
 * nan: not known. */
double facts_speed_up(const facts *base, const facts *f);
double facts_size(const facts *base, const facts *f);
double facts_efficiency(const facts *base, const facts *f);

/* starts.c: fills in start, n_starts, starts_missing, cpu_unknown and host_list. */
co_err starts_read(facts *f);
double starts_wall(const facts *f);  /* of all together */
size_t starts_known(const facts *f); /* starts whose figures are known: n_starts, or that of the summary */

/* --- parts of a run's book ---------------------------------------------------------------------------- */
void run_plots(page *p, const facts *f);   /* run_plots.c */
void run_texts(page *p, const facts *f);   /* run_texts.c: sample translations */
void run_events(page *p, const facts *f);  /* run_events.c: events and warnings */
void run_figures(page *p, const facts *f); /* run_figures.c: results, figures, hosts */
void run_hosts(page *p, const facts *f);
void run_starts(page *p, const facts *f); /* starts.c: nothing if there was one only */
void run_page(page *p, const facts *f);   /* run_page.c: the whole */

/* Curves of a page over several runs; run_plots.c. */
enum { CURVES = 12 };
typedef struct curves {
    co_plot_line line[CURVES];
    int n;
} curves;
/* Adds the series as a line, values times `scale`. unit 0: x is the step; else the time since `origin` over
 * `unit`. Nothing happens without a series, or if there are too many. Returns the line, or NULL. */
co_plot_line *curves_add(curves *c, const char *name, const co_series *s, double scale, double origin,
                         double unit);
void curves_fini(curves *c);
const char *time_unit(double span_s, double *unit); /* "time (min)" */

/* --- differ.c: a sentence for each difference between the base and another run ------------------------ */
typedef void (*differ_say)(void *ctx, const char *sentence);
void differ_runs(const facts *base, const facts *other, differ_say say, void *ctx);

#endif
