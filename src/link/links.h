/* links.h -- the links between machines: rows of comm/link.h for the carrier process. `tcp` works
 * everywhere; `mpi` uses the network that a cluster's own MPI drives.
 *
 *     co_link *link;
 *     CO_TRY(co_link_tcp(&link, &spec));
 *     CO_TRY(co_link_meet(link, peers, n));
 *     ... comm/link.h ...
 *     co_link_close(link);
 */
#ifndef CO_LINK_LINKS_H
#define CO_LINK_LINKS_H

#include "comm/link.h"
#include "net/net.h"

typedef struct co_link_spec {
    int me;         /* this host's place in the run */
    uint64_t birth; /* of this process: see co_link_peer */
    uint64_t run;   /* number of the run; a peer of another run is sent away */
    /* tcp: the socket on which this host listens, borrowed; -1: none. Of two hosts the one with the lower
     * place connects, so the host at place 0 needs none. */
    int listener;
    co_tls *tls; /* tcp: borrowed; NULL: plain */
} co_link_spec;

co_err co_link_tcp(co_link **out, const co_link_spec *spec);

#endif
