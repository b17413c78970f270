/* fs.h -- files: whole reads with a limit, writes that either happened or did not.
 *
 * Every failure's message names the path and errno.
 */
#ifndef CO_BASE_FS_H
#define CO_BASE_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* The whole file plus a NUL byte; *out is the caller's (co_free). Files over `limit` bytes are refused. */
co_err co_fs_read(char **out, size_t *len, const char *path, size_t limit);

/* To a temporary name beside `path`, fsync, rename over it, fsync of the folder. */
co_err co_fs_write_atomic(const char *path, const void *bytes, size_t len);
/* The same; only its owner may read the file. */
co_err co_fs_write_private(const char *path, const void *bytes, size_t len);

co_err co_fs_mkdirs(const char *path); /* mkdir -p */
co_err co_fs_sync_dir(const char *path);
co_err co_fs_remove_tree(const char *path); /* rm -r of a folder we made; does not follow links; absent is fine */
bool co_fs_exists(const char *path);
bool co_fs_is_dir(const char *path);

/* Entries of a folder but for "." and "..", sorted bytewise; free with co_fs_list_free. */
co_err co_fs_list(char ***names, size_t *n, const char *path);
void co_fs_list_free(char **names, size_t n);

/* write(2) until all is written; EINTR goes on. */
co_err co_fs_write_all(int fd, const void *bytes, size_t len, const char *path_for_message);

#endif
