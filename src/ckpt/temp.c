/* temp.c -- names of what is not finished: ".tmp-NAME~HOST-PID".
 *
 * HOST is eight digits made of the host's name, its boot and the pid namespace; PID is the writer. So two
 * runs that save into one folder never use one name, and a sweep can tell a leftover from the work of a live
 * process: the writer is gone, or it is this very process, or it was on another host and the folder has not
 * changed for a day. Names without a writer are from older versions and go after a day, too.
 */
#include "ckpt/ckpt_int.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"

enum { STALE_S = 24 * 3600 };

static uint32_t host_digits(void)
{
    char text[HOST_NAME_MAX + 256] = "";
    gethostname(text, HOST_NAME_MAX);
    size_t len = strlen(text);
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text + len, 64);

    if (fd >= 0)
        close(fd);
    len += n > 0 ? (size_t)n : 0;
    n = readlink("/proc/self/ns/pid", text + len, 64);
    len += n > 0 ? (size_t)n : 0;
    return (uint32_t)co_fnv1a64(text, len);
}

char *temp_path(const char *root, const char *what, const char *name)
{
    return co_sprintf("%s/" TMP_PREFIX "%s%s~%08x-%d", root, what, name, host_digits(), (int)getpid());
}

/* Has nobody changed it for a day? */
static bool is_stale(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && time(NULL) - st.st_mtime > STALE_S;
}

bool temp_is_left_over(const char *root, const char *entry)
{
    const char *tag = strrchr(entry, '~');
    unsigned host;
    int pid, used = 0;
    bool known = tag && sscanf(tag, "~%8x-%d%n", &host, &pid, &used) == 2 && !tag[used] && pid > 0;

    if (known && host == host_digits())
        return pid == getpid() || (kill(pid, 0) != 0 && errno == ESRCH);
    char *path = co_sprintf("%s/%s", root, entry);
    bool stale = path && is_stale(path);
    co_free(path);
    return stale;
}
