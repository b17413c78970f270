/* times_int.h -- all time-outs of this room, except CO_STRANGER_MS of net.h. Callers set the others
 * (co_patience). Seen by this room only. */
#ifndef CO_NET_TIMES_INT_H
#define CO_NET_TIMES_INT_H

enum {
    SLICE_MS = 100, /* the longest sleep in a wait; then deadline and request to stop are checked */
    DEAF_MS = 100   /* out of descriptors: time until the gate accepts connections again */
};

#endif
