/* phase.c -- what every phase of a unit needs: to say where the rank is, and to wait for the others. */
#include "train/rank_int.h"

#include <unistd.h>

void rank_phase(struct rank *rank, co_phase phase, uint32_t item)
{
    co_record_phase(&rank->me->record, phase, rank->who.unit, item);
}

bool wait_for(struct rank *rank, bool (*done)(struct rank *rank, int64_t arg), int64_t arg, co_phase phase)
{
    co_event *ev = &rank->regions->ctl->event;
    bool said = false;

    for (;;) {
        uint32_t seen = co_event_now(ev);
        if (done(rank, arg))
            return true;
        if (turn_is_over(rank))
            return false;
        if (!said)
            rank_phase(rank, phase, 0);
        said = true;
        if (rank->pause)
            rank->pause(rank);
        else
            co_event_wait(ev, seen, rank->who.slot, rank->spin);
    }
}

void ring_bell(const struct rank *rank)
{
    ssize_t n = rank->bell >= 0 ? write(rank->bell, &(uint64_t){1}, 8) : 0;

    (void)n; /* if it fails, the supervisor notices a little later by itself */
}
