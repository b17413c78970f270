/* ssh.h -- one command starts a job on many hosts: over OpenSSH, with the user's own configuration, keys
 * and agent. That command is the conductor.
 *
 *     conductor --pipes--> ssh a --> cohort launch --from-stdin   the first host: keeps the roster
 *               --pipes--> ssh b --> cohort launch --from-stdin   joins it
 *               --pipes--> cohort launch --from-stdin             a listed host that is this one: no ssh
 *
 * Each host gets its order on standard input: one line of JSON with the token, the words of the command, the
 * folder and the variables, none of which is in argv. After the order each line is the name of a signal, or
 * empty as a sign of life. At the end of its input the host ends its workers as on SIGTERM. Standard output
 * and standard error carry what the job prints. Among it are marks (below), which the conductor takes out.
 *
 *     co_ssh_host *hosts;
 *     CO_TRY(co_ssh_list(&hosts, &n, "node1,node2"));
 *     co_ssh_job job = {.hosts = hosts, .n = n, .flags = flags, .program = argv, .out_fd = 1, ...};
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
    int slots;               /* workers there; 0: as --nproc-per-node says */
} co_ssh_host;
const char *co_ssh_shown(const co_ssh_host *h); /* the name without the user, for prefixes and messages */
/* Parses "a,b,user@c". The caller owns *out (co_free). CO_EINPUT: the message says what is wrong. */
co_err co_ssh_list(co_ssh_host **out, int *n, const char *text);
/* Parses a file with a line per host, "host slots=4", and '#' comments. `path` is for messages only. */
co_err co_ssh_hostfile(co_ssh_host **out, int *n, const char *bytes, size_t len, const char *path);

/* ---- the conductor ---- */
/* A host that hears nothing from its conductor for this long treats it as dead. */
enum { CO_CONTROL_SILENT_MS = 60000 };

typedef struct co_ssh_job {
    const co_ssh_host *hosts;
    int n, min_hosts;    /* all hosts are ended if the first one is lost or fewer than min_hosts are left */
    const char *command; /* "ssh -p 2222", split into words; NULL: "ssh" */
    bool may_ask;        /* ssh may ask at our terminal, for one host after the other */
    const char *version; /* of this program; a host that has another build gets a copy of this one */
    const char *const *flags, *const *program; /* for `cohort launch` on every host; NULL-terminated */
    const char *const *env;                    /* NAME=VALUE for the workers of all hosts; NULL-terminated */
    const char *cwd;
    const char *token; /* "": --insecure */
    sigset_t signals;  /* passed on to all hosts */
    double grace_s;    /* seconds that workers have to end */
    int out_fd, err_fd;
} co_ssh_job;
/* *status is the job's exit status. It is 1 if a host was lost, and 2 if a host could not be reached and
 * nothing was started; in both cases the reason was written to err_fd. An error is returned if nothing was
 * started for another reason. When this returns, nothing is left running on any host. */
co_err co_ssh_run(const co_ssh_job *job, int *status);

/* ---- the other end ---- */
typedef struct co_ssh_order {
    char host[CO_HOST_NAME]; /* the user's name for this host */
    int rank, hosts;
    char token[64], also[512]; /* as in co_meet */
    char cwd[4096];
    const char **words, **env; /* for `cohort launch`; NAME=VALUE. NULL-terminated, owned by the pool */
    co_pool pool;
} co_ssh_order;
enum { CO_SSH_ORDER_MOST = 1 << 20 }; /* bytes of the line, at most */
/* Makes one line with its newline; the caller owns it (co_free). */
co_err co_ssh_order_text(char **out, const co_ssh_order *o);
/* Every value is checked. CO_EFORMAT: not an order; *out is untouched. */
co_err co_ssh_order_parse(co_ssh_order *out, const char *line, size_t len);
void co_ssh_order_fini(co_ssh_order *o);
/* Waits for the line on fd and reads no byte after it. CO_EPEER: the conductor is gone. */
co_err co_ssh_order_take(co_ssh_order *out, int fd);

/* A mark: a record separator (0x1e), "cohort-ssh ", words, a newline. */
#define CO_SSH_MARK "\036cohort-ssh "
/* Our program runs and waits for its order; the text before this mark comes from the login. */
co_err co_ssh_say_start(int fd);
co_err co_ssh_say_where(int fd, int port, const char *addresses); /* the first host listens */
co_err co_ssh_say_end(int fd, int status);                        /* the last mark of a host */

#endif
