/* event.h -- waiting for another rank: spin briefly, then sleep in the kernel.
 *
 * An event is a counter in shared memory. A rank that changes something others wait for rings it afterwards.
 *
 *     for (;;) {
 *         uint32_t seen = co_event_now(ev);
 *         if (condition())
 *             break;
 *         co_event_wait(ev, seen, slot, spin);
 *     }
 *
 * A waiter must not depend on being woken, because a rank may die between its change and its ring. Every
 * sleep therefore ends after CO_EVENT_NAP_MS.
 */
#ifndef CO_COMM_EVENT_H
#define CO_COMM_EVENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { CO_EVENT_NAP_MS = 20 };

typedef struct co_event {
    _Alignas(64) _Atomic uint32_t seq;
    _Atomic uint64_t sleepers; /* one bit per slot */
    _Atomic uint32_t polled;   /* somebody waits in poll for `fd`, */
    int fd;                    /* an eventfd that all processes inherited; 0: none */
} co_event;

static inline uint32_t co_event_now(co_event *e)
{
    return atomic_load_explicit(&e->seq, memory_order_acquire);
}

void co_event_ring(co_event *e);
/* Returns when the count has passed `seen`, after a nap, or spuriously. `spin`: iterations before it
 * sleeps. */
void co_event_wait(co_event *e, uint32_t seen, uint32_t slot, int spin);
/* For one process that waits for sockets too. Between `true` and `false` every ring makes e->fd readable:
 * call it, look at what others may have changed, then poll. `false` also empties the descriptor. */
void co_event_poll(co_event *e, bool on);

#endif
