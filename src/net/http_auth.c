/* http_auth.c -- the header of basic authentication. */
#include <openssl/evp.h>
#include <string.h>

#include "base/alloc.h"
#include "net/http.h"

char *co_http_basic(const char *user, const char *password)
{
    static const char name[] = "Authorization: Basic ";
    char *pair = co_sprintf("%s:%s", user, password);
    char *out = pair ? co_alloc(sizeof name + 4 * (strlen(pair) / 3 + 1) + 1) : NULL;

    if (out) {
        memcpy(out, name, sizeof name);
        EVP_EncodeBlock((unsigned char *)out + sizeof name - 1, (const unsigned char *)pair, (int)strlen(pair));
    }
    co_http_wipe(pair);
    return out;
}

void co_http_wipe(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    co_free(secret);
}
