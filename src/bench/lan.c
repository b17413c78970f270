/* lan.c -- two network namespaces, joined by a bridge in a third one.
 *
 *     host 0: eth0 ---- p0 [bridge] p1 ---- eth0: host 1        each end sends at most `mbit` Mbit/s (tbf)
 *
 * The namespaces have no names: only the descriptors of this process keep them, so the kernel removes them with it,
 * however it ends. Needs root, `ip` and `tc`.
 */
#include "bench/bench_int.h"

#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A new, empty namespace; this process stays in `home`. */
static co_err make_one(int *out, int home)
{
    if (unshare(CLONE_NEWNET) != 0)
        return co_fail(CO_EINPUT, "network namespaces need root (or CAP_SYS_ADMIN and CAP_NET_ADMIN): %m");
    int fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    co_err err = fd < 0 ? co_fail(CO_EIO, "open /proc/self/ns/net: %m") : CO_OK;
    CO_ASSERT(setns(home, CLONE_NEWNET) == 0, "who could leave its namespace can come back");
    *out = fd;
    return err;
}

/* Runs lines of shell in a namespace. */
static co_err run_in(int netns, const char *lines)
{
    int status = 0;

    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (setns(netns, CLONE_NEWNET) == 0)
            execl("/bin/sh", "sh", "-ec", lines, (char *)NULL);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        return co_fail(
            CO_EFAIL,
            "two hosts cannot be joined by a bridge here (needs root, the package iproute2, and a kernel "
            "with veth, bridge and tbf); what failed stands above");
    return CO_OK;
}

static co_err join(int hub, const int netns[2], int mbit, const char *const address[2], const char *device)
{
    char lines[600];
    int me = (int)getpid();

    snprintf(lines, sizeof lines, "ip link add br0 type bridge\nip link set br0 up\n");
    for (int h = 0; h < 2; h++) {
        size_t at = strlen(lines);
        snprintf(
            lines + at, sizeof lines - at,
            "ip link add p%d type veth peer name %s netns /proc/%d/fd/%d\nip link set p%d master br0 up\n", h,
            device, me, netns[h], h);
    }
    CO_TRY(run_in(hub, lines));
    for (int h = 0; h < 2; h++) {
        snprintf(lines, sizeof lines, "ip link set lo up\nip addr add %s/24 dev %s\nip link set %s up\n",
                 address[h], device, device);
        size_t at = strlen(lines);
        if (mbit)
            snprintf(lines + at, sizeof lines - at,
                     "tc qdisc add dev %s root tbf rate %dmbit burst 256kb latency 50ms\n", device, mbit);
        CO_TRY(run_in(netns[h], lines));
    }
    return CO_OK;
}

co_err lan_make(int home, int netns[2], int *hub, int mbit, const char *const address[2], const char *device)
{
    CO_TRY(make_one(hub, home));
    for (int h = 0; h < 2; h++)
        CO_TRY(make_one(&netns[h], home));
    return join(*hub, netns, mbit, address, device);
}
