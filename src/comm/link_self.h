/* link_self.h -- the link `self`: several hosts in one process. Nothing moves by itself: the caller says
 * which message is delivered next, so every order can be forced. */
#ifndef CO_COMM_LINK_SELF_H
#define CO_COMM_LINK_SELF_H

#include "comm/link.h"

typedef struct co_wire co_wire;

co_err co_wire_new(co_wire **out, int hosts);
void co_wire_free(co_wire *w);
/* The end of host `me`. A host that comes back gets a new end; what its old one had posted or sent is
 * gone. */
co_err co_wire_end(co_wire *w, int me, co_link **out);
/* Messages that could be delivered now: their receive is posted. */
int co_wire_ready(const co_wire *w);
/* Delivers the i-th of them: copies its bytes, and reports both ends at their next turn. */
void co_wire_deliver(co_wire *w, int i);
/* The host is gone: its posted receives, and what it sent and nobody took yet. */
void co_wire_drop(co_wire *w, int host);
/* While it is cut off, nothing it sends or is sent is delivered. */
void co_wire_cut_off(co_wire *w, int host, bool off);

#endif
