/* waits.c -- reads from /proc what a process waits for: the system call, its file or the other end of its
 * connection, and whether another process must act first. If /proc cannot be read, no process counts as
 * waiting for others. */
#include "proc/look.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"

/* A call on a file waits for another process only if the file is a socket. */
typedef enum { ALONE, ON_FILE, FOR_OTHERS } kind;
static const struct {
    long nr;
    const char *name, *means;
    kind kind;
} calls[] = {
    {SYS_read, "read", "", ON_FILE},
    {SYS_write, "write", "", ON_FILE},
    {SYS_pread64, "pread", "", ON_FILE},
    {SYS_pwrite64, "pwrite", "", ON_FILE},
    {SYS_readv, "readv", "", ON_FILE},
    {SYS_writev, "writev", "", ON_FILE},
    {SYS_recvfrom, "recv", "", ON_FILE},
    {SYS_sendto, "send", "", ON_FILE},
    {SYS_recvmsg, "recvmsg", "", ON_FILE},
    {SYS_sendmsg, "sendmsg", "", ON_FILE},
    {SYS_connect, "connect", "", ON_FILE},
    {SYS_accept, "accept", "", ON_FILE},
    {SYS_accept4, "accept", "", ON_FILE},
    {SYS_fsync, "fsync", "", ON_FILE},
    {SYS_flock, "flock", "", ON_FILE},
    {SYS_ioctl, "ioctl", "", ON_FILE},
    {SYS_fcntl, "fcntl", "", ON_FILE},
    {SYS_futex, "futex", " (a lock or another thread)", FOR_OTHERS},
    {SYS_wait4, "wait4", " (a child)", ALONE},
    {SYS_waitid, "waitid", " (a child)", ALONE},
    {SYS_clock_nanosleep, "sleep", "", ALONE},
    {SYS_nanosleep, "sleep", "", ALONE},
    {SYS_ppoll, "poll", "", FOR_OTHERS},
    {SYS_pselect6, "select", "", FOR_OTHERS},
    {SYS_epoll_pwait, "epoll", "", FOR_OTHERS},
    {SYS_openat, "open", "", ALONE},
    {SYS_rt_sigsuspend, "pause", "", ALONE},
#ifdef SYS_poll
    {SYS_poll, "poll", "", FOR_OTHERS},
    {SYS_select, "select", "", FOR_OTHERS},
    {SYS_epoll_wait, "epoll", "", FOR_OTHERS},
    {SYS_open, "open", "", ALONE},
    {SYS_pause, "pause", "", ALONE},
#endif
};

/* An address in /proc/net/tcp: 8 or 32 hex digits, each group of 8 a 32-bit integer in this machine's byte
 * order. */
static bool address_text(char *out, size_t size, const char *hex)
{
    uint32_t words[4] = {0};
    size_t n = strlen(hex) / 8;

    for (size_t i = 0; i < n && i < 4; i++)
        if (sscanf(hex + 8 * i, "%8" SCNx32, &words[i]) != 1)
            return false;
    bool inside = n == 4 && words[0] == 0 && words[1] == 0 && words[2] == htonl(0xffff);
    return inet_ntop(n == 1 || inside ? AF_INET : AF_INET6, inside ? &words[3] : words, out, (socklen_t)size);
}

/* Finds the other end of "socket:[123]", which is how a link in /proc names a socket. */
static bool socket_peer(char *out, size_t size, int pid, const char *link)
{
    static const char *const tables[] = {"tcp", "tcp6"};
    char path[64], line[512], hex[33], address[64];
    unsigned long inode, wanted;
    unsigned port;
    bool found = false;

    if (sscanf(link, "socket:[%lu]", &wanted) != 1)
        return false;
    for (size_t i = 0; i < CO_COUNT(tables) && !found; i++) {
        snprintf(path, sizeof path, "/proc/%d/net/%s", pid, tables[i]);
        FILE *f = fopen(path, "re");
        while (f && !found && fgets(line, sizeof line, f))
            found = sscanf(line, " %*d: %*[0-9A-F]:%*x %32[0-9A-F]:%x %*x %*s %*s %*s %*d %*d %lu", hex,
                           &port, &inode) == 3 &&
                    inode == wanted && port && address_text(address, sizeof address, hex);
        if (f)
            fclose(f);
    }
    if (found)
        snprintf(out, size, "a connection to %s port %u", address, port);
    return found;
}

/* Appends " of FILE" or " of a connection to ..."; true: it is a socket. */
static bool add_file(co_proc_wait *w, pid_t pid, unsigned long fd)
{
    char path[64], file[PATH_MAX], peer[128];
    size_t n = strlen(w->where);

    snprintf(path, sizeof path, "/proc/%d/fd/%lu", (int)pid, fd);
    ssize_t len = readlink(path, file, sizeof file - 1);
    if (len <= 0)
        return false;
    file[len] = '\0';
    snprintf(w->where + n, sizeof w->where - n, " of %s",
             socket_peer(peer, sizeof peer, pid, file) ? peer : file);
    return strncmp(file, "socket:", 7) == 0;
}

void co_proc_wait_of(co_proc_wait *w, const co_proc *p)
{
    char text[256];
    long nr;
    unsigned long fd;

    *w = (co_proc_wait){.means = "",
                        .state = p->state == 'D'   ? "disk wait"
                                 : p->state == 'T' ? "stopped"
                                 : p->state == 'Z' ? "a zombie"
                                                   : "asleep"};
    if (co_proc_text(text, sizeof text, p->pid, "syscall") && sscanf(text, "%ld %lx", &nr, &fd) == 2)
        for (size_t i = 0; i < CO_COUNT(calls); i++)
            if (calls[i].nr == nr) {
                snprintf(w->where, sizeof w->where, "%s", calls[i].name);
                w->means = calls[i].means;
                bool socket = calls[i].kind == ON_FILE && add_file(w, p->pid, fd);
                w->for_others = p->state == 'S' && (socket || calls[i].kind == FOR_OTHERS);
                return;
            }
    if (co_proc_text(text, sizeof text, p->pid, "wchan") && strcmp(text, "0") != 0)
        snprintf(w->where, sizeof w->where, "the kernel's %.*s", (int)strcspn(text, "\n"), text);
}
