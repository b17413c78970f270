/* text.c -- quotes YAML strings.
 *
 * A string is written without quotes only if every YAML reader takes it for a string; "1", "true", "null"
 * and "" are quoted. Quoted strings have escapes for characters that YAML does not allow.
 */
#include "config/config_int.h"

#include <string.h>
#include <strings.h>

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
        int len = co_utf8_get(&code, text, 4);
        if (len == 0) { /* not UTF-8: possible only if the field was not set by a word or a file */
            co_str_addf(out, "\\x%02X", (unsigned)(unsigned char)*text);
            len = 1;
        } else {
            escape(out, code, text, len);
        }
        text += len;
    }
    co_str_add(out, "\"");
}
