/* over_net.c -- see over.h: accidents of the network, where hosts are namespaces.
 *
 * A cut closes a host's port of the bridge: its connections to the roster and to the other hosts hear nothing
 * and say nothing, and none of them ends. A slow cable passes SLOW_RATE in each direction, for both kinds of
 * connection together, and queues what comes faster for up to SLOW_QUEUE. */
#include "net/ns.h"
#include "train/over_int.h"

#include "base/clock.h"

#define SLOW_RATE  "20mbit"
#define SLOW_QUEUE "100ms"

static void cable_slow(int host, bool slow)
{
    const ns_lan *lan = over_play.scene->lan;
    char line[128];

    snprintf(line, sizeof line, "tc qdisc %s dev p%d root %s", slow ? "replace" : "del", host,
             slow ? "tbf rate " SLOW_RATE " burst 64kb latency " SLOW_QUEUE : "");
    ns_sh(lan->hub, line);
    snprintf(line, sizeof line, "tc qdisc %s dev eth0 root %s", slow ? "replace" : "del",
             slow ? "tbf rate " SLOW_RATE " burst 64kb latency " SLOW_QUEUE : "");
    ns_sh(lan->host[host], line);
}

void over_cut(int host, int ms)
{
    if (!over_play.cable[host].cut_ns)
        ns_mute(over_play.scene->lan, host, true);
    over_play.cable[host].cut_ns = co_now_ns() + (uint64_t)ms * 1000000;
}

void over_slow(int host, int ms)
{
    if (!over_play.cable[host].slow_ns)
        cable_slow(host, true);
    over_play.cable[host].slow_ns = co_now_ns() + (uint64_t)ms * 1000000;
}

void over_net_turn(uint64_t now)
{
    for (int h = 0; h < OVER_HOSTS; h++) {
        struct cable *cable = &over_play.cable[h];
        if (cable->cut_ns && now >= cable->cut_ns) {
            ns_mute(over_play.scene->lan, h, false);
            cable->cut_ns = 0;
        }
        if (cable->slow_ns && now >= cable->slow_ns) {
            cable_slow(h, false);
            cable->slow_ns = 0;
        }
    }
}

void over_net_end(void)
{
    over_net_turn(UINT64_MAX);
}
