/* arena.h -- the host's shared memory: one memfd, laid out before it exists, populated before the first step.
 *
 * Callers first reserve regions, whose sizes the plan knows, and then make the memory once. The memory
 * outlives every rank. Ranks inherit the mapping through fork at the same address, so plain pointers are
 * valid in all.
 *
 *     co_arena a = {0};
 *     size_t at = co_arena_reserve(&a, "weights", n * sizeof(float));
 *     CO_TRY(co_arena_open(&a));
 *     float *w = co_arena_at(&a, at);                  // zeroed, 64-byte aligned
 */
#ifndef CO_COMM_ARENA_H
#define CO_COMM_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { CO_ARENA_REGIONS = 512 };

typedef struct co_region {
    char name[24];
    size_t offset, bytes;
    bool late; /* its pages take memory when they are used first */
} co_region;

typedef struct co_arena {
    int fd;
    char *base;
    size_t bytes;
    int n;
    co_region region[CO_ARENA_REGIONS];
} co_arena;

/* Returns the offset of a new region, aligned to 4096. co_arena_open reports an overflow. */
size_t co_arena_reserve(co_arena *a, const char *name, size_t bytes);
/* The same for memory that may never be used. It counts for co_arena_fits all the same. */
size_t co_arena_reserve_late(co_arena *a, const char *name, size_t bytes);
/* CO_ENOMEM, with both figures, if the machine or its cgroup cannot hold what is reserved. Allocates
 * nothing. */
co_err co_arena_fits(const co_arena *a);
co_err co_arena_open(co_arena *a); /* calls co_arena_fits first */
void co_arena_close(co_arena *a);
size_t co_arena_used(const co_arena *a); /* bytes that take memory by now */
static inline void *co_arena_at(const co_arena *a, size_t offset)
{
    return a->base + offset;
}
/* Total bytes of the regions whose names begin with `prefix`. */
size_t co_arena_sum(const co_arena *a, const char *prefix);

/* Memory that this process can still take: the smallest of MemAvailable and the cgroups' limits. */
size_t co_memory_available(void);

/* Touches the pages of [p, p + len) for writing without changing them, so that no later write takes a page
 * fault. */
void co_populate(void *p, size_t len);
/* Maps the code of the program and its libraries, including code that rarely runs. */
void co_populate_code(void);

#endif
