/* roster.pml -- the roster: it numbers views, and is the only one that decides who is in.
 *
 * A change of members is FREEZE to everybody in the next view, everybody's position, then VIEW. Whatever happens in
 * between starts a further change with a higher number. The roster sees a death for certain, if late; a cut is the
 * decision to evict a host that lives.
 */
#define RUNNING 0
#define COLLECTING 1
#define WAITING 2 /* below MIN members: frozen until somebody joins */
#define LOST 3    /* no member has the whole state: the run continues from a checkpoint, not here */

#define HERE(h) (gate[h] != DEAD)
#define TOLD(v, h) (!IN(in_view, h) || told_view[h] == v)
#define FINISHED(v, h) (!IN(in_view, h) || done_view[h] == v)

/* A host's position is of no use once it is out. */
inline unlearn(h) {
    told_view[h] = 0; told_next[h] = 0; told_based[h] = 0; told_over[h] = 0; told_fed[h] = 0; done_view[h] = 0
}

inline change(joiner) {
    view++;
    phase = COLLECTING;
    for (i : 0 .. HOSTS - 1) {
        if
        :: IN(in_view, i) && HERE(i) -> order[i] ! FREEZE, view, (joiner == i), 0, 0, 0, 0, 0, 0
        :: else
        fi
    }
    i = 0
}

/* From the positions: m, the newest step whose sum somebody holds; who gives it; who lacks it. */
inline gather() {
    m = 0; donor = NOBODY; takers_mask = 0; whole_mask = 0; ended = 0; chunks_fed = 0;
    for (i : 0 .. HOSTS - 1) {
        if
        :: IN(in_view, i) && told_based[i] && told_next[i] > m + 1 -> m = told_next[i] - 1
        :: else
        fi
    }
    for (i : 0 .. HOSTS - 1) {
        if
        :: IN(in_view, i) && told_based[i] ->
            assert(told_next[i] >= m);
            if
            :: told_next[i] == m + 1 ->
                donor = (donor == NOBODY -> i : donor);
                ended = ended | told_over[i]
            :: else
            fi
        :: else
        fi;
        if
        :: IN(in_view, i) && told_next[i] == m && m > 0 -> takers_mask = takers_mask | BIT(i)
        :: else
        fi;
        if
        :: IN(in_view, i) && told_fed[i] == CHUNKS && told_next[i] > 0 -> whole_mask = whole_mask | BIT(i)
        :: else
        fi;
        if
        :: IN(in_view, i) && told_fed[i] < CHUNKS && told_next[i] > 0 && told_next[i] <= m + 1 ->
            chunks_fed = told_fed[i]
        :: else
        fi
    }
    i = 0
}

inline clear() {
    m = 0; donor = 0; takers_mask = 0; whole_mask = 0; ended = 0; chunks_fed = 0
}

inline send_views() {
    last_view = view; last_members = in_view; last_m = m;
    phase = RUNNING;
    for (i : 0 .. HOSTS - 1) {
        if
        :: IN(in_view, i) && HERE(i) ->
            order[i] ! VIEW, view, in_view, whole_mask, m, ended, donor, takers_mask, chunks_fed
        :: else
        fi
    }
    i = 0
}

/* P4: everybody in the last view ends at the same step with the same state. */
inline check_end() {
    x = 0;
    for (i : 0 .. HOSTS - 1) {
        if
        :: IN(in_view, i) && HERE(i) ->
            assert(over[i]);
            assert(x == 0 || x == gate_step[i]);
            x = gate_step[i];
            assert(x == LAST + 1 || ready_stop[i] || !based[i]);
            for (j : 0 .. CHUNKS - 1) {
                assert(j >= fed[i] || state[HC(i, j)] == x - 1)
            }
        :: else
        fi
    }
    i = 0; j = 0; x = 0
}

#define CAN_JOIN(h) (joins < JOINS && IN(outside, h) && HERE(h))
#if HOSTS == 3
#define NOBODY_CAN_JOIN (!CAN_JOIN(0) && !CAN_JOIN(1) && !CAN_JOIN(2))
#define ALL_TOLD (TOLD(view, 0) && TOLD(view, 1) && TOLD(view, 2))
#define ALL_FINISHED (FINISHED(view, 0) && FINISHED(view, 1) && FINISHED(view, 2))
#else
#define NOBODY_CAN_JOIN (!CAN_JOIN(0) && !CAN_JOIN(1))
#define ALL_TOLD (TOLD(view, 0) && TOLD(view, 1))
#define ALL_FINISHED (FINISHED(view, 0) && FINISHED(view, 1))
#endif

#define MEMBER(h) \
    :: d_step { IN(in_view, h) && !HERE(h) -> in_view = in_view & ~BIT(h); unlearn(h); change(NOBODY) } \
    :: d_step { cuts < CUTS && IN(in_view, h) && HERE(h) -> \
        cuts++; in_view = in_view & ~BIT(h); outside = outside | BIT(h); unlearn(h); change(NOBODY) } \
    :: d_step { CAN_JOIN(h) -> \
        joins++; in_view = in_view | BIT(h); outside = outside & ~BIT(h); change(h) }

proctype roster() {
    byte view = 1, in_view = MEMBERS, outside = ((1 << HOSTS) - 1) & ~MEMBERS, cuts, joins, deals, phase;
    byte m, donor, takers_mask, whole_mask, chunks_fed;
    bit ended;
    do
    MEMBER(0)
    MEMBER(1)
#if HOSTS == 3
    MEMBER(2)
#endif
    :: d_step { phase == RUNNING && deals < DEALS -> deals++; change(NOBODY) }
    :: d_step { phase == COLLECTING && ALL_TOLD ->
        gather();
        if
        :: whole_mask == 0 -> phase = LOST
        :: whole_mask != 0 && COUNT(in_view) < MIN && !ended -> phase = WAITING
        :: else -> send_views()
        fi;
        clear() }
    :: phase == LOST -> break
    :: phase == WAITING && NOBODY_CAN_JOIN -> break
    :: d_step { phase == RUNNING && ALL_FINISHED -> check_end(); phase = LOST }
    od;
    skip;
    d_step {
        for (j : 0 .. HOSTS - 1) {
            kill(j)
        }
        last_view = 0; last_members = 0; last_m = 0; deaths = 0;
        view = 0; in_view = 0; outside = 0; cuts = 0; joins = 0; deals = 0
    }
}
