/* vocabulary_int.h -- vocabularies as a checkpoint holds them: a JSON object whose format names the kind. */
#ifndef CO_DATA_VOCABULARY_INT_H
#define CO_DATA_VOCABULARY_INT_H

#include <jansson.h>

#include "data/data.h"

/* Adds the object's text to `out`, which fails if `all` is NULL. Takes `all`. */
void vocabulary_add(co_str *out, json_t *all);

/* Reads an object of this format. `read` may set *set before it fails: it is closed then, and *out is not
 * written. What is wrong with the bytes is CO_EINPUT. */
typedef co_err (*vocabulary_reader)(co_dataset **set, const json_t *all);
co_err vocabulary_open(co_dataset **out, const char *json, size_t len, const char *format,
                       vocabulary_reader read);

#endif
