/* archive.h -- unpacks .zip, .tar, .tar.gz and .tar.xz into a folder.
 *
 * Only regular files are made. Names that lead out of the folder are refused, and so are symbolic links of a
 * zip; links of a tar are passed over. No more than `most_bytes` and `most_files` come out. What was written
 * is on the disk when the call returns.
 *
 *     co_archive_limits limits = {.most_bytes = 1 << 30, .most_files = 1000000};
 *     CO_TRY(co_archive_unpack(&facts, "ml-1m.zip", "ml-1m.unpacking", &limits));
 */
#ifndef CO_DATA_ARCHIVE_H
#define CO_DATA_ARCHIVE_H

#include <stdint.h>

#include "base/err.h"

typedef struct co_archive_limits {
    uint64_t most_bytes, most_files;
    /* If not NULL, called now and then with the files and bytes that were written. */
    void (*tell)(void *ctx, uint64_t files, uint64_t bytes);
    void *ctx;
} co_archive_limits;

typedef struct co_archive_facts {
    uint64_t files, bytes;
} co_archive_facts;

/* `into` must be a folder. If this fails, what was written stays there: unpack into a folder that may be
 * removed. CO_EFORMAT: the archive is damaged, or holds something that is refused. */
co_err co_archive_unpack(co_archive_facts *out, const char *archive, const char *into,
                         const co_archive_limits *limits);

#endif
