/* unicode.c -- looks code points up in the tables of unicode_tables.c: a binary search, ASCII by a
 * shortcut. */
#include "text/unicode_int.h"

static bool is_in(const code_range *table, size_t n, uint32_t code)
{
    size_t low = 0, high = n;

    while (low < high) {
        size_t mid = (low + high) / 2;
        if (code > table[mid].last)
            low = mid + 1;
        else
            high = mid;
    }
    return low < n && code >= table[low].first;
}

static bool is_ascii_letter(uint32_t code)
{
    return (code | 32) >= 'a' && (code | 32) <= 'z';
}

bool code_is_word(uint32_t code)
{
    if (code < 0x80)
        return is_ascii_letter(code) || (code >= '0' && code <= '9') || code == '_';
    return is_in(word_codes, n_word_codes, code);
}

bool code_is_space(uint32_t code)
{
    return code < 0x80 ? code == ' ' || (code >= 9 && code <= 13) : is_in(space_codes, n_space_codes, code);
}

bool code_is_letter(uint32_t code)
{
    return code < 0x80 ? is_ascii_letter(code) : is_in(letter_codes, n_letter_codes, code);
}

bool code_is_number(uint32_t code)
{
    return code < 0x80 ? code >= '0' && code <= '9' : is_in(number_codes, n_number_codes, code);
}

uint32_t code_at(const char *at, const char *end, int *n)
{
    uint32_t code = 0;

    *n = at < end ? co_utf8_get(&code, at, (size_t)(end - at)) : 0;
    return code;
}

static uint32_t lower_of(uint32_t code)
{
    size_t low = 0, high = n_lower_codes;

    while (low < high) {
        size_t mid = (low + high) / 2;
        if (code > lower_codes[mid].last)
            low = mid + 1;
        else
            high = mid;
    }
    const code_shift *s = &lower_codes[low];
    if (low == n_lower_codes || code < s->first || (code - s->first) % (uint32_t)s->step)
        return code;
    return code + (uint32_t)s->by;
}

void add_lower(co_str *out, const char *text, size_t len)
{
    enum { DOTTED_I = 0x130 }; /* the one code point whose lower case is two: i and a dot above */
    char bytes[4];
    int n;

    for (const char *at = text, *end = text + len; at < end; at += n) {
        uint32_t code = code_at(at, end, &n);
        if (code == DOTTED_I)
            co_str_add(out, "i\xCC\x87");
        else
            co_str_addn(out, bytes, (size_t)co_utf8_put(bytes, lower_of(code)));
    }
}

/* How many bytes at `at` could begin a character, at least 1: the rest of it is wrong or missing. */
static size_t broken_len(const uint8_t *at, size_t len)
{
    uint8_t lead = at[0], least = 0x80, most = 0xBF;
    size_t whole = lead >= 0xF0 && lead < 0xF5 ? 4 : lead >= 0xE0 && lead < 0xF0 ? 3 : 1, n = 1;

    least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : least;
    most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : most;
    for (; n < whole && n < len && at[n] >= least && at[n] <= most; n++) {
        least = 0x80;
        most = 0xBF;
    }
    return n;
}

void add_as_utf8(co_str *out, const char *bytes, size_t len)
{
    for (size_t at = 0; at < len;) {
        uint32_t code;
        int n = co_utf8_get(&code, bytes + at, len - at);
        if (n > 0 && code != 0)
            co_str_addn(out, bytes + at, (size_t)n);
        else
            co_str_add(out, "\xEF\xBF\xBD");
        at += n > 0 ? (size_t)n : broken_len((const uint8_t *)bytes + at, len - at);
    }
}
