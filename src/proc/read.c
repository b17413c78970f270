/* read.c -- opens, lists and reads the files of /proc. All readers of /proc/PID/... in proc/ and in the rooms
 * above it use these functions.
 *
 * System calls only, nothing allocated: guards and the anchor call them, and they were forked from a process
 * that may have threads.
 */
#include "proc/look.h"
#include "proc/proc_int.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PATH_MOST = 96 };

struct dirent64_raw {
    uint64_t ino;
    int64_t off;
    unsigned short len;
    unsigned char type;
    char name[];
};

/* Appends a number's digits; returns the new end. */
static char *add_number(char *end, unsigned long number)
{
    char digits[20];
    int n = 0;

    do
        digits[n++] = (char)('0' + number % 10);
    while ((number /= 10));
    while (n)
        *end++ = digits[--n];
    return end;
}

static char *add_text(char *end, const char *text)
{
    size_t n = strlen(text);

    memcpy(end, text, n);
    return end + n;
}

static int64_t number_of(const char *text)
{
    int64_t number = 0;

    for (; *text >= '0' && *text <= '9'; text++)
        number = number * 10 + (*text - '0');
    return number;
}

int open_of(pid_t pid, const char *name)
{
    char path[PATH_MOST], *end = add_text(path, "/proc/");

    if (pid > 0)
        end = add_text(add_number(end, (unsigned long)pid), "/");
    if (pid < 0 || strlen(name) >= (size_t)(path + sizeof path - end))
        return -1;
    *add_text(end, name) = '\0';
    return open(path, O_RDONLY | O_CLOEXEC);
}

void task_name(char out[TASK_NAME], pid_t thread, const char *file)
{
    char *end = add_number(add_text(out, "task/"), (unsigned long)thread);

    *add_text(add_text(end, "/"), file) = '\0';
}

/* Reads as much as fits, closes the file. */
static size_t read_all(char *out, size_t size, int fd)
{
    size_t len = 0;

    for (ssize_t n; fd >= 0 && len < size - 1 && (n = read(fd, out + len, size - 1 - len)) > 0;)
        len += (size_t)n;
    if (fd >= 0)
        close(fd);
    out[len] = '\0';
    return len;
}

size_t co_proc_text(char *out, size_t size, pid_t pid, const char *name)
{
    return read_all(out, size, open_of(pid, name));
}

int64_t co_proc_number(const char *text, const char *key)
{
    size_t n = strlen(key);

    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, n) != 0 || line[n] != ':')
            continue;
        const char *at = line + n + 1 + strspn(line + n + 1, " \t");
        return *at >= '0' && *at <= '9' ? number_of(at) : -1;
    }
    return -1;
}

int co_proc_children(pid_t *out, int most, pid_t pid)
{
    char name[TASK_NAME], text[16384]; /* "12 345 " */
    int n = 0, fd;

    task_name(name, pid, "children");
    if ((fd = open_of(pid, name)) < 0)
        return -1;
    read_all(text, sizeof text, fd);
    for (char *at = text, *end; n < most && (end = strchr(at, ' ')); at = end + 1)
        out[n++] = (pid_t)number_of(at);
    return n;
}

void each_process(void (*see)(void *ctx, pid_t pid), void *ctx)
{
    char buf[8192];
    int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long len;

    while (fd >= 0 && (len = syscall(SYS_getdents64, fd, buf, sizeof buf)) > 0)
        for (long at = 0; at < len;) {
            const struct dirent64_raw *entry = (const void *)(buf + at);
            if (entry->name[0] >= '1' && entry->name[0] <= '9')
                see(ctx, (pid_t)number_of(entry->name));
            at += entry->len;
        }
    if (fd >= 0)
        close(fd);
}

/* The file is read in pieces; the end of each piece is kept, because an entry may span two pieces. */
bool in_environ(pid_t pid, const char *entry)
{
    char text[8192];
    size_t have = 0, want = strlen(entry) + 1;
    bool first = true, found = false;
    int fd = want <= sizeof text / 2 ? open_of(pid, "environ") : -1;

    for (ssize_t n; fd >= 0 && !found && (n = read(fd, text + have, sizeof text - have)) > 0;) {
        have += (size_t)n;
        for (char *at = text; !found && (at = memmem(at, have - (size_t)(at - text), entry, want)); at++)
            found = (at == text && first) || (at > text && at[-1] == '\0');
        size_t keep = have < want ? have : want;
        memmove(text, text + have - keep, keep);
        first = first && keep == have;
        have = keep;
    }
    if (fd >= 0)
        close(fd);
    return found;
}
