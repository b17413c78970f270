/* event.c -- one futex word. co_event_ring is a plain atomic add unless somebody sleeps. */
#include "comm/event.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"

void co_event_ring(co_event *e)
{
    atomic_fetch_add_explicit(&e->seq, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&e->sleepers, memory_order_seq_cst))
        syscall(SYS_futex, &e->seq, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    if (atomic_load_explicit(&e->polled, memory_order_seq_cst) && atomic_exchange(&e->polled, 0))
        (void)!write(e->fd, &(uint64_t){1}, 8); /* if it fails, the poll ends by itself a little later */
}

void co_event_poll(co_event *e, bool on)
{
    uint64_t rings;

    if (!on && !atomic_exchange(&e->polled, 0))
        (void)!read(e->fd, &rings, sizeof rings);
    if (on)
        atomic_store_explicit(&e->polled, 1, memory_order_seq_cst);
}

void co_event_wait(co_event *e, uint32_t seen, uint32_t slot, int spin)
{
    uint64_t bit = (uint64_t)1 << (slot & 63);
    struct timespec nap = {0, CO_EVENT_NAP_MS * 1000000L};

    for (int i = 0; i < spin; i++) {
        if (co_event_now(e) != seen)
            return;
        co_relax();
    }
    atomic_fetch_or_explicit(&e->sleepers, bit, memory_order_seq_cst);
    if (co_event_now(e) == seen)
        syscall(SYS_futex, &e->seq, FUTEX_WAIT, seen, &nap, NULL, 0);
    atomic_fetch_and_explicit(&e->sleepers, ~bit, memory_order_seq_cst);
}
