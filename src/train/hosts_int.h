/* hosts_int.h -- the supervisor's part among several hosts. Seen by this room only.
 *
 *     roster --FREEZE, VIEW, OVER--> supervisor --orders--> carrier process
 *     roster <--position, whole, cut, ended-- supervisor <--reports--
 */
#ifndef CO_TRAIN_HOSTS_INT_H
#define CO_TRAIN_HOSTS_INT_H

#include "train/carry_int.h"
#include "train/super_int.h"

/* The descriptors that wake the supervisor: the roster's, and the carrier's reports. */
enum { HOSTS_FDS = 2 };
void hosts_fds(const struct hosts *hosts, struct pollfd fds[HOSTS_FDS]);

co_err hosts_open(struct supervisor *super); /* before the ranks: they begin frozen */
void hosts_close(struct supervisor *super);  /* ends the carrier */
co_err hosts_turn(struct supervisor *super); /* CO_ESTOP: this host goes on no longer; its step is finished */
/* This host is the one that writes. True if it is alone. */
bool hosts_writes(const struct supervisor *super);
/* The others are lost to this host, or it to them, and it does not come back: it keeps what it has. */
bool hosts_were_left(struct supervisor *super);
/* The ranks have ended, and this host has saved the last state, or need not: stays until all others have
 * ended. If the host that writes is lost meanwhile, saves. */
void hosts_stay(struct supervisor *super, bool saved);

void hosts_close_books(struct supervisor *super); /* where the time went, and bytes, into the summary */

/* --- hosts_carrier.c: the carrier process --------------------------------------------------------------- */
co_err start_carrier(struct supervisor *super);
void drop_carrier(struct hosts *hosts); /* it takes this as the order to end */
/* Does not wait. A carrier that does not take its orders is killed. */
void order(struct hosts *hosts, const struct order *what);
void order_freeze(struct hosts *hosts, uint32_t number);
co_err attend_carrier(struct supervisor *super); /* replaces one that is gone */
/* Under mpi no host can be replaced: what this one has is saved, and the run can be continued. */
void end_mpi(struct supervisor *super, const char *why);

/* --- hosts_reports.c ------------------------------------------------------------------------------------ */
void hear_carrier(struct supervisor *super);

/* --- unreadable.c --------------------------------------------------------------------------------------- */
void offer_unreadable(struct supervisor *super); /* a rank cannot read a sample: the roster is told */

/* --- hosts_speed.c -------------------------------------------------------------------------------------- */
/* Every WEIGH_MS, if this host has computed: a speed that changed is reported, and the roster may deal
 * anew. */
void weigh(struct supervisor *super);

#endif
