/* habits_int.h -- flags, words and keys of other programs. A new habit is one row of a table. */
#ifndef CO_CLI_HABITS_INT_H
#define CO_CLI_HABITS_INT_H

#include "base/alloc.h"
#include "cli/cli_int.h"

extern const co_conf_habit habit_flags[]; /* habits_flags.c: flags, and what a bare word is */
extern const co_conf_habit habit_keys[];  /* habits_keys.c: keys and choices */

/* The state of reading one line. */
typedef struct habit_line {
    line *line;
    int argc;
    char **argv;
    bool known;           /* the last flag or word was found in the table */
    bool is_host;         /* the last flag was about hosts */
    int numbers, folders; /* bare words so far */
    const char *folder;   /* the first bare word that is a folder */
    const co_conf_habit *base;
} habit_line;

/* Call this first. A line with a script that cohort does not know, and without data, is refused; the
 * message has the line for `cohort launch`. */
co_err habits_script(habit_line *h);
/* Translates argv[*i], a flag that the command does not have. Adds its word to the line and moves *i past
 * its value. h->known is false if no row matches. CO_EINPUT: the flag is refused. */
co_err habits_flag(habit_line *h, int *i);
co_err habits_word(habit_line *h, const char *word);  /* the same for a word that is not a flag */
co_err habits_end(habit_line *h);                     /* adds the experiment that the flags imply */
size_t habits_names(const char **names, size_t room); /* the names of all flags, for "did you mean" */

void habits_note(const char *text); /* standard error, each text once */

#endif
