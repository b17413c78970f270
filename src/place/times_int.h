/* times_int.h -- all time-outs of this room. Seen by this room only. */
#ifndef CO_PLACE_TIMES_INT_H
#define CO_PLACE_TIMES_INT_H

enum {
    /* Waiting for the other launchers. */
    JOIN_S = 600,         /* without join_timeout: then the launch fails and says which tasks are missing */
    SAY_MS = 3000,        /* a wait that lasts this long is reported, */
    SAY_AGAIN_MS = 15000, /* and reported again after each further period */

    /* Slurm: the lobby in the first launcher, and those who ask it. */
    SCONTROL_S = 5,      /* scontrol is killed; we go on without what it would have said */
    TRY_MS = 2000,       /* one address has not answered: the next one is tried */
    RETRY_MS = 30,       /* no address answered: time until the next attempt, in the first second ... */
    RETRY_LATE_MS = 200, /* ... and after it */
    /* the longest sleep of a lobby with guests; then guests that took too long are closed */
    LOBBY_TURN_MS = 100,
    LOBBY_FULL_MS = 100, /* no descriptor is free for a guest: time until we accept again */

    /* PMI. */
    ANSWER_S = 30, /* the server has not answered our first questions: the launch fails */
    FAREWELL_S = 2 /* the server has not answered our farewell: we leave without its answer */
};

#endif
