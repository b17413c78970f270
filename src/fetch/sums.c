/* sums.c -- checksums that publishers state. */
#include "fetch/fetch_int.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"

/* How many of the bytes are hexadecimal digits. */
static size_t hex_digits(const char *at, size_t len)
{
    size_t n = 0;

    while (n < len && isxdigit((unsigned char)at[n]))
        n++;
    return n;
}

bool sums_parse_md5(sums *out, const char *text, size_t len)
{
    for (size_t at = 0; at < len;) {
        size_t n = hex_digits(text + at, len - at);
        bool word = at == 0 || !isalnum((unsigned char)text[at - 1]);
        bool ends = at + n == len || !isalnum((unsigned char)text[at + n]);
        if (n == 32 && word && ends) {
            for (int i = 0; i < 32; i++)
                out->md5[i] = (char)tolower((unsigned char)text[at + (size_t)i]);
            out->md5[32] = '\0';
            return true;
        }
        at += n ? n : 1;
    }
    return false;
}

co_err sums_check(co_fetch_facts *facts, const sums *want, const char *path)
{
    bool strong = *want->sha256;
    const char *hex = strong ? want->sha256 : want->md5;
    char have[65];

    facts->sum = CO_SUM_NONE;
    facts->hex[0] = '\0';
    if (!*hex)
        return CO_OK;
    CO_TRY(strong ? co_sha256_of_file(path, have, NULL) : co_md5_of_file(path, have));
    if (strcmp(have, hex) != 0)
        return co_fail(CO_EFORMAT, "its %s is %s, it should be %s", strong ? "SHA-256" : "MD5", have, hex);
    facts->sum = strong ? CO_SUM_SHA256 : CO_SUM_MD5;
    snprintf(facts->hex, sizeof facts->hex, "%s", hex);
    return CO_OK;
}
