/* json.h -- jansson behind our checks: size and depth limits, duplicate keys refused, messages with place.
 *
 * Rooms that build or read JSON use jansson's own API (json_t) for values; this door is for bytes in and out.
 * jansson allocates through base/alloc.
 */
#ifndef CO_BASE_JSON_H
#define CO_BASE_JSON_H

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"

/* *out is the caller's (json_decref). Refuses duplicate keys, NUL characters inside strings, trailing bytes,
 * more than 100,000,000 bytes. `what` names the source in messages ("manifest.json"). */
co_err co_json_parse(json_t **out, const char *bytes, size_t len, const char *what);
/* The same for the one value that begins at bytes[*at], whatever follows it; *at moves to where it ends. For large
 * objects that are read member by member: a json_t takes some 20 times the memory of its text. */
co_err co_json_parse_at(json_t **out, size_t *at, const char *bytes, size_t len, const char *what);
co_err co_json_read(json_t **out, const char *path, size_t limit);

/* Compact, keys in insertion order, numbers so that they read back the same. Caller's, co_free. NULL if
 * memory is out. */
char *co_json_text(const json_t *v);
co_err co_json_write(const json_t *v, const char *path);         /* indented, atomic */
co_err co_json_write_private(const json_t *v, const char *path); /* the same, readable by its owner only */
void co_json_print(json_t *take);                                /* one line on standard output */

/* Typed members: false (and *out untouched) when absent or of another type. */
int co_json_i64(const json_t *obj, const char *key, long long *out);
int co_json_f64(const json_t *obj, const char *key, double *out); /* integers, and co_json_num's strings */
const char *co_json_str(const json_t *obj, const char *key);      /* NULL if not a string */

/* A number that may be nan or inf, which JSON lacks: those become the strings "nan", "inf", "-inf". */
json_t *co_json_num(double x);

/* Of text that may have been cut inside a character, or never was UTF-8, which JSON does not take: '?' for what is not ASCII. */
json_t *co_json_string(const char *s);

#endif
