/* roster_net_clock.c -- how far the clocks of the hosts are apart.
 *
 * Every PING carries our time, the PONG brings it back with theirs; the exchange with the smallest round trip so far
 * gives the offset, wrong by at most half of it. One that cannot be true together with it shows a clock that was set, or has
 * drifted: it begins anew.
 */
#include "roster/net/server_int.h"

#include <stdlib.h>

void seat_ping(server *s, seat *h)
{
    h->since_ping_ms = 0;
    seat_say(s, h, WORD_PING,
             json_pack("{sI sI si}", "t", (json_int_t)meet_clock(&s->where), "offset",
                       (json_int_t)h->offset_ns, "done", s->seats[0]->local && s->seats[0]->done));
}

void seat_pong(server *s, seat *h, const json_t *body)
{
    int64_t now = meet_clock(&s->where), sent = word_int(body, "t", 0, INT64_MAX, now);
    int64_t theirs = word_int(body, "mine", 0, INT64_MAX, now), rtt = now - sent;
    int64_t offset = theirs - (sent + rtt / 2), moved = llabs(offset - h->offset_ns);

    bool first = h->best_rtt_ns < 0;
    bool stepped = !first && moved > (rtt + h->best_rtt_ns) / 2 + CLOCK_SLACK_NS;

    if (rtt < 0 || (!first && !stepped && rtt >= h->best_rtt_ns))
        return;
    bool much = first || stepped || rtt < h->best_rtt_ns / 2;
    h->best_rtt_ns = rtt;
    h->offset_ns = offset;
    h->clock_told = h->clock_told && !stepped;
    if (much)
        seat_ping(s, h); /* tells it the offset, the first time before anything can happen there */
    double off_s = (double)h->offset_ns / 1e9;
    if (h->clock_told || (off_s < CLOCK_WARN_S && off_s > -CLOCK_WARN_S))
        return;
    h->clock_told = true;
    char name[300];
    seat_name(name, sizeof name, h);
    server_talk(s, true,
                "step clock: the clock of host %s is %.0f s %s that of host %s. Times in logs are corrected, "
                "but downloads, make and"
                " credentials may fail: set both by NTP",
                name, off_s < 0 ? -off_s : off_s, off_s < 0 ? "behind" : "ahead of", s->me);
}
