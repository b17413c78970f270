/* bell.c -- see bell.h.
 *
 * Who waits announces that it sleeps and then looks at the word once more; who changes the word looks at the
 * announcement afterwards. Both are sequentially consistent, so one of the two sees the other, and no wake-up is lost.
 */
#include "base/bell.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

/* A thread that has spun in vain offers its CPU to others YIELDS times, most of a millisecond, before it
 * sleeps. Threads that share a call of a few milliseconds often wait longer than they spin, and to wake
 * one takes as long again. If somebody took the CPU, it sleeps at once: a thread that was woken comes before
 * others that compute, one that yielded comes after them. */
enum { YIELDS = 2000, TAKEN_NS = 100000 };

void co_bell_wake(co_bell *b)
{
    if (atomic_load(&b->sleeping))
        syscall(SYS_futex, &b->word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void co_bell_set(co_bell *b, uint32_t to)
{
    atomic_store(&b->word, to);
    co_bell_wake(b);
}

/* Offers the CPU to others. False: somebody took it. */
static bool stays_after_yield(void)
{
    uint64_t before = co_now_ns();

    sched_yield();
    return co_now_ns() - before < TAKEN_NS;
}

uint32_t co_bell_wait(co_bell *b, int spin, bool (*done)(uint32_t now, uint32_t arg), uint32_t arg)
{
    uint32_t now;

    for (int i = 0; i <= spin + YIELDS * (spin > 0); i++) {
        now = atomic_load_explicit(&b->word, memory_order_acquire);
        if (done(now, arg))
            return now;
        if (i < spin)
            co_relax();
        else if (!stays_after_yield())
            break;
    }
    atomic_store(&b->sleeping, 1);
    while (!done(now = atomic_load(&b->word), arg))
        syscall(SYS_futex, &b->word, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
    atomic_store(&b->sleeping, 0);
    return now;
}
