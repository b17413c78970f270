/* meet.h -- which hosts a training has and where they meet, from `cohort launch`'s flags and from the
 * environment: Slurm, mpirun, Kubernetes, MASTER_ADDR and its companions.
 *
 *     co_hosts_line *hosts;
 *     CO_TRY(co_hosts_line_make(&hosts, &ask));     // reads flags and environment; waits for nothing
 *     CO_TRY(co_hosts_line_enter(hosts));           // before planning; in a batch script: becomes srun
 *     if (!hosts->alone) {
 *         CO_TRY(co_hosts_line_meet(hosts));        // may wait for the first host, may ask for the token
 *         CO_TRY(co_roster_open(&roster, &hosts->terms, &hosts->meet));
 *     }
 *     co_hosts_line_free(hosts);
 */
#ifndef CO_JOB_MEET_H
#define CO_JOB_MEET_H

#include <stdbool.h>

#include "base/err.h"
#include "roster/roster.h"

/* Everything is borrowed until co_hosts_line_free. */
typedef struct co_hosts_ask {
    const char *const *flags; /* the host flags of the line, "--nnodes=2"; NULL-terminated */
    const char *num_nodes; /* the value of trainer.num_nodes, used if there is no --nnodes; NULL: not given */
    char *const *line; /* the whole line from the command on, which srun may start again; NULL-terminated */
} co_hosts_ask;

typedef struct co_hosts_line {
    /* views, run_id, min_hosts, max_hosts, least_hosts, host_rank, program and version are filled in;
     * nproc is the ranks on this host, or 0 if trainer.devices decides. */
    co_terms terms;
    co_meet meet;    /* complete after co_hosts_line_meet */
    bool alone;      /* one host, and nowhere to meet */
    bool quiet;      /* another host shares this terminal and prints what concerns all hosts */
    int neighbours;  /* hosts of the training that are tasks on this machine, this one among them; else 1 */
    int port;        /* where this host takes gradients; 0: any free port */
    char place[160]; /* where hosts and numbers come from: "Slurm job 12 step 0"; "": from the flags */
    char pixels[32]; /* for tests: what this host claims that test pictures look like here; "": the truth */
    struct launch_plan *plan;
} co_hosts_line;

/* CO_EINPUT: a flag is wrong, or flags and environment disagree. */
co_err co_hosts_line_make(co_hosts_line **out, const co_hosts_ask *ask);
/* Before anything is planned. Outside a step of Slurm, in an allocation of several nodes: starts the line
 * on each node with srun and does not return. Tasks on one machine, each a host of its own: keeps to this
 * one's part of the CPUs. */
co_err co_hosts_line_enter(co_hosts_line *hosts);
/* Completes terms.run_id and meet. Under a scheduler it waits until the first host says where to meet.
 * Asks at the terminal for a token that is needed and missing; `cohort host` shows its code. */
co_err co_hosts_line_meet(co_hosts_line *hosts);
/* The others come to this host: nobody else waits for it. */
bool co_hosts_line_first(const co_hosts_line *hosts);
void co_hosts_line_free(co_hosts_line *hosts); /* NULL is fine; forgets the token */

/* Do the flags name hosts to start the training on (--hosts, --hostfile)? Then this process only conducts:
 * it starts `cohort train WORDS` on each of them over ssh. Returns the exit status. */
bool co_hosts_line_conducts(const co_hosts_ask *ask);
int co_hosts_line_conduct(const co_hosts_ask *ask, const char *const *words, int n);

/* "2 hosts", "1 to 4 hosts" */
void co_hosts_line_count(char *out, size_t size, const co_hosts_line *hosts);

#endif
