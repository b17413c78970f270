/* ssh_int.h -- the parts of a conductor.
 *
 *     conduct.c    all hosts in one loop          orders.c   which host gets its order when
 *     host.c       one host: its child, its pipes, its stages; reports through host_events
 *     marks.c      what a host says to the conductor and not to the user
 *     command.c    what ssh is called with, and what its configuration says about a host
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
    ALIVE_S = 5,       /* ServerAliveInterval, if there is none: three without an answer end the connection */
    CONFIG_MS = 10000, /* for `ssh -G` */
    NAMES_S = 5,       /* for the names of all hosts */
    LIFE_MS = 5000,    /* between two signs of life; after CO_CONTROL_SILENT_MS without one a host ends */
    /* after one host failed: the others still being called may fail for their own reasons */
    REASON_MS = 2000,
    SLACK_MS = 15000, /* after the grace period: then ssh itself is killed */
    JUNK_MOST = 4096  /* bytes kept of what a login prints before our program starts */
};

/* --- command.c ------------------------------------------------------------------------------------------ */
typedef struct ssh_config { /* what `ssh -G HOST` says */
    bool known;             /* it could be asked */
    char hostname[CO_HOST_NAME], user[128];
    int port;
    bool proxied, connect_timeout, alive, remote_command;
} ssh_config;
/* "ssh -i 'my key'" into words, NULL-terminated, the pool's. CO_EINPUT: nothing, or an open quote. */
co_err command_split(const char ***out, int *n, co_pool *pool, const char *text);
void config_ask(ssh_config *out, const char *const *ssh, int n_ssh, const char *name);
/* Is it this very host, so that no ssh is needed? */
bool config_is_here(const ssh_config *c, const char *name, const co_patience *p);
/* The words that start `remote` (a line for a shell) on the host; the pool's, NULL if memory is out. */
char **command_words(co_pool *pool, const char *const *ssh, int n_ssh, const ssh_config *c, const char *name,
                     bool may_ask, const char *remote);

/* --- carry.c -------------------------------------------------------------------------------------------- */
typedef struct cargo { /* our own program */
    const char *bytes;
    size_t len;
    char sha256[65], name[64]; /* name: VERSION-the hash's beginning */
} cargo;
co_err cargo_open(cargo *out, const char *version);
void cargo_close(cargo *c);
char *carry_line(const cargo *c, co_pool *pool); /* for the login shell of a host, whichever it is */

/* --- marks.c -------------------------------------------------------------------------------------------- */
/* The first whole mark in text: *at where it begins, *end behind it; its words go to `words`. False: none
 * yet. */
bool mark_find(const char *text, size_t len, size_t *at, size_t *end, char *words, size_t size);
/* How many bytes at the end of text may be the beginning of a mark. */
size_t mark_begun(const char *text, size_t len);

/* --- host.c --------------------------------------------------------------------------------------------- */
typedef enum {
    HOST_QUEUED,  /* ssh must ask the user: when the terminal is free */
    HOST_CALLING, /* ssh runs; nothing of ours was heard */
    HOST_COPYING, /* it takes our program */
    HOST_READY,   /* our program waits there for its order */
    HOST_TOLD,    /* the first host: has its order, has not said where it listens */
    HOST_RUNNING,
    HOST_GONE
} host_stage;

typedef struct conductor conductor;
struct far_host;
/* What a host reports to its conductor. */
typedef struct host_events {
    void (*say)(conductor *c, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));       /* a line for the user */
    void (*ready)(conductor *c, struct far_host *h); /* waits for its order */
    void (*where)(conductor *c, struct far_host *h, int port, const char *addresses); /* the roster listens */
} host_events;
typedef struct far_host {
    conductor *c;
    const co_ssh_host *spec;
    int rank;
    bool here;       /* no ssh */
    bool asks;       /* at the terminal */
    ssh_config conf; /* !here */
    host_stage stage;
    pid_t pid; /* 0: ended and reaped */
    int exit;  /* as of waitpid */
    int in, out[2];
    co_str unsent;
    size_t sent, copied;
    co_str held[2];
    char last[400];  /* the last line of its standard error */
    char stuck[400]; /* why our program is not there, if the sh line said so */
    int ended;       /* the status it said at its end; -1: none yet */
    bool ending;     /* was asked to end */
    bool hung_up;    /* we killed ssh before it got through, so its message is not the reason */
} far_host;

co_err host_start(far_host *h);
void host_tell(far_host *h, const char *bytes, size_t n); /* to its standard input, as it takes them */
void host_push(far_host *h);
void host_close_input(far_host *h);
void host_read(far_host *h, int which);
void host_end(far_host *h,
              /* asks it to end, in the way its stage allows; sig 0: only if it would not end by itself */
              int sig);
void host_hang_up(far_host *h); /* if nothing of ours runs there yet */
void host_kill(far_host *h);
bool host_over(far_host *h); /* its child is gone and all was read */

/* --- conduct.c: what hosts report ----------------------------------------------------------------------- */
struct conductor {
    const co_ssh_job *job;
    const host_events *report;
    co_pool pool;
    const char **ssh;
    int n_ssh;
    cargo cargo;
    const char *remote; /* the sh line */
    far_host *hosts;
    co_outlets out;
    uint64_t not_shown; /* bytes that came after we were asked to end, and found an outlet overfull */
    sigset_t old_mask;
    struct rlimit old_nofile;
    int signal_fd;
    char endpoint[CO_HOST_NAME + 8], also[512]; /* of the roster, once the first host has said it */
    int told; /* hosts that have their order: from min_hosts on workers may run */
    /* the job is lost: hosts still being called have until then to say why they fail; 0: it is not */
    uint64_t hang_up_ns;
    int asked;         /* the signal; 0: none */
    uint64_t asked_ns; /* when the first one came */
    bool failed;       /* the others are being ended */
    int status;        /* so far */
    uint64_t kill_ns;  /* when ssh itself is killed; 0: not yet */
    uint64_t alive_ns; /* next sign of life */
};
void conduct_say(conductor *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void conduct_lose(conductor *c, far_host *h); /* co_errmsg() says why it cannot go on */
/* orders.c */
void conduct_ready(conductor *c, far_host *h);
void conduct_where(conductor *c, far_host *h, int port, const char *addresses);

#endif
