/* flag.h -- the flags of a command line, from a table.
 *
 * A flag may be written with dashes or underscores inside (--max-steps, --max_steps). Its value follows '='
 * or is the next argument. Tables end with {0}.
 *
 *     bool quick = false;
 *     const char *rounds = NULL;
 *     const co_flag flags[] = {{"--quick", .on = &quick}, {"--rounds", "N", .value = &rounds}, {0}};
 *     CO_TRY(co_flags_parse("bench vs-torch", argc, argv, flags));
 */
#ifndef CO_BASE_FLAG_H
#define CO_BASE_FLAG_H

#include <stdbool.h>

#include "base/err.h"

typedef struct co_flag {
    const char *name;   /* "--limit" */
    const char *what;   /* how messages write its value: "N" */
    bool *on;           /* for a switch: set to true */
    const char **value; /* for a flag with a value: set to the value */
} co_flag;

/* The row that matches `word`, or NULL. *value is the text after '=', or NULL. */
const co_flag *co_flag_find(const co_flag *flags, const char *word, const char **value);
/* Sets the flag at argv[*i] and moves *i to its value if that is the next argument. CO_EINPUT: the flag lacks
 * a value, or has one but takes none. */
co_err co_flag_set(const char *command, const co_flag *f, const char *value, char **argv, int argc, int *i);
/* Parses a whole command line from argv[1] on. Every argument must be a flag of the table; CO_EINPUT names
 * the one that is not, and the flags. */
co_err co_flags_parse(const char *command, int argc, char **argv, const co_flag *flags);

#endif
