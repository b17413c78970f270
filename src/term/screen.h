/* screen.h -- the output of many workers on one screen: each line with its rank, equal lines of many ranks
 * folded into one, progress bars below everything else.
 *
 *     co_screen_open(&screen, STDOUT_FILENO, STDERR_FILENO);
 *     co_screen_view_set(&screen, &(co_screen_view){.prefix = true, .host = "", .nproc = 4});
 *     co_screen_line(&screen, local_rank, 0, text, len);
 *     co_screen_flush(&screen, false);                    // lines that waited long enough go to the outlets
 *     co_outlets_push(&screen.out, fds);                   // and from there to the descriptors
 */
#ifndef CO_TERM_SCREEN_H
#define CO_TERM_SCREEN_H

#include "term/term.h"

enum {
    CO_SCREEN_RANKS = 1024,
    CO_SCREEN_HOST = 256
}; /* the most workers of a screen; bytes of a host's name */

/* A line that waits for equal lines of other ranks. */
typedef struct co_held_line {
    uint64_t ranks[CO_SCREEN_RANKS / 64]; /* bits: the local ranks that printed it */
    int n, stream;
    uint64_t at_ns;
    char *text;
    size_t len;
} co_held_line;

typedef struct co_screen_view {
    bool prefix;      /* "[rank] " before each line */
    const char *host; /* "host:" inside it; "" on a single host; copied */
    int first_rank;   /* global rank of local rank 0 */
    int nproc;
} co_screen_view;

typedef struct co_screen {
    co_outlets out;
    bool hurries;       /* the job ends: output is dropped while an outlet is overfull */
    uint64_t not_shown; /* bytes that were dropped */
    bool prefix;
    char host[CO_SCREEN_HOST];
    int first_rank, nproc;
    co_held_line *queue;
    int n, room, head;
    int bars; /* lines of the block of bars that are on the terminal now */
    uint64_t drawn_ns;
} co_screen;

void co_screen_open(co_screen *c, int out_fd, int err_fd);
void co_screen_view_set(co_screen *c, const co_screen_view *view); /* from the next line on */
/* What a worker printed. to: 0 standard output, 1 standard error. */
void co_screen_line(co_screen *c, int local_rank, int to, const char *text, size_t len);
void co_screen_teed(co_screen *c, int to, const char *prefix, const char *text, size_t len);
void co_screen_raw(co_screen *c, int to, const char *bytes, size_t n);
/* Messages of our own, to standard error, after the lines that are held. */
void co_screen_say(co_screen *c, const char *text);
void co_screen_sayf(co_screen *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3))); /* "cohort: " first */
int co_screen_due_ms(const co_screen *c);  /* until a held line must go out; -1: none is held */
void co_screen_flush(co_screen *c, bool all);
void co_screen_close(co_screen *c, int patience_ms); /* for a reader that does not read; -1: for ever */

/* --- bars.c -------------------------------------------------------------------------------------------- */
/* A stream whose unfinished lines are drawn. */
typedef struct co_bar_source {
    int local_rank;
    const co_lines *lines; /* borrowed */
} co_bar_source;
/* Draws the block if it has changed and its time has come. Returns the ms until the next drawing; -1: nothing
 * to draw.
 */
int co_screen_draw_bars(co_screen *c, const co_bar_source *sources, int n, uint64_t now_ns);

#endif
