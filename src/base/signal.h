/* signal.h -- the names of signals. */
#ifndef CO_BASE_SIGNAL_H
#define CO_BASE_SIGNAL_H

/* "SIGKILL"; "SIG?" if the number has no name. */
const char *co_signal_name(int sig);

#endif
