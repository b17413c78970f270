/* clock.c -- measures how far apart the clocks of the hosts are.
 *
 * Every PING carries our time, and the PONG brings it back together with the host's. The exchange with the
 * shortest round trip so far gives the offset, which is wrong by at most half of that trip. An exchange
 * that contradicts it shows that a clock was set or has drifted: measuring starts again.
 */
#include "roster/net/seat_int.h"

#include <stdlib.h>

enum {
    CLOCK_WARN_S = 60,       /* clocks further apart than this are worth a line */
    CLOCK_SLACK_NS = 1000000 /* a difference this small does not show that a clock was set */
};

void clock_ping(server *srv, seat *peer)
{
    const seat *first = srv->seats.at[0];

    peer->since_ping_ms = 0;
    seat_say(&srv->seats, peer, FRAME_PING,
             json_pack("{sI sI si}", "t", (json_int_t)host_clock_ns(&srv->where), "offset",
                       (json_int_t)peer->clock.offset_ns, "done", first->local && first->done));
}

static void warn(server *srv, seat *peer)
{
    double off_s = (double)peer->clock.offset_ns / 1e9;
    char name[300];

    if (peer->clock.warned || (off_s < CLOCK_WARN_S && off_s > -CLOCK_WARN_S))
        return;
    peer->clock.warned = true;
    seat_name(name, sizeof name, peer);
    seats_talk(
        &srv->seats, true,
        "step clock: the clock of host %s is %.0f s %s that of host %s. Times in logs are corrected, but "
        "downloads, make and credentials may fail: set both by NTP",
        name, off_s < 0 ? -off_s : off_s, off_s < 0 ? "behind" : "ahead of", srv->me);
}

void clock_pong(server *srv, seat *peer, const json_t *body)
{
    int64_t now = host_clock_ns(&srv->where), sent = field_int(body, "t", 0, WALL_MOST_NS, -1);
    int64_t theirs = field_int(body, "mine", 0, WALL_MOST_NS, -1);

    if (sent < 0 || theirs < 0 || sent > now)
        return;
    int64_t rtt = now - sent;
    int64_t offset = theirs - (sent + rtt / 2), moved = llabs(offset - peer->clock.offset_ns);
    bool first = peer->clock.best_rtt_ns < 0;
    bool stepped = !first && moved > (rtt + peer->clock.best_rtt_ns) / 2 + CLOCK_SLACK_NS;

    if (!first && !stepped && rtt >= peer->clock.best_rtt_ns)
        return;
    bool much = first || stepped || rtt < peer->clock.best_rtt_ns / 2;
    peer->clock.best_rtt_ns = rtt;
    peer->clock.offset_ns = offset;
    peer->clock.warned = peer->clock.warned && !stepped;
    if (much)
        clock_ping(srv, peer); /* carries the offset; the first one arrives before a round can begin there */
    warn(srv, peer);
}
