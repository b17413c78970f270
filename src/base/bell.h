/* bell.h -- a number that threads change and one other thread waits for.
 *
 * The waiting thread spins for a while, then offers its CPU to others, and only then sleeps; as long as the two meet
 * quickly, neither makes a system call that blocks.
 *
 *     co_bell_set(&bell, 7);                               one thread
 *     co_bell_wait(&bell, CO_TEAM_SPIN, is_at_least, 7);   the other
 */
#ifndef CO_BASE_BELL_H
#define CO_BASE_BELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct co_bell {
    _Alignas(64) _Atomic uint32_t word; /* on a cache line of its own */
    _Atomic uint32_t sleeping;
} co_bell;

/* Waits while done(number, arg) is false; the number then. What the other thread wrote before it changed the number
 * is visible on return. spin: rounds before it offers its CPU to others; 0, where threads have to share CPUs: it
 * sleeps at once. */
uint32_t co_bell_wait(co_bell *b, int spin, bool (*done)(uint32_t now, uint32_t arg), uint32_t arg);
void co_bell_wake(co_bell *b); /* for whoever changed `word` by an atomic operation of its own */
void co_bell_set(co_bell *b, uint32_t to);

#endif
