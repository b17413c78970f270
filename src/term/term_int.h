/* term_int.h -- what the files of this room share. */
#ifndef CO_TERM_TERM_INT_H
#define CO_TERM_TERM_INT_H

#include "term/screen.h"
#include "term/term.h"

typedef enum {
    ESCAPE_NONE, /* this byte is not part of a sequence */
    ESCAPE_PART,
    ESCAPE_WHOLE /* text is "\033[", the parameters, and the letter of the command */
} escape_state;
void escape_begin(co_escape *e); /* call it after the ESC byte */
escape_state escape_feed(co_escape *e, char c);

void bars_erase(co_screen *c); /* bars.c: removes the block of bars from the terminal */

#endif
