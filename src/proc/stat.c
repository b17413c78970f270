/* stat.c -- reads /proc/PID/stat and /proc/PID/io; nothing else in the program does.
 *
 * System calls only, nothing allocated: guards call this, and they were forked from a process that may have
 * threads.
 */
#include "proc/look.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

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

/* The next field of a line as a number; *at moves past it. A minus sign is skipped: no field that we use is
 * negative. */
static uint64_t next_number(const char **at)
{
    uint64_t number = 0;

    while (**at == ' ' || **at == '-')
        (*at)++;
    for (; **at >= '0' && **at <= '9'; (*at)++)
        number = number * 10 + (uint64_t)(**at - '0');
    return number;
}

/* pid (name) state ppid pgrp session tty tpgid flags minflt cminflt majflt cmajflt utime stime ... */
static bool parse(co_proc *out, const char *text)
{
    enum { PPID, PGRP, SESSION, UTIME = 10, STIME, FIELDS };
    uint64_t field[FIELDS];
    const char *at = strrchr(text, ')'); /* the name may contain anything */

    if (!at || at[1] != ' ' || !at[2])
        return false;
    out->state = at[2];
    at += 3;
    for (int i = 0; i < FIELDS; i++) {
        if (*at != ' ')
            return false;
        field[i] = next_number(&at);
    }
    out->ppid = (pid_t)field[PPID];
    out->session = (pid_t)field[SESSION];
    out->ticks = field[UTIME] + field[STIME];
    return true;
}

static bool read_text(char *text, size_t size, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, size - 1);
    close(fd);
    text[n < 0 ? 0 : n] = '\0';
    return true;
}

static bool read_path(co_proc *out, const char *path)
{
    char text[1024];

    return read_text(text, sizeof text, path) && parse(out, text);
}

bool co_proc_read(co_proc *out, pid_t pid)
{
    char path[64], *end = add_text(path, "/proc/");

    end = add_number(end, (unsigned long)pid);
    *add_text(end, "/stat") = '\0';
    out->pid = pid;
    return read_path(out, path);
}

bool co_proc_read_thread(co_proc *out, pid_t pid, pid_t thread)
{
    char path[96], *end = add_text(path, "/proc/");

    end = add_text(add_number(end, (unsigned long)pid), "/task/");
    end = add_number(end, (unsigned long)thread);
    *add_text(end, "/stat") = '\0';
    out->pid = thread;
    return read_path(out, path);
}

uint64_t co_proc_bytes_read(pid_t pid)
{
    static const char first[] = "rchar:";
    char text[512], path[64], *end = add_text(path, "/proc/");

    end = add_number(end, (unsigned long)pid);
    *add_text(end, "/io") = '\0';
    if (!read_text(text, sizeof text, path) || strncmp(text, first, sizeof first - 1) != 0)
        return 0;
    const char *at = text + sizeof first - 1;
    return next_number(&at);
}
