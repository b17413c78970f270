/* fds.c -- sets of descriptors as bits; what lies between two that are kept is closed with one system
 * call. */
#include "base/fds.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/err.h"

void co_fds_add(co_fds *set, int fd)
{
    if (fd >= 0 && fd < CO_FDS_MOST)
        set->bits[fd / 64] |= UINT64_C(1) << fd % 64;
}

bool co_fds_has(const co_fds *set, int fd)
{
    return fd >= 0 && fd < CO_FDS_MOST && (set->bits[fd / 64] >> fd % 64 & 1);
}

void co_fds_add_all(co_fds *set, const co_fds *more)
{
    for (size_t i = 0; i < CO_COUNT(set->bits); i++)
        set->bits[i] |= more->bits[i];
}

void co_fds_subtract(co_fds *after, const co_fds *before)
{
    for (size_t i = 0; i < CO_COUNT(after->bits); i++)
        after->bits[i] &= ~before->bits[i];
}

/* Without /proc: a system call for each that there may be. */
static void try_each(co_fds *out)
{
    struct rlimit most = {.rlim_cur = CO_FDS_MOST};

    getrlimit(RLIMIT_NOFILE, &most);
    for (int fd = 0; fd < CO_FDS_MOST && (rlim_t)fd < most.rlim_cur; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            co_fds_add(out, fd);
}

void co_fds_open_now(co_fds *out)
{
    DIR *list = opendir("/proc/self/fd");
    struct dirent *entry;

    *out = (co_fds){0};
    if (!list) {
        try_each(out);
        return;
    }
    while ((entry = readdir(list)))
        if (*entry->d_name != '.' && atoi(entry->d_name) != dirfd(list))
            co_fds_add(out, atoi(entry->d_name));
    closedir(list);
}

void co_fds_close_others(const co_fds *keep)
{
    unsigned from = STDERR_FILENO + 1;

    for (unsigned fd = from; fd < CO_FDS_MOST; fd++) {
        if (!co_fds_has(keep, (int)fd))
            continue;
        if (fd > from)
            close_range(from, fd - 1, 0);
        from = fd + 1;
    }
    close_range(from, ~0u, 0);
}
