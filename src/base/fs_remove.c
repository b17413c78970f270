/* fs_remove.c -- rm -r that no symbolic link can divert.
 *
 * Each folder is opened by openat with O_NOFOLLOW from the folder above it, and its entries are removed
 * relative to that descriptor. A symbolic link is removed, never followed, even if somebody replaces a folder
 * by a link while we work. Costs one descriptor per level of depth.
 */
#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs_int.h"

enum { DEEPEST = 64 }; /* far deeper than any folder we make; bounds descriptors and stack */

static co_err remove_at(int dir_fd, const char *name, const char *path, int depth);

/* Removes everything in the folder `fd`, then closes `fd`. */
static co_err empty_folder(int fd, const char *path, int depth)
{
    co_err err = CO_OK;
    DIR *dir = fdopendir(fd);

    if (!dir) {
        err = co_fail(CO_EIO, "read folder %s: %m", path);
        close(fd);
        return err;
    }
    for (const char *name; !err && !(err = next_entry(&name, dir, path)) && name;) {
        char *inner = co_sprintf("%s/%s", path, name);
        err = inner ? remove_at(dirfd(dir), name, inner, depth + 1) : CO_ENOMEM;
        co_free(inner);
    }
    closedir(dir);
    return err;
}

static co_err remove_at(int dir_fd, const char *name, const char *path, int depth)
{
    if (depth > DEEPEST)
        return co_fail(CO_EINPUT, "remove %s: more than %d folders deep", path, DEEPEST);
    if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
        return CO_OK;
    if (errno != EISDIR && errno != EPERM) /* Linux says EISDIR for a folder, POSIX EPERM */
        return co_fail(CO_EIO, "remove %s: %m", path);
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? CO_OK : co_fail(CO_EIO, "open folder %s: %m", path);
    CO_TRY(empty_folder(fd, path, depth));
    if (unlinkat(dir_fd, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
        return co_fail(CO_EIO, "remove folder %s: %m", path);
    return CO_OK;
}

co_err co_fs_remove_tree(const char *path)
{
    const char *last = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

    /* "/", "x/", "." and ".." are never names of folders we made; a variable was probably empty */
    if (!*last || strcmp(last, ".") == 0 || strcmp(last, "..") == 0)
        return co_fail(CO_EINPUT, "remove \"%s\": refused, not the name of a folder", path);
    return remove_at(AT_FDCWD, path, path, 0);
}
