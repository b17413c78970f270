/* children.c -- finds the children of a guard in /proc and signals them.
 *
 * System calls only, nothing allocated: a guard was forked from a process that may have threads. If the list
 * of children is too long for its buffer, the next call signals the rest: those that were killed are no
 * longer in it.
 */
#include "proc/look.h"
#include "proc/proc_int.h"

#include <stdbool.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct dirent64_raw {
    uint64_t ino;
    int64_t off;
    unsigned short len;
    unsigned char type;
    char name[];
};

/* Reads /proc/PID/NAME as text; "" if the process is gone. */
static void read_of(char *text, size_t size, const char *pid, const char *name)
{
    char path[64] = "/proc/";
    size_t n = strlen(pid);
    ssize_t len = 0;

    if (n <= 10) {
        memcpy(path + 6, pid, n);
        memcpy(path + 6 + n, name, strlen(name) + 1);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
            len = read(fd, text, size - 1);
            close(fd);
        }
    }
    text[len < 0 ? 0 : len] = '\0';
}

pid_t number_of(const char *text)
{
    pid_t number = 0;

    for (; *text >= '0' && *text <= '9'; text++)
        number = number * 10 + (*text - '0');
    return number;
}

/* Does the process ignore this signal? Background processes of a shell ignore SIGINT, for example. */
static bool ignores(const char *pid, int sig)
{
    static const char field[] = "\nSigIgn:\t"; /* 16 hexadecimal digits */
    char text[4096];
    uint64_t set = 0;

    read_of(text, sizeof text, pid, "/status");
    const char *at = strstr(text, field);
    if (!at)
        return false;
    for (at += sizeof field - 1; *at && *at != '\n'; at++)
        set = set << 4 | (uint64_t)(*at <= '9' ? *at - '0' : *at - 'a' + 10);
    return set >> (sig - 1) & 1;
}

static void signal_one(sweep *s, const char *text)
{
    pid_t pid = number_of(text);

    if (s->had && getpgid(pid) == s->group && !ignores(text, s->had))
        return;
    int why = kill(pid, s->sig) == 0 ? 0 : errno;
    if (why == ESRCH)
        return;
    if (!s->one || (why && !s->why)) {
        s->one = pid;
        s->why = why;
    }
    s->sent += !why;
    s->refused += why != 0;
}

void each_process(void (*see)(void *ctx, const char *pid), void *ctx)
{
    char buf[8192];
    int proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long len;

    while (proc_fd >= 0 && (len = syscall(SYS_getdents64, proc_fd, buf, sizeof buf)) > 0)
        for (long at = 0; at < len;) {
            const struct dirent64_raw *e = (const void *)(buf + at);
            if (e->name[0] >= '1' && e->name[0] <= '9')
                see(ctx, e->name);
            at += e->len;
        }
    if (proc_fd >= 0)
        close(proc_fd);
}

static void signal_if_ours(void *ctx, const char *pid)
{
    co_proc found;

    if (co_proc_read(&found, number_of(pid)) && found.ppid == getpid())
        signal_one(ctx, pid);
}

void children_signal(sweep *s)
{
    char text[8192]; /* "12 345 " */
    int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        each_process(signal_if_ours, s); /* a kernel without that file */
        return;
    }
    ssize_t len = read(fd, text, sizeof text);
    close(fd);
    for (char *at = text, *end; len > 0 && (end = memchr(at, ' ', (size_t)(text + len - at))); at = end + 1) {
        *end = '\0';
        signal_one(s, at);
    }
}
