/* habits_int.h -- flags, words and keys of other programs. A new habit is one row of a table. */
#ifndef CO_CLI_HABITS_INT_H
#define CO_CLI_HABITS_INT_H

#include "base/alloc.h"
#include "cli/cli_int.h"

extern const co_conf_habit habit_flags[]; /* habits_flags.c: flags, and what a bare word is */
extern const co_conf_habit habit_keys[];  /* habits_keys.c: keys and choices */

/* A line while it is read. */
typedef struct habit_line {
    line *line;
    int argc;
    char **argv;
    bool known;           /* the last flag or word was one of the table's */
    int numbers, folders; /* bare words so far */
    const co_conf_habit *base;
} habit_line;

/* Before anything is read: a line with a script that cohort does not know, and without data, is refused with the line for
 * `cohort launch`. */
co_err habits_script(habit_line *h);
/* argv[*i], a flag that is not the command's own: its word is added to the line and *i moved past its value; h->known
 * is false if no row has it. CO_EINPUT: refused by name. */
co_err habits_flag(habit_line *h, int *i);
co_err habits_word(habit_line *h, const char *word); /* the same of a word that is no flag */
co_err habits_end(habit_line *h); /* puts the experiment in front that the habits stand on */
size_t habits_names(const char **names, size_t room); /* of all flags, for the nearest */

/* What launchers left in the environment and a run on one host does not follow is said. */
void habits_environment(void);
void habits_note(const char *text); /* standard error, each text once */

#endif
