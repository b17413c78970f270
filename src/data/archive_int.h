/* archive_int.h -- the folder that archives are unpacked into. Every file goes through it, so every limit is
 * kept. */
#ifndef CO_DATA_ARCHIVE_INT_H
#define CO_DATA_ARCHIVE_INT_H

#include <stdbool.h>
#include <stddef.h>

#include "data/archive.h"

typedef struct outbox {
    const char *archive, *into;
    const co_archive_limits *limits;
    co_archive_facts facts;
    int fd;          /* the file that is being written; -1: none */
    char path[4096]; /* its path */
} outbox;

/* Is the name safe: relative, no empty part, no "." or "..", no backslash, no control characters, not too
 * long? */
bool archive_name_is_safe(const char *name);

co_err outbox_begin(outbox *out, const char *name);
co_err outbox_put(void *out, const void *bytes, size_t len);
co_err outbox_end(outbox *out);

co_err unpack_zip(outbox *out);
co_err unpack_tar(outbox *out);

#endif
