/* command_int.h -- what another program says (scontrol, ssh -G): bounded in time and bytes. */
#ifndef CO_PROC_COMMAND_H
#define CO_PROC_COMMAND_H

#include <stddef.h>

#include "base/err.h"

/* Its standard output, as much as fits; CO_EIO: it cannot be started, failed, or took longer. */
co_err co_command_read(char *out, size_t size, const char *const *argv, double seconds);

#endif
