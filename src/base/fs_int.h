/* fs_int.h -- shared by fs.c and fs_remove.c. */
#ifndef CO_BASE_FS_INT_H
#define CO_BASE_FS_INT_H

#include <dirent.h>

#include "base/err.h"

/* The next entry of a folder, without "." and ".."; valid until the next call. *name is NULL after the last
 * one. `path` is for the message. */
co_err next_entry(const char **name, DIR *dir, const char *path);

#endif
