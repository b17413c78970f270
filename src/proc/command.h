/* command.h -- the output of another program (scontrol, ssh -G), limited in time and bytes. */
#ifndef CO_PROC_COMMAND_H
#define CO_PROC_COMMAND_H

#include <stddef.h>

#include "base/err.h"

/* Runs the program and writes its standard output to the buffer, as much as fits. CO_EIO: it could not be
 * started, failed, or took too long. */
co_err co_command_read(char *out, size_t size, const char *const *argv, double seconds);

#endif
