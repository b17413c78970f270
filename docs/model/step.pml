/* step.pml -- a model of the step over several hosts: the gate, the turn, the deal, and view changes. See README.md.
 *
 *   spin -a -DHOSTS=2 -DDEATHS=1 step.pml && gcc -O2 -DCOLLAPSE -DSAFETY -o pan pan.c && ./pan
 */
#include "words.pml"
#include "ranks.pml"
#include "carrier.pml"
#include "roster.pml"

/* Kills up to DEATHS hosts, at any point. */
proctype fate() {
end:
    do
    :: d_step { deaths < DEATHS && gate[0] != DEAD -> deaths++; kill(0) }
    :: d_step { deaths < DEATHS && gate[1] != DEAD -> deaths++; kill(1) }
#if HOSTS == 3
    :: d_step { deaths < DEATHS && gate[2] != DEAD -> deaths++; kill(2) }
#endif
    od
}

init {
    d_step {
        last_view = 1; last_members = MEMBERS;
        for (j : 0 .. HOSTS - 1) {
            if
            :: IN(MEMBERS, j) ->
                gate_step[j] = 1; gate_turn[j] = 1; frozen_for[j] = 1; gate[j] = OPEN;
                members[j] = MEMBERS; whole[j] = MEMBERS; fed[j] = CHUNKS; based[j] = 1
            :: else ->
                gate[j] = FROZEN; fresh[j] = 1
            fi
        }
        j = 0
    }
    atomic {
        run roster();
        run fate();
        run ranks(0); run carrier(0);
        run ranks(1); run carrier(1);
#if HOSTS == 3
        run ranks(2); run carrier(2);
#endif
    }
}
