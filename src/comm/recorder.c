/* recorder.c -- see recorder.h. The crash handler runs on its own stack and calls nothing that allocates.
 * backtrace() loads a library on its first call, so we call it once at set-up. */
#include "comm/recorder.h"

#include <execinfo.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

static co_record *crash_record;
static _Alignas(16) char crash_stack[32 << 10];

const char *co_phase_name(co_phase p)
{
    static const char *const names[] = {
#define X(id, text) text,
        CO_PHASES(X)
#undef X
    };
    return (unsigned)p < CO_PHASE_COUNT ? names[p] : "?";
}

void co_record_phase(co_record *r, co_phase phase, uint32_t unit, uint32_t slice)
{
    uint64_t n = atomic_load_explicit(&r->ring_n, memory_order_relaxed);

    atomic_store_explicit(&r->phase, phase, memory_order_relaxed);
    atomic_store_explicit(&r->unit, unit, memory_order_relaxed);
    atomic_store_explicit(&r->slice, slice, memory_order_relaxed);
    atomic_store_explicit(&r->ring[n % CO_RECORD_EVENTS],
                          (uint64_t)unit << 32 | (uint64_t)phase << 24 | (slice & 0xffffff),
                          memory_order_relaxed);
    atomic_store_explicit(&r->ring_n, n + 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&r->turns, 1, memory_order_relaxed);
}

void co_record_begin(co_record *r)
{
    atomic_store(&r->crash_signal, 0);
    atomic_store(&r->call, 0);
    r->n_frames = 0;
    co_record_phase(r, CO_PHASE_START, 0, 0);
}

static void on_crash(int sig, siginfo_t *info, void *context)
{
    co_record *r = crash_record;

    (void)context;
    if (r && atomic_load(&r->crash_signal) == 0) {
        r->crash_address = (uintptr_t)info->si_addr;
        r->n_frames = backtrace(r->frame, CO_RECORD_FRAMES);
        atomic_store(&r->crash_signal, sig);
    }
    signal(sig, SIG_DFL);
    raise(sig);
}

void co_record_crashes(co_record *r)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    stack_t stack = {.ss_sp = crash_stack, .ss_size = sizeof crash_stack};
    struct sigaction act = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    void *warm[2];

    crash_record = r;
    backtrace(warm, 2);
    sigaltstack(&stack, NULL);
    for (size_t i = 0; i < CO_COUNT(signals); i++)
        sigaction(signals[i], &act, NULL);
}

void co_record_print(const co_record *r, co_str *out)
{
    int sig = atomic_load(&r->crash_signal);

    co_str_addf(out, "%s (unit %u, item %u)", co_phase_name((co_phase)atomic_load(&r->phase)),
                atomic_load(&r->unit), atomic_load(&r->slice));
    if (!sig)
        return;
    co_str_addf(out, "; %s at address %p", strsignal(sig), (void *)r->crash_address);
    int n = r->n_frames > CO_RECORD_FRAMES ? CO_RECORD_FRAMES : r->n_frames;
    char **text = n > 0 ? backtrace_symbols(r->frame, n) : NULL;
    for (int i = 0; text && i < n; i++)
        co_str_addf(out, "\n    %s", text[i]);
    free(text);
}
