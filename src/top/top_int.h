/* top_int.h -- what the files of this room share. */
#ifndef CO_TOP_TOP_INT_H
#define CO_TOP_TOP_INT_H

#include "base/str.h"
#include "top/top.h"
#include "track/run_read.h"
#include "track/use.h"

/* --- the state ------------------------------------------------------------------------------------------ */
enum { TOP_LOSSES = 256, TOP_LOG = 512, TOP_FILTER = 32 };

typedef struct top_run {
    co_live_run live; /* of a run that has ended: its folder and task only */
    bool is_live;
    co_run_state state; /* as its folder says; RUNNING while is_live */
    bool has_progress;
    co_progress progress;
    char metric[16];
    co_use *host; /* [hosts]; the caller's of gather */
    int hosts;
    char log[TOP_LOG];       /* the last line of train.log, without its date */
    double loss[TOP_LOSSES]; /* oldest first */
    int losses;
    int recoveries;                /* ranks that were replaced */
    double cpu_percent, memory_mb; /* of all its hosts; nan: not known */
} top_run;

typedef enum { TOP_RUNS, TOP_RUN, TOP_HELP } top_view;

/* Runs and ranks are put in order by one of these; see the tables in lines.c. */
typedef struct top_order {
    int by;
    bool reverse;
    char filter[TOP_FILTER]; /* "": all are shown */
} top_order;

typedef struct top_state {
    double now;    /* seconds since 1970 */
    char host[64]; /* this machine */
    co_sample machine;
    bool has_machine, utf8;
    top_run *run; /* [n] */
    int n;
    top_view view, before_help;
    bool only;             /* one run was asked for: there is no list to go back to */
    int chosen;            /* the place of the chosen run in `run`; -1: there is none */
    top_order runs, ranks; /* the lists of the two views */
    int scroll;            /* of the ranks */
    bool types;            /* the filter is being typed */
    bool asks;             /* whether to stop the chosen run */
    char message[200];     /* below everything, until the next key */
} top_state;

const top_run *top_chosen(const top_state *state); /* screen.c; NULL: there is none */

/* --- gather.c ------------------------------------------------------------------------------------------- */
typedef struct top_source top_source; /* what is kept between two looks: open records, counters */
top_source *top_source_new(const co_top_ask *ask); /* NULL: no memory */
void top_source_free(top_source *source);
/* Replaces the runs of the state; the chosen one stays chosen. CO_EINPUT: the word is no run. */
co_err top_gather(top_source *source, top_state *state);
void top_state_fini(top_state *state);
/* Fills in what a run folder says: the losses, ranks that were replaced; of a run that has ended all the
 * rest. */
void top_read_folder(top_run *run, co_run *from);

/* --- launch.c: CPU time and memory of a process and all below it ---------------------------------------- */
typedef struct top_tree {
    int pid;
    double ticks, at_s;
} top_tree;
void top_look_at_tree(top_tree *before, int pid, double now_s, double *cpu_percent, double *memory_mb);

/* --- table.c, spark.c: parts of lines ------------------------------------------------------------------- */
typedef struct top_column {
    const char *title;
    int width; /* 0: what is left of the line; only the last one */
    int need;  /* 0: always shown. The columns with the highest number are the first to go on a narrow line */
    bool left; /* text begins at the left edge */
} top_column;
enum { TOP_COLUMNS = 24, TOP_CELL = 600 };
typedef char top_cells[TOP_COLUMNS][TOP_CELL];
/* Which columns fit `cols`. */
void top_fit(const top_column *column, int n, int cols, bool shown[TOP_COLUMNS]);
void top_head(co_str *out, const top_column *column, int n, const bool *shown);
void top_row(co_str *out, const top_column *column, int n, const bool *shown, int cols, top_cells cells);
/* The first `cols` columns of a text, padded with blanks if it is shorter and `pad`. Without UTF-8 every
 * other character than ASCII is a '?'. */
void top_cut(co_str *out, const char *text, int cols, bool pad, bool utf8);
int top_width(const char *text); /* columns, a character each */
/* `cols` characters, the higher the greater the value; values that are not finite are blanks. Heights are
 * logarithmic if the values differ by more than a factor of 50. */
void top_spark(co_str *out, const double *value, int n, int cols, bool utf8);
/* A bar of `cols` characters that is full at share 1. */
void top_bar(co_str *out, double share, int cols, bool utf8);

/* --- lines.c, lines_run.c: a state to lines ------------------------------------------------------------- */
typedef enum { LOOK_PLAIN, LOOK_TITLE, LOOK_HEAD, LOOK_CHOSEN, LOOK_WARN, LOOK_DIM } top_look;
typedef struct top_screen {
    int n, room;
    struct top_line {
        char *text;
        top_look look;
    } * line;
} top_screen;
/* Exactly `rows` lines of at most `cols` columns. rows 0: as many as there are, without keys. */
void top_lines(const top_state *state, int rows, int cols, top_screen *out);
void top_screen_fini(top_screen *screen);
void top_add(top_screen *out, top_look look, const char *text); /* copied */
void top_addf(top_screen *out, top_look look, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Numbers for cells; "-" where there is none. */
const char *top_percent(char out[16], double x);
const char *top_bytes(char out[16], double mb); /* "950M", "1.3G" */
const char *top_number(char out[16], double x); /* four digits */
const char *top_tenths(char out[16], double x); /* the same, one after the point */
const char *top_whole(char out[16], double x);
/* "3/10"; "3" if that is wider than `width` */
const char *top_part(char out[48], const top_run *run, int64_t at, int64_t of, int width);
const char *top_where(const top_run *run); /* its folder, its program, or the host with its record */
const char *top_state_text(const top_run *run);
const char *top_host_name(const top_state *state, const top_run *run, const co_use *use);
/* Everything about one run; ranks that do not fit `rows` are left to scrolling. rows 0: all. */
void top_run_lines(const top_state *state, const top_run *run, int rows, int cols, top_screen *out);
/* A head, and a row for each run; rows 0: for all of them. The chosen one is among those that are shown. */
void top_runs_lines(const top_state *state, int rows, int cols, top_screen *out);
/* Names of the orders, by number; NULL past the last. */
const char *top_run_order(int by);
const char *top_rank_order(int by);
/* The places of the runs in their order, filtered; *n of them. The caller's; NULL: no memory. */
int *top_runs_sorted(const top_state *state, int *n);
/* Lines that the ranks of a run can be scrolled by. */
int top_ranks_shown(const top_state *state, const top_run *run);

bool top_is_utf8(void); /* draw.c: what the locale says */

/* --- keys.c --------------------------------------------------------------------------------------------- */
/* Keys are characters, or these. */
enum {
    TOP_KEY_UP = 1000,
    TOP_KEY_DOWN,
    TOP_KEY_PAGE_UP,
    TOP_KEY_PAGE_DOWN,
    TOP_KEY_HOME,
    TOP_KEY_END,
    TOP_KEY_ENTER,
    TOP_KEY_BACK, /* erases */
    TOP_KEY_LEFT,
    TOP_KEY_ESCAPE
};
typedef enum { TOP_GO_ON, TOP_QUIT, TOP_STOP_RUN, TOP_LOOK_AGAIN } top_action;
top_action top_key(top_state *state, int key, int rows);

#endif
