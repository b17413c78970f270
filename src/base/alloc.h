/* alloc.h -- the only way to heap memory, so that tests can count allocations and fail the n-th.
 *
 * co_pool is for things that die together (a graph's nodes, a config's words): many small pieces, one free.
 *
 *     co_pool pool = {0};
 *     char *name = co_pool_str(&pool, "fc1.weight");      // NULL when memory is out, message set
 *     co_pool_fini(&pool);
 */
#ifndef CO_BASE_ALLOC_H
#define CO_BASE_ALLOC_H

#include <stddef.h>
#include <stdint.h>

/* All return NULL with co_fail(CO_ENOMEM) set when memory is out. A size of 0 gives a pointer that co_free
 * accepts. */
void *co_alloc(size_t size);              /* contents undefined */
void *co_zalloc(size_t size);             /* zeroed */
void *co_array(size_t n, size_t size);    /* n * size, overflow checked, zeroed */
void *co_realloc(void *old, size_t size); /* old stays valid on failure */
char *co_strdup(const char *s);
char *co_sprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void co_free(void *p); /* NULL is fine */

/* Zeroed memory for large data that forked processes read. All processes share one copy, and fork copies no
 * page tables for it. Free it with co_free_shared only. */
void *co_alloc_shared(size_t size);
void co_free_shared(void *p); /* NULL is fine */

/* Touches `bytes` of this thread's stack now, so that no step takes the page faults later. */
void co_touch_stack(size_t bytes);

uint64_t co_alloc_count(void);      /* allocations by this process so far */
void co_alloc_fail_at(int64_t nth); /* the n-th allocation from now fails (1 = the next); 0 turns it off */

typedef struct co_pool {
    struct co_pool_block *head;
    size_t total; /* bytes handed out */
} co_pool;

void *co_pool_alloc(co_pool *pool, size_t size); /* zeroed, 16-byte aligned */
char *co_pool_str(co_pool *pool, const char *s);
char *co_pool_strn(co_pool *pool, const char *s, size_t len);
char *co_pool_printf(co_pool *pool, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void co_pool_fini(co_pool *pool);

#endif
