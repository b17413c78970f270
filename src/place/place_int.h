/* place_int.h -- the parts of a place.
 *
 *     find.c      the table and its order; what is refused          exchange.c  the first tells, the others learn
 *     torchenv.c  RANK, WORLD_SIZE, MASTER_ADDR                     kube.c      Indexed Jobs
 *     ompi.c      Open MPI and PMIx, over libpmix (pmix.c)          pmi.c       MPICH's Hydra and others, over PMI_FD
 *     slurm.c     step variables; hostlist.c, lobby.c and lobby_client.c over munge.c
 *     layout.c    mpirun: which tasks are on one host               words.c     the card and other words from outside, checked
 */
#ifndef CO_PLACE_PLACE_INT_H
#define CO_PLACE_PLACE_INT_H

#include <stddef.h>
#include <sys/types.h>

#include "place/place.h"
#include "net/net.h"

enum { CARD_TEXT = 1000, MASTER_PORT = 29500 };

/* What the first launcher tells the others. As text: endpoint|also|token, without spaces, '=' or controls. */
typedef struct card {
    char endpoint[CO_HOST_NAME + 8];
    char also[512];
    char token[64]; /* "": none is needed */
} card;
co_err card_text(char out[CARD_TEXT], const card *c);
co_err card_parse(card *out, const char *text); /* CO_EFORMAT: not a card */

typedef struct place_row {
    /* Reads the environment: p->name stays "" if this is not what started us. */
    co_err (*find)(co_place *p, const co_place_ask *ask);
    /* The first launcher's host as all can reach it; NULL: this host's own name will do, further addresses
     * go with it. */
    co_err (*address)(char *out, size_t size, const co_place *p);
    /* Seat 0 gives `c` to the others; the others get it. NULL: p->endpoint says where. */
    co_err (*share)(co_place *p, card *c, const co_patience *patience, void (*told)(const char *));
    void (*close)(co_place *p); /* or NULL */
    const char *one_each;       /* starts one launcher on each host; %d: how many hosts */
    bool needs_token;           /* nobody sees a token on a screen: it must come with COHORT_TOKEN */
    bool one_terminal;          /* all launchers write to one: only the first says what was found */
} place_row;

extern const place_row place_torchenv, place_ompi, place_pmi, place_slurm, place_kube;

/* ---- the environment ---- */
const char *env_text(const char *name); /* NULL also if it is empty */
/* *out is `otherwise` if it is unset. CO_EINPUT: it is not a number from least to most. */
co_err env_whole(int *out, const char *name, int least, int most, int otherwise);
/* tcp:// and a port of its own are fine */
co_err host_port(char *out, size_t size, const char *host, int port);

/* The job's run id, if it has none yet, from the name that what started us has for it. */
void place_name_run(co_place *p, const char *text);

/* ---- Slurm ---- */
/* a step, in which this task has this rank of so many; size 0: of any */
bool slurm_is_step(int rank, int size);
enum { HOSTS_MOST = 1 << 16 };
/* The index-th name of a host list; *n (may be NULL): how many there are. CO_EINPUT: no host list, or no
 * such index. */
co_err hostlist_get(char *out, size_t size, int *n, const char *list, int index);
/* "2(x3),1": tasks on this node, the most on any, and how many nodes there are. */
co_err tasks_parse(int *here, int *most, int *nodes, const char *text, int node);
/* NAME=VALUE, or "NAME   = VALUE", among what scontrol prints; false: not there or too long. */
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
bool lobby_greeted(int *seat, const char *text, const char *run_id, int seats); /* is it one? from whom? */
/* Answers until every other seat has the card, or it is closed. */
co_err lobby_open(lobby **out, const char *address, const char *run_id, int seats, const card *c);
void lobby_close(lobby *l); /* NULL is fine */
co_err lobby_ask(card *out, const char *host, const char *run_id, int seat, const co_patience *p,
                 void (*told)(const char *));

/* ---- which tasks are on one host ---- */
bool layout_alone(co_place *p); /* if this host has all of them, which needs no asking */
/* host[rank], of all seats: a number that tasks of one host share. Fills nodes, node, tasks, task,
 * tasks_most. */
void layout_take(co_place *p, const int *host);

/* ---- waiting for the other launchers (exchange.c) ---- */
typedef struct waiting {
    const co_place *place;
    const co_patience *patience;
    void (*told)(const char *line);
    uint64_t say_ns; /* when there is something to say */
} waiting;
waiting waiting_begin(const co_place *p, const co_patience *patience, void (*told)(const char *));
/* Before each sleep: for how many ms, at most; 0: the time is over. Tells a line when it takes long: two
 * launchers of each host, as one may be what is waited for. */
int waiting_turn(waiting *w);
co_err waiting_over(const waiting *w); /* CO_ETIMEOUT, with what was waited for */

/* ---- PMIx ---- */
typedef struct pmix pmix;
co_err pmix_open(pmix **out); /* CO_EINPUT: no library, or nothing of its kind started us */
void pmix_close(pmix *x);     /* NULL is fine */
int pmix_size(const pmix *x); /* processes; -1: not known */
bool pmix_hosts(const pmix *x, int *host, int n); /* for layout_take; false: not known */
/* The first process gives the text, the others get it, when all have come. */
co_err pmix_pass(pmix *x, char text[CARD_TEXT], waiting *w);

/* ---- PMI-1 ---- */
enum { PMI_LINE = 2048 };
/* The value of key in "cmd=get_result rc=0 value=x"; false: not there, or longer than there is room. */
bool pmi_value(char *out, size_t size, const char *line, const char *key);
/* PMI_process_mapping, "(vector,(0,1,2),(1,1,1))", to the host of each of n ranks. A triple is a first
 * host, hosts, and ranks on each; after the last one it goes on with the first. false: not such a text. */
bool pmi_hosts(int *host, int n, const char *text);

#endif
