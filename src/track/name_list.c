/* name_list.c -- the names of a record's scalars, each with a number of its own. */
#include "track/name_list_int.h"

#include <string.h>

#include "base/alloc.h"

enum { NAMES_MOST = 10000 };

co_err name_list_index(name_list *list, const char *name, uint32_t *out)
{
    for (size_t i = 0; i < list->n; i++) {
        size_t k = (list->guess + i) % list->n;
        if (strcmp(list->name[k], name) == 0) {
            list->guess = k + 1;
            *out = (uint32_t)k;
            return CO_OK;
        }
    }
    if (list->n == NAMES_MOST)
        return co_fail(CO_EFORMAT, "events.jsonl has more than %d names", NAMES_MOST);
    char **more = co_realloc(list->name, (list->n + 1) * sizeof *more);
    if (!more)
        return CO_ENOMEM;
    list->name = more;
    char *copy = more[list->n] = co_strdup(name);
    if (!copy)
        return CO_ENOMEM;
    *out = (uint32_t)list->n++;
    return CO_OK;
}

void name_list_fini(name_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        co_free(list->name[i]);
    co_free(list->name);
    *list = (name_list){0};
}
