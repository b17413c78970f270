/* thread.h -- what threads of this program have in common. */
#ifndef CO_BASE_THREAD_H
#define CO_BASE_THREAD_H

#include <signal.h>

/* Around starting threads: those born between the two calls have all signals blocked but those of a crash.
 * Signals are for the threads that expect them. */
void co_threads_begin(sigset_t *before);
void co_threads_end(const sigset_t *before);

/* Tells the CPU core that this is a spin loop. */
static inline void co_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
