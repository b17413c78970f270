/* times_int.h -- all time-outs of a job on one host, but for those of the command line. */
#ifndef CO_JOB_TIMES_INT_H
#define CO_JOB_TIMES_INT_H

enum {
    OWN_SIGNAL_MS = 200, /* a worker died of a signal that may be on its way to us, too: how long we wait for it */
    BLAME_WAIT_MS = 2000, /* how long we wait for the roster to say which failure was the first */
    OVER_WAIT_MS =
        10000, /* our workers are gone and we asked for the end: how long we wait for the roster to agree */
    HANG_SAY_S = 300, /* without --stall-after: no output for this long is said */

    /* job.log */
    MIX_MS = 300,      /* how long a line waits for earlier lines of other hosts */
    MIX_TURN_MS = 100, /* from one write to the next, at least */
    RETRY_MS = 200,    /* lines could not be sent: until the next try to say how many */
    SETTLE_MS = 20,    /* the job is over here: from one check for the others' last lines to the next */
    TELL_S = 3,        /* after this time we say that we wait for them; */
    LAST_LINES_S = 2,  /* they have the grace period and this */
};

#endif
