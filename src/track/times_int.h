/* times_int.h -- all time-outs of this room, except CO_TRACKING_END_S of tracker.h. A tracker that was killed
 * has CO_FENCE_MS of proc/crew.h to exit. Seen by this room only. */
#ifndef CO_TRACK_TIMES_INT_H
#define CO_TRACK_TIMES_INT_H

enum {
    RENEW_S = 5,         /* a lease this old is renewed */
    LEASE_STALE_S = 120, /* a lease of another host this old may be taken over */
    FLUSH_S = 5          /* a tracker is flushed this often; less often if flushing is slow */
};

#endif
