/* place.c -- whether a host may join a run of views, and its place in the run.
 *
 * A place is the host's address on the links, 0 to 63. The host that keeps the roster from the start has
 * place 0. The place of a host that is gone is given to another one only when no unused place is left: a host
 * that lost its keeper comes back with the place that it had, and keeps it.
 */
#include "roster/net/seat_int.h"

#include <stdio.h>
#include <string.h>

static bool is_taken(const seats *all, const seat *peer, int place)
{
    for (int i = 0; i < all->n; i++)
        if (all->at[i] != peer && all->at[i]->joined && all->at[i]->member.place == place)
            return true;
    return false;
}

/* How well a place suits a host: 3, nobody has had it; 2, the last host that had it was born earlier; 1, the
 * last host had another birth; 0, it is taken. */
static int suits(const server *srv, const seat *peer, int place)
{
    uint64_t last = srv->views.born[place], birth = peer->terms.birth;

    if (is_taken(&srv->seats, peer, place))
        return 0;
    return !last ? 3 : last < birth ? 2 : last != birth;
}

/* The place that the host had, and no other; or the best free one for a new host. Place 0 is for a keeper:
 * another host gets it only if no other is left. -1: there is none. */
static int place_for(const server *srv, const seat *peer, int had)
{
    int best = -1, most = 0;

    if (had >= 0)
        return is_taken(&srv->seats, peer, had) ? -1 : had;
    for (int i = 0; i < CO_MAX_MEMBERS; i++) {
        int value = i || peer->local ? 1 + suits(srv, peer, i) : 1;
        if (suits(srv, peer, i) && value > most) {
            best = i;
            most = value;
        }
    }
    return best;
}

/* The seat of the same process, which has lost its connection and come back before the loss was noticed
 * here. */
static seat *old_seat(const server *srv, const seat *peer)
{
    for (int i = 0; i < srv->seats.n; i++) {
        seat *other = srv->seats.at[i];
        if (other != peer && other->joined && peer->terms.birth && other->terms.birth == peer->terms.birth &&
            strcmp(other->who.name, peer->who.name) == 0)
            return other;
    }
    return NULL;
}

static bool refuses(server *srv, const seat *peer, const char *why, char *to_it, char *to_us, size_t size)
{
    snprintf(to_it, size, "host %.200s refuses this host: %s", srv->me, why);
    snprintf(to_us, size, "host %.200s (%.60s) was refused: %s", peer->who.name, peer->who.addr, why);
    return false;
}

bool views_admit(server *srv, seat *peer, const json_t *hello, char *to_it, char *to_us, size_t size)
{
    const json_t *facts = json_object_get(hello, "facts");
    int had = (int)field_int(hello, "place", 0, CO_MAX_MEMBERS - 1, -1);

    if (srv->facts && facts && facts_check(facts))
        return refuses(srv, peer, co_errmsg(), to_it, to_us, size);
    if (!facts_agree(srv, peer, facts, to_it, to_us, size))
        return false;
    seat *old = old_seat(srv, peer);
    if (old) {
        seat_drop(old, "it has come back by another connection");
        return refuses(srv, peer, "its connection before this one has only now been given up: it may try again",
                       to_it, to_us, size);
    }
    peer->member.place = place_for(srv, peer, had);
    if (peer->member.place < 0)
        return refuses(srv, peer,
                       had < 0 ? "all places of this run are taken"
                               : "another host has its place by now: start it again, it joins as a new host",
                       to_it, to_us, size);
    srv->views.born[peer->member.place] = peer->terms.birth;
    peer->member.past_view = field_int(hello, "view", 0, INT32_MAX, 0);
    peer->member.past_frozen = field_int(hello, "frozen", 0, INT32_MAX, 0);
    return true;
}
