/* unicode_int.h -- classes of code points, and text taken apart into them. */
#ifndef CO_TEXT_UNICODE_INT_H
#define CO_TEXT_UNICODE_INT_H

#include "base/err.h"
#include "base/str.h"

typedef struct code_range {
    uint32_t first, last;
} code_range;
/* Every `step`-th code point from first to last has its lower case `by` places further. */
typedef struct code_shift {
    uint32_t first, last;
    int32_t step, by;
} code_shift;

extern const code_range word_codes[], space_codes[], letter_codes[], number_codes[];
extern const size_t n_word_codes, n_space_codes, n_letter_codes, n_number_codes;
extern const code_shift lower_codes[];
extern const size_t n_lower_codes;

bool code_is_word(uint32_t code); /* \w: letters, marks, decimal digits, connectors such as _ */
bool code_is_space(uint32_t code);
bool code_is_letter(uint32_t code); /* \p{L} */
bool code_is_number(uint32_t code); /* \p{N} */

/* Appends the lower case of [text, text + len), code point by code point. */
void add_lower(co_str *out, const char *text, size_t len);
/* Appends bytes; what is no UTF-8 in them becomes U+FFFD, one for each longest piece that could have begun a
 * character. */
void add_as_utf8(co_str *out, const char *bytes, size_t len);
/* The code point at `at`, of valid UTF-8; *n is its length. At `end`: 0 and 0. */
uint32_t code_at(const char *at, const char *end, int *n);

#endif
