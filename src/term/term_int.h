/* term_int.h -- what the files of this room share. */
#ifndef CO_TERM_TERM_INT_H
#define CO_TERM_TERM_INT_H

#include "term/screen.h"
#include "term/term.h"

typedef enum {
    ESCAPE_NONE, /* this byte belongs to none */
    ESCAPE_PART,
    ESCAPE_WHOLE /* text is "\033[", parameters and the letter that says what it does */
} escape_state;
void escape_begin(co_escape *e); /* its first byte has come */
escape_state escape_feed(co_escape *e, char c);

void bars_erase(co_screen *c); /* bars.c: removes the block of bars from the terminal */

#endif
