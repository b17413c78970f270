/* arena.h -- the host's shared memory: one memfd, laid out before it exists, populated before the first step.
 *
 * First reserve regions (sizes known from the plan), then make the memory once. It outlives any rank; ranks inherit the
 * mapping through fork at the same address, so plain pointers into it are good in all of them.
 *
 *     co_arena a = {0};
 *     size_t at = co_arena_reserve(&a, "weights", n * sizeof(float));
 *     CO_TRY(co_arena_open(&a));
 *     float *w = co_arena_at(&a, at);                  // zeroed, 64-byte aligned
 */
#ifndef CO_COMM_ARENA_H
#define CO_COMM_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { CO_ARENA_REGIONS = 512 };

typedef struct co_region {
    char name[24];
    size_t offset, bytes;
} co_region;

typedef struct co_arena {
    int fd;
    char *base;
    size_t bytes;
    int n;
    co_region region[CO_ARENA_REGIONS];
} co_arena;

/* Offset of a new region, aligned to 4096. Overflow is caught by co_arena_open. */
size_t co_arena_reserve(co_arena *a, const char *name, size_t bytes);
/* CO_ENOMEM with both figures if the machine or its cgroup cannot hold what is reserved. Touches nothing. */
co_err co_arena_fits(const co_arena *a);
co_err co_arena_open(co_arena *a); /* asks co_arena_fits first */
void co_arena_close(co_arena *a);
static inline void *co_arena_at(const co_arena *a, size_t offset)
{
    return a->base + offset;
}
/* Bytes of regions whose names begin with `prefix`. */
size_t co_arena_sum(const co_arena *a, const char *prefix);

/* Memory this process may still take: the least of MemAvailable and the cgroups' limits. */
size_t co_memory_available(void);

/* Touches the pages of [p, p + len) for writing without changing them, so that no later write faults. */
void co_populate(void *p, size_t len);
/* Maps the code of the program and its libraries, also what is rarely run. */
void co_populate_code(void);

#endif
