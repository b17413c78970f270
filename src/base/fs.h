/* fs.h -- files: reads of a whole file with a size limit, and writes that happen completely or not at all.
 *
 * Every error message names the path and the text of errno.
 */
#ifndef CO_BASE_FS_H
#define CO_BASE_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Reads the whole file and adds a NUL byte; *out is the caller's (co_free). Refuses files over `limit`
 * bytes. A pipe (`<(command)`) is read to its end; one that nobody writes into, or that brings nothing for 30
 * s, is an error. */
co_err co_fs_read(char **out, size_t *len, const char *path, size_t limit);

/* Atomic: writes a temporary file beside `path`, fsyncs it, renames it to `path`, fsyncs the folder. */
co_err co_fs_write_atomic(const char *path, const void *bytes, size_t len);
/* Renamed into place too, but not synced: for a file that is of no use after a crash, or that is synced
 * later. */
co_err co_fs_write_lightly(const char *path, const void *bytes, size_t len);
co_err co_fs_sync(const char *path); /* fsyncs the file */
/* As co_fs_write_atomic, but only the owner may read the file. */
co_err co_fs_write_private(const char *path, const void *bytes, size_t len);

/* Opens a log file to append to, made if it is missing. Refuses a link, and what is not a regular file; a
 * FIFO does not make it wait. System calls only, apart from the message of an error. */
co_err co_fs_open_log(int *fd, const char *path);

co_err co_fs_mkdirs(const char *path); /* mkdir -p */
co_err co_fs_sync_dir(const char *path);
/* rm -r of a folder we made; follows no links; a missing path is fine */
co_err co_fs_remove_tree(const char *path);
bool co_fs_exists(const char *path);
bool co_fs_is_dir(const char *path);

/* Entries of a folder except "." and "..", sorted bytewise; free with co_fs_list_free. */
co_err co_fs_list(char ***names, size_t *n, const char *path);
void co_fs_list_free(char **names, size_t n);

/* The folder `part` of this program's cache, made if missing: in $COHORT_CACHE, or in cohort/ within
 * $XDG_CACHE_HOME or ~/.cache. CO_EIO: there is no such place, or it cannot be made. */
co_err co_fs_cache(char *out, size_t size, const char *part);

/* write(2) in a loop until all bytes are written; EINTR is retried. */
co_err co_fs_write_all(int fd, const void *bytes, size_t len, const char *path_for_message);

#endif
