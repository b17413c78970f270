/* base32.c -- bytes as text that people can read to each other: Crockford's digits (no I, L, O, U) and two
 * check digits.
 *
 * Each digit holds five bits, in order; zeros fill up the last one. The two check digits are the first ten
 * bits of the bytes' SHA-256. The caller decides how digits are grouped on a line (token.c, the roster's join
 * code).
 */
#include "net/net.h"

#include <ctype.h>
#include <openssl/evp.h>
#include <string.h>

static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

char co_base32_letter(unsigned digit)
{
    return alphabet[digit & 31];
}

int co_base32_digit(char c)
{
    int up = toupper((unsigned char)c);
    const char *at = up ? strchr(alphabet, up == 'O' ? '0' : up == 'I' || up == 'L' ? '1' : up) : NULL;

    return at ? (int)(at - alphabet) : -1;
}

static unsigned check_of(const uint8_t *bytes, size_t len)
{
    uint8_t h[32] = {0};

    EVP_Digest(bytes, len, h, NULL, EVP_sha256(), NULL);
    return (unsigned)(h[0] << 2 | h[1] >> 6);
}

void co_base32_write(uint8_t *digits, const uint8_t *bytes, size_t len)
{
    unsigned check = check_of(bytes, len), acc = 0;
    int bits = 0;

    for (size_t i = 0; i < len; i++) {
        acc = (acc << 8 | bytes[i]) & 0xffff;
        for (bits += 8; bits >= 5; bits -= 5)
            *digits++ = acc >> (bits - 5) & 31;
    }
    if (bits)
        *digits++ = (uint8_t)(acc << (5 - bits) & 31);
    *digits++ = (uint8_t)(check >> 5);
    *digits = check & 31;
}

bool co_base32_read(uint8_t *bytes, size_t len, const uint8_t *digits)
{
    unsigned acc = 0;
    int bits = 0;

    for (size_t n = 0; n < len; digits++) {
        acc = (acc << 5 | *digits) & 0xffff;
        if ((bits += 5) >= 8)
            bytes[n++] = (uint8_t)(acc >> (bits -= 8));
    }
    bool filled_with_zeros = (acc & ((1u << bits) - 1)) == 0;
    return filled_with_zeros && check_of(bytes, len) == ((unsigned)digits[0] << 5 | digits[1]);
}
