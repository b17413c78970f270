/* name_list_int.h -- the names of a record's scalars, each with a number of its own: 0, 1, 2 ... in the order in
 * which they first appear. Trackers that keep many values keep the number instead of the name. */
#ifndef CO_TRACK_NAME_LIST_INT_H
#define CO_TRACK_NAME_LIST_INT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct name_list {
    char **name;
    size_t n;
    size_t guess; /* lines come in the same order again and again, so the next name is likely this one */
} name_list;

/* The number of the name, which is added if it is new. CO_EFORMAT: there are too many names. */
co_err name_list_index(name_list *list, const char *name, uint32_t *out);
void name_list_fini(name_list *list);

#endif
