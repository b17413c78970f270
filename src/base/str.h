/* str.h -- a growing string, and the known name that is nearest to a mistyped one.
 *
 * Errors are sticky: after memory runs out, further adds do nothing and co_str_err() reports it.
 *
 *     co_str s = {0};
 *     co_str_addf(&s, "%d ranks", n);
 *     puts(co_str_text(&s));
 *     co_str_fini(&s);
 */
#ifndef CO_BASE_STR_H
#define CO_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct co_str {
    char *p;
    size_t len, room;
    bool failed;
} co_str;

void co_str_add(co_str *s, const char *text);
void co_str_addn(co_str *s, const char *text, size_t len);
void co_str_addf(co_str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void co_str_addf64(co_str *s, double x); /* the shortest text that co_str_to_f64 reads back to x */
void co_str_clear(co_str *s);
const char *co_str_text(const co_str *s); /* never NULL */
co_err co_str_err(const co_str *s);
char *co_str_take(co_str *s); /* the buffer is now the caller's; s is empty. NULL if it failed */
void co_str_fini(co_str *s);

/* The candidate with the smallest edit distance to `name`; NULL if none is close enough to be a typing
 * mistake. */
const char *co_str_nearest(const char *name, const char *const *candidates, size_t n);

/* Strict numbers: the whole text must be a number. Floats as strtod reads them in the C locale. Underscores
 * are allowed between digits. */
bool co_str_to_i64(const char *s, long long *out);
bool co_str_to_f64(const char *s, double *out);
bool co_str_to_bool(const char *s, bool *out); /* true false yes no on off, any case */

/* UTF-8. Reads the code point at `at` and returns how many of the `len` bytes it takes; 0 if they are not
 * valid UTF-8. For a NUL-terminated text pass len = 4: the reader never goes past the NUL. */
enum { CO_CODE_POINTS = 0x110000 };
int co_utf8_get(uint32_t *code, const char *at, size_t len);
int co_utf8_put(char out[4], uint32_t code); /* bytes written; not NUL-terminated */
bool co_utf8_valid(const char *s);
/* Copies text from outside so that it can be shown on a terminal: control characters other than newline and
 * tab (C0, DEL, C1), and bytes that are no UTF-8, become '?'. Cut to `size` at a whole character. */
void co_utf8_clean(char *out, size_t size, const char *text);

#endif
