/* flow.c -- bytes that the machine's disks and network interfaces have moved since it was booted, read
 * from /proc/diskstats and /proc/net/dev.
 *
 * Each byte counts once: whole disks and not their partitions, nor what lies on top of other disks (device
 * mapper, RAID, loops); network interfaces that lead out of the machine, not loopback, nor the bridges and
 * inner ends of containers. Inside a container, /proc/net/dev is the container's own. */
#include "track/track_int.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "proc/look.h"

enum { SECTOR = 512, TEXT_MOST = 32 << 10 };

static bool begins(const char *name, const char *const *with)
{
    for (; *with; with++)
        if (strncmp(name, *with, strlen(*with)) == 0)
            return true;
    return false;
}

/* sda1, vdb2: a letter before the digits. nvme0n1p1, mmcblk0p2: a digit, "p", digits. */
static bool is_partition(const char *name)
{
    static const char *const lettered[] = {"sd", "vd", "xvd", "hd", NULL};
    size_t n = strlen(name), end = n;

    while (end > 0 && isdigit((unsigned char)name[end - 1]))
        end--;
    if (end == n)
        return false;
    if (begins(name, lettered))
        return true;
    return end >= 2 && name[end - 1] == 'p' && isdigit((unsigned char)name[end - 2]);
}

void flow_disks(const char *text, flow *out)
{
    static const char *const stacked[] = {"loop", "ram", "zram", "dm-", "md", "sr", "fd", NULL};
    char name[64];
    unsigned long long read, written;

    *out = (flow){NAN, NAN};
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (sscanf(line, " %*u %*u %63s %*u %*u %llu %*u %*u %*u %llu", name, &read, &written) != 3 ||
            begins(name, stacked) || is_partition(name))
            continue;
        *out = isnan(out->in) ? (flow){0, 0} : *out;
        out->in += (double)read * SECTOR;
        out->out += (double)written * SECTOR;
    }
}

void flow_net(const char *text, flow *out)
{
    static const char *const inner[] = {"lo:", "veth", "docker", "br-", "virbr", "cni", "flannel", NULL};
    unsigned long long in, sent;

    *out = (flow){NAN, NAN};
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *name = line + strspn(line, " "), *colon = strpbrk(name, ":\n");
        if (!colon || *colon != ':')
            continue; /* the two lines of the head */
        if (sscanf(colon + 1, "%llu %*u %*u %*u %*u %*u %*u %*u %llu", &in, &sent) != 2)
            continue;
        *out = isnan(out->in) ? (flow){0, 0} : *out;
        if (begins(name, inner))
            continue;
        out->in += (double)in;
        out->out += (double)sent;
    }
}

/* The numbers begin anew if a device is taken away: that counts as nothing. */
static double rate(double now, double then, double secs)
{
    return secs > 0 && now >= then ? (now - then) / secs / 1e6 : isnan(now) || isnan(then) ? NAN : 0;
}

void flow_look(flow_marks *then, double secs, co_sample *out)
{
    char text[TEXT_MOST];
    flow_marks now;

    flow_disks(co_proc_text(text, sizeof text, 0, "diskstats") ? text : "", &now.disk);
    flow_net(co_proc_text(text, sizeof text, 0, "net/dev") ? text : "", &now.net);
    out->disk_read_mb_s = rate(now.disk.in, then->disk.in, secs);
    out->disk_write_mb_s = rate(now.disk.out, then->disk.out, secs);
    out->net_in_mb_s = rate(now.net.in, then->net.in, secs);
    out->net_out_mb_s = rate(now.net.out, then->net.out, secs);
    *then = now;
}

double co_disk_free_mb(const char *dir)
{
    struct statvfs st;

    return statvfs(dir, &st) == 0 ? (double)st.f_bavail * (double)st.f_frsize / 1e6 : NAN;
}
