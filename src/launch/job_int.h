/* job_int.h -- the parts of a job on one host.
 *
 *     roster --events--> run.c --> round.c: the workers of a round, judge.c; guard.c (a process for each), children.c, env.c
 *     a worker's bytes --> lines.c, escape.c --> files.c (per rank, merged) --> joblog.c (with those of other hosts)
 *                                            \--> console.c (prefix, fold), bars.c --> outlet.c: out_fd, err_fd
 *     a death --> cause.c, evidence.c, waits.c --> co_failure --> roster --> blame.c (a paragraph, blame.json)
 */
#ifndef CO_LAUNCH_JOB_INT_H
#define CO_LAUNCH_JOB_INT_H

#include <poll.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/alloc.h"
#include "base/str.h"
#include "launch/job.h"

typedef struct job job;

/* All times of a job on one host but those of the command line. */
enum {
    OWN_SIGNAL_MS = 200,      /* a worker died of a signal that we may get, too: so long it is waited for */
    ONE_REQUEST_MS = 1000,    /* signals that nobody types ask once, however often they come within it */
    FOLD_MS = 50,             /* equal lines of other ranks that come later are lines of their own */
    PARTIAL_MS = 100,         /* text without a newline waits so long before a terminal shows it */
    BAR_MS = 100,             /* progress bars are drawn at most so often */
    BAR_LINE_MS = 30000,      /* where none are drawn, what a bar shows is a line so often */
    BLAME_WAIT_MS = 2000,     /* for the roster to say which failure was the first */
    LINGER_MS = 250,          /* what a worker left running may end by itself */
    LEFT_BEHIND_MS = 5000,    /* then: from SIGTERM to SIGKILL */
    STUCK_MS = 10000,         /* after SIGKILL: what is left then is held by the kernel */
    HOPELESS_MS = 2000,       /* likewise, if we may not kill it, or are asked once more */
    UNREAD_MS = 1000,         /* asked to end: for whoever does not read our output */
    OVER_WAIT_MS = 10000,     /* our workers are gone, the job asked to end: for the roster to agree */
    MIX_MS = 300,             /* lines of all hosts wait so long for earlier ones that come later */
    MIX_TURN_MS = 100,        /* and are written so often at most */
    CONTROL_SILENT_MS = 60000 /* without a sign of life whoever started us is gone */
};

/* --- guard.c: one process per worker ---------------------------------------------------------------------------------- */
/* What a guard tells on its socket, in this order. It exits, and the socket ends, when its tree is empty, or STUCK was told. */
typedef enum { GUARD_STARTED, GUARD_NOT_STARTED, GUARD_ENDED, GUARD_LEFT, GUARD_STUCK } guard_kind;
typedef struct guard_word {
    guard_kind kind;
    int pid;    /* the worker's */
    int status; /* ENDED: as of waitpid; NOT_STARTED: errno; STUCK: errno of kill, or 0 */
    int n;   /* LEFT: processes that the worker left running and that were asked to end; STUCK: that do not */
    int who; /* STUCK: one of them */
    int64_t when_ns; /* CLOCK_REALTIME */
} guard_word;

/* All made before the fork: a guard allocates nothing (the roster may have threads). */
typedef struct guard_spec {
    char *const *argv;
    char *const *envp;
    const char *file; /* argv[0] as found in PATH */
    int out_fd, err_fd;
    sigset_t mask;        /* the worker's */
    struct rlimit nofile; /* likewise */
} guard_spec;

co_err guard_start(pid_t *guard, int *sock, const guard_spec *spec);
/* SIGKILL: the whole tree; once more: and do not wait long for it. Another signal: the worker's process group. */
void guard_signal(int sock, int sig);

/* --- children.c: a guard's children, found and signalled by system calls alone ----------------------------------------- */
typedef struct sweep {
    int sig;
    pid_t group;       /* who is of this process group ... */
    int had;           /* ... and does not ignore this signal, has had it and is spared; 0: nobody is */
    int sent, refused; /* out: to how many; how many may not be signalled */
    pid_t one;         /* out: of those that may not, or else of the others */
    int why;           /* out: errno for it; 0: it was signalled */
} sweep;
void children_signal(sweep *s);

/* --- tree.c: /proc ---------------------------------------------------------------------------------------------------- */
typedef struct proc {
    pid_t pid, ppid, session;
    char state;
    uint64_t ticks; /* CPU time, its own threads */
} proc;
/* All processes that can be seen, by pid; *out is the caller's (co_free). 0 if /proc cannot be read. */
int tree_scan(proc **out);
/* CPU ticks of `top` and all below it. */
uint64_t tree_ticks(const proc *p, int n, pid_t top);
/* The process below (or at) `top` that holds things up: one in disk wait; else top, or the child that it waits for. */
const proc *tree_suspect(const proc *p, int n, pid_t top);
/* Our children by adoption that a worker left: of its session, or with both entries in their environment. Killed, reaped. */
void tree_kill_adopted(pid_t session, const char *run_entry, const char *rank_entry);

/* --- escape.c: the sequences that move a terminal's cursor --------------------------------------------------------------- */
typedef struct escape {
    char text[32];
    size_t len;
    bool open; /* it has begun and is not whole */
} escape;
typedef enum {
    ESCAPE_NONE, /* this byte belongs to none */
    ESCAPE_PART,
    ESCAPE_WHOLE /* text is "\033[", parameters and the letter that says what it does */
} escape_state;
void escape_begin(escape *e); /* its first byte has come */
escape_state escape_feed(escape *e, char c);

/* --- lines.c: bytes to lines ------------------------------------------------------------------------------------------ */
enum { LINE_MOST = 1 << 16, ROWS_MOST = 8 };
typedef struct row {
    co_str text; /* what a carriage return overwrote is gone */
    bool bar;    /* it was written after a carriage return */
    uint64_t left_ns;
    uint64_t told_ns; /* when its text was last told while it was open, or it became a bar */
    co_str told;
} row;

typedef struct lines {
    row rows[ROWS_MOST]; /* from the highest on; one, unless there are several bars or one has just ended */
    int at, last;        /* where the cursor is; the lowest that is in use */
    bool home; /* the cursor is at the beginning of its row: what comes takes the place of the text there */
    bool returned; /* by a carriage return */
    escape escape;
    uint64_t since_ns; /* when bytes last came */
} lines;
typedef void (*line_fn)(void *ctx, const char *text, size_t len);
void lines_feed(lines *l, const char *bytes, size_t n, line_fn each, void *ctx);
/* Rows that the cursor has left for good are lines. 0: there were some; else in how many ms there may be; -1: none wait. */
int lines_settle(lines *l, uint64_t now_ns, line_fn each, void *ctx);
/* What bars show that were open for BAR_LINE_MS, or have changed since it was told so long ago. Returns as lines_settle. */
int lines_tell_bars(lines *l, uint64_t now_ns, line_fn each, void *ctx);
void lines_end(lines *l, line_fn each, void *ctx); /* what is open is a line */
bool row_blank(const row *r);                      /* nothing to be seen: a bar that was wiped away */
void lines_fini(lines *l);

/* --- outlet.c: descriptors that may be slow, without waiting for them -------------------------------------------------- */
enum { OUTLET_FULL = 1 << 18, OUTLET_MOST = 1 << 23 };
typedef struct outlet {
    int fd;
    bool own, tty;
    bool gone; /* nobody reads any more */
    co_str held;
    size_t done;  /* of held */
    int error;    /* errno of the first write that failed for another reason; 0: none did */
    bool failing; /* the last write failed so */
    bool told;    /* error was said */
} outlet;
void outlet_open(outlet *o, int fd);
void outlet_add(outlet *o, const char *bytes, size_t n);
void outlet_push(outlet *o); /* as much as goes */
bool outlet_waits(const outlet *o);
bool outlet_full(const outlet *o);     /* workers' output should wait */
bool outlet_overfull(const outlet *o); /* while the job ends it does not wait: it is not shown */
void outlet_close(outlet *o);

/* Standard output (0) and standard error (1). Where both are the same file they are one outlet: in two queues lines would
 * overtake each other, and a write that stops in the middle of one would have the other's behind it. */
typedef struct outlets {
    outlet each[2];
    int n;
} outlets;
void outlets_open(outlets *o, int out_fd, int err_fd);
outlet *outlets_at(outlets *o, int which);
void outlets_push(outlets *o, struct pollfd wait[2]); /* as much as goes; what to wait for with the rest */
bool outlets_full(outlets *o);                        /* one of them */
void outlets_drain(outlets *o, int patience_ms);      /* for a reader that does not read; -1: for ever */
/* A write has failed, a disk may be full: a line that says so, once, and which output it is for (the other one, or if both are
 * one, that one when it works again). -1: nothing to say. */
int outlets_broken(outlets *o, char *line, size_t size);
void outlets_close(outlets *o);

/* --- console.c: what people see --------------------------------------------------------------------------------------- */
typedef struct seen {
    uint64_t ranks[CO_MAX_WORKERS / 64]; /* local */
    int n, stream;
    uint64_t at_ns;
    char *text;
    size_t len;
} seen;

typedef struct console {
    outlets out;
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
int joblog_due_ms(const job *j);                       /* -1: nothing waits */
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
    lines lines;
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
    bool saw_place;      /* the line before was indented, and a place in a source file was among such lines */
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
    long long oom_kills; /* when the round began; -1: cannot be known */
    uint64_t look_ns;    /* stall.c: next look */
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

/* told.c. Is a signal that comes now part of the request that came at first_ns (0: none did)? Keys are not: Ctrl-C twice is twice. */
bool told_before(int sig, uint64_t first_ns);
/* The signal that a host was asked to end with, from what it told ("...: SIGUSR1 on node2"); 0: it told something else. */
int told_signal(const char *text);
int told_due_ms(const job *j); /* a worker died of what may be on its way to us: for how long judging waits; -1: none did */
/* At the end signals are themselves again, while a pager is waited for; but not those that the job ended with: a scheduler's may
 * yet come to a host that heard of it from another, and would change its exit status. */
void told_mask(const job *j);

/* --- waits.c: what a process waits in ----------------------------------------------------------------------------------- */
typedef struct waits {
    const char *state; /* "asleep", "disk wait", ... */
    char where[128];   /* "sleep", "read of /a/file"; "": unknown */
    const char *means; /* of a call whose name does not say it; or "" */
    bool for_others;   /* a lock, a socket, any of several files: whoever holds things up is likely another */
} waits;
void waits_of(waits *w, const proc *p);

/* A worker that stands still, and the process of it that holds it up. */
typedef struct stander {
    worker *w;
    const proc *suspect; /* NULL: not seen in /proc */
    waits in;
} stander;

/* cause.c, evidence.c, blame.c, stall.c */
void cause_of(co_failure *f, job *j, worker *w);
bool cause_excused(const char *exception); /* no failure of one that was asked to end */
/* all: who else stands still, and where; "" if nobody does */
void cause_of_stall(co_failure *f, job *j, const stander *who, double still_s, const char *all);
long long evidence_oom_kills(const char *root); /* so far, of our control group or of the machine; -1: unknown */
bool evidence_killed_in(const char *kmsg, int pid); /* does the kernel's log say that it killed this one? */
/* Each says what it found, if it found something. */
bool evidence_shm_full(const char *path, char *says, size_t size);
bool evidence_no_instructions(const char *cpuinfo, char *says, size_t size);
bool evidence_error_file(const char *path, char *says, size_t size);
void blame(job *j, const co_failure *f, const char *next); /* once a round: the paragraph, blame.json */
void stall_watch(job *j);
int stall_due_ms(const job *j);

#endif
