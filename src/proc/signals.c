/* signals.c -- counts repeated signals as one request to stop. */
#include "proc/signals.h"

#include <signal.h>

#include "base/clock.h"
#include "proc/proc_int.h"

bool co_signal_repeats(int sig, uint64_t first_ns)
{
    return sig != SIGINT && sig != SIGQUIT && first_ns &&
           co_now_ns() < first_ns + ONE_REQUEST_MS * UINT64_C(1000000);
}
