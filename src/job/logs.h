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
    int rank;         /* -1: the launcher itself says it */
    const char *text; /* without newline; valid until the next call. NULL: nothing now */
    size_t len;
} co_log_line;

typedef struct co_logs_spec {
    const char *const *words; /* folders (a run's, or one with runs in it: the newest), merged.log files, or run ids */
    int n;                    /* 0: the newest run in this folder, or in ./logs */
    const char *ranks;    /* "0,4-7", "-": the launcher; NULL: all */
    const char *host;     /* NULL: all */
    long long tail;       /* the last so many lines, of those that are wanted; -1: all */
    char since[CO_STAMP]; /* "": from the beginning */
    bool follow;
} co_logs_spec;

typedef struct co_logs co_logs;
/* CO_EINPUT: there is nothing to read there; the message says what there is. */
co_err co_logs_open(co_logs **out, const co_logs_spec *spec);
/* The next line that is wanted. line->text NULL: no more, or (following) none within a tenth of a second. */
co_err co_logs_next(co_logs *l, co_log_line *line);
bool co_logs_over(const co_logs *l); /* every host's part has ended, or its launcher is gone, and all was read */
/* After all was read. What there is: "rank 0 on a, ranks 1 to 2 on b"; and the host whose launcher is gone
 * without a last line, NULL if there is none. */
void co_logs_has(const co_logs *l, char *out, size_t size);
const char *co_logs_cut(const co_logs *l);
void co_logs_close(co_logs *l); /* NULL is fine */

#endif
