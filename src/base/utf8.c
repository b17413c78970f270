/* utf8.c -- code points in and out of bytes (Unicode 15, table 3-7: no overlong forms, no surrogates,
 * nothing past U+10FFFF). */
#include "base/str.h"

#include <string.h>

int co_utf8_get(uint32_t *code, const char *at, size_t len)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const uint8_t *p = (const uint8_t *)at;
    uint32_t c = len ? p[0] : 0xFF;
    size_t n = c < 0xC2 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF5 ? 4 : 0;

    if (c < 0x80) {
        *code = c;
        return 1;
    }
    if (n == 0 || n > len)
        return 0;
    c &= 0x7Fu >> n;
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80) /* a terminating NUL ends up here, too */
            return 0;
        c = c << 6 | (p[i] & 0x3Fu);
    }
    if (c < least[n] || c >= CO_CODE_POINTS || (c >= 0xD800 && c < 0xE000))
        return 0;
    *code = c;
    return (int)n;
}

int co_utf8_put(char out[4], uint32_t c)
{
    static const uint8_t first[5] = {0, 0, 0xC0, 0xE0, 0xF0};
    int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    for (int i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)(first[n] | c);
    return n;
}

bool co_utf8_valid(const char *s)
{
    uint32_t code;

    while (*s) {
        int n = co_utf8_get(&code, s, 4);
        if (n == 0)
            return false;
        s += n;
    }
    return true;
}

void co_utf8_clean(char *out, size_t size, const char *text)
{
    size_t at = 0;

    while (*text) {
        uint32_t code = 0;
        int n = co_utf8_get(&code, text, 4);
        bool control = (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7f && code < 0xa0);
        bool bad = n == 0 || control;
        size_t len = bad ? 1 : (size_t)n;
        if (at + len >= size)
            break;
        memcpy(out + at, bad ? "?" : text, len);
        at += len;
        text += n ? n : 1;
    }
    out[at] = '\0';
}
