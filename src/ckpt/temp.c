/* temp.c -- names of what is not finished: ".tmp-NAME~RUN-VIEW-HOST-PID".
 *
 * RUN is eight digits made of the run's id, VIEW the writer's view of the hosts (both 0: unknown). HOST is
 * eight digits made of the host's name, its boot and the pid namespace; PID is the writer. So two writers
 * never use one name, and none can publish what another one has half written.
 *
 * A sweep removes an entry only if nobody can publish it any more:
 * - its writer was a process of this host that is gone, or is this very process (it saves one at a time);
 * - its writer is on another host and belongs to an older view of our run: view.c refuses to publish it;
 * - its writer is on another host, and the entry has not changed for a day.
 * Names of older versions, without a run or without a writer, follow the same rules.
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

char *temp_path(const char *root, const char *what, const char *name, const co_ckpt_writer *by)
{
    return co_sprintf("%s/" TMP_PREFIX "%s%s~%08x-%u-%08x-%d", root, what, name, run_digits(by),
                      by ? (unsigned)by->view : 0u, host_digits(), (int)getpid());
}

/* Who wrote an entry, from its name. run is 0 in names of older versions. */
struct tag {
    unsigned run, view, host;
    int pid;
};

static bool read_tag(struct tag *out, const char *entry)
{
    const char *text = strrchr(entry, '~');
    int used = 0;

    *out = (struct tag){0};
    if (!text)
        return false;
    if (sscanf(text, "~%8x-%u-%8x-%d%n", &out->run, &out->view, &out->host, &out->pid, &used) == 4 &&
        !text[used])
        return out->pid > 0;
    *out = (struct tag){0};
    return sscanf(text, "~%8x-%d%n", &out->host, &out->pid, &used) == 2 && !text[used] && out->pid > 0;
}

/* Has nobody changed it for a day? */
static bool is_stale(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && time(NULL) - st.st_mtime > STALE_S;
}

bool temp_is_left_over(const char *root, const char *entry, const co_ckpt_writer *me)
{
    struct tag tag;
    bool known = read_tag(&tag, entry);

    if (known && tag.host == host_digits())
        return tag.pid == getpid() || (kill(tag.pid, 0) != 0 && errno == ESRCH);
    if (known && tag.run && tag.run == run_digits(me) && (int64_t)tag.view < me->view)
        return true;
    char *path = co_sprintf("%s/%s", root, entry);
    bool stale = path && is_stale(path);
    co_free(path);
    return stale;
}
