/* carrier.pml -- the carrier of a host: it sends, receives, freezes the gate and installs views.
 *
 * Frames that one action sends to several hosts, or several frames to one host, leave together. This loses no
 * behaviour: each receiver may freeze before it takes any of them, which is what a sender's death half-way looks
 * like to it.
 */

/* Sends one frame. A host that froze for a later view would drop it, and a dead host cannot take it. */
inline send(from, to, what, at, content) {
    if
#ifdef MUT_OLD_RECEIVES
    :: gate[to] == DEAD || len(LINK(from, to)) == ROOM
#else
    :: gate[to] == DEAD || frozen_for[to] > frozen_for[from]
#endif
    :: else ->
        /* Room for one step ahead is enough. */
        assert(gate_turn[to] != gate_turn[from] || !IN_VIEW(to) || STEP(at) <= gate_step[to] + 1);
        LINK(from, to) ! what, at, content
    fi
}

/* Pieces to the owners, statistics with the wish to everybody, a chunk of the state to a joiner. */
inline send_pieces(h, w) {
    sent[h] = NOW(h);
    for (j : 0 .. HOSTS - 1) {
        if
        :: j != h && IN(members[h], j) ->
            for (i : 0 .. CHUNKS - 1) {
                if
                :: OWNER(i, gate_turn[h], members[h]) == j -> send(h, j, PIECE + i, NOW(h), piece[h])
                :: else
                fi
            }
            send(h, j, STATS, NOW(h), w);
            x = feed_chunk[h] + gate_step[h] - feed_step[h];
            if
            :: !IN(whole[h], j) && FIRST(whole[h]) == h && x < CHUNKS ->
                assert(state[HC(h, x)] == gate_step[h] - 1);
                send(h, j, FEED + x, NOW(h), state[HC(h, x)])
            :: else
            fi
        :: else
        fi
    }
    i = 0; j = 0; x = 0
}

inline send_sum(h, c) {
    unsent_sums[h] = unsent_sums[h] & ~BIT(c);
    for (j : 0 .. HOSTS - 1) {
        if
        :: j != h && IN(members[h], j) ->
            send(h, j, SUM + c, AT(STEP(sum_mark[HC(h, c)]), gate_turn[h]), sum[HC(h, c)])
        :: else
        fi
    }
    j = 0
}

/* Gives chunk c of the sum of the step before the takers' next; the combined wish goes with the last one. */
inline give(h, c) {
    to_give[h] = to_give[h] & ~BIT(c);
    for (j : 0 .. HOSTS - 1) {
        if
        :: IN(takers[h], j) ->
            send(h, j, GIFT + c, AT(ready_step[h], gate_turn[h]), sum[HC(h, c)] | (ready_stop[h] << 4))
        :: else
        fi
    }
    takers[h] = (to_give[h] == 0 -> 0 : takers[h]);
    j = 0
}

/* Takes the oldest frame of this step and view from host s, if there is one. */
#define ARRIVED(h, s, what) (s != h && LINK(s, h) ?? [eval(what), eval(NOW(h)), x])
#define TAKE(h, s, what) LINK(s, h) ?? eval(what), eval(NOW(h)), x

inline take_piece(h, s, c) {
    TAKE(h, s, PIECE + c);
    inbox[HS(h, s)] = x; inbox_mark[HS(h, s)] = PIECE_NOW(h);
    x = 0
}
inline take_stats(h, s) {
    TAKE(h, s, STATS);
    wish[HS(h, s)] = x; stat_mark[HS(h, s)] = STAT_NOW(h);
    x = 0
}
inline take_sum(h, s, c) {
    TAKE(h, s, SUM + c);
    sum[HC(h, c)] = x; sum_mark[HC(h, c)] = SUM_NOW(h);
    x = 0
}
inline take_feed(h, s, c) {
    TAKE(h, s, FEED + c);
    assert(fed[h] == c);
    state[HC(h, c)] = x; fed[h] = c + 1;
    x = 0
}
/* With the last chunk the taker becomes READY. */
inline take_gift(h, s, c) {
    TAKE(h, s, GIFT + c);
    sum[HC(h, c)] = x & 15; sum_mark[HC(h, c)] = SUM_NOW(h);
    if
    :: sum_mark[HC(h, 1 - c)] == SUM_NOW(h) ->
#ifdef MUT_GIFT_WITHOUT_WISH
        stop[h] = flag[h];
#else
        stop[h] = x >> 4;
#endif
#ifdef REACH_GIFT_TO_JOINER
        assert(fed[h] == CHUNKS);
#endif
#ifdef REACH_GIFT_STOPS
        assert(!stop[h]);
#endif
        gate[h] = READY;
        check_ready(h)
    :: else
    fi;
    x = 0
}

/* Drops every frame that waits: all are of older views. */
inline drop_frames(h) {
    for (j : 0 .. HOSTS - 1) {
        do
        :: j != h && len(LINK(j, h)) > 0 -> LINK(j, h) ? x, y, t
        :: else -> break
        od
    }
    j = 0; x = 0; y = 0; t = 0
}

/* FREEZE: no step can become READY after this, and no frame of the old view can land. Then report the position. */
inline freeze(h, view, joins) {
    frozen_for[h] = view;
    unsent_sums[h] = 0; to_give[h] = 0; takers[h] = 0;
#ifndef MUT_OLD_RECEIVES
    drop_frames(h);
#endif
    fresh[h] = fresh[h] | joins;
    told_view[h] = view;
    told_next[h] = (fresh[h] -> 0 : (gate[h] >= READY -> gate_step[h] + 1 : gate_step[h]));
    told_fed[h] = (fresh[h] -> 0 : fed[h]);
#ifdef MUT_JOINER_HOLDS
    told_based[h] = !fresh[h];
#else
    told_based[h] = (based[h] && !fresh[h]);
#endif
    told_over[h] = (gate[h] >= READY -> (stop[h] || gate_step[h] == LAST) : over[h]);
#ifndef MUT_NO_GATE
    gate[h] = (gate[h] == OPEN -> FROZEN : gate[h]);
#ifndef MUT_READY_RUNS_ON
    gate[h] = (gate[h] == READY -> READY_HELD : gate[h]);
#endif
#endif
}

/* VIEW: the new deal; a new turn of the step, or wait for the gift of the step before. */
inline install(h, view, mem, who, m, ended, donor, takes, chunks_fed) {
    if
    :: fresh[h] || (!based[h] && gate_step[h] > m + 1) ->
        /* A joiner, or one that was fed by a host that died with a step nobody else holds. */
#ifdef REACH_JOINER_RESTARTS
        assert(fresh[h]);
#endif
        forget(h);
        gate_step[h] = m + 1; fresh[h] = 0;
#ifndef MUT_JOINER_NOT_TOLD_END
        over[h] = ended
#endif
    :: else ->
#ifndef MUT_NO_GATE
        assert(gate_step[h] == m || gate_step[h] == m + 1)
#endif
    fi;
    gate_turn[h] = view;
    members[h] = mem; whole[h] = who;
    feed_step[h] = (mem == who -> 0 : m + 1); feed_chunk[h] = (mem == who -> 0 : chunks_fed);
    gate[h] = (gate_step[h] == m -> FROZEN : OPEN);
    takers[h] = (donor == h -> takes : 0);
    to_give[h] = (takers[h] != 0 -> 3 : 0);
#ifdef MUT_SUMS_BY_UNIT
    for (i : 0 .. CHUNKS - 1) {
        if
        :: gate[h] == OPEN && OWNER(i, view, mem) == h && sum_mark[HC(h, i)] == SUM_NOW(h) ->
            unsent_sums[h] = unsent_sums[h] | BIT(i)
        :: else
        fi
    }
    i = 0;
#endif
}

#ifdef MUT_NO_PARK
#define IDLE(h) true
#else
#define IDLE(h) (!busy[h])
#endif
#if defined(MUT_NO_GATE) || defined(MUT_READY_RUNS_ON)
#define CAN_INSTALL(h) (IDLE(h) && gate[h] <= FROZEN)
#else
#define CAN_INSTALL(h) (IDLE(h) && gate[h] == FROZEN)
#endif
#define CAN_SEND(h) (gate[h] == OPEN && !over[h] && IN_VIEW(h) && piece_mark[h] == PIECE_NOW(h) && sent[h] != NOW(h))

#define RECEIVE(s) \
    :: d_step { gate[h] == OPEN && IN_VIEW(h) && ARRIVED(h, s, PIECE) -> take_piece(h, s, 0) } \
    :: d_step { gate[h] == OPEN && IN_VIEW(h) && ARRIVED(h, s, PIECE + 1) -> take_piece(h, s, 1) } \
    :: d_step { gate[h] == OPEN && IN_VIEW(h) && ARRIVED(h, s, STATS) -> take_stats(h, s) } \
    :: d_step { gate[h] == OPEN && IN_VIEW(h) && ARRIVED(h, s, SUM) -> take_sum(h, s, 0) } \
    :: d_step { gate[h] == OPEN && IN_VIEW(h) && ARRIVED(h, s, SUM + 1) -> take_sum(h, s, 1) } \
    :: d_step { gate[h] == OPEN && IN_VIEW(h) && ARRIVED(h, s, FEED) -> take_feed(h, s, 0) } \
    :: d_step { gate[h] == OPEN && IN_VIEW(h) && ARRIVED(h, s, FEED + 1) -> take_feed(h, s, 1) } \
    :: d_step { gate[h] == FROZEN && IN_VIEW(h) && ARRIVED(h, s, GIFT) -> take_gift(h, s, 0) } \
    :: d_step { gate[h] == FROZEN && IN_VIEW(h) && ARRIVED(h, s, GIFT + 1) -> take_gift(h, s, 1) }

/* A receive of the first view that nobody cancelled: the bytes land, although nobody waits for them. */
#define ARRIVED_OLD(h, s, what, k) (frozen_for[h] > 1 && s != h && LINK(s, h) ?? [eval(what), eval(AT(k, 1)), x])
inline land_old(h, s, what, k) {
    LINK(s, h) ?? eval(what), eval(AT(k, 1)), x;
    if
    :: what >= SUM -> sum[HC(h, what - SUM)] = x
    :: what < STATS && IN_VIEW(h) && OWNER(what - PIECE, gate_turn[h], members[h]) == h -> inbox[HS(h, s)] = x
    :: else
    fi;
    x = 0
}
#define RECEIVE_OLD(s, k) \
    :: d_step { ARRIVED_OLD(h, s, PIECE, k) -> land_old(h, s, PIECE, k) } \
    :: d_step { ARRIVED_OLD(h, s, PIECE + 1, k) -> land_old(h, s, PIECE + 1, k) } \
    :: d_step { ARRIVED_OLD(h, s, SUM, k) -> land_old(h, s, SUM, k) } \
    :: d_step { ARRIVED_OLD(h, s, SUM + 1, k) -> land_old(h, s, SUM + 1, k) }

/* A frame of the view for which this host is frozen but which it has not installed yet. */
#define EARLY(h, s, k) (s != h && !IN_VIEW(h) && LINK(s, h) ?? [x, eval(AT(k, frozen_for[h])), y])
#define DROP_EARLY(s, k) :: d_step { EARLY(h, s, k) -> LINK(s, h) ?? x, eval(AT(k, frozen_for[h])), y; x = 0; y = 0 }
#define DROP_NEWER(s) DROP_EARLY(s, 1) DROP_EARLY(s, 2) DROP_EARLY(s, 3)

proctype carrier(byte h) {
    byte v, mem, who, m, donor, takes, chunks;
    bit ended;
end:
    do
    :: d_step { order[h] ? [FREEZE, v, mem, who, m, ended, donor, takes, chunks] ->
        order[h] ? FREEZE, v, mem, who, m, ended, donor, takes, chunks;
        freeze(h, v, mem);
        v = 0; mem = 0 }
    :: d_step { CAN_INSTALL(h) && order[h] ? [VIEW, v, mem, who, m, ended, donor, takes, chunks] ->
        order[h] ? VIEW, v, mem, who, m, ended, donor, takes, chunks;
        install(h, v, mem, who, m, ended, donor, takes, chunks);
        v = 0; mem = 0; who = 0; m = 0; ended = 0; donor = 0; takes = 0; chunks = 0 }
    :: d_step { CAN_SEND(h) -> send_pieces(h, wish[HS(h, h)]) }
#ifdef MUT_WISH_NOT_LATCHED
    :: d_step { CAN_SEND(h) && IN(WISHERS, h) && !flag[h] -> flag[h] = 1; send_pieces(h, 1) }
#endif
    :: d_step { IN_VIEW(h) && (unsent_sums[h] & 1) -> send_sum(h, 0) }
    :: d_step { IN_VIEW(h) && (unsent_sums[h] & 2) -> send_sum(h, 1) }
    :: d_step { IN_VIEW(h) && (to_give[h] & 1) -> give(h, 0) }
    :: d_step { IN_VIEW(h) && to_give[h] == 2 -> give(h, 1) }
#ifdef MUT_NO_FAREWELL
    :: d_step { over[h] && gate[h] == OPEN && IN_VIEW(h) -> left_at = gate_step[h] - 1; kill(h) }
#else
    :: d_step { over[h] && gate[h] == OPEN && IN_VIEW(h) && done_view[h] != gate_turn[h] ->
        done_view[h] = gate_turn[h] }
#endif
    RECEIVE(0)
    RECEIVE(1)
#if HOSTS == 3
    RECEIVE(2)
#endif
#ifdef MUT_DROP_NEWER
    DROP_NEWER(0)
    DROP_NEWER(1)
#endif
#ifdef MUT_OLD_RECEIVES
    RECEIVE_OLD(0, 1)
    RECEIVE_OLD(0, 2)
    RECEIVE_OLD(1, 1)
    RECEIVE_OLD(1, 2)
#endif
    od
}
