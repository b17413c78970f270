/* ssh_int.h -- the parts of a conductor.
 *
 *     conduct.c    all hosts in one loop          orders.c   when each host gets its order
 *     host.c       one host: its child, its pipes, its stages; reports through host_events
 *     marks.c      messages from a host to the conductor that the user does not see
 *     command.c    the command line of ssh, and what ssh's configuration says about a host
 *     carry.c      the sh line that finds our program on a host or copies it there
 *     hostfile.c   which hosts                    order.c    the line of JSON that each host gets
 */
#ifndef CO_SSH_SSH_INT_H
#define CO_SSH_SSH_INT_H

#include <poll.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/str.h"
#include "net/net.h"
#include "proc/signals.h"
#include "ssh/ssh.h"
#include "term/term.h"

enum {
    CONNECT_S = 15,    /* ssh's ConnectTimeout, if the user's configuration has none */
    ALIVE_S = 5,       /* the same for ServerAliveInterval; ssh gives up after three without an answer */
    CONFIG_MS = 10000, /* for `ssh -G` */
    NAMES_S = 5,       /* to look up the names of all hosts */
    LIFE_MS = 5000,    /* between two signs of life; after CO_CONTROL_SILENT_MS without one a host ends */
    /* after one host failed: how long hosts that we are still calling have to report their own reasons */
    REASON_MS = 2000,
    SLACK_MS = 15000, /* how long after the grace period ssh itself is killed */
    /* how long after a second signal ssh itself is killed, and how long until the next attempt to kill it */
    SECOND_MS = 5000,
    JUNK_MOST = 4096 /* bytes kept of what a login prints before our program starts */
};

/* --- command.c ------------------------------------------------------------------------------------------ */
typedef struct ssh_config { /* what `ssh -G HOST` says */
    bool known;             /* `ssh -G` worked */
    char hostname[CO_HOST_NAME], user[128];
    int port;
    bool proxied, connect_timeout, alive, remote_command;
} ssh_config;
/* Splits "ssh -i 'my key'" into words, NULL-terminated, owned by the pool. CO_EINPUT: empty, or a quote is
 * not closed. */
co_err command_split(const char ***out, int *n, co_pool *pool, const char *text);
void config_ask(ssh_config *out, const char *const *ssh, int n_ssh, const char *name);
/* Is this the host that we run on? Then no ssh is needed. */
bool config_is_here(const ssh_config *c, const char *name, const co_patience *p);
/* The argv of ssh that runs `remote`, a line for a shell, on the host. Owned by the pool; NULL: no memory. */
char **command_words(co_pool *pool, const char *const *ssh, int n_ssh, const ssh_config *c, const char *name,
                     bool may_ask, const char *remote);

/* --- carry.c -------------------------------------------------------------------------------------------- */
typedef struct cargo { /* our own program */
    const char *bytes;
    size_t len;
    char sha256[65], name[64]; /* name: VERSION-HASH, with the first 16 digits of the hash */
} cargo;
co_err cargo_open(cargo *out, const char *version);
void cargo_close(cargo *c);
char *carry_line(const cargo *c, co_pool *pool); /* a command for the host's login shell, of any kind */

/* --- marks.c -------------------------------------------------------------------------------------------- */
/* Finds the first complete mark in text, which is [*at, *end), and copies its words to `words`. False: there
 * is none yet. */
bool mark_find(const char *text, size_t len, size_t *at, size_t *end, char *words, size_t size);
/* How many bytes at the end of text may be the beginning of an incomplete mark. */
size_t mark_begun(const char *text, size_t len);

/* --- host.c --------------------------------------------------------------------------------------------- */
typedef enum {
    HOST_QUEUED,  /* ssh has to ask the user and waits until the terminal is free */
    HOST_CALLING, /* ssh runs; we have not heard from our own program or script yet */
    HOST_COPYING, /* the host receives a copy of our program */
    HOST_READY,   /* our program waits there for its order */
    HOST_TOLD,    /* the first host only: it has its order but has not reported its port yet */
    HOST_RUNNING,
    HOST_GONE
} host_stage;

typedef struct conductor conductor;
struct far_host;
/* What a host reports to its conductor. */
typedef struct host_events {
    void (*say)(conductor *c, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));       /* a line for the user */
    void (*ready)(conductor *c, struct far_host *h); /* the host waits for its order */
    void (*where)(conductor *c, struct far_host *h, int port, const char *addresses); /* the roster listens */
} host_events;
typedef struct far_host {
    conductor *c;
    const co_ssh_host *spec;
    int rank;
    bool here;       /* it is this very host: no ssh */
    bool asks;       /* its ssh may ask at the terminal */
    ssh_config conf; /* unset if `here` */
    host_stage stage;
    pid_t pid; /* 0: ended and reaped */
    int exit;  /* wait status */
    int in, out[2];
    co_str unsent;
    size_t sent, copied;
    co_str held[2];
    char last[400];  /* the last line of its standard error */
    char stuck[400]; /* why our program cannot run there, if the script said why; "": it did not */
    int ended;       /* the status in its end mark; -1: no such mark yet */
    bool ending;     /* we have asked it to end */
    bool hung_up;    /* we killed ssh before it had connected, so its message is not the reason */
} far_host;

co_err host_start(far_host *h);
void host_tell(far_host *h, const char *bytes, size_t n); /* queues bytes for its standard input */
void host_push(far_host *h);
void host_close_input(far_host *h);
void host_read(far_host *h, int which);
/* Asks the host to end, in the way its stage allows. sig 0: an ssh that is still connecting may go on. */
void host_end(far_host *h, int sig);
void host_hang_up(far_host *h); /* ends ssh, unless our program runs there already */
void host_kill(far_host *h);
bool host_over(far_host *h); /* its child is gone and we have read all of its output */

/* --- conduct.c: what hosts report ----------------------------------------------------------------------- */
struct conductor {
    const co_ssh_job *job;
    const host_events *report;
    co_pool pool;
    const char **ssh;
    int n_ssh;
    cargo cargo;
    const char *remote; /* the line that carry_line made */
    far_host *hosts;
    co_outlets out;
    uint64_t not_shown; /* bytes that we dropped because nobody read them while the job ended */
    sigset_t old_mask;
    struct rlimit old_nofile;
    int signal_fd;
    char endpoint[CO_HOST_NAME + 8], also[512]; /* of the roster; "" until the first host has reported it */
    int told; /* number of hosts that have their order; workers may run once it reaches min_hosts */
    /* the job is lost, and hosts that we are still calling are cut off at this time; 0: it is not lost */
    uint64_t hang_up_ns;
    int asked;         /* the signal that asked us to end; 0: none */
    uint64_t asked_ns; /* when the first signal came */
    bool failed;       /* a host failed, and the others are being ended */
    int status;        /* our exit status so far */
    uint64_t kill_ns;  /* when to kill ssh itself; 0: no time set yet */
    uint64_t alive_ns; /* when the next sign of life is due */
};
void conduct_say(conductor *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void conduct_lose(conductor *c, far_host *h); /* gives the host up; co_errmsg() says why */
/* orders.c */
void conduct_ready(conductor *c, far_host *h);
void conduct_where(conductor *c, far_host *h, int port, const char *addresses);

#endif
