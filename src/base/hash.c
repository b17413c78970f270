/* hash.c -- SHA-256 and MD5 by OpenSSL, FNV-1a by hand.
 *
 * We use the old SHA256_* and MD5_* functions instead of EVP. With the static libcrypto they link the hashes
 * alone, without providers, configuration files or locks, and they allocate nothing.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/hash.h"

#include <string.h>

#include <errno.h>
#include <fcntl.h>
#include <openssl/md5.h>
#include <openssl/sha.h>
#include <unistd.h>

_Static_assert(sizeof(SHA256_CTX) <= sizeof(co_sha256), "OpenSSL's state does not fit co_sha256");
_Static_assert(_Alignof(SHA256_CTX) <= _Alignof(co_sha256), "OpenSSL's state needs more alignment");

static SHA256_CTX *state(co_sha256 *h)
{
    return (SHA256_CTX *)(void *)h->opaque;
}

void co_sha256_init(co_sha256 *h)
{
    SHA256_Init(state(h));
}

void co_sha256_add(co_sha256 *h, const void *bytes, size_t len)
{
    if (len)
        SHA256_Update(state(h), bytes, len);
}

static void to_hex(char *hex, const unsigned char *sum, size_t len)
{
    static const char digit[] = "0123456789abcdef";

    for (size_t i = 0; i < len; i++) {
        hex[2 * i] = digit[sum[i] >> 4];
        hex[2 * i + 1] = digit[sum[i] & 15];
    }
    hex[2 * len] = '\0';
}

void co_sha256_hex(co_sha256 *h, char hex[65])
{
    unsigned char sum[SHA256_DIGEST_LENGTH];

    SHA256_Final(sum, state(h));
    to_hex(hex, sum, sizeof sum);
}

void co_sha256_of(const void *bytes, size_t len, char hex[65])
{
    co_sha256 h;

    co_sha256_init(&h);
    co_sha256_add(&h, bytes, len);
    co_sha256_hex(&h, hex);
}

/* Calls `add` with the bytes of a file, piece by piece. */
static co_err each_piece(const char *path, void (*add)(void *ctx, const void *bytes, size_t len), void *ctx,
                         uint64_t *len)
{
    unsigned char buf[64 << 10];
    uint64_t total = 0;
    co_err err = CO_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return co_fail(CO_EIO, "open %s: %m", path);
    for (;;) {
        ssize_t n = read(fd, buf, sizeof buf);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            err = co_fail(CO_EIO, "read %s: %m", path);
        if (n <= 0)
            break;
        add(ctx, buf, (size_t)n);
        total += (uint64_t)n;
    }
    close(fd);
    if (!err && len)
        *len = total;
    return err;
}

static void add_sha256(void *ctx, const void *bytes, size_t len)
{
    co_sha256_add(ctx, bytes, len);
}

static void add_md5(void *ctx, const void *bytes, size_t len)
{
    MD5_Update(ctx, bytes, len);
}

co_err co_sha256_of_file(const char *path, char hex[65], uint64_t *len)
{
    co_sha256 h;

    co_sha256_init(&h);
    CO_TRY(each_piece(path, add_sha256, &h, len));
    co_sha256_hex(&h, hex);
    return CO_OK;
}

co_err co_md5_of_file(const char *path, char hex[33])
{
    unsigned char sum[MD5_DIGEST_LENGTH];
    MD5_CTX h;

    MD5_Init(&h);
    CO_TRY(each_piece(path, add_md5, &h, NULL));
    MD5_Final(sum, &h);
    to_hex(hex, sum, sizeof sum);
    return CO_OK;
}

uint64_t co_fnv1a64(const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    uint64_t h = 0xcbf29ce484222325u;

    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

uint64_t co_hash_large(const void *bytes, size_t len)
{
    const uint64_t prime = 0x9e3779b97f4a7c15u;
    uint64_t lane[8] = {1, 2, 3, 4, 5, 6, 7, 8}, word[8], all = len;
    const unsigned char *p = bytes;

    for (; len >= sizeof word; p += sizeof word, len -= sizeof word) {
        memcpy(word, p, sizeof word);
        for (int i = 0; i < 8; i++) {
            lane[i] = (lane[i] ^ word[i]) * prime;
            lane[i] ^= lane[i] >> 29;
        }
    }
    for (int i = 0; i < 8; i++)
        all = (all ^ lane[i]) * prime;
    return (all ^ co_fnv1a64(p, len)) * prime;
}
