/* job_int.h -- a job on one host: one struct for each of its files, written by that file alone.
 *
 *     roster --events--> run.c --> round.c: starts and ends a round's workers (env.c; a guard for each)
 *     a worker's bytes --> worker.c --> output.c --> files.c (per rank, merged.log) --> joblog.c (all hosts)
 *                                                \--> screen (prefixes, bars) --> out_fd, err_fd
 *     a death --> judge.c --> cause.c --> co_failure --> roster --> blame.c (a paragraph, blame.json)
 *     a hang  --> stall.c --> cause.c, judge.c
 *     a signal, a line from whoever started us --> control.c, request.c --> round.c, roster
 *
 * Calls point one way: run, stall, control, judge, request, round, then the rest.
 */
#ifndef CO_JOB_JOB_INT_H
#define CO_JOB_JOB_INT_H

#include <poll.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/alloc.h"
#include "base/str.h"
#include "job/files_int.h"
#include "job/job.h"
#include "job/joblog_int.h"
#include "job/times_int.h"
#include "job/worker_int.h"
#include "proc/anchor.h"
#include "proc/death.h"
#include "proc/guard.h"
#include "proc/look.h"
#include "proc/signals.h"
#include "ssh/ssh.h"
#include "term/screen.h"

typedef struct job job;

/* --- round.c: the workers of one round ----------------------------------------------------------------- */
typedef enum { ROUND_IDLE, ROUND_RUNNING, ROUND_ENDING } round_state;
struct round {
    co_round is; /* from the roster: ranks, hosts, addresses */
    worker *workers;
    int n;               /* workers so far; spec->terms.nproc once all are started */
    co_bar_source *bars; /* streams whose progress bars are drawn */
    int n_bars;
    round_state state;
    uint64_t kill_ns; /* ENDING: when SIGKILL is due; 0: it was sent */
    /* CLOCK_REALTIME when ENDING began: a worker that failed earlier was not asked to end */
    int64_t ending_ns;
    bool had_to_kill;       /* a process did not end within the grace period */
    co_death_traces traces; /* taken when it began */
};
enum { AT_ONCE = 1 }; /* a value of kill_ns that is long past */
co_err round_start(job *j, const co_round *r);
void round_end(job *j, int sig); /* asks all workers to end; SIGKILL after the grace period */
void round_kill(job *j); /* SIGKILL to all that are left; after a second call we do not wait for them */
bool round_gone(job *j); /* are all guards gone and all output read? */
void round_free(job *j);

/* --- env.c --------------------------------------------------------------------------------------------- */
/* mark: one more entry, "NAME=VALUE" */
char **worker_env(const co_job_spec *spec, const co_round *r, const files *f, const worker *w,
                  const char *mark, co_pool *pool);

/* --- output.c: where workers' output goes -------------------------------------------------------------- */
worker_events output_events(job *j);
int output_turn(job *j); /* prints due lines and bars; returns the ms until the next; -1: none */

/* --- request.c: somebody asked the job to end ---------------------------------------------------------- */
struct request {
    int sig;        /* the signal that asked this host to end; 0: none */
    uint64_t at_ns; /* when it came */
    int other_sig;  /* the signal that asked another host to end the job; 0: none */
};
/* A second request ends the workers at once. */
void request_end(job *j, int sig, co_origin origin);
co_origin request_origin(int sig); /* who sends such a signal to this process */
int request_status(int sig);       /* the job's exit status if this signal asked for its end */
/* A worker died of a signal that may still reach us: how many ms judging waits for it; -1: no need to
 * wait. */
int request_due_ms(const job *j);
/* Restores the signal mask at the end, while we may wait for a pager. Signals that end a job stay blocked: a
 * scheduler's signal may still reach a host that learned of it from another host first, and it would change
 * the exit status. */
void request_restore_mask(const job *j);

/* --- control.c: lines from whoever started us ---------------------------------------------------------- */
struct control {
    int fd; /* from the spec; -1: none, or it has ended */
    char line[32];
    size_t len;        /* bytes of a line that is not complete yet */
    uint64_t heard_ns; /* when bytes last came */
};
void control_read(job *j);
uint64_t control_due_ns(const job *j); /* when silence counts as its end; 0: never */

/* --- cause.c: why a worker failed ---------------------------------------------------------------------- */
/* A worker that makes no progress or computes without output, and its process that causes this. */
typedef struct bystander {
    worker *w;
    bool spins;             /* it computes */
    const co_proc *suspect; /* NULL: /proc does not show it */
    co_proc_wait in;
} bystander;
void cause_of(co_failure *f, job *j, worker *w);
bool cause_excused(const char *exception); /* is it a normal end for a worker that was asked to end? */
/* since_s: how long it has made no progress or printed nothing. all: the other idle workers and what they
 * wait for; "" if there are none. */
void cause_of_stall(co_failure *f, job *j, const bystander *who, double since_s, const char *all);

/* --- judge.c, blame.c: what became of the workers ------------------------------------------------------ */
struct verdict {
    bool failed;       /* a worker of ours failed in this round; the roster knows */
    co_failure own;    /* the first of them */
    uint64_t blame_ns; /* when we report our own failure if the roster names none; 0: nothing to report */
    bool said;         /* this round's cause was reported */
    bool kept;         /* a blame.json was written */
    int crash_status;  /* exit status of the first worker that crashed after a request to end; 0: none did */
};
void judge_begin(job *j); /* a new round */
void judge_failed(job *j,
                  /* a worker of ours failed or hangs: tells the roster, ends the others */
                  const co_failure *f);
void judge_turn(job *j);                                   /* after every turn */
void blame(job *j, const co_failure *f, const char *next); /* once a round: the paragraph, blame.json */

/* --- stall.c: workers that make no progress ------------------------------------------------------------ */
struct stall {
    uint64_t next_ns; /* when /proc is read next */
    bool hang_said;
};
void stall_begin(job *j); /* a new round */
void stall_watch(job *j);
int stall_due_ms(const job *j);

/* --- run.c: together ----------------------------------------------------------------------------------- */
/* The roster's orders, and how the job ends. */
struct orders {
    bool stop;  /* STOP came: the roster waits for co_roster_stopped */
    bool begin; /* BEGIN came, with `next` */
    co_round next;
    bool over; /* OVER came, with `status` */
    int status;
    co_err err; /* from the roster or from starting workers; its text is in why */
    char why[1024];
    uint64_t leave_ns; /* when we leave without the roster's answer; 0: never */
};

/* What the job uses of this process, or has changed in it. */
struct process {
    int signal_fd;
    sigset_t old_mask;
    struct rlimit old_nofile;
    co_anchor anchor;
    char mark[64]; /* every worker has it in its environment: "COHORT_LAUNCHER=..." */
};

struct job {
    const co_job_spec *spec;
    co_roster *roster;
    char host[CO_HOST_NAME];
    struct process process;
    co_screen screen;
    files files;
    joblog log;
    worker_events events;
    struct control control;
    struct request request;
    struct orders orders;
    struct round round;
    struct verdict verdict;
    struct stall stall;
};

#endif
