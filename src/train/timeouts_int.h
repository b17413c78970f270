/* timeouts_int.h -- all time-outs of this room that are not keys. A rank's deadline is trainer.stall_s. The
 * deadline of a saver, and of the process that reads the best checkpoint, is
 * callbacks.model_checkpoint.stall_s. How long a killed process may take to exit is CO_FENCE_MS of
 * proc/crew.h. Seen by this room only. */
#ifndef CO_TRAIN_TIMEOUTS_INT_H
#define CO_TRAIN_TIMEOUTS_INT_H

enum {
    SLOW_SAVE_MS = 30000,   /* saving or reading a checkpoint that takes longer is reported, once */
    LEAVE_SAVE_MS = 5000,   /* what a save under way may still take when the run is left at once */
    STOP_AGAIN_MS = 5000,   /* a second request to stop within this time means: leave at once */
    CARRIER_ENDS_MS = 6000, /* how long a carrier may take to end: MPI ends with all of its processes */
    MPI_OPENS_MS = 60000,   /* how long it may take until all of them have called MPI_Init */
    WRONG_MS = 5000,        /* how long a host that disagrees stays, so that the others find out themselves */
    TELL_RANKS_MS = 100,    /* between two calls of the hook `ranks` */
    WEIGH_MS = 10000,       /* between two measurements of this host's speed */
    CARRIER_NAP_MS = 20,    /* the longest sleep of the carrier: a rank may die before it rings */
    CARRIER_STALL_MS = 5000, /* a carrier that makes no turn for this long is replaced */
    SETTLE_MS = 30000 /* a host that leaves the others finishes its step within this time, or gives it up */
};

#endif
