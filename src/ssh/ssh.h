/* ssh.h -- one command starts a job on many hosts: over OpenSSH, with the user's own configuration, keys
 * and agent.
 *
 *     conductor --pipes--> ssh a --> cohort launch --from-stdin     the first host: keeps the roster, says where
 *               --pipes--> ssh b --> cohort launch --from-stdin     joins it
 *               --pipes--> cohort launch --from-stdin               a listed host that is this one: no ssh
 *
 * Standard input of each takes its order, one line of JSON (token, words, folder, variables: never in
 * argv), then one word per line: the name of a signal, or nothing as a sign of life. Its end is the
 * conductor's: the host ends its workers as on SIGTERM. Standard output and error are what the job prints;
 * in between, marks (below) that the conductor takes out.
 *
 *     co_ssh_host *hosts;
 *     CO_TRY(co_ssh_list(&hosts, &n, "node1,node2"));
 *     co_ssh_job job = {.hosts = hosts, .n = n, .flags = flags, .program = argv, .out_fd = 1, .err_fd = 2, ...};
 *     CO_TRY(co_ssh_run(&job, &status));
 */
#ifndef CO_SSH_SSH_H
#define CO_SSH_SSH_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"
#include "base/err.h"
#include "roster/roster.h"

/* ---- which hosts ---- */
typedef struct co_ssh_host {
    char name[CO_HOST_NAME]; /* as typed, for ssh: host or user@host */
    int slots;               /* workers there; 0: as the line says */
} co_ssh_host;
const char *co_ssh_shown(const co_ssh_host *h); /* in prefixes and messages: without the user */
/* "a,b,user@c". *out is the caller's (co_free). CO_EINPUT names what is wrong. */
co_err co_ssh_list(co_ssh_host **out, int *n, const char *text);
/* A line per host, "host slots=4", '#' comments. `path` is for messages, which name the line. */
co_err co_ssh_hostfile(co_ssh_host **out, int *n, const char *bytes, size_t len, const char *path);

/* ---- the conductor ---- */
/* A host that has heard nothing from its conductor for this long takes it for dead. */
enum { CO_CONTROL_SILENT_MS = 60000 };

typedef struct co_ssh_job {
    const co_ssh_host *hosts;
    int n, min_hosts;    /* fewer than min_hosts left, or the first one lost: all are ended */
    const char *command; /* "ssh -p 2222", split into words; NULL: "ssh" */
    bool may_ask;        /* there is a terminal at which ssh may ask: one host after the other */
    const char *version; /* of this program, which every host runs: copied there if it has another */
    const char *const *flags, *const *program; /* of `cohort launch`, NULL-terminated, the same for all */
    const char *const *env;                    /* NAME=VALUE for the workers of all; NULL-terminated */
    const char *cwd;
    const char *token; /* "": --insecure */
    sigset_t signals;  /* passed on to all hosts */
    double grace_s;    /* what hosts give their workers */
    int out_fd, err_fd;
} co_ssh_job;
/* *status: the job's; 1: a host could not be reached or was lost, the sentence was written to err_fd (2:
 * and nothing was started). An error: nothing was started for another reason. Nothing is left running,
 * here or there, when it returns. */
co_err co_ssh_run(const co_ssh_job *job, int *status);

/* ---- the other end ---- */
typedef struct co_ssh_order {
    char host[CO_HOST_NAME]; /* this host as the user calls it */
    int rank, hosts;
    char token[64], also[512]; /* as in co_meet */
    char cwd[4096];
    const char **words, **env; /* of `cohort launch`; NAME=VALUE; NULL-terminated, the pool's */
    co_pool pool;
} co_ssh_order;
enum { CO_SSH_ORDER_MOST = 1 << 20 }; /* bytes of the line */
/* one line with its newline; the caller's, co_free */
co_err co_ssh_order_text(char **out, const co_ssh_order *o);
/* Every value is checked. CO_EFORMAT: not an order; *out is untouched. */
co_err co_ssh_order_parse(co_ssh_order *out, const char *line, size_t len);
void co_ssh_order_fini(co_ssh_order *o);
/* Waits for the line at fd and reads no byte after it. CO_EPEER: the conductor is gone. */
co_err co_ssh_order_take(co_ssh_order *out, int fd);

/* A mark: a record separator (0x1e), "cohort-ssh ", words, a newline. */
#define CO_SSH_MARK "\036cohort-ssh "
co_err co_ssh_say_start(int fd); /* an order is waited for: what was printed before is somebody else's */
co_err co_ssh_say_where(int fd, int port, const char *addresses); /* the first host listens */
co_err co_ssh_say_end(int fd, int status);                        /* the last thing that is said */

#endif
