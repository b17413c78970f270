/* place_int.h -- the parts of this room.
 *
 *     find.c      the table of places, its order, and what is refused
 *     exchange.c  the first launcher sends endpoint and token to the others
 *     torchenv.c  RANK, WORLD_SIZE, MASTER_ADDR
 *     kube.c      Indexed Jobs of Kubernetes
 *     ompi.c      Open MPI and PMIx, through libpmix (pmix.c)
 *     pmi.c       MPICH's Hydra and others, through PMI_FD
 *     slurm.c     the variables of a step; uses hostlist.c, and lobby.c and lobby_client.c over munge.c
 *     layout.c    mpirun: which tasks are on one host
 *     words.c     parses and checks text from outside: the card, PMI, scontrol
 */
#ifndef CO_PLACE_PLACE_INT_H
#define CO_PLACE_PLACE_INT_H

#include <stddef.h>
#include <sys/types.h>

#include "place/place.h"
#include "net/net.h"

enum { CARD_TEXT = 1000, MASTER_PORT = 29500 };

/* What the first launcher sends to the others. As text: endpoint|also|token, without spaces, '=' or control
 * characters. */
typedef struct card {
    char endpoint[CO_HOST_NAME + 8];
    char also[512];
    char token[64]; /* "": none is needed */
} card;
co_err card_text(char out[CARD_TEXT], const card *c);
co_err card_parse(card *out, const char *text); /* CO_EFORMAT: not a card */

typedef struct place_row {
    /* Reads the environment. p->name stays "" if another scheduler, or none, started us. */
    co_err (*find)(co_place *p, const co_place_ask *ask);
    /* An address of the first launcher's host that all hosts reach. NULL: the host's own name, sent together
     * with all its addresses. */
    co_err (*address)(char *out, size_t size, const co_place *p);
    /* Seat 0 sends `c`, the others receive it. NULL: p->endpoint is known from the environment. */
    co_err (*share)(co_place *p, card *c, const co_patience *patience, void (*talk)(const char *));
    void (*close)(co_place *p); /* or NULL */
    const char *one_each;       /* command that starts one launcher on each host; %d: number of hosts */
    bool needs_token;           /* there is no screen to show a token on: COHORT_TOKEN must be set */
    bool one_terminal;          /* all launchers share a terminal: only the first prints what was found */
} place_row;

extern const place_row place_torchenv, place_ompi, place_pmi, place_slurm, place_kube;

const char *hosts_key(const co_place_ask *ask); /* how the user gave the number of hosts: "--nnodes" */

/* ---- the environment ---- */
const char *env_text(const char *name); /* NULL also if it is empty */
/* *out is `otherwise` if the variable is unset. CO_EINPUT: it is not a number from least to most. */
co_err env_whole(int *out, const char *name, int least, int most, int otherwise);
/* `host` may begin with tcp:// and may have its own port, which is used instead of `port`. */
co_err host_port(char *out, size_t size, const char *host, int port);

/* Makes the run id from `text`, the scheduler's name for the job, unless there is one already. */
void place_name_run(co_place *p, const char *text);

/* ---- Slurm ---- */
/* Are we in a step of `size` tasks (0: any number) in which this task has this rank? */
bool slurm_is_step(int rank, int size);
enum { HOSTS_MOST = 1 << 16 };
/* The name at `index` of a host list; *n (n may be NULL): number of names. CO_EINPUT: not a host list, or
 * the index is too large. */
co_err hostlist_get(char *out, size_t size, int *n, const char *list, int index);
/* Parses "2(x3),1": tasks on this node, the most tasks on any node, and the number of nodes. */
co_err tasks_parse(int *here, int *most, int *nodes, const char *text, int node);
/* The value of "NAME=VALUE" or "NAME   = VALUE" in the output of scontrol; false: absent or too long. */
bool scontrol_value(char *out, size_t size, const char *text, const char *name);

typedef struct munge munge;
co_err munge_open(munge **out); /* CO_EIO: no library, or its daemon does not answer */
void munge_close(munge *m);
/* A credential that this user alone can decode. */
co_err munge_wrap(munge *m, char *out, size_t size, const char *text);
/* CO_EINPUT: not a good credential, or another user's. */
co_err munge_unwrap(munge *m, char *out, size_t size, const char *credential);

enum { LOBBY_LINE = 1024, LOBBY_ANSWER = 4096, LOBBY_PORTS = 8 };
typedef struct lobby lobby;
int lobby_port(const char *run_id, int nth);
void lobby_greeting(char *out, size_t size, const char *run_id, int seat);
bool lobby_greeted(int *seat, const char *text, const char *run_id, int seats); /* false: not a greeting */
/* Answers in a thread of its own until every other seat has the card, or until lobby_close. */
co_err lobby_open(lobby **out, const char *address, const char *run_id, int seats, const card *c);
void lobby_close(lobby *l); /* NULL is fine */
co_err lobby_ask(card *out, const char *host, const char *run_id, int seat, const co_patience *p,
                 void (*talk)(const char *));

/* ---- which tasks are on one host ---- */
bool layout_alone(co_place *p); /* true, and p is filled in, if all tasks are on this host */
/* host[rank] for all seats: tasks on one host have the same number. Fills in nodes, node, tasks, task and
 * tasks_most. */
void layout_take(co_place *p, const int *host);

/* ---- waiting for the other launchers (exchange.c) ---- */
typedef struct waiting {
    const co_place *place;
    const co_patience *patience;
    void (*talk)(const char *line);
    uint64_t say_ns; /* when the next line is due */
} waiting;
waiting waiting_begin(const co_place *p, const co_patience *patience, void (*talk)(const char *));
/* Call before each sleep: returns how many ms to sleep at most; 0: the time is over. When the wait is long,
 * two launchers of each host print a line: one of the two may be the one that has not come. */
int waiting_turn(waiting *w);
co_err waiting_over(const waiting *w); /* CO_ETIMEOUT; the message says what we waited for */

/* ---- PMIx ---- */
typedef struct pmix pmix;
co_err pmix_open(pmix **out);                     /* CO_EINPUT: no library, or no PMIx server started us */
void pmix_close(pmix *x);                         /* NULL is fine */
int pmix_size(const pmix *x);                     /* processes; -1: not known */
bool pmix_hosts(const pmix *x, int *host, int n); /* for layout_take; false: not known */
/* Waits until all processes have called it; then the others have the first process's text. */
co_err pmix_pass(pmix *x, char text[CARD_TEXT], waiting *w);

/* ---- PMI-1 ---- */
enum { PMI_LINE = 2048 };
/* The value of key in "cmd=get_result rc=0 value=x"; false: absent, or longer than `size` allows. */
bool pmi_value(char *out, size_t size, const char *line, const char *key);
/* Converts PMI_process_mapping, "(vector,(0,1,2),(1,1,1))", to the host of each of n ranks. A triple is
 * (first host, number of hosts, ranks on each). Ranks left after the last triple start again with the first
 * one. False: malformed. */
bool pmi_hosts(int *host, int n, const char *text);

#endif
