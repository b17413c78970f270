/* thread.c -- see thread.h. */
#include "base/thread.h"

#include <pthread.h>

#include "base/err.h"

void co_threads_begin(sigset_t *before)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    sigset_t all;

    sigfillset(&all);
    for (size_t i = 0; i < CO_COUNT(crashes); i++)
        sigdelset(&all, crashes[i]);
    pthread_sigmask(SIG_SETMASK, &all, before);
}

void co_threads_end(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}
