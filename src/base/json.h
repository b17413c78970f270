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
/* Parses the one value that begins at bytes[*at], ignores what follows, and moves *at to its end. Use it to
 * read a large object member by member: a json_t takes about 20 times the memory of its text. */
co_err co_json_parse_at(json_t **out, size_t *at, const char *bytes, size_t len, const char *what);
co_err co_json_read(json_t **out, const char *path, size_t limit);

/* Compact text, keys in insertion order; numbers read back to the same value. The caller frees it with
 * co_free. NULL if memory is out. */
char *co_json_text(const json_t *v);
co_err co_json_write(const json_t *v, const char *path); /* indented, atomic */
/* What co_json_write writes; no NUL at its end. The caller's, co_free; NULL: no memory. */
char *co_json_file(const json_t *v, size_t *len);
/* as co_json_write, readable by the owner only */
co_err co_json_write_private(const json_t *v, const char *path);
void co_json_print(json_t *take); /* prints one line to standard output */

/* Typed members. They return false and leave *out alone when the key is absent or has another type. */
int co_json_i64(const json_t *obj, const char *key, long long *out);
/* also takes integers and the strings of co_json_num */
int co_json_f64(const json_t *obj, const char *key, double *out);
const char *co_json_str(const json_t *obj, const char *key); /* NULL if not a string */

/* A number that may be nan or inf. JSON has no such numbers; they become the strings "nan", "inf", "-inf". */
json_t *co_json_num(double x);

/* A string of text that may not be valid UTF-8 (for example cut inside a character), which JSON refuses. In
 * that case every byte that is not ASCII becomes '?'. */
json_t *co_json_string(const char *s);

#endif
