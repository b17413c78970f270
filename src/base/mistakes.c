/* mistakes.c -- a list of mistakes as one text. The first one is always told; later ones while there is
 * room in an error message. */
#include "base/mistakes.h"

#include <string.h>

enum { MOST_BYTES = 3500 }; /* less than the room of co_errmsg() */

/* Is this a whole line of the text? */
static bool has_line(const char *text, const char *line, size_t n)
{
    for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n')
        if (strcspn(at, "\n") == n && memcmp(at, line, n) == 0)
            return true;
    return false;
}

static void add_line(co_mistakes *m, const char *line, size_t n)
{
    if (n == 0 || has_line(co_str_text(&m->text), line, n))
        return;
    bool room = m->n == 0 || m->text.len + n < MOST_BYTES;
    if (room && m->text.len)
        co_str_add(&m->text, "\n");
    if (room)
        co_str_addn(&m->text, line, n);
    m->n++;
    m->untold += !room;
}

co_err co_mistake(co_mistakes *m, co_err err)
{
    if (err != CO_EINPUT)
        return err;
    for (const char *line = co_errmsg(); *line;) {
        size_t n = strcspn(line, "\n");
        add_line(m, line, n);
        line += n + (line[n] == '\n');
    }
    co_errclear();
    return co_str_err(&m->text);
}

co_err co_mistakes_tell(const co_mistakes *m)
{
    if (m->n == 0)
        return CO_OK;
    if (m->untold)
        return co_fail(CO_EINPUT, "%s\nand %d more", co_str_text(&m->text), m->untold);
    return co_fail(CO_EINPUT, "%s", co_str_text(&m->text));
}

void co_mistakes_fini(co_mistakes *m)
{
    co_str_fini(&m->text);
    *m = (co_mistakes){0};
}
