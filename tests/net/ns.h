/* ns.h -- hosts as network namespaces: a bridge, and a cable from it to each host, 10.77.0.1, 10.77.0.2, ...
 *
 * The namespaces have no names and exist only as descriptors of the test, so they vanish with the test
 * however it ends. A thread is on the host that it entered last; a process is on the host of the thread that
 * started it.
 *
 *     ns_lan lan = ns_open(3);                 // skips the test, loudly, where this is not allowed
 *     ns_enter(&lan, 0); ... ns_leave(&lan);
 *     ns_cable(&lan, 2, false);                // pulled out
 */
#ifndef TESTS_NET_NS_H
#define TESTS_NET_NS_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

enum { NS_MOST = 16 };
typedef struct ns_lan {
    int home, hub, host[NS_MOST], n;
} ns_lan;

static inline int ns_here(void)
{
    return open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

static inline void ns_go(int fd)
{
    CHECK(setns(fd, CLONE_NEWNET) == 0, "setns: %s", strerror(errno));
}

static inline void ns_enter(const ns_lan *lan, int i)
{
    ns_go(lan->host[i]);
}

static inline void ns_leave(const ns_lan *lan)
{
    ns_go(lan->home);
}

static inline void ns_sh(int fd, const char *line)
{
    int home = ns_here();

    ns_go(fd);
    test_run r = test_sh("%s", line);
    ns_go(home);
    close(home);
    CHECK(r.status == 0, "%s: %s", line, r.out);
    free(r.out);
}

static inline int ns_new(void)
{
    if (unshare(CLONE_NEWNET) != 0)
        test_skip("no network namespaces here: %s (needs root)", strerror(errno));
    return ns_here();
}

/* Whether this process may make namespaces, bridges and cables, and slow the cables down. Where it may not,
 * ns_open skips the test; a test that can do without asks first. */
static inline bool ns_allowed(void)
{
    test_run tried =
        test_sh("unshare -n sh -c 'ip link add br0 type bridge && ip link add va type veth peer name vb &&"
                " tc qdisc add dev va root tbf rate 8mbit burst 64kb latency 50ms'");
    bool allowed = tried.status == 0;

    free(tried.out);
    return allowed;
}

static inline ns_lan ns_open(int n)
{
    ns_lan lan = {.home = ns_here(), .n = n};
    char line[512];

    CHECK(n <= NS_MOST, "%d hosts", n);
    test_run have = test_sh("ip -V");
    if (have.status != 0)
        test_skip("no ip command (package iproute2): hosts as namespaces cannot be made");
    free(have.out);
    lan.hub = ns_new();
    test_run made = test_sh("ip link add br0 type bridge && ip link set br0 up");
    if (made.status != 0)
        test_skip("no bridges here: %s", made.out);
    free(made.out);
    for (int i = 0; i < n; i++) {
        lan.host[i] = ns_new();
        snprintf(line, sizeof line,
                 "ip link set lo up && ip link add eth0 type veth peer name p%d netns /proc/%d/fd/%d &&"
                 " ip addr add 10.77.0.%d/24 dev eth0 && ip link set eth0 up",
                 i, (int)getpid(), lan.hub, i + 1);
        ns_sh(lan.host[i], line);
        snprintf(line, sizeof line, "ip link set p%d master br0 up", i);
        ns_sh(lan.hub, line);
    }
    ns_leave(&lan);
    return lan;
}

static inline void ns_cable(const ns_lan *lan, int i, bool in)
{
    char line[64];

    snprintf(line, sizeof line, "ip link set p%d %s", i, in ? "up" : "down");
    ns_sh(lan->hub, line);
}

/* The host is taken off the bridge and cannot tell: its cable is in, and nothing comes or goes. Unlike a
 * cable that is put in again, which may take a second, the port passes packets at once when it is back. */
static inline void ns_mute(const ns_lan *lan, int i, bool mute)
{
    char line[64];

    snprintf(line, sizeof line, "ip link set p%d %s", i, mute ? "nomaster" : "master br0");
    ns_sh(lan->hub, line);
}

#endif
