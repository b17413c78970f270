/* fetch_int.h -- the unfinished file, and checksums. */
#ifndef CO_FETCH_FETCH_INT_H
#define CO_FETCH_FETCH_INT_H

#include <stddef.h>

#include "fetch/fetch.h"

enum { FETCH_PATH = 4096, FETCH_URL = 2048, FETCH_ETAG = 128 };

/* --- partial.c: PATH.part, locked, and PATH.part.from, which says where its bytes came from ------------- */
typedef struct partial {
    int fd;
    char path[FETCH_PATH], note[FETCH_PATH];
    uint64_t len;
    char url[FETCH_URL], etag[FETCH_ETAG]; /* of its bytes; "": not known */
} partial;
co_err partial_open(partial *p, const char *path, bool anew);
co_err partial_restart(partial *p); /* throws its bytes away */
co_err partial_came_from(partial *p, const char *url, const char *etag);
co_err partial_add(partial *p, const void *bytes, size_t len);
/* CO_EIO if fewer than `bytes` are free where it lies. */
co_err partial_needs(const partial *p, uint64_t bytes);
/* Syncs it and renames it to `path`. The part is closed then. */
co_err partial_finish(partial *p, const char *path);
void partial_discard(partial *p); /* removes the file; partial_close is still needed */
void partial_close(partial *p);   /* the file stays */

/* --- sums.c --------------------------------------------------------------------------------------------- */
typedef struct sums {
    char md5[33], sha256[65]; /* "": not known */
} sums;
/* Reads "HEX  NAME" or "MD5 (NAME) = HEX" into out->md5; false: no MD5 is there. */
bool sums_parse_md5(sums *out, const char *text, size_t len);
/* Compares the strongest sum that is known. CO_EFORMAT: it differs. */
co_err sums_check(co_fetch_facts *facts, const sums *want, const char *path);

#endif
