/* words.pml -- the words that the processes of the model share, and the formulas every host knows.
 *
 * Arrays indexed [host] are a host's arena; HS(h, s) is the slot at host h for what comes from host s, HC(h, c)
 * the slot at host h for chunk c. Where a byte holds both a step and a view, the step is its upper four bits.
 */

/* The configuration; tools/model sets these. Masks have one bit per host. */
#ifndef HOSTS
#define HOSTS 2
#endif
#ifndef MEMBERS /* hosts of the first view */
#define MEMBERS 3
#endif
#ifndef SPARES /* hosts that get leaves only if nobody else can compute */
#define SPARES 0
#endif
#ifndef WISHERS /* hosts whose user may wish to stop */
#define WISHERS 0
#endif
#ifndef LAST /* steps of the run */
#define LAST 2
#endif
#ifndef MIN /* below so many members the run waits */
#define MIN 1
#endif
#ifndef DEATHS /* at most so many hosts die */
#define DEATHS 0
#endif
#ifndef CUTS /* at most so many times the roster evicts a live host */
#define CUTS 0
#endif
#ifndef JOINS /* at most so many joins: of hosts not in MEMBERS and of evicted ones */
#define JOINS 0
#endif
#ifndef DEALS /* at most so many view changes that keep the members (a new deal by speed) */
#define DEALS 0
#endif

#define CHUNKS 2
#define WHOLE 15 /* a mask of leaves: all four */
#define TORN 14  /* content of a chunk: not the value of any step */
#define NOBODY 7

#define HS(h, s) ((h) * HOSTS + (s))
#define HC(h, c) ((h) * CHUNKS + (c))
#define IN(mask, h) (((mask) >> (h)) & 1)
#define BIT(h) (1 << (h))
#define AT(step, view) (((step) << 4) | (view))
#define STEP(at) ((at) >> 4)

/* Formulas of a view. Members are numbered by their position in the mask. */
#define COUNT(mask) (IN(mask, 0) + IN(mask, 1) + IN(mask, 2))
#define FIRST(mask) (IN(mask, 0) -> 0 : (IN(mask, 1) -> 1 : 2))
#define SECOND(mask) (((mask) & 3) == 3 -> 1 : 2)
#define NTH(mask, i) ((i) == 0 -> FIRST(mask) : ((i) == 1 -> SECOND(mask) : 2))
#ifdef WORKERS_OWN /* where set, members without leaves own no chunk */
#define OWNERS(mask) WORKERS(mask)
#else
#define OWNERS(mask) (mask)
#endif
#define OWNER(c, view, mask) NTH(OWNERS(mask), ((c) + (view)) % COUNT(OWNERS(mask)))
/* Who computes: whole members that are not spares, or else all whole members. */
#define WORKERS(whole) (((whole) & ~SPARES) != 0 -> ((whole) & ~SPARES) : (whole))
/* The leaves of host h: contiguous runs, cut elsewhere in odd than in even views. */
#define RUN2(h, view, w) ((h) == FIRST(w) -> ((view) & 1 -> 3 : 1) : ((view) & 1 -> 12 : 14))
#define RUN3(h, view) \
    ((h) == 0 -> ((view) & 1 -> 1 : 3) : ((h) == 1 -> ((view) & 1 -> 2 : 4) : ((view) & 1 -> 12 : 8)))
#define RUNW(h, view, w) \
    (!IN(w, h) -> 0 : (COUNT(w) == 1 -> WHOLE : (COUNT(w) == 2 -> RUN2(h, view, w) : RUN3(h, view))))
#define RUN(h, view, whole) RUNW(h, view, WORKERS(whole))

/* The gate: one word (step, turn, state). The number of the view serves as the turn. */
#define OPEN 0
#define FROZEN 1
#define READY 2
#define READY_HELD 3 /* READY; the next step begins FROZEN */
#define DEAD 4
byte gate_step[HOSTS], gate_turn[HOSTS], gate[HOSTS];

/* The deal, written by the carrier while the gate is FROZEN and the ranks are idle. */
byte members[HOSTS], whole[HOSTS], feed_step[HOSTS], feed_chunk[HOSTS];

/* Marks (by turn) and contents. */
bit busy[HOSTS];          /* a rank works on a chunk of the sum ... */
byte busy_at[HOSTS];      /* ... of this step and turn, */
bit busy_chunk[HOSTS];    /* ... this chunk */
byte piece_mark[HOSTS];   /* the leaves of this host are folded */
byte piece[HOSTS];        /* AT(step, leaves) */
byte inbox_mark[HOSTS * HOSTS];
byte inbox[HOSTS * HOSTS]; /* pieces of others for the chunk that this host owns */
byte sum_mark[HOSTS * CHUNKS];
byte sum[HOSTS * CHUNKS]; /* the step whose complete sum this is, or TORN */
byte stat_mark[HOSTS * HOSTS];
bit wish[HOSTS * HOSTS];  /* the wish that came with the statistics */
bit flag[HOSTS];          /* the user at this host wants to stop */
bit stop[HOSTS];          /* the combined wish of the step at the gate */
bit over[HOSTS];          /* the step before the gate's was the last */

/* State. */
byte state[HOSTS * CHUNKS]; /* the step this chunk is at */
byte fed[HOSTS];            /* so many chunks of the state are there */
bit applied[HOSTS];         /* the first chunk of the gate's step is applied */

/* The carrier's own. */
byte frozen_for[HOSTS];  /* the view of the newest FREEZE */
byte sent[HOSTS];        /* pieces and statistics are sent for AT(step, view) */
byte unsent_sums[HOSTS]; /* owned chunks summed but not sent */
byte to_give[HOSTS];     /* chunks still to give to the takers, */
byte takers[HOSTS];
bit fresh[HOSTS];        /* a joiner that has no view yet */
bit based[HOSTS];        /* has held a sum in this life, or was there from the start */
#define IN_VIEW(h) (frozen_for[h] == gate_turn[h] && !fresh[h])

/* Positions: what the roster knows of a host. */
byte told_view[HOSTS], told_next[HOSTS], told_fed[HOSTS];
bit told_based[HOSTS], told_over[HOSTS];
byte done_view[HOSTS];

/* Frames between hosts: kind and chunk, AT(step, view), content. */
#define PIECE 0
#define STATS 2
#define SUM 4
#define GIFT 6
#define FEED 8
#define ROOM 8
chan link[HOSTS * HOSTS] = [ROOM] of { byte, byte, byte };
#define LINK(from, to) link[(from) * HOSTS + (to)]

/* Orders of the roster. FREEZE: view, 1 for a joiner. VIEW: view, members, whole members, m, whether m was the last
 * step, donor, takers, chunks fed. */
#define FREEZE 0
#define VIEW 1
chan order[HOSTS] = [4] of { bit, byte, byte, byte, byte, bit, byte, byte, byte };

/* What only the properties read. */
byte last_view, last_members, last_m;     /* the newest view that was sent */
byte ready_step[HOSTS];                   /* the newest step for which this host was READY, */
bit ready_stop[HOSTS];                    /* and the combined wish of that step */
byte deaths;
byte left_at; /* the step after which a host left, where hosts leave by themselves */

hidden byte i, j, x, y, t; /* scratch inside d_step */

/* Rules that a mutant changes. */
#ifdef MUT_MARKS_BY_UNIT
#define MUT_PIECES_BY_UNIT
#define MUT_STATS_BY_UNIT
#define MUT_SUMS_BY_UNIT
#endif
#define NOW(h) AT(gate_step[h], gate_turn[h])
#ifdef MUT_PIECES_BY_UNIT
#define PIECE_NOW(h) AT(gate_step[h], 0)
#else
#define PIECE_NOW(h) NOW(h)
#endif
#ifdef MUT_STATS_BY_UNIT
#define STAT_NOW(h) AT(gate_step[h], 0)
#else
#define STAT_NOW(h) NOW(h)
#endif
#ifdef MUT_SUMS_BY_UNIT
#define SUM_NOW(h) AT(gate_step[h], 0)
#else
#define SUM_NOW(h) NOW(h)
#endif

#if HOSTS == 3
#define FOR_ALL(P, h) (P(h, 0) && P(h, 1) && P(h, 2))
#else
#define FOR_ALL(P, h) (P(h, 0) && P(h, 1))
#endif

/* Forgets everything at host h but its gate. */
inline forget(h) {
    members[h] = 0; whole[h] = 0; feed_step[h] = 0; feed_chunk[h] = 0;
    busy[h] = 0; busy_at[h] = 0; busy_chunk[h] = 0;
    stop[h] = 0; over[h] = 0; fed[h] = 0; applied[h] = 0;
    sent[h] = 0; unsent_sums[h] = 0; to_give[h] = 0; takers[h] = 0; based[h] = 0;
    ready_step[h] = 0; ready_stop[h] = 0;
    forget_step(h);
    for (i : 0 .. CHUNKS - 1) {
        sum[HC(h, i)] = 0; sum_mark[HC(h, i)] = 0; state[HC(h, i)] = 0;
    }
    i = 0
}

/* A host dies: its memory, and all that was on the way to it. What it sent is still on the way. */
inline kill(h) {
    forget(h);
    gate[h] = DEAD; gate_step[h] = 0; gate_turn[h] = 0; frozen_for[h] = 0; fresh[h] = 0; flag[h] = 0;
    for (i : 0 .. HOSTS - 1) {
        do
        :: i != h && len(LINK(i, h)) > 0 -> LINK(i, h) ? x, x, x
        :: else -> break
        od
    }
    do
    :: len(order[h]) > 0 -> order[h] ? x, x, x, x, x, x, x, x, x
    :: else -> break
    od;
    i = 0; x = 0
}

/* Marks of a finished step can never count again; clearing them keeps the model small. */
inline forget_step(h) {
    piece_mark[h] = 0; piece[h] = 0;
    for (i : 0 .. HOSTS - 1) {
        inbox_mark[HS(h, i)] = 0; inbox[HS(h, i)] = 0; stat_mark[HS(h, i)] = 0; wish[HS(h, i)] = 0;
    }
    i = 0
}

/* The properties that are checked at the moment at which a host becomes READY: P3. */
inline check_ready(h) {
    assert(left_at == 0 || gate_step[h] <= left_at);
    if
#ifdef REACH_EVICTED_FINISHES
    :: !IN(last_members, h) -> assert(gate_step[h] <= last_m)
#else
    :: !IN(last_members, h) -> assert(gate_step[h] <= last_m + 1)
#endif
    :: else ->
        for (i : 0 .. HOSTS - 1) {
            assert(i == h || !IN(last_members, i) || gate[i] == DEAD || ready_step[i] != gate_step[h] ||
                   ready_stop[i] == stop[h]);
        }
        i = 0
    fi;
    ready_step[h] = gate_step[h];
    ready_stop[h] = stop[h];
    based[h] = 1
}
