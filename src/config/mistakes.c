/* mistakes.c -- the mistakes of a configuration. All of them are reported at once, one per line.
 *
 * Composing goes on after a mistake with what is left. Some keys are then unknown only because of an
 * earlier mistake: those below a group whose choice was wrong, and those of a row that a misspelt
 * experiment would have chosen. They are not reported.
 */
#include "config/config_int.h"

#include <string.h>

co_err conf_mistake(co_conf *c, co_err err)
{
    return co_mistake(c->mistakes, err);
}

void conf_doubt(co_conf *c, const char *key)
{
    const conf_slot *slot = c->slots ? conf_slot_find(c, key) : NULL; /* the key may be an alias */
    if (slot)
        key = slot->key;
    key += strspn(key, "+~");
    int g = conf_group_index(c->spec, key, strcspn(key, "./=@"));
    if (g >= 0)
        c->picks[g].doubtful = true;
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

bool co_conf_is_sure(const co_conf *c, const char *group)
{
    static const char *const all[] = {"experiment", "debug"}; /* their files set keys of any group */
    for (size_t i = 0; i < CO_COUNT(all); i++) {
        int g = conf_group_index(c->spec, all[i], strlen(all[i]));
        if (g >= 0 && (c->picks[g].wrong || c->picks[g].doubtful))
            return false;
    }
    int g = conf_group_index(c->spec, group, strlen(group));
    return g >= 0 && !c->picks[g].wrong && !c->picks[g].doubtful;
}
