/* alloc.c -- counted heap, and pools: blocks of at least 16 KiB in a list, freed together. */
#include "base/alloc.h"

#include <alloca.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/err.h"

enum { POOL_BLOCK = 16 << 10, PAGE = 4096 };

struct co_pool_block {
    struct co_pool_block *next;
    size_t used, size;
    _Alignas(16) unsigned char bytes[];
};

static _Atomic uint64_t count;
static _Atomic int64_t fail_at;

/* Counts the allocation. True if a test wants this one to fail. */
static int refused(void)
{
    atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
    if (atomic_load_explicit(&fail_at, memory_order_relaxed) == 0)
        return 0;
    return atomic_fetch_sub_explicit(&fail_at, 1, memory_order_relaxed) == 1;
}

static void *checked(void *p, size_t size)
{
    if (!p)
        co_fail(CO_ENOMEM, "out of memory: cannot allocate %zu bytes", size);
    return p;
}

void *co_alloc(size_t size)
{
    return checked(refused() ? NULL : malloc(size ? size : 1), size);
}

void *co_zalloc(size_t size)
{
    return checked(refused() ? NULL : calloc(1, size ? size : 1), size);
}

void *co_array(size_t n, size_t size)
{
    size_t total;

    if (__builtin_mul_overflow(n, size, &total))
        return checked(NULL, SIZE_MAX);
    return co_zalloc(total);
}

void *co_realloc(void *old, size_t size)
{
    return checked(refused() ? NULL : realloc(old, size ? size : 1), size);
}

/* This many bytes in front of the caller's memory hold the length of the mapping. */
enum { SHARED_HEAD = 64 };

void *co_alloc_shared(size_t size)
{
    size_t all;
    void *p = MAP_FAILED;

    if (!__builtin_add_overflow(size, (size_t)SHARED_HEAD, &all) && !refused())
        p = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!checked(p == MAP_FAILED ? NULL : p, size))
        return NULL;
    memcpy(p, &all, sizeof all);
    return (char *)p + SHARED_HEAD;
}

void co_free_shared(void *p)
{
    size_t all;

    if (!p)
        return;
    char *head = (char *)p - SHARED_HEAD;
    memcpy(&all, head, sizeof all);
    munmap(head, all);
}

char *co_strdup(const char *s)
{
    size_t len = strlen(s) + 1;
    char *copy = co_alloc(len);

    return copy ? memcpy(copy, s, len) : NULL;
}

char *co_sprintf(const char *fmt, ...)
{
    va_list ap, again;

    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    char *s = co_alloc((size_t)(n < 0 ? 0 : n) + 1);
    if (s)
        vsnprintf(s, (size_t)(n < 0 ? 0 : n) + 1, fmt, again);
    va_end(again);
    va_end(ap);
    return s;
}

void co_free(void *p)
{
    free(p);
}

__attribute__((noinline)) void co_touch_stack(size_t bytes)
{
    volatile char *p = alloca(bytes);

    for (size_t i = 0; i < bytes; i += PAGE)
        p[i] = 0;
}

uint64_t co_alloc_count(void)
{
    return atomic_load_explicit(&count, memory_order_relaxed);
}

void co_alloc_fail_at(int64_t nth)
{
    atomic_store_explicit(&fail_at, nth, memory_order_relaxed);
}

void *co_pool_alloc(co_pool *pool, size_t size)
{
    struct co_pool_block *block = pool->head;

    if (size > SIZE_MAX - 64)
        return checked(NULL, size);
    size = (size + 15) & ~(size_t)15;
    if (!block || block->size - block->used < size) {
        size_t room = size > POOL_BLOCK ? size : POOL_BLOCK;
        block = co_zalloc(sizeof *block + room);
        if (!block)
            return NULL;
        block->size = room;
        block->next = pool->head;
        pool->head = block;
    }
    void *p = block->bytes + block->used;
    block->used += size;
    pool->total += size;
    return p;
}

char *co_pool_strn(co_pool *pool, const char *s, size_t len)
{
    char *copy = co_pool_alloc(pool, len + 1);

    return copy ? memcpy(copy, s, len) : NULL; /* the pool is zeroed, so the text already ends in NUL */
}

char *co_pool_str(co_pool *pool, const char *s)
{
    return co_pool_strn(pool, s, strlen(s));
}

char *co_pool_printf(co_pool *pool, const char *fmt, ...)
{
    va_list ap, again;

    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    char *s = co_pool_alloc(pool, (size_t)(n < 0 ? 0 : n) + 1);
    if (s)
        vsnprintf(s, (size_t)(n < 0 ? 0 : n) + 1, fmt, again);
    va_end(again);
    va_end(ap);
    return s;
}

void co_pool_fini(co_pool *pool)
{
    while (pool->head) {
        struct co_pool_block *next = pool->head->next;
        co_free(pool->head);
        pool->head = next;
    }
    pool->total = 0;
}
