/* term.h -- carries the output of other programs to people: bytes become lines, and lines go to descriptors
 * whose reader may be slow or absent.
 *
 *     co_lines_feed(&lines, bytes, n, each_line, ctx);     // lines.c: rows, progress bars, escape sequences
 *     co_outlet_add(co_outlets_at(&out, 1), text, len);    // outlet.c: never waits; co_outlets_push writes
 */
#ifndef CO_TERM_TERM_H
#define CO_TERM_TERM_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* All times of this room. */
enum {
    CO_FOLD_MS = 50,     /* equal lines of several ranks are folded into one if they come within this time */
    CO_PARTIAL_MS = 100, /* a terminal shows text without a newline after this time */
    CO_BAR_MS = 100,     /* the least time between two drawings of the progress bars */
    CO_BAR_LINE_MS = 30000, /* where bars are not drawn, a bar's text becomes a line this often */
    CO_UNREAD_MS = 1000     /* at the end: how long we wait for a reader that has stopped reading */
};

/* --- escape.c: the sequences that move a terminal's cursor --------------------------------------------- */
typedef struct co_escape {
    char text[32];
    size_t len;
    bool open; /* it has begun and is not complete */
} co_escape;

/* --- lines.c: bytes to lines --------------------------------------------------------------------------- */
enum { CO_LINE_MOST = 1 << 16, CO_ROWS_MOST = 8 };

typedef struct co_row {
    co_str text; /* without the text that a carriage return overwrote */
    bool bar;    /* it was written after a carriage return */
    uint64_t left_ns;
    uint64_t shown_ns; /* when its text last became a line, or when it became a bar */
    co_str shown;      /* its text at that time */
} co_row;

typedef struct co_lines {
    /* top row first; more than one only while there are several bars or one has just ended */
    co_row rows[CO_ROWS_MOST];
    int at, last;  /* where the cursor is; the lowest row in use */
    bool home;     /* the cursor is at the beginning of its row: new text overwrites what is there */
    bool returned; /* a carriage return put it there */
    co_escape escape;
    uint64_t since_ns; /* when bytes last came */
} co_lines;

typedef void (*co_line_fn)(void *ctx, const char *text, size_t len);
void co_lines_feed(co_lines *l, const char *bytes, size_t n, co_line_fn each, void *ctx);
/* Rows that the cursor has left for good become lines. Returns 0 if there were any, else the ms until the
 * next may be due; -1: no row waits. */
int co_lines_settle(co_lines *l, uint64_t now_ns, co_line_fn each, void *ctx);
/* Writes a line for each bar that has been open for CO_BAR_LINE_MS, or has changed since its last line that
 * long ago. Returns the same as co_lines_settle. */
int co_lines_tell_bars(co_lines *l, uint64_t now_ns, co_line_fn each, void *ctx);
void co_lines_end(co_lines *l, co_line_fn each, void *ctx); /* unfinished rows become lines */
bool co_row_blank(const co_row *r);                         /* it shows nothing: a bar that was erased */
void co_lines_fini(co_lines *l);

/* --- outlet.c: writes to slow descriptors without waiting ---------------------------------------------- */
enum { CO_OUTLET_FULL = 1 << 18, CO_OUTLET_MOST = 1 << 23 };

typedef struct co_outlet {
    int fd;
    bool own, tty;
    bool gone; /* the reader has gone */
    co_str held;
    size_t done;  /* bytes of held that were written */
    int error;    /* errno of the first write that failed for another reason; 0: none */
    bool failing; /* the last write failed with this error */
    bool error_said;
} co_outlet;
void co_outlet_open(co_outlet *o, int fd);
void co_outlet_add(co_outlet *o, const char *bytes, size_t n);
void co_outlet_push(co_outlet *o); /* writes as much as possible without waiting */
bool co_outlet_waits(const co_outlet *o);
bool co_outlet_full(const co_outlet *o);     /* whoever fills it should wait */
bool co_outlet_overfull(const co_outlet *o); /* too full even for a job that ends: new output is dropped */
void co_outlet_close(co_outlet *o);

/* Standard output (0) and standard error (1). If both are the same file, they share one outlet. Two queues
 * would let lines overtake each other or split a line in the middle. */
typedef struct co_outlets {
    co_outlet each[2];
    int n;
} co_outlets;
void co_outlets_open(co_outlets *o, int out_fd, int err_fd);
co_outlet *co_outlets_at(co_outlets *o, int which);
/* writes what it can; `wait` says what to poll for */
void co_outlets_push(co_outlets *o, struct pollfd wait[2]);
bool co_outlets_full(co_outlets *o);                   /* one of them is */
void co_outlets_drain(co_outlets *o, int patience_ms); /* waits for the reader; -1: for ever */
/* After a failed write (for example, a full disk): writes a one-line report and returns the output to print
 * it on. Each failure is reported once. -1: nothing to report. */
int co_outlets_broken(co_outlets *o, char *line, size_t size);
void co_outlets_close(co_outlets *o);

#endif
