/* fault.c -- accidents of ranks on request, so that recovery can be rehearsed and tested at every phase.
 *
 * The supervisor arms one accident at a time: (phase, slot, seed). When that rank reaches the phase, it sets
 * a timer that sends it SIGKILL at a random moment within the time that the phase took last. */
#include "train/rank_int.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

uint64_t fault_word(co_fault phase, int slot, uint64_t seed)
{
    return (seed & 0xffffffff) << 16 | (uint64_t)phase << 8 | (uint64_t)(slot + 1);
}

/* The part of the phase in which the kill may fall, in 1/1024 of its length. */
static void window(co_fault phase, uint64_t *from, uint64_t *to)
{
    *from = phase == CO_FAULT_BACKWARD ? 350 : 0;
    *to = phase == CO_FAULT_FORWARD ? 350 : 1024;
}

static void strike_after(uint64_t ns)
{
    struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    struct itimerspec at = {.it_value = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)}};
    timer_t timer;

    if (ns < 200 || timer_create(CLOCK_MONOTONIC, &ev, &timer) != 0 || timer_settime(timer, 0, &at, NULL) != 0)
        kill(getpid(), SIGKILL);
}

void fault_point(struct rank *rank, co_fault phase)
{
    control *ctl = rank->regions->ctl;
    uint64_t w = atomic_load_explicit(&ctl->fault, memory_order_relaxed), from, to;

    if (rank->point)
        rank->point(rank);
    if (w == 0 || (w >> 8 & 0xff) != (uint64_t)phase || (w & 0xff) != rank->who.slot + 1)
        return;
    if (rank->doomed || !atomic_compare_exchange_strong(&ctl->fault, &w, 0))
        return; /* this rank dies already; the accident is its successor's */
    rank->doomed = true;
    uint64_t length =
        phase == CO_FAULT_FORWARD || phase == CO_FAULT_BACKWARD ? rank->compute_ns : rank->phase_ns;
    window(phase, &from, &to);
    uint64_t delay = length * (from + (w >> 16) % (to - from)) / 1024;
    atomic_store(&ctl->fault_at_ns, co_now_ns() + delay);
    strike_after(delay);
}

void fault_slow(struct rank *rank, uint64_t t0_ns)
{
    enum { NAP_NS = 20000000 }; /* far below trainer.stall_s: a slow rank is no stalled one */
    double more = rank->plan->cfg.fault_host_slow - 1;
    uint64_t now = co_now_ns(), until = now + (uint64_t)(more * (double)(now - t0_ns));

    for (; now < until && turn_is_open(rank); now = co_now_ns()) {
        uint64_t left = until - now;
        rank_phase(rank, CO_PHASE_COMPUTE, 0);
        nanosleep(&(struct timespec){.tv_nsec = (long)(left < NAP_NS ? left : NAP_NS)}, NULL);
    }
}
