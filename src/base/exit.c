/* exit.c -- which exit status an error gets. */
#include "base/exit.h"

int co_exit_of(co_err err)
{
    switch (err) {
    case CO_OK:
        return CO_EXIT_DONE;
    case CO_ESTOP:
        return CO_EXIT_STOPPED;
    case CO_EINPUT:
    case CO_ENOMEM:
    case CO_EFORMAT:
        return CO_EXIT_USAGE;
    default:
        return CO_EXIT_FAILED;
    }
}
