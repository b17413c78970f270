/* token.c -- the run's secret: 128 random bits that people can read to each other over the telephone.
 *
 * Text: Crockford's base32 (no I, L, O, U), 26 digits for 128 bits and two zero bits, then 2 digits of their SHA-256 as a
 * check, in groups of four: 7K2M-9QXD-... A mistyped one is refused here (1023 of 1024) rather than after a handshake.
 */
#include "net/net.h"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <ctype.h>

#include "base/alloc.h"

enum { DIGITS = 26, ALL = 28 };
static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

co_err co_token_make(co_token *out)
{
    if (RAND_bytes(out->bits, sizeof out->bits) != 1)
        return co_fail(CO_EIO, "the system gives no random numbers for a token");
    return CO_OK;
}

static unsigned check_of(const co_token *t)
{
    uint8_t h[32];

    EVP_Digest(t->bits, sizeof t->bits, h, NULL, EVP_sha256(), NULL);
    return (unsigned)(h[0] << 2 | h[1] >> 6);
}

void co_token_text(char out[CO_TOKEN_TEXT], const co_token *t)
{
    unsigned digit[ALL], check = check_of(t), acc = 0;
    int bits = 0, n = 0;

    for (int i = 0; i < 16; i++) {
        acc = acc << 8 | t->bits[i];
        for (bits += 8; bits >= 5; bits -= 5)
            digit[n++] = acc >> (bits - 5) & 31;
    }
    digit[n++] = acc << (5 - bits) & 31; /* 3 bits are left */
    digit[n++] = check >> 5;
    digit[n++] = check & 31;
    for (int i = 0; i < ALL; i++) {
        if (i && i % 4 == 0)
            *out++ = '-';
        *out++ = alphabet[digit[i]];
    }
    *out = '\0';
}

static int value_of(char c)
{
    int up = toupper((unsigned char)c);
    const char *at = up ? strchr(alphabet, up == 'O' ? '0' : up == 'I' || up == 'L' ? '1' : up) : NULL;

    return at ? (int)(at - alphabet) : -1;
}

co_err co_token_parse(co_token *out, const char *text)
{
    unsigned digit[ALL], acc = 0;
    co_token t = {{0}};
    int n = 0, bits = 0, k = 0;

    for (; *text; text++) {
        if (*text == '-' || isspace((unsigned char)*text))
            continue;
        int v = value_of(*text);
        if (v < 0 || n == ALL)
            return co_fail(CO_EINPUT, v < 0 ? "the token has a character that no token has; copy it again"
                                            : "the token has more than 28 letters and digits; copy it again");
        digit[n++] = (unsigned)v;
    }
    if (n < ALL)
        return co_fail(CO_EINPUT, "the token has %d letters and digits, not 28; copy it again", n);
    for (int i = 0; i < DIGITS; i++) {
        acc = acc << 5 | digit[i];
        if ((bits += 5) >= 8 && k < 16)
            t.bits[k++] = (uint8_t)(acc >> (bits -= 8));
    }
    if ((acc & 3) != 0 || check_of(&t) != (digit[DIGITS] << 5 | digit[DIGITS + 1]))
        return co_fail(CO_EINPUT,
                       "the token is mistyped: its last two letters do not fit the rest; copy it again");
    *out = t;
    return CO_OK;
}

co_err co_token_take(char out[CO_TOKEN_TEXT], bool *given)
{
    char *there = getenv("COHORT_TOKEN");
    co_token t;
    co_err err = CO_OK;

    *given = there && *there;
    *out = '\0';
    if (*given) {
        err = co_token_parse(&t, there);
        memset(there, 0, strlen(there)); /* /proc/PID/environ shows this memory */
        if (!err)
            co_token_text(out, &t);
    }
    unsetenv("COHORT_TOKEN");
    return err ? co_fail_in(err, "COHORT_TOKEN") : CO_OK;
}
