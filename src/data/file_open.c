/* file_open.c -- only regular files are opened as data. */
#include "data/file_int.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *kind_of(mode_t mode)
{
    return S_ISFIFO(mode)   ? "a named pipe"
           : S_ISSOCK(mode) ? "a socket"
           : S_ISDIR(mode)  ? "a folder"
                            : "a device";
}

static co_err not_a_file(const char *path, mode_t mode)
{
    return co_fail(CO_EINPUT, "%s is %s, not a file: give a regular file", path, kind_of(mode));
}

co_err file_check_regular(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && !S_ISREG(st.st_mode) ? not_a_file(path, st.st_mode) : CO_OK;
}

int file_open(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* does not wait for a pipe's writer */
    struct stat st;

    if (fd < 0) {
        int why = errno;
        if (why != ENXIO || file_check_regular(path) == CO_OK) /* ENXIO: a socket */
            co_fail(CO_EINPUT, "open %s: %m", path);
        errno = why;
        return -1;
    }
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fd;
    not_a_file(path, st.st_mode);
    close(fd);
    errno = EINVAL;
    return -1;
}
