/* text.c -- UTF-8 and the quoting of YAML strings.
 *
 * A string is written plain only where every YAML reader takes it for a string (so "1", "true", "null", "" are
 * quoted); everything else is double-quoted, with escapes for what YAML does not allow raw.
 */
#include "config/config_int.h"

#include <string.h>
#include <strings.h>

int conf_utf8(const char *s, uint32_t *code)
{
    const unsigned char *u = (const unsigned char *)s;
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    int len = u[0] < 0x80 ? 1 : u[0] < 0xC0 ? 0 : u[0] < 0xE0 ? 2 : u[0] < 0xF0 ? 3 : u[0] < 0xF8 ? 4 : 0;
    if (len == 0)
        return 0;
    uint32_t c = len == 1 ? u[0] : u[0] & (0x7Fu >> len);
    for (int i = 1; i < len; i++) {
        if ((u[i] & 0xC0) != 0x80) /* the closing NUL too ends here */
            return 0;
        c = c << 6 | (u[i] & 0x3Fu);
    }
    if (c < least[len] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
        return 0;
    *code = c;
    return len;
}

bool conf_utf8_valid(const char *s)
{
    uint32_t code;
    while (*s) {
        int len = conf_utf8(s, &code);
        if (len == 0)
            return false;
        s += len;
    }
    return true;
}

static bool is_plain(const char *s)
{
    static const char *const taken[] = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"};
    static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_/";
    static const char rest[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./=-";
    for (size_t i = 0; i < CO_COUNT(taken); i++)
        if (strcasecmp(s, taken[i]) == 0)
            return false;
    return strspn(s, first) > 0 && strspn(s, rest) == strlen(s);
}

static void escape(co_str *out, uint32_t code, const char *raw, int len)
{
    if (code == '"' || code == '\\')
        co_str_addf(out, "\\%c", (char)code);
    else if (code == '\n')
        co_str_add(out, "\\n");
    else if (code == '\t')
        co_str_add(out, "\\t");
    else if (code < 0x20 || (code >= 0x7F && code < 0xA0))
        co_str_addf(out, "\\x%02X", (unsigned)code);
    else if (code == 0x2028 || code == 0x2029 || code == 0xFEFF || code == 0xFFFE || code == 0xFFFF)
        co_str_addf(out, "\\u%04X", (unsigned)code);
    else
        co_str_addn(out, raw, (size_t)len);
}

void conf_yaml_quote(co_str *out, const char *text)
{
    if (is_plain(text)) {
        co_str_add(out, text);
        return;
    }
    co_str_add(out, "\"");
    while (*text) {
        uint32_t code = 0;
        int len = conf_utf8(text, &code);
        if (len == 0) { /* not UTF-8: only a field set by other means than a word or a file */
            co_str_addf(out, "\\x%02X", (unsigned)(unsigned char)*text);
            len = 1;
        } else {
            escape(out, code, text, len);
        }
        text += len;
    }
    co_str_add(out, "\"");
}
