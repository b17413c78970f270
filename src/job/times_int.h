/* times_int.h -- all time-outs of a job on one host, except those of the command line. */
#ifndef CO_JOB_TIMES_INT_H
#define CO_JOB_TIMES_INT_H

enum {
    OWN_SIGNAL_MS = 200,  /* a worker died of a signal: how long we wait for the same signal to reach us */
    BLAME_WAIT_MS = 2000, /* how long we wait for the roster to say which failure was the first */
    OVER_WAIT_MS = 10000, /* we have left the job: how long we wait for the roster's answer */
    HANG_SAY_S = 300,     /* without --stall-after: we report that there was no output for this long */

    /* job.log */
    MIX_MS = 300,      /* how long a line waits for earlier lines of other hosts */
    MIX_TURN_MS = 100, /* the least time between two writes */
    RETRY_MS = 200,    /* lines could not be sent: time until we try again to report how many */
    SETTLE_MS = 20,    /* the job is over here: time between two checks for the other hosts' last lines */
    TELL_S = 3,        /* after this time we say that we wait for those lines */
    LAST_LINES_S = 2,  /* how long beyond the grace period we wait for them */

    /* cohort logs --follow */
    FOLLOW_TURN_MS = 50,   /* no new line: time until the files are read again */
    FOLLOW_LOOK_MS = 1000, /* time until we look for files of new workers and rounds */

    /* cohort join */
    REACH_S = 20, /* joining fails then. Short: the host was listening before it showed the code */
};

#endif
