/* mistakes.c -- collects the mistakes of a command line, to report all of them at once, one per line.
 *
 * Composing goes on after a mistake with what is left. Some keys are then unknown only because of an
 * earlier mistake: those below a group whose choice was wrong, and those of a row that a misspelt
 * experiment would have chosen. They are not reported.
 */
#include "config/config_int.h"

#include <string.h>

enum { MOST_BYTES = 3500 }; /* less than the room of co_errmsg() */

/* Is `line` a whole line of the text? */
static bool has_line(const char *text, const char *line)
{
    size_t n = strlen(line);
    for (const char *at = text; (at = strstr(at, line)) != NULL; at++)
        if ((at == text || at[-1] == '\n') && (at[n] == '\0' || at[n] == '\n'))
            return true;
    return false;
}

co_err conf_mistake(co_conf *c, co_err err)
{
    if (err != CO_EINPUT)
        return err;
    bool told = has_line(co_str_text(&c->mistakes), co_errmsg());
    bool room = c->n_mistakes == 0 || c->mistakes.len + strlen(co_errmsg()) < MOST_BYTES;
    if (!told && room)
        co_str_addf(&c->mistakes, "%s%s", c->mistakes.len ? "\n" : "", co_errmsg());
    c->n_mistakes += !told;
    c->n_untold += !told && !room;
    co_errclear();
    return co_str_err(&c->mistakes);
}

void conf_mistake_group(co_conf *c, const char *group)
{
    int g = conf_group_index(c->spec, group, strlen(group));
    if (g >= 0)
        c->picks[g].wrong = true;
}

bool conf_follows_mistake(const co_conf *c, const char *key)
{
    int experiment = conf_group_index(c->spec, "experiment", 10);
    if (experiment >= 0 && c->picks[experiment].wrong && co_conf_knows(c->spec, key))
        return true;
    for (int g = 0; g < c->spec->n_groups; g++)
        if (c->picks[g].wrong && conf_is_below(key, c->spec->groups[g].name))
            return true;
    return false;
}

co_err conf_mistakes_tell(co_conf *c)
{
    if (c->n_mistakes == 0)
        return CO_OK;
    if (c->n_untold)
        return co_fail(CO_EINPUT, "%s\nand %d more", co_str_text(&c->mistakes), c->n_untold);
    return co_fail(CO_EINPUT, "%s", co_str_text(&c->mistakes));
}
