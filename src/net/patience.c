/* patience.c -- waits with a deadline, which another thread can end early; starts the threads that wait. */
#include "net/net.h"

#include <poll.h>
#include <signal.h>

#include "base/clock.h"
#include "net/net_int.h"
#include "net/times_int.h"

co_patience co_patience_s(double seconds)
{
    return (co_patience){.until_ns = co_now_ns() + (uint64_t)(seconds * 1e9)};
}

int patience_slice(const co_patience *p, int most, co_err *err)
{
    uint64_t now = co_now_ns();

    if (p->give_up && atomic_load(p->give_up)) {
        *err = co_fail(CO_ESTOP, "asked to stop");
        return 0;
    }
    if (now >= p->until_ns) {
        *err = co_fail(CO_ETIMEOUT, "the deadline has passed");
        return 0;
    }
    uint64_t left_ms = (p->until_ns - now) / 1000000 + 1;
    return left_ms < (uint64_t)most ? (int)left_ms : most;
}

co_err patience_poll(int fd, int events, const co_patience *p)
{
    struct pollfd at = {.fd = fd, .events = (short)events};
    co_err err = CO_OK;

    for (;;) {
        int slice = patience_slice(p, SLICE_MS, &err);
        if (err)
            return err;
        if (poll(&at, 1, slice) > 0)
            return CO_OK;
    }
}

int co_thread_start(pthread_t *out, void *(*main)(void *), void *arg)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int status = pthread_create(out, NULL, main, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}
