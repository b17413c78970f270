/* escape.c -- finds the end of an escape sequence, even if its bytes arrive in pieces.
 *
 *     ESC [ parameters letter      colours, movements of the cursor: returned whole
 *     ESC ] text BEL (or ESC \\)   a window's title, a link: skipped
 *     ESC ( letter, ESC letter     character sets, saved positions: skipped
 *
 * A control character inside a sequence ends it and is not part of it, so a newline is never lost in an
 * incomplete sequence.
 */
#include "term/term_int.h"

void escape_begin(co_escape *e)
{
    *e = (co_escape){.text = "\033", .len = 1, .open = true};
}

static escape_state ends(co_escape *e, escape_state how)
{
    e->open = false;
    return how;
}

escape_state escape_feed(co_escape *e, char c)
{
    unsigned char code = (unsigned char)c;
    char kind = e->text[1];

    if (!e->open)
        return ESCAPE_NONE;
    if (code < 32)
        return ends(e, kind == ']' && c == '\a' ? ESCAPE_PART : ESCAPE_NONE);
    bool fits = e->len < sizeof e->text - 1;
    if (fits)
        e->text[e->len++] = c;
    if (e->len == 2) /* the second byte is the kind; ESC 7 and ESC M end here */
        return c == '[' || c == ']' || code < 0x30 ? ESCAPE_PART : ends(e, ESCAPE_PART);
    if (kind == ']' || code < (kind == '[' ? 0x40 : 0x30))
        return ESCAPE_PART;
    return ends(e, kind == '[' && fits ? ESCAPE_WHOLE : ESCAPE_PART);
}
