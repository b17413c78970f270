/* tcp_int.h -- the link `tcp`, as its files share it. Seen by this room only.
 *
 *     link_tcp.c   the row of the table, and who is met
 *     turn.c       what a turn does: events, deadlines, a round of all peers
 *     report.c     what is done, for the caller
 *     connect.c    how a connection is made
 *     accept.c     how a connection is accepted
 *     peer.c       one connection: its life, its loss
 *     sends.c      the queue of messages to a peer
 *     receives.c   the posted receives of a peer, and what it reads
 *     wire.c       hello and head as bytes: docs/formats/wire.md
 *
 * The state of a peer:
 *
 *     meet -> WANTED -> CONNECTING -> GREETING -> UP      this host has the lower place
 *     meet -> WANTED ---------------------------> UP      the other one connects
 *     any of these -> LOST, reported once, until the next meet
 */
#ifndef CO_LINK_TCP_INT_H
#define CO_LINK_TCP_INT_H

#include "link/links.h"

/* All limits and times of this link. */
enum {
    LINK_IDS = 256,          /* places in a run */
    LINK_WAITING = 64,       /* greeted connections of hosts that are not met yet */
    LINK_HEAD = 32,          /* bytes before each message */
    LINK_ROUND = 1 << 20,    /* bytes per peer and direction in one turn */
    LINK_BATCH = 8,          /* messages in one system call */
    LINK_SCRATCH = 64 << 10, /* where messages of views that were cut go */
    LINK_TICK_MS = 100,      /* how often connections are tried, and deadlines checked */
    LINK_MEET_MS = 10000,    /* a connection is made within this time, or the peer is lost */
    LINK_TRY_MS = 3000,      /* a single attempt to connect */
    LINK_DEAD_MS = 10000,    /* a wire without any answer is dead after this time */
    LINK_RESOLVE_MS = 500,   /* a turn waits this long for a name server, */
    LINK_NAMES_MS = 2000,    /* and this is the time between two attempts */
    LINK_ADDRESSES = 4
};

/* --- wire.c --- */
typedef struct hello {
    uint32_t version;
    uint64_t run;
    uint32_t from, to; /* places */
    uint64_t from_birth, to_birth;
} hello;
enum { HELLO_VERSION = 1 };
void hello_write(uint8_t out[CO_STREAM_HELLO], const hello *h);
co_err hello_read(hello *out, const uint8_t bytes[CO_STREAM_HELLO]);
void head_write(uint8_t out[LINK_HEAD], const co_tag *tag, uint32_t len);
co_err head_read(co_tag *tag, uint32_t *len, const uint8_t bytes[LINK_HEAD]);

/* --- sends.c: messages that wait for their turn, in order --- */
struct sending {
    co_tag tag;
    uint32_t len;         /* of the message */
    const uint8_t *bytes; /* what is left of it */
    size_t left;
    void *own; /* `bytes` lie in here: the message was cut when half of it was sent. Not reported. */
};
struct sends {
    struct sending *ring;
    size_t first, n, room; /* room: a power of two */
    size_t head_at;        /* bytes of the first message's head that are sent */
};

/* --- receives.c: posted receives, found by their tag --- */
struct receive {
    co_tag tag;
    bool used;
    void *to;
    size_t len;
};
struct receives {
    struct receive *slot;  /* open addressing */
    struct receive *spare; /* as many, for rebuilding */
    size_t n, room;        /* room: a power of two */
};
/* The message that is being read. */
struct reading {
    uint8_t head[LINK_HEAD];
    size_t head_at;
    co_tag tag;
    uint32_t len;
    size_t at;    /* bytes of the payload that have come */
    bool waits;   /* the head is complete, and no receive is posted */
    bool in_body; /* the head is complete, and its receive was found or the message is dropped */
    bool dropped;
    uint8_t *to;
};

/* --- peer.c --- */
typedef enum { PEER_WANTED, PEER_CONNECTING, PEER_GREETING, PEER_UP, PEER_LOST } peer_state;
struct peer {
    co_link_peer who;
    peer_state state;
    uint64_t deadline_ns; /* a connection is made by then */
    uint64_t next_try_ns, try_ends_ns;
    co_addr addr[LINK_ADDRESSES];
    int addrs, addr_now; /* addrs 0: not resolved */
    const char *step;    /* what is being tried, for the report */
    char trouble[256];   /* what the last attempt met with */
    int fd;              /* while connecting; -1: none */
    co_stream *stream;
    uint64_t silent_since_ns; /* something was sent and nobody answers; 0: no */
    uint32_t watched;         /* counts its descriptors: an event of an earlier one is out of date */
    bool can_read, can_write; /* as far as epoll has said */
    bool ended;               /* the other side has closed, or the connection broke */
    bool unflushed;           /* the stream holds bytes that the socket did not take */
    bool moved;               /* a byte of a message went through this connection */
    struct sends sends;
    struct receives receives;
    struct reading reading;
    bool lost; /* to be reported */
    char why[400];
};

struct report {
    bool sent;
    int peer;
    co_tag tag;
};

struct tcp {
    co_link link;
    co_link_spec spec;
    co_gate *gate; /* NULL: this host listens nowhere */
    int epoll, timer, bell;
    bool hurry;             /* somebody was met: connect in the next turn */
    bool rung;              /* the bell rings: work is left */
    uint64_t gate_rests_ns; /* until then members come first */
    int meet_ms, dead_ms;   /* LINK_MEET_MS, LINK_DEAD_MS; tests shorten them */
    uint32_t view;          /* messages of earlier ones are dropped */
    struct peer *peer[LINK_IDS];
    uint8_t met[LINK_IDS]; /* ids of the peers, n_met of them */
    int n_met, turn;       /* turn: who comes first */
    co_stream *waiting[LINK_WAITING];
    uint64_t waiting_since_ns[LINK_WAITING];
    struct report *report;
    size_t n_report, room_report;
    co_err err; /* memory for reports is out */
    co_link_counts counts;
    uint8_t scratch[LINK_SCRATCH];
};

/* epoll's numbers beside the peers' places */
enum { EVENT_GATE = LINK_IDS, EVENT_TIMER, EVENT_BELL };

co_err peer_new(struct tcp *tcp, const co_link_peer *who);
void peer_free(struct tcp *tcp, int id);
void peer_wanted(struct tcp *tcp, struct peer *peer);          /* a connection is to be made from now on */
co_err peer_watch(struct tcp *tcp, struct peer *peer, int fd); /* events of fd are the peer's from now on */
void peer_up(struct tcp *tcp, struct peer *peer);              /* its stream has greeted */
void peer_hang_up(struct tcp *tcp, struct peer *peer);         /* closes what is open */
void peer_lose(struct tcp *tcp, struct peer *peer, const char *why);
bool peer_has_work(const struct peer *peer);
void peer_turn(struct tcp *tcp, struct peer *peer);
void peer_check(struct tcp *tcp, struct peer *peer, uint64_t now); /* loses the peer when the wire is dead */

co_err sends_add(struct sends *sends, const co_tag *tag, const void *bytes, uint32_t len);
co_err sends_cut(struct sends *sends, uint32_t view);
void sends_clear(struct sends *sends); /* memory stays */
void sends_fini(struct sends *sends);
co_err sends_turn(struct tcp *tcp, struct peer *peer);

co_err receives_add(struct receives *receives, const co_tag *tag, void *to, size_t len);
void receives_cut(struct receives *receives, uint32_t view);
void receives_clear(struct receives *receives); /* memory stays */
void receives_fini(struct receives *receives);
bool receives_take(struct receives *receives, const co_tag *tag, struct receive *out);
co_err receives_turn(struct tcp *tcp, struct peer *peer);
co_err reading_match(struct tcp *tcp, struct peer *peer); /* finds the receive of the message that waits */
void reading_cut(struct tcp *tcp, struct peer *peer);

/* --- connect.c --- */
hello hello_to(const struct tcp *tcp, int id, uint64_t birth);
void connect_start(struct tcp *tcp, struct peer *peer, uint64_t now);
void connect_event(struct tcp *tcp, struct peer *peer);   /* of a peer that is not up yet */
void connect_give_up(struct tcp *tcp, struct peer *peer); /* the attempt takes too long */

/* --- accept.c --- */
void accept_turn(struct tcp *tcp);
void accept_tick(struct tcp *tcp, uint64_t now);
/* takes its connection if it came before it was met */
void accept_waiting(struct tcp *tcp, struct peer *peer);

/* --- report.c --- */
void report_add(struct tcp *tcp, bool sent, int peer, const co_tag *tag);
void report_all(struct tcp *tcp); /* those of views that were cut are left out */

/* --- turn.c --- */
co_err turn_run(struct tcp *tcp, int timeout_ms);
void turn_ring(struct tcp *tcp); /* work may have been added or taken away since the last turn */

#endif
