/* fds.h -- a set of file descriptors, and closing all that are not in it.
 *
 * A forked process inherits every descriptor. As long as it holds a copy of a socket, the peer is not told
 * that we closed ours; as long as it holds a pipe's writing end, the reader waits. So a child of ours closes
 * everything but a set that its parent names.
 *
 *     co_fds keep = {0};
 *     co_fds_add(&keep, pipe);
 *     if (fork() == 0)
 *         co_fds_close_others(&keep);
 */
#ifndef CO_BASE_FDS_H
#define CO_BASE_FDS_H

#include <stdbool.h>
#include <stdint.h>

enum { CO_FDS_MOST = 16384 }; /* descriptors from here on are in no set */

typedef struct co_fds {
    uint64_t bits[CO_FDS_MOST / 64];
} co_fds;

void co_fds_add(co_fds *set, int fd); /* negative: nothing is added */
void co_fds_add_all(co_fds *set, const co_fds *more);
bool co_fds_has(const co_fds *set, int fd);
/* All that are open in this process now. */
void co_fds_open_now(co_fds *out);
/* Those of `after` that are not in `before`, into *after. */
void co_fds_subtract(co_fds *after, const co_fds *before);
/* Closes all but the three standard ones and those of the set. System calls only, so the child of a process
 * with threads may call it. */
void co_fds_close_others(const co_fds *keep);

#endif
