/* hash.h -- SHA-256 and MD5 (OpenSSL's, linked in), and a quick 64-bit hash for tables and fingerprints. */
#ifndef CO_BASE_HASH_H
#define CO_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct co_sha256 {
    uint64_t opaque[16];
} co_sha256;

void co_sha256_init(co_sha256 *h);
void co_sha256_add(co_sha256 *h, const void *bytes, size_t len);
void co_sha256_hex(co_sha256 *h, char hex[65]); /* finishes the hash */

void co_sha256_of(const void *bytes, size_t len, char hex[65]);
co_err co_sha256_of_file(const char *path, char hex[65], uint64_t *len); /* len may be NULL */

/* Only to compare with sums that others publish: MD5 does not hold against people who mean harm. */
co_err co_md5_of_file(const char *path, char hex[33]);

uint64_t co_fnv1a64(const void *bytes, size_t len);
/* For large memory, as fast as it can be read. The same on every machine; not against people who mean
 * harm. */
uint64_t co_hash_large(const void *bytes, size_t len);

#endif
