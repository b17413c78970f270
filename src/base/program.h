/* program.h -- the name of this program in lines that a person may type: as it was called. */
#ifndef CO_BASE_PROGRAM_H
#define CO_BASE_PROGRAM_H

#include "base/str.h"

/* Once, at the start; `argv0` must stay. */
void co_program_set(const char *argv0);
const char *co_program(void);        /* "cohort", "build/cohort"; quoted where a shell needs it */
const char *co_program_called(void); /* the same, not quoted: argv[0] for a child */
const char *co_program_name(void);   /* the last part of it, not quoted: "cohort" */

void co_shell_word(co_str *out, const char *word); /* as a shell reads it back */

#endif
