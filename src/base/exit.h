/* exit.h -- exit statuses, as scripts rely on them. */
#ifndef CO_BASE_EXIT_H
#define CO_BASE_EXIT_H

#include "base/err.h"

enum {
    CO_EXIT_DONE = 0,
    CO_EXIT_FAILED = 1,
    CO_EXIT_USAGE = 2,   /* bad usage, configuration or input; nothing was started */
    CO_EXIT_STOPPED = 75 /* stopped on request or pre-empted: start it again to continue */
};

/* The status for an error; CO_EXIT_DONE for CO_OK. */
int co_exit_of(co_err err);

#endif
