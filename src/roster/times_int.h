/* times_int.h -- every time-out of the roster that co_meet does not set, in one place. */
#ifndef CO_ROSTER_TIMES_INT_H
#define CO_ROSTER_TIMES_INT_H

enum {
    /* Reaching the host that keeps the roster. */
    RESOLVE_MS = 10000,      /* looking up a name that we need */
    RESOLVE_WARN_MS = 2000,  /* looking up a name only to warn about it */
    RESOLVE_GIVEN_MS = 5000, /* looking up an address of our own for the join code */
    CONNECT_MS = 3000,       /* one attempt to connect; then it counts as dropped and is tried again */
    STAGGER_MS = 250,     /* an endpoint with several addresses: delay before the next one is tried as well */
    ANSWER_MS = 10000,    /* from HELLO to WELCOME */
    GONE_MS = 3000,       /* a join code's address refuses connections for this long: the job is over */
    FAREWELL_MS = 1000,   /* saying why we do not join; then we close, said or not */
    FAREWELL_TURN_MS = 5, /* between two attempts to send it */
    FIRST_TALK_MS = 2000, /* trouble that lasts this long is reported */
    RETALK_MS = 15000,    /* and reported again after each further period */

    /* A host that is connected. */
    HELLO_MS = 5000,   /* a connection that has not said who it is by then is closed */
    REFUSED_MS = 2000, /* how long a refused host has to read why */
    BEAT_MS = 1000,    /* between pings; a third of lost_after_s if that is shorter */
    TURN_MS = 100,     /* the longest sleep of the carrier */
    /* a longer turn counts as this long, so that suspend and Ctrl-Z are not taken for silence */
    LATE_TURN_MS = 200,

    /* A round. */
    CLOCK_MS = 1000,        /* how long a round waits for a host's clock to be measured */
    STOPPING_MS = 120000,   /* a host whose workers still run by then counts as lost */
    AFTER_GRACE_MS = 30000, /* but a host counts as lost this long after its grace period at the earliest */

    /* A view. */
    /* a host that has not stopped its step by then, or by 3 x lost_after_s, counts as lost */
    FREEZE_MS = 10000,
    /* a host that is not ready for the first view by then counts as lost. Nobody trains before it */
    PREPARE_MS = 600000,
    SETTLE_MS = 200,    /* after a lost connection: how long we wait for a host's death to be noticed */
    ACCUSED_MS = 60000, /* how long a lost connection is remembered */
    REDEAL_MS = 10000,  /* the least age of a view that ends because of the hosts' speeds */

    /* The end. */
    LAST_FRAMES_MS = 2000, /* how long the last frames have to go out */
    LAST_LOGS_MS = 10000,  /* the same for log lines, which are many */

    /* etcd. */
    ETCD_ANSWER_MS = 2000, /* a member has this long to answer; then the next one is tried */
    ETCD_LOOK_MS = 1000,   /* between two queries of etcd while hosts meet */
    ETCD_JOIN_MS = 2000,   /* one attempt to join the keeper that etcd names; then etcd may name another */
    ETCD_REJOIN_MS = 1000, /* the same for a keeper we have just lost: it is most likely dead */
    /* after lost_after_s: how long a returning host may be refused because of its old seat */
    ETCD_REFUSED_MS = 7000,
    ETCD_RETRY_MS = 1000,    /* between attempts to renew a lease when etcd does not answer */
    ETCD_FAREWELL_MS = 2000, /* writing down how the job ended */
    ETCD_AWAY_MS = 10000,    /* a line is printed when etcd has not answered for this long */
    ETCD_TTL_S = 10,         /* the keeper's lease, unless co_meet.etcd.lease_s says otherwise */
    ETCD_RUNS_LEASES = 6,    /* a silent job counts as running for this many lease periods */
    ETCD_OVER_S = 600        /* how long the end of a job is remembered */
};

#endif
