/* holder.c -- finds the process that listens on a TCP port. /proc/net gives the socket's inode; then we
 * search for the process that has it open.
 *
 * It reads the descriptor list of every process. That takes a few milliseconds and happens only when a port
 * is taken. It reads /proc itself: it lists descriptors and sockets, which proc/ never does, and net/ stands
 * below proc/.
 */
#include "net/net.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Inode of a socket that listens on this port, from one of the two tables; 0: none. */
static unsigned long listener(const char *table, int port)
{
    char line[512];
    unsigned long inode = 0;
    FILE *f = fopen(table, "re");

    while (f && !inode && fgets(line, sizeof line, f)) {
        unsigned at, state;
        unsigned long ino;
        /* columns: sl local rem st queues timer retransmit uid timeout inode */
        if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x %*x %*u %*d %lu", &at,
                   &state, &ino) == 3 &&
            state == 0x0a && at == (unsigned)port)
            inode = ino;
    }
    if (f)
        fclose(f);
    return inode;
}

static bool has_open(const char *pid, const char *link)
{
    char path[600], to[64];
    bool found = false;

    snprintf(path, sizeof path, "/proc/%s/fd", pid);
    DIR *d = opendir(path);
    for (struct dirent *entry; d && !found && (entry = readdir(d));) {
        snprintf(path, sizeof path, "/proc/%s/fd/%s", pid, entry->d_name);
        ssize_t n = readlink(path, to, sizeof to - 1);
        if (n > 0) {
            to[n] = '\0';
            found = strcmp(to, link) == 0;
        }
    }
    if (d)
        closedir(d);
    return found;
}

/* The process's command line, with blanks for NULs. Bytes that could move a terminal's cursor are
 * replaced. */
static void command_of(char *out, size_t size, const char *pid)
{
    char path[64];
    ssize_t n = 0;

    snprintf(path, sizeof path, "/proc/%.20s/cmdline", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, out, size - 1);
        close(fd);
    }
    while (n > 0 && out[n - 1] == '\0')
        n--;
    for (ssize_t i = 0; i < n; i++)
        if (!isprint((unsigned char)out[i]))
            out[i] = out[i] ? '?' : ' ';
    snprintf(out + (n > 0 ? n : 0), size - (size_t)(n > 0 ? n : 0), "%s", n > 0 ? "" : "unnamed");
}

static bool runs_our_program(const char *pid)
{
    char link[64], theirs[512] = "", ours[512] = "";

    snprintf(link, sizeof link, "/proc/%.20s/exe", pid);
    ssize_t a = readlink(link, theirs, sizeof theirs - 1),
            b = readlink("/proc/self/exe", ours, sizeof ours - 1);
    return a > 0 && a == b && strcmp(theirs, ours) == 0;
}

bool co_net_holder(co_holder *out, int port)
{
    char link[64];
    unsigned long inode = listener("/proc/net/tcp", port);

    if (!inode)
        inode = listener("/proc/net/tcp6", port);
    *out = (co_holder){0};
    if (!inode)
        return false;
    snprintf(link, sizeof link, "socket:[%lu]", inode);
    DIR *d = opendir("/proc");
    for (struct dirent *entry; d && !out->pid && (entry = readdir(d));)
        if (isdigit((unsigned char)entry->d_name[0]) && has_open(entry->d_name, link)) {
            out->pid = atoi(entry->d_name);
            command_of(out->command, sizeof out->command, entry->d_name);
            out->same_program = runs_our_program(entry->d_name);
        }
    if (d)
        closedir(d);
    return true;
}
