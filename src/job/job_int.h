/* job_int.h -- the parts of a job on one host.
 *
 *     roster --events--> run.c --> round.c: the workers of a round, judge.c; guard.c (a process for each), children.c, env.c
 *     a worker's bytes --> lines.c, escape.c --> files.c (per rank, merged) --> joblog.c (with those of other hosts)
 *                                            \--> console.c (prefix, fold), bars.c --> outlet.c: out_fd, err_fd
 *     a death --> cause.c, evidence.c, waits.c --> co_failure --> roster --> blame.c (a paragraph, blame.json)
 */
#ifndef CO_JOB_JOB_INT_H
#define CO_JOB_JOB_INT_H

#include <poll.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/alloc.h"
#include "base/str.h"
#include "job/job.h"
#include "proc/death.h"
#include "proc/evidence.h"
#include "proc/guard.h"
#include "proc/look.h"
#include "proc/signals.h"
#include "ssh/ssh.h"
#include "term/term.h"

typedef struct job job;

/* All times of a job on one host but those of the command line. */
enum {
    OWN_SIGNAL_MS = 200,  /* a worker died of a signal that we may get, too: so long it is waited for */
    BLAME_WAIT_MS = 2000, /* for the roster to say which failure was the first */
    OVER_WAIT_MS = 10000, /* our workers are gone, the job asked to end: for the roster to agree */
    MIX_MS = 300,         /* lines of all hosts wait so long for earlier ones that come later */
    MIX_TURN_MS = 100,    /* and are written so often at most */
};

/* --- console.c: what people see --------------------------------------------------------------------------------------- */
typedef struct seen {
    uint64_t ranks[CO_MAX_WORKERS / 64]; /* local */
    int n, stream;
    uint64_t at_ns;
    char *text;
    size_t len;
} seen;

typedef struct console {
    co_outlets out;
    bool hurries;       /* the job ends: what finds an outlet overfull is not shown */
    uint64_t not_shown; /* bytes of it */
    bool prefix;
    char host[CO_HOST_NAME]; /* "" on a single host */
    int first_rank, nproc;
    seen *queue;
    int n, room, head;
    int bars; /* lines of the live block that are on the terminal now */
    uint64_t drawn_ns;
} console;

void console_open(console *c, const co_job_spec *spec);
void console_round(console *c, const co_round *r, const co_job_spec *spec, const char *host);
void console_line(console *c, int local_rank, int to, const char *text, size_t len);
void console_teed(console *c, int to, const char *prefix, const char *text, size_t len);
void console_raw(console *c, int to, const char *bytes, size_t n);
void console_say(console *c, const char *text); /* to standard error, after what is held */
int console_due_ms(const console *c);           /* until something held must go out; -1: nothing is */
void console_flush(console *c, bool all);
void console_close(console *c, int patience_ms); /* for a reader that does not read; -1: for ever */
void bars_erase(console *c); /* bars.c: the live block below everything else on a terminal */
/* Ends lines whose time has come, and draws the block if it is time; ms until it is, -1: nothing to do */
int bars_turn(job *j);

/* --- files.c: what stays ---------------------------------------------------------------------------------------------- */
typedef struct log_file {
    int fd; /* -1: none */
    co_str held;
} log_file;

typedef struct files {
    bool none;   /* log_dir is /dev/null */
    bool kept;   /* log_dir was given, or something must be kept */
    bool broken; /* a write failed: said once, no more files */
    char *temp;  /* the folder to remove at the end, or NULL */
    char *run;   /* <log_dir>/<run_id>_<random> */
    char *attempt;
    log_file merged;
    const char *host;
    struct job *shared;   /* whose merged.log is also for job.log (joblog.c); NULL: none */
    char broken_why[256]; /* to be said; "" when it was */
} files;

co_err files_open(files *f, const co_job_spec *spec, const char *host);
co_err files_attempt(files *f, int restarts, int nproc);            /* folders of a round */
char *files_path(const files *f, int local_rank, const char *name); /* caller's; NULL: no files */
void files_log_open(files *f, log_file *l, int local_rank, const char *name);
void files_log_bytes(files *f, log_file *l, const char *bytes, size_t n);
void files_merge_line(files *f, int rank, int64_t clock_offset_ns, const char *text, size_t len);
/* What the launcher itself has to say there: "begins: ", the cause, and at last "ends: ". */
void files_merge_note(files *f, int64_t clock_offset_ns, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* "TIME [HOST:RANK] ", of now. */
void files_line_head(co_str *out, const char *host, int rank, int64_t clock_offset_ns);
void files_log_push(files *f, log_file *l);
void files_log_close(files *f, log_file *l);
void files_close(files *f, bool keep); /* the temporary folder goes unless something in it is worth keeping */

/* --- joblog.c: the lines of all hosts, in job.log of the host that keeps the roster ------------------------------------- */
typedef struct mixed {
    size_t at, len; /* of text, with its newline */
    uint64_t came_ns;
} mixed;

typedef struct joblog {
    log_file file;
    co_str text;
    mixed *list; /* in the order of coming */
    int n, room;
    uint64_t oldest_ns, wrote_ns; /* when the oldest of them came; when some were written */
    co_str heard;                 /* from other hosts, for a moment */
    long long unsent;             /* lines of this host that could not go to the keeper; not told yet */
    uint64_t tried_ns;            /* when it was last tried to */
    uint64_t over_ns;             /* since when the others' last lines are waited for; 0: not yet */
    bool told, hurries;           /* that was said; nobody wants to wait */
} joblog;
void joblog_share(job *j, const char *text, size_t n); /* from files.c: whole lines of merged.log */
void joblog_hear(job *j);                              /* what other hosts have logged */
int joblog_due_ms(const job *j);                       /* -1: nothing co_proc_wait */
void joblog_write(job *j, bool all);
void joblog_open(job *j);    /* if this host keeps the roster of several, and there is a --log-dir */
bool joblog_settled(job *j); /* after the end: nothing more is to come, or to be waited for */
void joblog_finish(job *j);  /* what hosts say at the end */
void joblog_close(job *j);

/* --- a worker --------------------------------------------------------------------------------------------------------- */
enum { TAIL_LINES = 20, TAIL_WIDTH = 400 };
typedef struct tail {
    char line[TAIL_LINES][TAIL_WIDTH];
    uint64_t n; /* lines so far */
} tail;

typedef struct stream {
    int fd;    /* -1: ended */
    int which; /* 0 stdout, 1 stderr */
    struct worker *w;
    co_lines lines;
    log_file file;
    bool shown, teed;
} stream;

typedef struct worker {
    job *job;
    int local_rank, rank;
    pid_t guard, pid;
    int sock; /* -1: the guard is gone */
    stream s[2];
    char tee_prefix[128];
    tail tail;
    bool in_traceback;
    bool saw_place; /* the line before was indented, and a place in a source file was among such co_lines */
    char exception[256]; /* last line of the last traceback */
    char earlier[256];   /* likewise, of those before the round was asked to end */
    bool ended, blamed;
    int status;
    int not_started; /* errno of its exec; 0: it was started */
    int64_t when_ns;
    uint64_t active_ns, active_ticks,
        ticks; /* stall.c: when it last did something; CPU time then, and at the last look */
} worker;

/* --- the job ---------------------------------------------------------------------------------------------------------- */
typedef enum { JOB_IDLE, JOB_RUNNING, JOB_ENDING } job_state;
struct job {
    const co_job_spec *spec;
    co_roster *roster;
    char host[CO_HOST_NAME];
    console console;
    files files;
    joblog all;
    sigset_t old_mask;
    int signal_fd;
    struct rlimit old_nofile;
    int control_fd;   /* the spec's; -1: none, or ended */
    char control[32]; /* a line that is not whole */
    size_t control_len;
    uint64_t control_ns; /* when it last said something */

    co_round round;
    worker *workers; /* [nproc] of the round */
    int n;
    job_state state;
    uint64_t kill_ns;  /* ENDING: when SIGKILL is due; 0: it was sent */
    int64_t ending_ns; /* CLOCK_REALTIME when ENDING began: who failed before was not told to end */
    bool had_to_kill;

    bool failed;       /* this round: a worker of ours; told to the roster */
    co_failure own;    /* the first of them */
    uint64_t blame_ns; /* when our own failure is said if the roster says none; 0: nothing to say */
    bool said;         /* this round's cause was said */
    bool kept;         /* a blame.json was written */
    bool stop_asked;   /* STOP came: the roster waits for co_roster_stopped */
    bool begin_asked;  /* BEGIN came, with `next` */
    co_round next;
    int asked;         /* the signal that asked us to end; 0: none */
    uint64_t asked_ns; /* when it came */
    int told;          /* the signal that asked another host, which ended the job; 0: none */
    int crash_status;  /* exit status of the first worker that crashed when asked; 0: none did */
    uint64_t leave_ns; /* when we go without the roster's word */
    bool over;
    int status;
    co_err err; /* of the roster or of starting workers; its text is in why */
    char why[1024];
    uint64_t began_ns;
    co_death_traces traces; /* taken when the round began */
    uint64_t look_ns;       /* stall.c: next look */
};

/* A worker of ours failed (or stalls): tells the roster, ends the others. */
void job_failed(job *j, const co_failure *f);
void job_judge(job *j); /* after every turn */
enum { AT_ONCE = 1 };   /* as kill_ns: long past */
void job_say(job *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* To end; asked once more: at once. on: who got the signal */
void job_asked(job *j, int sig, const char *on);

/* control.c: words of whoever started us */
extern const char control_name[]; /* among hosts: what these ask for, they say themselves */
void control_hear(job *j);
uint64_t control_due_ns(const job *j); /* when silence counts as its end; 0: never */

/* round.c */
co_err round_start(job *j, const co_round *r);
void round_end(job *j, int sig); /* asks all workers to end; SIGKILL after the grace period */
void round_kill(job *j);         /* SIGKILL, to all that are left; once more: not waited for */
bool round_gone(job *j);         /* no guard is left, all output read */
void round_free(job *j);
void worker_read(worker *w, int which);
/* Its guard is gone, and with it all that it started. Whoever else holds the pipe (a descriptor that was passed on) is not waited for:
 * what is in it is read, then it is closed. */
void worker_close(worker *w, int which);
int worker_turn(worker *w,
                uint64_t now_ns); /* lines that time makes; 0: some, else ms until there may be, -1: none wait */
void worker_hear(worker *w);      /* from its guard */
bool worker_failed(const worker *w);

/* env.c */
char **worker_env(const job *j, const worker *w, co_pool *pool);

/* told.c */
/* The signal that a host was asked to end with, from what it told ("...: SIGUSR1 on node2"); 0: it told something else. */
int told_signal(const char *text);
int told_due_ms(const job *j); /* a worker died of what may be on its way to us: for how long judging waits; -1: none did */
/* At the end signals are themselves again, while a pager is waited for; but not those that the job ended with: a scheduler's may
 * yet come to a host that heard of it from another, and would change its exit status. */
void told_mask(const job *j);

/* A worker that stands still, and the process of it that holds it up. */
typedef struct stander {
    worker *w;
    const co_proc *suspect; /* NULL: not seen in /co_proc */
    co_proc_wait in;
} stander;

/* cause.c, evidence.c, blame.c, stall.c */
void cause_of(co_failure *f, job *j, worker *w);
bool cause_excused(const char *exception); /* no failure of one that was asked to end */
/* all: who else stands still, and where; "" if nobody does */
void cause_of_stall(co_failure *f, job *j, const stander *who, double still_s, const char *all);
void blame(job *j, const co_failure *f, const char *next); /* once a round: the paragraph, blame.json */
void stall_watch(job *j);
int stall_due_ms(const job *j);

#endif
