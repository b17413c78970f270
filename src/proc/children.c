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
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { CHILDREN_MOST = 1024 };

/* Does the process ignore this signal? Background processes of a shell ignore SIGINT, for example. */
static bool ignores(pid_t pid, int sig)
{
    static const char field[] = "\nSigIgn:\t"; /* 16 hexadecimal digits */
    char text[4096];
    uint64_t set = 0;

    co_proc_text(text, sizeof text, pid, "status");
    const char *at = strstr(text, field);
    if (!at)
        return false;
    for (at += sizeof field - 1; *at && *at != '\n'; at++)
        set = set << 4 | (uint64_t)(*at <= '9' ? *at - '0' : *at - 'a' + 10);
    return set >> (sig - 1) & 1;
}

static void signal_one(sweep *s, pid_t pid)
{
    if (s->had && getpgid(pid) == s->group && !ignores(pid, s->had))
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

static void signal_if_ours(void *ctx, pid_t pid)
{
    co_proc found;

    if (co_proc_read(&found, pid) && found.ppid == getpid())
        signal_one(ctx, pid);
}

void children_signal(sweep *s)
{
    pid_t children[CHILDREN_MOST];
    int n = co_proc_children(children, CHILDREN_MOST, getpid());

    if (n < 0)
        each_process(signal_if_ours, s); /* a kernel without that list */
    for (int i = 0; i < n; i++)
        signal_one(s, children[i]);
}
