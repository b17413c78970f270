/* ranks.pml -- the ranks of a host, as one process: compute, combine, decide, apply.
 *
 * Every branch is one atomic action of the real program: a claim, a mark, or a compare-and-swap of the gate.
 */

/* Host h has, for its chunk of the sum, the piece of host s. */
#ifdef MUT_NO_RULE_B
#define HAS_PIECE(h, s) ((s) == (h) || RUN(s, gate_turn[h], whole[h]) == 0 || inbox_mark[HS(h, s)] == PIECE_NOW(h))
#else
#define HAS_PIECE(h, s) ((s) == (h) || !IN(members[h], s) || inbox_mark[HS(h, s)] == PIECE_NOW(h))
#endif
#define HAS_STATS(h, s) ((s) == (h) || !IN(members[h], s) || stat_mark[HS(h, s)] == STAT_NOW(h))
#define HAS_SUMS(h) (sum_mark[HC(h, 0)] == SUM_NOW(h) && sum_mark[HC(h, 1)] == SUM_NOW(h))
/* A joiner waits for the chunk of the state that this step feeds it. */
#ifdef MUT_NO_FEED_WAIT
#define HAS_FEED(h) true
#else
#define HAS_FEED(h) (fed[h] >= CHUNKS || fed[h] >= feed_chunk[h] + (gate_step[h] - feed_step[h]) + 1)
#endif
/* This host's own pieces and statistics have left. */
#ifdef MUT_READY_UNSENT
#define HAS_SENT(h) true
#else
#define HAS_SENT(h) (COUNT(members[h]) == 1 || sent[h] == NOW(h))
#endif
#define MUST_SUM(h, c) (OWNER(c, gate_turn[h], members[h]) == h && sum_mark[HC(h, c)] != SUM_NOW(h))

inline begin_sum(h, c) {
    busy[h] = 1; busy_chunk[h] = c; busy_at[h] = NOW(h);
    sum[HC(h, c)] = TORN
}

/* Adds the pieces; anything but every leaf of this step exactly once is TORN. */
inline end_sum(h) {
    x = piece[h] & WHOLE;
    y = (STEP(piece[h]) == STEP(busy_at[h]) -> 1 : 0);
    for (i : 0 .. HOSTS - 1) {
        if
        :: i != h && IN(members[h], i) && inbox_mark[HS(h, i)] != 0 ->
            if
            :: STEP(inbox[HS(h, i)]) != STEP(busy_at[h]) || (x & inbox[HS(h, i)] & WHOLE) != 0 -> y = 0
            :: else
            fi;
            x = x | (inbox[HS(h, i)] & WHOLE)
        :: else
        fi
    }
    sum[HC(h, busy_chunk[h])] = (x == WHOLE && y == 1 -> STEP(busy_at[h]) : TORN);
#ifdef MUT_SUMS_BY_UNIT
    sum_mark[HC(h, busy_chunk[h])] = busy_at[h] & 240;
#else
    /* Marks only rise. */
    x = sum_mark[HC(h, busy_chunk[h])];
    sum_mark[HC(h, busy_chunk[h])] = (busy_at[h] > x -> busy_at[h] : x);
#endif
    if
    :: busy_at[h] == NOW(h) && IN_VIEW(h) -> unsent_sums[h] = unsent_sums[h] | BIT(busy_chunk[h])
    :: else
    fi;
    busy[h] = 0; busy_at[h] = 0; busy_chunk[h] = 0;
    x = 0; y = 0; i = 0
}

inline combine_wishes(h) {
    stop[h] = 0;
    for (i : 0 .. HOSTS - 1) {
        stop[h] = stop[h] | (IN(members[h], i) && wish[HS(h, i)])
    }
    i = 0
}

/* P1 and P2: a chunk goes from k-1 to k, once, by the complete sum of k. */
inline apply(h, c) {
    if
    :: c < fed[h] ->
        assert(sum[HC(h, c)] == gate_step[h]);
        assert(state[HC(h, c)] == gate_step[h] - 1);
        state[HC(h, c)] = gate_step[h]
    :: else
    fi
}

inline advance(h) {
    over[h] = (stop[h] || gate_step[h] == LAST);
    gate_step[h] = gate_step[h] + 1;
    gate[h] = (gate[h] == READY_HELD -> FROZEN : OPEN);
    stop[h] = 0; applied[h] = 0;
    forget_step(h)
}

/* The leaves of the deal, folded; this host's own vote, with its wish, latched once per turn. */
inline fold(h, w) {
    piece[h] = AT(gate_step[h], RUN(h, gate_turn[h], whole[h]));
    piece_mark[h] = PIECE_NOW(h);
#ifdef REACH_JOINER_COMPUTES
    assert(IN(MEMBERS, h) || (piece[h] & WHOLE) == 0);
#endif
    wish[HS(h, h)] = w
}

#define WORKING(h) (gate[h] == OPEN && !over[h])
#define FOLDED(h) (WORKING(h) && piece_mark[h] == PIECE_NOW(h))
#define CAN_SUM(h, c) (FOLDED(h) && !busy[h] && MUST_SUM(h, c) && FOR_ALL(HAS_PIECE, h))

/* While one rank is busy with a sum, others may do everything else. */
proctype ranks(byte h) {
end:
    do
    :: d_step { WORKING(h) && piece_mark[h] != PIECE_NOW(h) -> fold(h, flag[h]) }
    :: d_step { WORKING(h) && piece_mark[h] != PIECE_NOW(h) && IN(WISHERS, h) && !flag[h] -> flag[h] = 1; fold(h, 1) }
    :: d_step { CAN_SUM(h, 0) -> begin_sum(h, 0) }
    :: d_step { CAN_SUM(h, 1) -> begin_sum(h, 1) }
    :: d_step { busy[h] -> end_sum(h) }
    :: d_step { FOLDED(h) && HAS_SUMS(h) && FOR_ALL(HAS_STATS, h) && HAS_FEED(h) && HAS_SENT(h) ->
#ifdef MUT_LOCAL_WISHES
        stop[h] = flag[h];
#else
        combine_wishes(h);
#endif
        gate[h] = READY;
        check_ready(h) }
    :: d_step { (gate[h] == READY || gate[h] == READY_HELD) && !applied[h] -> apply(h, 0); applied[h] = 1 }
    :: d_step { (gate[h] == READY || gate[h] == READY_HELD) && applied[h] -> apply(h, 1); advance(h) }
#ifdef MUT_LOCAL_WISHES
    :: d_step { IN(WISHERS, h) && !flag[h] && gate[h] != DEAD -> flag[h] = 1 }
#endif
    od
}
