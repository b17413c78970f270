/* scribe_int.h -- a process that works out lines of the record beside the supervisor, and hands them over
 * at its end.
 *
 *     CO_TRY(scribe_start(&s, main, ctx, &keep));      // main writes lines into `out`, in the process
 *     if (scribe_ended(&s, 0, take, ctx)) ...          // now and then: `take` gets each line
 *     scribe_stop(&s, take, ctx);                      // at the end: waits a little, then kills it
 */
#ifndef CO_CLI_SCRIBE_INT_H
#define CO_CLI_SCRIBE_INT_H

#include <sys/types.h>

#include "base/fds.h"
#include "base/str.h"

typedef struct scribe {
    pid_t pid;        /* 0: no process is at it */
    int pidfd, lines; /* lines: where it writes them, in memory that we share */
    co_err (*main)(void *ctx, co_str *out);
    void *ctx;
    char why[512]; /* after its end: what went wrong; "": nothing */
} scribe;

typedef void (*scribe_take)(void *ctx, const char *line, size_t len);

/* `keep`: descriptors that stay open in the process; NULL: none. An error leaves no process. */
co_err scribe_start(scribe *s, co_err (*main)(void *ctx, co_str *out), void *ctx, const co_fds *keep);
/* Waits up to timeout_ms. True: it has ended, just now. If it failed, `take` gets no line, and
 * s->why says why. */
bool scribe_ended(scribe *s, int timeout_ms, scribe_take take, void *ctx);
void scribe_stop(scribe *s, scribe_take take, void *ctx);

#endif
