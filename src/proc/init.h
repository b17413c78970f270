/* init.h -- cohort as process 1 of a PID namespace, as in a container without an init of its own.
 *
 * The kernel gives process 1 every orphan of the namespace; if nobody waits for them, they stay as zombies.
 * It also discards signals that process 1 has no handler for. So process 1 only starts a child, which goes on
 * as if nothing had happened, and stays behind: it waits for orphans, passes signals on, and ends as the
 * child does.
 */
#ifndef CO_PROC_INIT_H
#define CO_PROC_INIT_H

/* Returns in the child, or if this process is not process 1. Before any thread or descriptor is opened. If no
 * child can be started, returns and process 1 goes on alone. */
void co_init_stay_behind(void);

#endif
