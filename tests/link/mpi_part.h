/* mpi_part.h -- what a process of mpirun does in the tests of the link mpi. TEST_LINK_MPI in its
 * environment names the part; then the test program plays it instead of running tests. A part prints "host
 * H of N: all is well".
 */
#ifndef TESTS_LINK_MPI_PART_H
#define TESTS_LINK_MPI_PART_H

#include "link/links.h"

enum { PART_HOSTS = 4, PART_RUN = 77 };

struct part {
    int me, hosts;
    uint64_t random;
    co_link *link;
    co_link_peer peers[PART_HOSTS];
    void (*done)(struct part *part, bool sent, int peer, const co_tag *tag);
    void *ctx;
    int lost; /* bits */
    char why[400];
};

_Noreturn void part_fail(const struct part *part, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define PART_CHECK(part, cond, ...) ((cond) ? (void)0 : part_fail(part, __VA_ARGS__))
void part_open(struct part *part); /* this host's place is not its MPI rank */
void part_turn(struct part *part);
void part_fill(uint8_t *bytes, size_t len, uint64_t seed);

void part_traffic(struct part *part);
void part_views(struct part *part);
void part_leave(struct part *part);
void part_stall(struct part *part);

#endif
