/* stat.c -- parses /proc/PID/stat and /proc/PID/io; nothing else in the program does.
 *
 * System calls only, nothing allocated: guards call this, and they were forked from a process that may have
 * threads.
 */
#include "proc/look.h"
#include "proc/proc_int.h"

#include <string.h>

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

/* pid (name) state ppid pgrp session tty tpgid flags minflt cminflt majflt cmajflt utime stime cutime cstime
 * priority nice threads itrealvalue starttime ... */
static bool parse(co_proc *out, const char *text)
{
    enum { PPID, PGRP, SESSION, UTIME = 10, STIME, STARTED = 18, FIELDS };
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
    out->started = field[STARTED];
    return true;
}

static bool read_name(co_proc *out, pid_t pid, const char *name)
{
    char text[1024];

    return pid > 0 && co_proc_text(text, sizeof text, pid, name) && parse(out, text);
}

bool co_proc_read(co_proc *out, pid_t pid)
{
    out->pid = pid;
    return read_name(out, pid, "stat");
}

bool read_thread(co_proc *out, pid_t pid, pid_t thread)
{
    char name[TASK_NAME];

    task_name(name, thread, "stat");
    out->pid = thread;
    return read_name(out, pid, name);
}

uint64_t co_proc_bytes_read(pid_t pid)
{
    char text[512];

    co_proc_text(text, sizeof text, pid, "io");
    int64_t n = co_proc_number(text, "rchar");
    return n > 0 ? (uint64_t)n : 0;
}
