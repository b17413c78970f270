/* mpi_part.c -- see mpi_part.h. */
#include "link/mpi_part.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fds.h"
#include "harness.h"
#include "place/place.h"

void part_fail(const struct part *part, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fprintf(stderr, "host %d: ", part->me);
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "\n");
    va_end(ap);
    _exit(3);
}

static void done(void *ctx, bool sent, int peer, const co_tag *tag)
{
    struct part *part = ctx;

    part->done(part, sent, peer, tag);
}

/* The first of these variables that is set. */
static int number(const char *a, const char *b, const char *c)
{
    const char *text = getenv(a) ? getenv(a) : getenv(b) ? getenv(b) : getenv(c);

    return text ? atoi(text) : -1;
}

void part_open(struct part *part)
{
    co_link_spec spec = {.me = part->me, .birth = 100 + (uint64_t)part->me, .run = PART_RUN, .listener = -1};

    if (co_link_mpi(&part->link, &spec))
        part_fail(part, "%s", co_errmsg());
    part->link->done = done;
    part->link->ctx = part;
    for (int h = 0; h < part->hosts; h++)
        part->peers[h] = (co_link_peer){.id = h, .birth = 100 + (uint64_t)h};
    if (co_link_meet(part->link, part->peers, part->hosts))
        part_fail(part, "%s", co_errmsg());
}

/* As the carrier does it: sleeps on the link's descriptor. */
void part_turn(struct part *part)
{
    struct pollfd fd = {.fd = co_link_fd(part->link), .events = POLLIN};
    int peer;

    if (co_link_turn(part->link, 0))
        part_fail(part, "%s", co_errmsg());
    while (co_link_lost(part->link, &peer, part->why, sizeof part->why))
        part->lost |= 1 << peer;
    poll(&fd, 1, 20);
}

void part_fill(uint8_t *bytes, size_t len, uint64_t seed)
{
    for (size_t i = 0; i < len; i++) {
        if (i % 8 == 0)
            seed = seed * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = (uint8_t)(seed >> 8 * (i % 8));
    }
}

static void play(void (*body)(struct part *))
{
    struct part part = {.random = (uint64_t)number("TEST_SEED", "", "") + 1};
    int rank = number("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID");

    part.hosts = number("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS");
    part.me = (rank + 1) % part.hosts; /* places differ from ranks */
    part.random += (uint64_t)part.me << 32;
    body(&part);
    printf("host %d of %d: all is well\n", part.me, part.hosts);
    fflush(stdout);
}

/* As a run does it: the supervisor meets the others through the launcher, and its child, the carrier, opens
 * the link. */
static void meet_and_fork(struct part *part)
{
    co_place place;
    co_place_ask ask = {.nproc = 1, .node_rank = -1};
    co_meet meet = {.join_timeout_s = 30};
    int status = 1;

    if (co_place_find(&place, &ask))
        part_fail(part, "%s", co_errmsg());
    place.for_mpi = true;
    if (co_place_share(&place, &meet, NULL))
        part_fail(part, "%s", co_errmsg());
    pid_t child = fork();
    if (child == 0) {
        co_fds keep = {0};
        co_fds_add(&keep, co_link_inherits(CO_LINK_MPI));
        co_fds_close_others(&keep);
        part_traffic(part);
        _exit(0);
    }
    PART_CHECK(part, waitpid(child, &status, 0) == child && status == 0, "its child ended with %x", status);
    co_place_close(&place);
}

static void choose(struct part *part)
{
    co_link_kind got;
    char say[1024] = "";
    co_err err = co_link_choose(&got, CO_LINK_AUTO, say, sizeof say);

    (void)part;
    printf("auto: %s\n", err ? co_errmsg() : say);
    printf("mpi: %s\n", co_link_choose(&got, CO_LINK_MPI, say, sizeof say) ? co_errmsg() : say);
}

__attribute__((constructor)) static void be_a_part(void)
{
    static const struct {
        const char *name;
        void (*body)(struct part *);
    } parts[] = {{"traffic", part_traffic}, {"views", part_views},   {"leave", part_leave},
                 {"stall", part_stall},     {"fork", meet_and_fork}, {"choose", choose}};
    const char *name = getenv("TEST_LINK_MPI");

    for (size_t i = 0; name && i < sizeof parts / sizeof *parts; i++)
        if (strcmp(name, parts[i].name) == 0) {
            play(parts[i].body);
            _exit(0);
        }
}
