/* help.h -- help texts on a terminal of any width. */
#ifndef CO_TERM_HELP_H
#define CO_TERM_HELP_H

#include <stdio.h>

/* Prints a text wrapped to the terminal's width (80 columns if standard output is not a terminal). "cohort
 * COMMAND" in its examples becomes the name by which this program was called. */
void co_help_print(FILE *to, const char *text);
/* The same of a list with an entry a line: what does not fit is indented below its entry. */
void co_help_print_list(FILE *to, const char *text);

#endif
