/* program.h -- the name by which the user called this program, for command lines that messages suggest. */
#ifndef CO_BASE_PROGRAM_H
#define CO_BASE_PROGRAM_H

#include "base/str.h"

/* Call it once, at the start. `argv0` must stay valid. */
void co_program_set(const char *argv0);
const char *co_program(void);        /* "cohort", "build/cohort"; quoted for a shell if needed */
const char *co_program_called(void); /* argv[0] as it is, without quotes: what a child is started with */
const char *co_program_name(void);   /* its last path component, without quotes: "cohort" */

/* appends `word`, quoted so that a shell reads it back unchanged */
void co_shell_word(co_str *out, const char *word);

#endif
