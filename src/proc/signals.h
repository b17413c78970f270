/* signals.h -- signals that ask the program to stop.
 *
 * A request may reach us more than once: closing a terminal's window sends SIGHUP from the shell and from the
 * kernel; systemd sends SIGTERM and SIGHUP; schedulers signal the process and its group.
 */
#ifndef CO_PROC_SIGNALS_H
#define CO_PROC_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

/* Does a signal that comes now belong to the request that came at first_ns (0: no request yet)? Ctrl-C never
 * does: pressing it twice is two requests. */
bool co_signal_repeats(int sig, uint64_t first_ns);

#endif
