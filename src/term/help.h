/* help.h -- help texts on a terminal of any width. */
#ifndef CO_TERM_HELP_H
#define CO_TERM_HELP_H

#include <stdio.h>

/* Prints a text wrapped to the terminal's width (80 columns where standard output is none), with "cohort
 * COMMAND" in its examples named as this program was called. */
void co_help_print(FILE *to, const char *text);

#endif
