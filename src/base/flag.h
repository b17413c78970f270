/* flag.h -- the flags of a command line, from a table.
 *
 * A flag is written with dashes or underscores inside (--max-steps, --max_steps), its value after '=' or as the next
 * word. Tables end with {0}.
 *
 *     bool quick = false;
 *     const char *rounds = NULL;
 *     CO_TRY(co_flags_parse("bench vs-torch", argc, argv,
 *                           (const co_flag[]){{"--quick", .on = &quick}, {"--rounds", "N", .value = &rounds}, {0}}));
 */
#ifndef CO_BASE_FLAG_H
#define CO_BASE_FLAG_H

#include <stdbool.h>

#include "base/err.h"

typedef struct co_flag {
    const char *name;   /* "--limit" */
    const char *what;   /* its value, in messages: "N" */
    bool *on;           /* a switch: set to true */
    const char **value; /* a flag with a value: set to it */
} co_flag;

/* The row for `word`, or NULL; *value is what follows '=', or NULL. */
const co_flag *co_flag_find(const co_flag *flags, const char *word, const char **value);
/* Sets the flag at argv[*i]; moves *i to its value if that is the next word. CO_EINPUT: a value is missing or too many. */
co_err co_flag_set(const char *command, const co_flag *f, const char *value, char **argv, int argc, int *i);
/* A whole line, argv[1] on: every word must be a flag of the table. CO_EINPUT names the word and the flags. */
co_err co_flags_parse(const char *command, int argc, char **argv, const co_flag *flags);

#endif
