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

/* Calls MPI_Init, which waits until all processes of mpirun have called it. An error in there ends the
 * process. The caller may be a child, made by fork, of the process that mpirun started, but only one process
 * per MPI rank may open a link. Messages go straight from and to the callers' memory.
 *
 * A cut may wait up to 5 s for a piece of a message that is half-way. If it has to give up, every later turn
 * fails and the process must end, because MPI may still write into the memory. A host that is lost stays
 * lost. co_link_close waits up to 5 s for the others to close too; if they do not, MPI is left as it is. */
co_err co_link_mpi(co_link **out, const co_link_spec *spec);

/* MPI_Allreduce of n floats over all processes, to compare with. `link` is of co_link_mpi. */
co_err co_link_mpi_sum(co_link *link, const float *from, float *to, int n);

/* trainer.link */
typedef enum { CO_LINK_AUTO, CO_LINK_TCP, CO_LINK_MPI } co_link_kind;

/* Which link `wanted` means here: tcp or mpi. auto is mpi if mpirun or srun --mpi started this program and
 * the library of that MPI loads. `say` gets a sentence for the first screen. CO_EINPUT: mpi is wanted and
 * cannot be had. All hosts of a run must choose the same. The library is tried in a child process, and is
 * not loaded here. */
co_err co_link_choose(co_link_kind *out, co_link_kind wanted, char *say, size_t size);
/* A descriptor that the process which opens the link has inherited and must keep: MPICH's connection to its
 * mpirun (PMI_FD). -1: none. */
int co_link_inherits(co_link_kind kind);
co_err co_link_open(co_link **out, co_link_kind kind, const co_link_spec *spec); /* tcp or mpi */

#endif
