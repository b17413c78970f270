/* worker_int.h -- one worker: its pipes, its lines, what its guard reports. It knows nothing of the job: its
 * output and messages about it go to worker_events. */
#ifndef CO_JOB_WORKER_INT_H
#define CO_JOB_WORKER_INT_H

#include "job/files_int.h"
#include "term/term.h"

enum { TAIL_LINES = 20, TAIL_WIDTH = 400 };
typedef struct tail {
    char line[TAIL_LINES][TAIL_WIDTH];
    uint64_t n; /* lines so far */
} tail;

typedef struct stream {
    int fd;    /* -1: ended */
    int which; /* 0 stdout, 1 stderr */
    struct worker *w;
    co_lines lines;
    log_file file;
    bool shown, teed;
} stream;

/* Receives a worker's output. */
typedef struct worker_events {
    void *ctx;
    void (*bytes)(void *ctx, stream *s, const char *bytes, size_t n); /* raw bytes */
    void (*line)(void *ctx, const stream *s, const char *text, size_t len);
    void (*bar)(void *ctx, const stream *s, const char *text, size_t len); /* what an open bar shows */
    void (*say)(void *ctx, const char *text); /* a message to the user about this worker */
} worker_events;

typedef struct worker {
    const worker_events *events;
    const char *mark; /* in the environment of all that it starts: "COHORT_LAUNCHER=..." */
    int local_rank, rank;
    pid_t guard, pid;
    int sock; /* -1: the guard is gone */
    stream s[2];
    char tee_prefix[128];
    tail tail;
    bool in_traceback;
    bool saw_place;      /* the last lines were indented, and one of them named a place in a source file */
    char exception[256]; /* last line of the last traceback */
    char earlier[256];   /* the same for tracebacks before the round was asked to end */
    bool ended, blamed;
    int status;
    int not_started; /* errno of its exec; 0: it was started */
    int64_t when_ns;
    uint64_t printed_ns; /* when it last printed something */

    /* stall.c: when it last printed or computed; its CPU time then, and at the last check */
    uint64_t active_ns, active_ticks, ticks;
} worker;

void worker_read(worker *w, int which);
/* Its guard is gone, and with it all that the worker started. Reads what is in the pipe, then closes it: a
 * process that inherited the descriptor from the worker may keep the other end open for ever. */
void worker_close(worker *w, int which);
/* Emits lines whose time has come. Returns 0 if there were any, else the ms until the next may be due; -1: no
 * line waits. */
int worker_turn(worker *w, uint64_t now_ns);
void worker_take_reports(worker *w); /* from its guard */
bool worker_failed(const worker *w);

#endif
