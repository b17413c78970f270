/* logs.h -- reading what jobs wrote with --log-dir: the merged.log files of one or more hosts, or the job.log
 * of the one that kept the roster, as one stream in time order.
 *
 *     co_logs *logs;
 *     CO_TRY(co_logs_open(&logs, &what));
 *     while ((err = co_logs_next(logs, &line)) == CO_OK && line.text) ...
 *
 * Files may be large and may grow: memory is a buffer per file, and the end and a time are found without
 * reading what lies before.
 */
#ifndef CO_JOB_LOGS_H
#define CO_JOB_LOGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/err.h"
#include "roster/roster.h"

typedef struct co_log_line {
    char stamp[CO_STAMP]; /* the job's clock, UTC */
    char host[CO_HOST_NAME];
    int rank;         /* -1: a line of the launcher itself */
    const char *text; /* without newline; valid until the next call. NULL: nothing now */
    size_t len;
} co_log_line;

typedef struct co_logs_spec {
    /* a run's folder, a folder of runs (the newest counts), a merged.log, or a run id */
    const char *const *words;
    int n;                /* 0: the newest run in this folder, or in ./logs */
    const char *ranks;    /* "0,4-7", "-": the launcher; NULL: all */
    const char *host;     /* NULL: all */
    long long tail;       /* only the last `tail` wanted lines; -1: all */
    char since[CO_STAMP]; /* "": from the beginning */
    bool follow;
} co_logs_spec;

typedef struct co_logs co_logs;
/* CO_EINPUT: there is nothing to read; the message says what is there instead. */
co_err co_logs_open(co_logs **out, const co_logs_spec *spec);
/* The next line that is wanted. line->text NULL: no more, or (following) none within a tenth of a second. */
co_err co_logs_next(co_logs *l, co_log_line *line);
/* every host has written its last line or its launcher is gone, and all lines were read */
bool co_logs_over(const co_logs *l);
/* Call these after all lines were read. The first says what was found: "rank 0 on a, ranks 1 to 2 on b". The
 * second returns a host whose launcher was killed before its last line; NULL if there is none. */
void co_logs_has(const co_logs *l, char *out, size_t size);
const char *co_logs_cut(const co_logs *l);
void co_logs_close(co_logs *l); /* NULL is fine */

#endif
