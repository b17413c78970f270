/* mpi_int.h -- the link `mpi`, as its files share it. Seen by this room only.
 *
 *     mpi_ompi.c, mpi_mpich.c   the calls of one MPI each, loaded at run time: the rows of a table
 *     mpi_library.c             which row belongs to the launcher that started this program
 *     link_mpi.c                the row of comm/link.h: turns, cutting, closing
 *     mpi_greet.c               which MPI rank is which host; losses; farewell
 *     mpi_out.c                 messages to a peer
 *     mpi_in.c                  messages from a peer
 *
 * Only point-to-point calls are used, and only by the process that opened the link. Between two hosts:
 *
 *     sender                             receiver
 *     head, and up to SHORT_LEN bytes -> into a slot of the link
 *                                        its receive is posted: a short message is copied there;
 *                                     <- for a long one the answer says "go"
 *     bytes, in pieces of PIECE_LEN   -> straight into the memory of the receive
 *
 * The memory of a receive is in MPI's hands only between "go" and the last piece, and the memory of a long
 * send only while a piece is on its way. So a cut waits at most for pieces that both sides have agreed on.
 * A sender that has cut a message answers "go" with an empty piece. A receiver drops a message by an
 * answer without "go".
 *
 * At most WINDOW heads are under way, and both sides have a slot for each: MPI buffers nothing for us.
 */
#ifndef CO_LINK_MPI_INT_H
#define CO_LINK_MPI_INT_H

#include "link/links.h"
#include "link/tcp_int.h"

/* --- the calls of an MPI --- */
/* A handle is a pointer in Open MPI and a number in MPICH. */
typedef union mpi_request {
    void *pointer;
    int number;
} mpi_request;

/* Functions return MPI's code: 0, or an error for `text`. */
typedef struct mpi_calls {
    const char *name;
    const char *const *files; /* the library's names, ending with NULL */
    bool (*launched)(void);   /* was this process started by its launcher? */
    bool (*load)(const char *file, char *why, size_t size);
    int (*start)(int *rank, int *size); /* MPI_Init; errors return from then on */
    int (*send)(const void *bytes, int len, int to, int tag, mpi_request *out);
    int (*receive)(void *to, int len, int from, int tag, mpi_request *out);
    int (*test)(mpi_request *request, int *done, int *len); /* *len: bytes that were received */
    void (*cancel)(mpi_request *request);                   /* of a receive */
    int (*add_up)(const float *from, float *to, int n);     /* MPI_Allreduce, to compare with */
    void (*text)(int code, char *out, size_t size);
    int (*finish)(void);
} mpi_calls;
extern const mpi_calls mpi_ompi, mpi_mpich;

/* The row of the launcher that started this program; NULL: none did. */
const mpi_calls *mpi_launcher(void);
/* Loads its library into this process. */
co_err mpi_load(const mpi_calls *calls, const char **file);
/* Does it load? Tried in a child process, because MPI libraries change the process they are loaded into. */
bool mpi_loads(const mpi_calls *calls, char *file, size_t size, char *why, size_t why_size);

#define MPI_NOT_LAUNCHED                                                                                     \
    "no MPI has started this program. Start it with mpirun, or with srun --mpi=pmix (Open MPI) or "          \
    "--mpi=pmi2 (MPICH)"

/* --- limits and times --- */
enum {
    WINDOW = 16,          /* messages under way to a peer */
    SHORT_LEN = 16 << 10, /* a message up to this length travels with its head */
    PIECE_LEN = 64 << 20, /* longer ones go in pieces */
    ANSWER_LEN = 16,
    BYE_LEN = 8,
    ROUNDS = 64,         /* of one turn, while something moves */
    HELLO_MS = 30000,    /* a host that was met has said which rank it is by then, or it is lost */
    CUT_STALL_MS = 5000, /* a cut waits this long for a piece; then MPI is given up */
    FAREWELL_MS = 5000,  /* closing waits this long for the others */
    NAP_BUSY_US = 20,    /* time to the next turn while pieces are under way, */
    NAP_LEAST_US = 50,   /* while a message is expected; it doubles while nothing comes */
    NAP_MOST_US = 500,
    NAP_IDLE_US = 10000 /* while nothing is expected */
};
enum { TAG_HELLO = 1, TAG_BYE, TAG_HEAD, TAG_ANSWER, TAG_BODY /* ... + WINDOW - 1 */ };

/* --- messages --- */
struct mpi_slot {
    uint8_t head[LINK_HEAD], bytes[SHORT_LEN];
};
struct mpi_call {
    mpi_request request;
    bool open; /* MPI works on it */
};

struct mpi_leaving {
    co_tag tag;
    const uint8_t *bytes;
    uint32_t len;
    size_t at; /* bytes that were sent */
    bool cut;  /* its memory is the caller's again, and it is not reported */
    bool over; /* sent, or dropped by the receiver */
    struct mpi_call head, body;
};
/* Messages are numbered from 0; number k has place k % WINDOW in all rings. */
struct mpi_out {
    struct sends queue;           /* not begun */
    uint64_t begun, taken, ended; /* taken: their receivers were found, or they were dropped */
    struct mpi_leaving ring[WINDOW];
    struct mpi_slot *slot;
    uint64_t answers;
    uint8_t answer[WINDOW][ANSWER_LEN];
    struct mpi_call answer_call[WINDOW];
};

struct mpi_arriving {
    co_tag tag;
    uint8_t *to;
    uint32_t len;
    size_t at;   /* bytes that have come */
    bool silent; /* not reported */
    struct mpi_call body;
};
struct mpi_in {
    struct receives posted;
    uint64_t taken, answered, ended; /* answered: `taken` of the last answer */
    uint32_t view;                   /* the sender has cut earlier ones */
    bool waits;                      /* head number `taken` is in its slot, and no receive is posted */
    struct mpi_arriving ring[WINDOW];
    struct mpi_slot *slot;
    struct mpi_call head[WINDOW];
    uint64_t answers;
    uint8_t answer[WINDOW][ANSWER_LEN];
    struct mpi_call answer_call[WINDOW];
};

/* --- peers --- */
struct mpi_peer {
    co_link_peer who;
    bool met;             /* among the hosts of the last meet */
    int rank;             /* of MPI; -1: not known yet */
    uint64_t deadline_ns; /* until then it must be known */
    bool left;            /* it has closed its link in an orderly way */
    bool lost;            /* nothing more is done with it */
    bool lost_news;       /* to be reported */
    char why[400];
    struct mpi_out out;
    struct mpi_in in;
};

/* What an MPI rank has said. */
struct mpi_rank {
    struct mpi_call hello_got, hello_sent, bye_got, bye_sent;
    uint8_t hello_bytes[CO_STREAM_HELLO], bye_bytes[2][BYE_LEN]; /* its bye, and ours to it */
    bool greeted, left;
    uint64_t messages; /* that it has sent us in all, once it has left */
    hello hello;
};

struct mpi {
    co_link link;
    co_link_spec spec;
    const mpi_calls *calls;
    int rank, size;
    struct mpi_rank *ranks; /* [size] */
    uint8_t hello_bytes[CO_STREAM_HELLO];
    struct mpi_peer *peer[LINK_IDS]; /* by place; NULL: never met */
    int n_met;
    uint8_t ids[LINK_IDS]; /* places of all peers that were ever met, n_met of them */
    uint32_t view;         /* messages of earlier ones are dropped */
    bool broken;           /* MPI failed: it is not finished in an orderly way */
    co_err err;            /* MPI still holds memory of the caller: this process must end */
    char why[400];
    bool moved; /* something has happened in this round */
    int timer, nap_us;
    co_link_counts counts;
};

/* All mark `moved`. false: not finished, or the peer is lost. */
bool mpi_send(struct mpi *mpi, struct mpi_peer *peer, struct mpi_call *call, const void *bytes, size_t len,
              int tag);
bool mpi_receive(struct mpi *mpi, struct mpi_peer *peer, struct mpi_call *call, void *to, size_t len, int tag);
bool mpi_ended(struct mpi *mpi, struct mpi_peer *peer, struct mpi_call *call, int *len);
void mpi_cancel(struct mpi *mpi, struct mpi_call *call);
void mpi_lose(struct mpi *mpi, struct mpi_peer *peer, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

co_err mpi_greet_open(struct mpi *mpi); /* says to all ranks which host this is */
void mpi_greet_turn(struct mpi *mpi);   /* finds the ranks of the hosts that were met; notices who leaves */
void mpi_say_bye(struct mpi *mpi);
bool mpi_all_left(struct mpi *mpi);

co_err mpi_out_open(struct mpi *mpi, struct mpi_peer *peer); /* its rank is known */
void mpi_out_turn(struct mpi *mpi, struct mpi_peer *peer);
void mpi_out_report(struct mpi *mpi, struct mpi_peer *peer);
void mpi_out_cut(struct mpi *mpi, struct mpi_peer *peer);
bool mpi_out_holds(const struct mpi_peer *peer); /* memory of a message that was cut */
bool mpi_out_busy(const struct mpi_peer *peer);  /* MPI has something of ours to send */
void mpi_out_close(struct mpi *mpi, struct mpi_peer *peer);

co_err mpi_in_open(struct mpi *mpi, struct mpi_peer *peer);
void mpi_in_turn(struct mpi *mpi, struct mpi_peer *peer);
void mpi_in_report(struct mpi *mpi, struct mpi_peer *peer);
void mpi_in_cut(struct mpi *mpi, struct mpi_peer *peer);
bool mpi_in_holds(const struct mpi_peer *peer);
bool mpi_in_busy(const struct mpi_peer *peer);
void mpi_in_close(struct mpi *mpi, struct mpi_peer *peer);

#endif
