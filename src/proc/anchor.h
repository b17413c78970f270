/* anchor.h -- a process of ours that outlives a killed launcher and kills the processes that its workers
 * left.
 *
 * Guards already kill their workers' trees when the launcher dies. When launcher and guards are killed
 * together, workers die with their guards, but what the workers had started lives on as orphans of init. The
 * anchor finds those processes by an entry in their environment, which every worker gets and its children
 * inherit. It runs in a session of its own, ignores signals, and sleeps until the launcher is gone. Processes
 * that changed their environment, or belong to another user, are not found.
 *
 *     co_anchor_start(&anchor, "COHORT_LAUNCHER=1234-5678");   // before the first worker gets this entry
 *     ...
 *     co_anchor_release(&anchor);                              // all workers are gone: nothing to kill
 */
#ifndef CO_PROC_ANCHOR_H
#define CO_PROC_ANCHOR_H

#include <sys/types.h>

typedef struct co_anchor {
    pid_t pid; /* 0: there is none */
    int sock;
} co_anchor;

/* If the fork fails, the job runs without an anchor. */
void co_anchor_start(co_anchor *out, const char *entry);
void co_anchor_release(co_anchor *anchor); /* ends it; it kills nobody */

#endif
