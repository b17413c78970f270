/* file_int.h -- opening the files of data sets, and noticing files that change while they are used. */
#ifndef CO_DATA_FILE_INT_H
#define CO_DATA_FILE_INT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Opens a regular file for reading. Anything else (a named pipe, a socket, a device, a folder) is refused at
 * once: to open a pipe would wait for its writer. -1: co_errmsg says why, and errno is open's, or EINVAL for
 * what is no file. */
int file_open(const char *path);
/* CO_EINPUT if the path is there and is no regular file. */
co_err file_check_regular(const char *path);

/* --- files that were read before ------------------------------------------------------------------------
 * A 64-bit hash for each of n files, in memory that forked processes share. Whoever reads a file first sets
 * its hash; everybody else compares with it. */
typedef struct seen {
    _Atomic uint64_t *hash; /* [n]; 0: not read yet. NULL: nothing is remembered */
    uint32_t n;
    void *map; /* the file that keeps them; NULL: `hash` is plain shared memory */
    size_t map_len;
} seen;
co_err seen_init(seen *s, uint32_t n);
/* False: file i was read before and had other bytes. */
bool seen_same(const seen *s, uint32_t i, const void *bytes, size_t len);
/* From now on the hashes are kept in a file, so that a later process compares with them too. If there is one
 * of the same fingerprint and n, its hashes are taken over; *differs becomes the first file that has another
 * hash there, or n. */
co_err seen_keep(seen *s, const char *path, const char fingerprint[65], uint32_t *differs);
void seen_fini(seen *s);

#endif
