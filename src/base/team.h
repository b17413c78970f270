/* team.h -- threads that run one function together, each its own share: what a rank computes with.
 *
 * The caller is thread 0; a team of n has n - 1 helpers, started once. co_team_run hands them a function and
 * returns when all are through with it. It allocates nothing, takes no lock, and makes no system call while
 * the threads meet quickly: a thread that waits spins for a while and only then sleeps.
 *
 *     static void share(void *ctx, int ith, int nth) { ... part ith of nth ... }
 *
 *     co_team *team;
 *     CO_TRY(co_team_start(&team, 4, CO_TEAM_SPIN, false));
 *     co_team_run(team, 4, share, &work);
 *     co_team_stop(team);
 *
 * A team of one is NULL: it has no threads, and co_team_run is a plain call. One thread at a time may use a
 * team. Helpers die with the process; they handle no signals but those of a crash.
 */
#ifndef CO_BASE_TEAM_H
#define CO_BASE_TEAM_H

#include <stdbool.h>

#include "base/err.h"

typedef struct co_team co_team;
typedef void (*co_team_fn)(void *ctx, int ith, int nth);

enum {
    CO_TEAM_MOST = 256,  /* threads */
    CO_TEAM_SPIN = 4000, /* rounds that a thread spins before it sleeps; 0 where threads have to share CPUs */
};

/* *out is NULL for one thread. With `pin`, each thread (the caller too) is bound to a CPU of its own, if the
 * caller may use that many. CO_EFAIL if a thread cannot be started. */
co_err co_team_start(co_team **out, int threads, int spin, bool pin);
void co_team_stop(co_team *team); /* NULL is fine */
int co_team_size(const co_team *team);

/* fn(ctx, ith, nth) in the caller (ith = 0) and in nth - 1 helpers; nth is at most the team's size. What the
 * caller wrote before is visible in the helpers, and what they wrote is visible to the caller on return. */
void co_team_run(co_team *team, int nth, co_team_fn fn, void *ctx);

#endif
