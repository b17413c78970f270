/* token.c -- the run's secret: 128 random bits in a form that people can read out over the telephone.
 *
 * As text: 26 digits of base32.c and 2 check digits, in groups of four: 7K2M-9QXD-... The check refuses a
 * mistyped token here (1023 of 1024), before any handshake.
 */
#include "net/net.h"

#include <ctype.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { ALL = 28 };

co_err co_token_make(co_token *out)
{
    if (RAND_bytes(out->bits, sizeof out->bits) != 1)
        return co_fail(CO_EIO, "cannot make a token: the system gives no random numbers");
    return CO_OK;
}

void co_token_text(char out[CO_TOKEN_TEXT], const co_token *t)
{
    uint8_t digit[ALL];

    co_base32_write(digit, t->bits, sizeof t->bits);
    for (int i = 0; i < ALL; i++) {
        if (i && i % 4 == 0)
            *out++ = '-';
        *out++ = co_base32_letter(digit[i]);
    }
    *out = '\0';
}

co_err co_token_parse(co_token *out, const char *text)
{
    uint8_t digit[ALL];
    co_token t = {{0}};
    int n = 0;

    for (; *text; text++) {
        if (*text == '-' || isspace((unsigned char)*text))
            continue;
        int v = co_base32_digit(*text);
        if (v < 0 || n == ALL)
            return co_fail(CO_EINPUT, v < 0
                                          ? "the token has a character that tokens do not use; copy it again"
                                          : "the token has more than 28 letters and digits; copy it again");
        digit[n++] = (uint8_t)v;
    }
    if (n < ALL)
        return co_fail(CO_EINPUT, "the token has %d letters and digits, not 28; copy it again", n);
    if (!co_base32_read(t.bits, sizeof t.bits, digit))
        return co_fail(CO_EINPUT,
                       "the token is mistyped: its last two letters do not match the rest; copy it again");
    *out = t;
    return CO_OK;
}

char *co_secret_take(const char *name)
{
    char *there = getenv(name), *copy = there && *there ? co_strdup(there) : NULL;

    if (there)
        explicit_bzero(there, strlen(there)); /* /proc/PID/environ would show it */
    unsetenv(name);
    return copy;
}

co_err co_token_take(char out[CO_TOKEN_TEXT], bool *given)
{
    char *text = co_secret_take("COHORT_TOKEN");
    co_token t;
    co_err err = text ? co_token_parse(&t, text) : CO_OK;

    *given = text != NULL;
    *out = '\0';
    if (text && !err)
        co_token_text(out, &t);
    if (text)
        explicit_bzero(text, strlen(text));
    co_free(text);
    return err ? co_fail_in(err, "COHORT_TOKEN") : CO_OK;
}
