/* evidence.c -- what the machine knows about a death: counters of the out-of-memory killer, the kernel's log, shared memory,
 * the CPU, /proc of a process that waits. Nothing here is certain to be readable: what is not, says nothing. */
#include "launch/job_int.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/json.h"

/* The number after `name` in a file of "name number" lines; -1 if it is not there. */
static long long counter_in(const char *path, const char *name)
{
    char key[64];
    long long n, found = -1;
    FILE *f = fopen(path, "re");

    while (f && found < 0 && fscanf(f, "%63s %lld", key, &n) == 2)
        if (strcmp(key, name) == 0)
            found = n;
    if (f)
        fclose(f);
    return found;
}

/* Version 2: memory.events of our group counts its processes, whichever limit was hit; version 1 has memory.oom_control;
 * else the whole machine's. */
long long evidence_oom_kills(const char *root)
{
    char line[PATH_MAX / 2], path[PATH_MAX];
    long long n = -1;

    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    while (f && n < 0 && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        bool v2 = controllers[1] == '\0', memory = strstr(controllers, "memory") != NULL;
        if (v2 || memory) {
            snprintf(path, sizeof path, "%s/sys/fs/cgroup%s%s/%s", root, v2 ? "" : "/memory", group,
                     v2 ? "memory.events" : "memory.oom_control");
            n = counter_in(path, "oom_kill");
        }
    }
    if (f)
        fclose(f);
    if (n >= 0)
        return n;
    snprintf(path, sizeof path, "%s/sys/fs/cgroup/memory.events", root);
    n = counter_in(path, "oom_kill");
    snprintf(path, sizeof path, "%s/proc/vmstat", root);
    return n >= 0 ? n : counter_in(path, "oom_kill");
}

bool evidence_killed_in(const char *kmsg, int pid)
{
    char text[8192], words[48];
    int fd = open(kmsg, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    bool found = false;
    ssize_t n;

    snprintf(words, sizeof words, "Killed process %d ", pid);
    while (fd >= 0 &&
           ((n = read(fd, text, sizeof text - 1)) > 0 || (n < 0 && errno == EPIPE))) /* a record each */
        if (n > 0) {
            text[n] = '\0';
            found |= strstr(text, words) != NULL;
        }
    if (fd >= 0)
        close(fd);
    return found;
}

bool evidence_shm_full(const char *path, char *says, size_t size)
{
    struct statvfs v;

    if (statvfs(path, &v) != 0 || v.f_blocks == 0)
        return false;
    double mib = (double)v.f_blocks * (double)v.f_frsize / 1048576;
    if (v.f_bavail * 20 < v.f_blocks)
        snprintf(says, size, "%s is full (%.0f MiB)", path, mib);
    else if (mib <= 64)
        snprintf(says, size, "%s holds %.0f MiB only", path, mib);
    else
        return false;
    return true;
}

bool evidence_no_instructions(const char *cpuinfo, char *says, size_t size)
{
    static const char *const sets[] = {"sse4_2", "avx",     "f16c",        "fma",     "bmi2",
                                       "avx2",   "avx512f", "avx512_bf16", "amx_tile"};
    char line[8192] = "";
    FILE *f = fopen(cpuinfo, "re");
    size_t at = 0;

    while (f && fgets(line, sizeof line, f) && strncmp(line, "flags", 5) != 0)
        line[0] = '\0';
    if (f)
        fclose(f);
    line[strcspn(line, "\n")] = ' ';
    if (!line[0] || line[0] == ' ')
        return false;
    for (size_t i = 0; i < CO_COUNT(sets); i++) {
        char word[32];
        snprintf(word, sizeof word, " %s ", sets[i]);
        if (!strstr(line, word) && at < size)
            at += (size_t)snprintf(says + at, size - at, "%s%s", at ? ", " : "this CPU has no ", sets[i]);
    }
    return at > 0;
}

/* {"message": {"message": "ValueError: x", ...}} or {"message": "text"}; the first line of it. */
bool evidence_error_file(const char *path, char *says, size_t size)
{
    json_t *v = NULL;

    if (!co_fs_exists(path) || co_json_read(&v, path, 1 << 22) != CO_OK)
        return false;
    json_t *message = json_object_get(v, "message");
    const char *text = json_is_object(message) ? co_json_str(message, "message") : json_string_value(message);
    if (text)
        snprintf(says, size, "%.*s", (int)strcspn(text, "\n"), text);
    json_decref(v);
    return text != NULL;
}

/* --- what a process waits in ------------------------------------------------------------------------------------------ */
static const struct {
    long nr;
    const char *name;
    bool on_file; /* its first argument is a descriptor */
} calls[] = {
    {SYS_read, "read", true},
    {SYS_write, "write", true},
    {SYS_pread64, "pread", true},
    {SYS_pwrite64, "pwrite", true},
    {SYS_readv, "readv", true},
    {SYS_writev, "writev", true},
    {SYS_recvfrom, "recv", true},
    {SYS_sendto, "send", true},
    {SYS_recvmsg, "recvmsg", true},
    {SYS_sendmsg, "sendmsg", true},
    {SYS_connect, "connect", true},
    {SYS_accept, "accept", true},
    {SYS_accept4, "accept", true},
    {SYS_fsync, "fsync", true},
    {SYS_flock, "flock", true},
    {SYS_ioctl, "ioctl", true},
    {SYS_fcntl, "fcntl", true},
    {SYS_futex, "futex (a lock or another thread)", false},
    {SYS_wait4, "wait4 (a child)", false},
    {SYS_waitid, "waitid (a child)", false},
    {SYS_clock_nanosleep, "sleep", false},
    {SYS_nanosleep, "sleep", false},
    {SYS_ppoll, "poll", false},
    {SYS_pselect6, "select", false},
    {SYS_epoll_pwait, "epoll", false},
    {SYS_openat, "open", false},
    {SYS_rt_sigsuspend, "pause", false},
#ifdef SYS_poll
    {SYS_poll, "poll", false},
    {SYS_select, "select", false},
    {SYS_epoll_wait, "epoll", false},
    {SYS_open, "open", false},
    {SYS_pause, "pause", false},
#endif
};

static bool read_small(char *out, size_t size, int pid, const char *name)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, out, size - 1) : -1;
    if (fd >= 0)
        close(fd);
    out[n > 0 ? n : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    return n > 0;
}

/* Eight or thirty-two hex digits of /proc/net/tcp: words of the address as they lie in memory. */
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

/* "socket:[123]", as a link in /proc shows it, is connected to whom? */
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

void evidence_waits(char *says, size_t size, const proc *p)
{
    char text[256], path[64], file[PATH_MAX];
    const char *state = p->state == 'D'   ? "disk wait"
                        : p->state == 'T' ? "stopped"
                        : p->state == 'Z' ? "a zombie"
                                          : "asleep";
    int n = snprintf(says, size, "pid %d is %s", (int)p->pid, state);
    long nr;
    unsigned long fd;

    if (read_small(text, sizeof text, p->pid, "syscall") && sscanf(text, "%ld %lx", &nr, &fd) == 2)
        for (size_t i = 0; i < CO_COUNT(calls) && n > 0 && (size_t)n < size; i++)
            if (calls[i].nr == nr) {
                n += snprintf(says + n, size - (size_t)n, " in %s", calls[i].name);
                snprintf(path, sizeof path, "/proc/%d/fd/%lu", (int)p->pid, fd);
                ssize_t l = calls[i].on_file && (size_t)n < size ? readlink(path, file, sizeof file - 1) : -1;
                file[l > 0 ? l : 0] = '\0';
                if (l > 0)
                    snprintf(says + n, size - (size_t)n, " of %s",
                             socket_peer(text, sizeof text, p->pid, file) ? text : file);
                return;
            }
    if (n > 0 && (size_t)n < size && read_small(text, sizeof text, p->pid, "wchan") && strcmp(text, "0") != 0)
        snprintf(says + n, size - (size_t)n, " in the kernel's %s", text);
}
