/* bench_int.h -- shared by the benches. */
#ifndef CO_BENCH_BENCH_INT_H
#define CO_BENCH_BENCH_INT_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/exit.h"
#include "base/flag.h"
#include "base/json.h"
#include "base/str.h"
#include "bench/bench.h"
#include "cohort.h" /* COHORT_VERSION */
#include "net/net.h"
#include "term/say.h"

/* The benches, each in a file of its own; rows of the table in bench.c. */
int bench_sameness(int argc, char **argv);
int bench_kills(int argc, char **argv);
int bench_start(int argc, char **argv);
int bench_scaling(int argc, char **argv);
int bench_apply(int argc, char **argv);
int bench_sparse(int argc, char **argv);
int bench_hosts(int argc, char **argv);
int bench_exchange(int argc, char **argv);
int bench_wire(int argc, char **argv);
int bench_gloo(int argc, char **argv);
int bench_strangers(int argc, char **argv);
int bench_threads(int argc, char **argv);
int bench_trackers(int argc, char **argv);
int bench_versus(int argc, char **argv);
int bench_ops(int argc, char **argv, const co_bench_planner *planner);
int bench_growth(int argc, char **argv, const co_bench_planner *planner);
int bench_data(int argc, char **argv, const co_bench_planner *planner);
int bench_instructions(int argc, char **argv, const co_bench_planner *planner);
void ops_help(co_str *out);
void data_help(co_str *out);
void instructions_help(co_str *out);
void versus_help(co_str *out); /* its tasks, a line each */
void growth_help(co_str *out);

/* trial.c: runs `cohort train` with these arguments (NULL-terminated) in a fresh folder below `dir`. */
typedef struct trial {
    int status; /* exit status */
    char *dir;  /* run folder */
    json_t *summary;
    double secs, cpu_s; /* wall time; CPU time of all its processes */
    double beside_s;    /* the part of cpu_s that is not the ranks': supervisor, trackers, savers, book */
    uint64_t began_ns;
} trial;
co_err trial_run(trial *t, const char *program, const char *dir, const char *const *words);
void trial_free(trial *t);
co_err trial_folder(char path[64]); /* a fresh folder under TMPDIR */
/* Runs in ROOT/r, which is emptied first; a run that does not end with 0 is an error. */
co_err trial_once(trial *t, const char *root, const char *const *words);
double trial_number(const trial *t, const char *key); /* of its summary; 0: not there */
/* Reports the error and gives the exit status. Removes `root` after success; after a failure it has the logs. */
int trial_ended(co_err err, const char *root);

/* All runs end with the weights of the first, whose hash is kept in `first` ("" before it). */
co_err trial_same_weights(char first[65], const trial *t);

/* duel.c: two ways to train, in turn. `once` makes one run; the duel reads and frees the trial. */
enum { DUEL_ROUNDS = 50 };
typedef struct duel {
    int rounds;                                        /* set by the caller, and: */
    const char *name[2];                               /* of the ways */
    bool by_time;                                      /* the whole program's time counts, not samples/s */
    double rate[2][DUEL_ROUNDS], secs[2][DUEL_ROUNDS]; /* samples/s; the whole program's wall time */
    double cpu_s[2][DUEL_ROUNDS];                      /* the whole program's CPU time */
    double beside_s[2][DUEL_ROUNDS];                   /* the part of it that is not the ranks' */
    double ratio[DUEL_ROUNDS];                         /* of the second's rate (or time) to the first's */
    char sha[65];
} duel;
typedef co_err (*duel_once)(void *ctx, int arm, int round, trial *t);
co_err duel_run(duel *d, duel_once once, void *ctx);
double duel_ratio(const duel *d); /* the median */
/* The first's CPU time over the second's, the median: as a ratio of rates where the CPUs are busy all the time, and not
 * moved by what else the machine does. */
double duel_cpu_ratio(const duel *d);
/* What the second way takes beside its ranks, and the first does not, relative to what the ranks take: the median.
 * Where the ranks keep all CPUs busy, they are slower by so much. Not moved by how fast the CPUs are at the moment. */
double duel_beside(const duel *d);
/* Where the median of x[n] lies with a probability of 95 %, whatever the distribution: two of the values. With fewer
 * than six values, the least and the greatest. */
void duel_interval(const double *x, int n, double *low, double *high);
double duel_rate(const duel *d, int arm);
double duel_median(const double *x, int n); /* n is at most DUEL_ROUNDS */

/* receiver.c: a server on this machine for wandb's uploader; sets WANDB_BASE_URL and WANDB_API_KEY. */
typedef struct receiver {
    int fd, port;
    pthread_t thread;
    atomic_bool end;
    atomic_int lines, runs; /* of the history; uploaded to their end */
} receiver;
co_err receiver_start(receiver *r);
void receiver_stop(receiver *r);

int by_double(const void *a, const void *b);
double median(double *x, int n);
const char *self(void); /* this program's file */
/* The flags of a bench whose values are numbers from `least` to `most`; *out stays as it is without the flag. --json
 * is taken too: it always is JSON. `other` may be a flag of another kind, or NULL. The table ends with {0}. */
typedef struct bench_flag {
    const char *flag;
    int least, most;
    int *out;
} bench_flag;
enum { BENCH_FLAGS = 8 };
co_err bench_flags(const char *bench_name, int argc, char **argv, const bench_flag *flags,
                   const co_flag *other);
/* Takes the words with a '=' (settings of a training) out of argv, in order, and puts them behind the n that are in
 * `words`; NULL ends them. *argc becomes less. */
enum { BENCH_WORDS = 64 };
co_err bench_settings(const char *bench_name, int *argc, char **argv, const char *words[BENCH_WORDS], int n);
/* A flag's value from 1 to `most` into *out, which stays as it is if text is NULL. */
co_err bench_number(const char *bench_name, const char *flag, const char *text, long long most, int *out);

/* pair.c: two hosts on this machine, each on a CPU of its own. They talk over loopback, or (lan) each has a network
 * namespace, joined by a bridge at `mbit` Mbit/s each way (0: as fast as it goes). Namespaces need root, and go with
 * this process. */
typedef struct pair {
    cpu_set_t all; /* where this process may run */
    int cpu[2];
    int home, hub, netns[2]; /* descriptors of network namespaces; -1: loopback */
    const char *address[2], *device;
} pair;
co_err pair_open(pair *p, bool lan, int mbit);
void pair_close(pair *p);
co_err pair_enter(const pair *p, int host); /* this process, and what it starts, is on that host ... */
void pair_leave(const pair *p);             /* ... up to here */
/* `cohort train` with these words on both hosts, over TLS; `words` has room for four more. The trial is the first
 * host's. */
co_err pair_train(trial *t, const pair *p, const char *root, const char **words, int n);
/* Fills `words` for a short training of resnet18 on made-up pictures of 64x64; how many there are. */
enum { PAIR_WORDS = 32 };
int pair_words(const char *words[PAIR_WORDS], const char *batch, const char *steps, const char *devices);
double pair_figure(const trial *t, int host, const char *key); /* of a host in the summary; 0: not there */

/* crowd.c: strangers at the second host of a pair on loopback, by a thread; its figures are for after crowd_stop. The
 * pair trains with --rdzv-id=CROWD_RUN. */
#define CROWD_RUN "crowd"
enum { CROWD_PLACES = 48, CROWD_RECORD = 4096 };
typedef struct crowd {
    int strangers;   /* how many are to come; 0: only the carriers are watched */
    double spread_s; /* over this time */
    int came;
    int refused; /* the host closed the connection before the stranger did */
    double carrier_cpu_s[2], own_cpu_s;

    pthread_t thread;
    atomic_bool over;
    pid_t carrier[2]; /* 0: not found yet */
    int port[2];
    co_tls *wrong;
    co_stream *guest[CROWD_PLACES];
    uint8_t record[CROWD_RECORD];
    size_t recorded;
    bool trusted; /* the recorded client was */
    co_err err;
    char why[400];
} crowd;
co_err crowd_start(crowd *c, int strangers, double spread_s);
co_err crowd_stop(crowd *c);

/* lan.c: the namespaces of a pair. The caller closes what was made, after an error too. */
co_err lan_make(int home, int netns[2], int *hub, int mbit, const char *const address[2], const char *device);

/* exchange.c: the rounds of an exchange of 45 MB between the hosts of a pair (NULL: loopback, any CPU). */
enum { EXCHANGE_COUNT = 11250000 }; /* floats */
co_err exchange_measure(const pair *p, bool tls, int rounds, double *ms, double *cpu_ms);

/* torch.c: a script of bench/torch/ and the Python that runs it. */
typedef struct torch_side {
    const char *bench, *python; /* python: NULL before torch_find: $COHORT_PYTHON, or python3 */
    char script[4096];
} torch_side;
/* The script, below the current folder or a parent of the program's folder, or as given. */
co_err torch_find(torch_side *torch, const char *bench, const char *file, const char *script_given);
co_err torch_missing(const torch_side *torch, const char *what); /* the error that says how to install it */
/* Runs it and parses what it prints. CO_EFAIL if it fails. `quiet`: its standard error goes nowhere. */
co_err torch_run(const torch_side *torch, const char *const *more, bool quiet, json_t **out);
pid_t torch_start(const torch_side *torch, const char *const *more, const char *log); /* does not wait for it */

/* machine.c: the peak memory of all descendants of this process together, from start to stop. */
typedef struct memory_watch memory_watch;
co_err memory_watch_start(memory_watch **out);
size_t memory_watch_stop(memory_watch *w);               /* bytes; frees w; NULL is fine */
void cpu_fact(const char *name, char *out, size_t size); /* a value of /proc/cpuinfo, or "" */
json_t *cpu_vector_flags(void);                          /* the CPU flags for vector instructions */

/* valgrind.c: instructions that a command of the shell executes, by a tool and its flags ("--tool=callgrind ..."). 0:
 * valgrind or the command is not there. */
double valgrind_count(const char *tool, const char *command);
bool own_folder(char *out, size_t size); /* of this program's file; false: unknown, or not fit for the shell */

/* material.c: makes root/text, and root/pictures with one folder per class. */
co_err material_make(const char *root);

#endif
