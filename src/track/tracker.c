/* tracker.c -- the table of trackers, and the process that reads the record to one of them.
 *
 *     supervisor --"more"--> feed process: reads events.jsonl, hands each line to its tracker, flushes
 *                <--"why"--  only if it fails; then it exits
 *
 * A feed is a tracker with a process of its own, forked by the owner (the supervisor). So the supervisor
 * keeps its one thread, a crash in a tracker's library costs nothing but that tracker, and one that hangs can
 * be killed. The owner never waits for a feed while training: it sends one byte, and drops the byte if the
 * feed is far behind.
 *
 * Before each flush the feed reads the lease: a run that lost its folder writes nothing more into it.
 */
#include "track/tracker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "proc/crew.h"
#include "proc/death.h"
#include "track/track_int.h"
#include "track/times_int.h"

const co_tracker_def *const co_trackers[] = {
    &csv_def, &none_def, &tensorboard_def, &prometheus_def, &wandb_def, &mlflow_def, NULL};

enum { FLUSH_SHARE = 50 }; /* flushing takes at most a 50th of the time */

enum { MEMORY_BYTES = CO_TRACKERS_MOST * sizeof(size_t) };

struct feed {
    const co_tracker_def *def;
    const void *cfg; /* only the feed's own process reads these two */
    const co_run_facts *facts;
    char *dir, run_id[64];
    int64_t old_bytes; /* of the record, when this start began */
    void *self;        /* the tracker's, in the feed's process */
    pid_t pid;         /* 0: its end was seen */
    int pidfd, sock;
    _Atomic size_t *memory; /* its place in the tracking's */
    char why[512];          /* "" unless it failed */
    bool failed;            /* it sent its last reason */
    bool told;              /* the failure was reported */
    bool stop_said;         /* in the feed's process: it has said that the run is to stop */
};

struct co_tracking {
    struct feed feed[CO_TRACKERS_MOST];
    int n;
    co_death_traces before; /* the kernel's counters when the feeds started */
    _Atomic size_t *memory; /* [CO_TRACKERS_MOST] shared: the most private memory that each feed has had */
    co_tracking_tell on_notice, on_stop;
    void *notice_ctx, *stop_ctx;
};

/* --- the feed's process --------------------------------------------------------------------------------- */
co_err tracker_rename(json_t *line, co_names family)
{
    const char *name = co_json_str(line, "name");
    char as[CO_METRIC_NAME];

    if (family == CO_NAMES_LIGHTNING || !name || !json_object_get(line, "value"))
        return CO_OK;
    co_scalar_name(as, family, name);
    return json_object_set_new(line, "name", co_json_string(as)) == 0 ? CO_OK : CO_ENOMEM;
}

static co_err hand_over(struct feed *f, const char *text, size_t len, int64_t offset)
{
    json_t *v = NULL;
    co_err err = co_json_parse(&v, text, len, "events.jsonl");

    if (err)
        return err == CO_ENOMEM ? err : CO_OK; /* a line that a crash cut */
    if (json_is_object(v))
        err = tracker_rename(v, f->facts->names);
    if (json_is_object(v) && !err)
        err = f->def->take(f->self, &(co_record_line){.text = text,
                                                      .len = len,
                                                      .json = v,
                                                      .replayed = offset < f->old_bytes,
                                                      .end = offset + (int64_t)len + 1});
    json_decref(v);
    return err;
}

/* All lines that are there now; *n grows by their number. */
static co_err hand_over_all(struct feed *f, record_reader *r, int64_t *n)
{
    const char *line;
    size_t len;
    int64_t offset;

    for (;; ++*n) {
        CO_TRY(reader_next(r, &line, &len, &offset));
        if (!line)
            return CO_OK;
        CO_TRY(hand_over(f, line, len, offset));
    }
}

/* What a feed tells its owner: a byte that says how serious it is, then the text. */
enum { FAILED = 'f', TRIES_AGAIN = 't', NOTICE = 'n', STOP = 's' };

static void say(struct feed *f, char kind, const char *what)
{
    char text[sizeof f->why];
    int n = snprintf(text, sizeof text, "%c%s", kind, what);

    send(f->sock, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void say_why(struct feed *f, char kind)
{
    say(f, kind, co_errmsg());
}

static void say_notices(struct feed *f)
{
    char text[sizeof f->why];

    while (f->def->notice && f->def->notice(f->self, text, sizeof text - 1))
        say(f, NOTICE, text);
}

static void say_stop(struct feed *f)
{
    if (f->stop_said || !f->def->wants_stop || !f->def->wants_stop(f->self))
        return;
    say(f, STOP, "");
    f->stop_said = true;
}

static co_err flush(struct feed *f)
{
    CO_TRY(lease_is_ours(f->dir, f->run_id));
    co_err err = f->def->flush(f->self);
    char why[sizeof f->why];

    snprintf(why, sizeof why, "%s", co_errmsg());
    say_notices(f);
    return err ? co_fail(err, "%s", why) : CO_OK;
}

/* Waits for more lines, the end, or `until_s` (0: for ever). True: the end. */
static bool wait_for_more(struct feed *f, double until_s)
{
    struct pollfd p = {.fd = f->sock, .events = POLLIN};
    double left_s = until_s - co_now_s();
    char bytes[64];
    ssize_t n;

    poll(&p, 1, until_s == 0 ? -1 : left_s > 0 ? (int)(left_s * 1000) + 1 : 0);
    while ((n = recv(f->sock, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
        ;
    return n == 0;
}

static void note_memory(struct feed *f)
{
    size_t now = co_memory_private();

    if (now > atomic_load(f->memory))
        atomic_store(f->memory, now);
}

static co_err read_record(struct feed *f, record_reader *r)
{
    double next_s = co_now_s() + FLUSH_S;
    int64_t waiting = 0; /* lines taken since the last flush */
    bool told = false;   /* the owner knows that the last flush failed */

    for (bool end = false;;) {
        CO_TRY(hand_over_all(f, r, &waiting));
        say_stop(f);
        if (end) {
            co_err last = flush(f);
            note_memory(f);
            return last;
        }
        double now_s = co_now_s();
        if (waiting && now_s >= next_s) {
            co_err err = flush(f);
            if (err && err != CO_EIO)
                return err;
            if (err && !told) /* a full disk, say */
                say_why(f, TRIES_AGAIN);
            told = err;
            double took_s = co_now_s() - now_s;
            next_s = co_now_s() + (took_s * FLUSH_SHARE > FLUSH_S ? took_s * FLUSH_SHARE : FLUSH_S);
            waiting = err ? waiting : 0;
        }
        end = wait_for_more(f, waiting ? next_s : 0);
    }
}

static co_err track(struct feed *f)
{
    record_reader *r = NULL;
    co_err err = reader_open(&r, f->dir);

    if (!err)
        err = f->def->open(&f->self, f->facts, f->cfg);
    if (!err) {
        say_notices(f);
        err = read_record(f, r);
        f->def->close(f->self);
    }
    reader_close(r);
    return err;
}

/* Signals of the terminal are the supervisor's. */
static int feed_main(void *ctx)
{
    struct feed *f = ctx;
    sigset_t all;

    prctl(PR_SET_NAME, "cohort-tracker");
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    if (track(f) == CO_OK)
        return 0;
    say_why(f, FAILED);
    return 1;
}

/* --- the owner's side ----------------------------------------------------------------------------------- */
static co_err start_process(struct feed *f)
{
    co_child_spec spec = {.main = feed_main, .ctx = f};
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return co_fail(CO_EIO, "logger=%s: socketpair: %m", f->def->name);
    f->sock = ends[1];
    co_fds_add(&spec.keep, f->sock);
    co_err err = co_child_start(&f->pid, &f->pidfd, &spec);
    close(ends[1]);
    f->sock = ends[0];
    if (err)
        close(ends[0]);
    return err ? co_fail_in(err, "logger=%s", f->def->name) : CO_OK;
}

static co_err start_feed(struct feed *f, const co_folder *folder, const co_run_facts *facts,
                         const co_tracker_pick *pick, _Atomic size_t *memory)
{
    struct stat st;

    *f = (struct feed){
        .def = pick->def, .cfg = pick->cfg, .facts = facts, .dir = co_strdup(folder->path), .memory = memory};
    snprintf(f->run_id, sizeof f->run_id, "%s", folder->run_id);
    char *path = co_sprintf("%s/events.jsonl", folder->path);
    if (folder->events_fd >= 0)
        f->old_bytes = folder->old_bytes; /* the first lines of this start may be there already */
    else
        f->old_bytes = path && stat(path, &st) == 0 ? st.st_size : 0;
    co_err err = f->dir && path ? start_process(f) : CO_ENOMEM;
    co_free(path);
    if (err)
        f->pid = 0;
    return err;
}

co_err co_tracking_open(co_tracking **out, const co_folder *f, const co_run_facts *facts,
                        const co_tracker_pick *picks, int n)
{
    CO_ASSERT(n <= CO_TRACKERS_MOST, "there are not so many trackers");
    co_tracking *t = co_zalloc(sizeof *t);

    if (!t)
        return CO_ENOMEM;
    void *shared = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    co_err err = shared == MAP_FAILED ? co_fail(CO_ENOMEM, "mmap for the trackers: %m") : CO_OK;
    t->memory = err ? NULL : shared;
    co_death_traces_take(&t->before, "");
    for (int i = 0; i < n && !err; i++, t->n++)
        if (start_feed(&t->feed[i], f, facts, &picks[i], &t->memory[i]) != CO_OK)
            snprintf(t->feed[i].why, sizeof t->feed[i].why, "%s", co_errmsg());
    if (!err)
        *out = t;
    else
        co_free(t);
    return err;
}

void co_tracking_on_notice(co_tracking *t, co_tracking_tell tell, void *ctx)
{
    if (!t)
        return;
    t->on_notice = tell;
    t->notice_ctx = ctx;
}

void co_tracking_on_stop(co_tracking *t, co_tracking_tell tell, void *ctx)
{
    if (!t)
        return;
    t->on_stop = tell;
    t->stop_ctx = ctx;
}

void co_tracking_more(co_tracking *t)
{
    for (int i = 0; t && i < t->n; i++)
        if (t->feed[i].pid)
            send(t->feed[i].sock, "m", 1, MSG_DONTWAIT | MSG_NOSIGNAL); /* full: it knows already */
}

size_t co_tracking_memory(const co_tracking *t)
{
    size_t sum = 0;

    for (int i = 0; t && i < t->n; i++)
        sum += atomic_load(&t->memory[i]);
    return sum;
}

static void pass_on(const co_tracking *t, const struct feed *f, const char *text)
{
    char line[768];

    if (!t->on_notice)
        return;
    snprintf(line, sizeof line, "%-9s %s", f->def->name, text);
    t->on_notice(t->notice_ctx, line);
}

/* Passes on the notices that the feed sent. Other text goes into f->why; the kind of the last one is returned, 0 if
 * there was none. */
static char hear(const co_tracking *t, struct feed *f)
{
    char text[sizeof f->why], kind = 0;

    for (;;) {
        ssize_t n = recv(f->sock, text, sizeof text - 1, MSG_DONTWAIT);
        if (n < 0 && errno == ECONNRESET) /* it ended with bytes of ours unread; its text comes after that */
            continue;
        if (n <= 0)
            return kind;
        text[n] = '\0';
        if (text[0] == NOTICE)
            pass_on(t, f, text + 1);
        if (text[0] == STOP && t->on_stop)
            t->on_stop(t->stop_ctx, f->def->name);
        if (text[0] == NOTICE || text[0] == STOP)
            continue;
        kind = text[0];
        snprintf(f->why, sizeof f->why, "%s", text + 1);
        f->failed = f->failed || kind == FAILED;
    }
}

static void let_go(struct feed *f)
{
    close(f->pidfd);
    close(f->sock);
    f->pid = 0;
}

/* Has the process ended? Then f->why says why, if it failed. */
static bool reap(co_tracking *t, struct feed *f)
{
    struct pollfd p = {.fd = f->pidfd, .events = POLLIN};
    co_death_cause cause;
    int status = 0;

    if (!f->pid)
        return true;
    if (poll(&p, 1, 0) <= 0)
        return false;
    while (waitpid(f->pid, &status, 0) < 0 && errno == EINTR)
        ;
    hear(t, f);
    if (!f->failed && status != 0) {
        co_death_tell(&cause, status, f->pid, &t->before);
        snprintf(f->why, sizeof f->why, "its process ended: %s", cause.how);
    }
    if (status == 0)
        f->why[0] = '\0'; /* what it could not write for a while is written */
    let_go(f);
    return true;
}

/* Reports a feed's failure, once. */
static void report(struct feed *f, const char *why, co_tracking_tell tell, void *ctx)
{
    char text[768];

    if (f->told || !why[0] || !tell)
        return;
    f->told = true;
    snprintf(text, sizeof text, "logger=%s was dropped: %s; events.jsonl has every value", f->def->name, why);
    tell(ctx, text);
}

void co_tracking_troubles(co_tracking *t, co_tracking_tell tell, void *ctx)
{
    char text[768];

    for (int i = 0; t && i < t->n; i++) {
        struct feed *f = &t->feed[i];
        if (reap(t, f)) {
            report(f, f->why, tell, ctx);
        } else if (hear(t, f) == TRIES_AGAIN && tell) {
            snprintf(text, sizeof text, "logger=%s cannot write: %s; it tries again", f->def->name, f->why);
            tell(ctx, text);
        }
    }
}

/* Waits until all feeds have ended. False: the time was over, or a signal asks to stop. */
static bool wait_for_all(co_tracking *t, double secs, int signals)
{
    struct pollfd p[CO_TRACKERS_MOST + 1] = {{.fd = signals, .events = POLLIN}};
    double until_s = co_now_s() + secs;

    for (;;) {
        bool all = true;
        for (int i = 0; i < t->n; i++) {
            bool gone = reap(t, &t->feed[i]);
            p[i + 1] = (struct pollfd){.fd = gone ? -1 : t->feed[i].pidfd, .events = POLLIN};
            all = all && gone;
        }
        double left_s = until_s - co_now_s();
        if (all || left_s <= 0)
            return all;
        poll(p, (nfds_t)t->n + 1, (int)(left_s * 1000) + 1);
        if (p[0].revents)
            return false;
    }
}

/* A feed that is still there is killed; one that the kernel holds is left behind. */
static void fence(co_tracking *t, struct feed *f, double secs)
{
    struct pollfd p = {.fd = f->pidfd, .events = POLLIN};

    if (!f->pid)
        return;
    kill(f->pid, SIGKILL);
    poll(&p, 1, CO_FENCE_MS);
    if (!reap(t, f))
        let_go(f);
    snprintf(f->why, sizeof f->why, "it had not finished %g s after the run ended, or was asked to stop", secs);
}

size_t co_tracking_close(co_tracking *t, double secs, co_tracking_tell tell, void *ctx)
{
    sigset_t stops;

    if (!t)
        return 0;
    t->on_stop = NULL; /* the run has ended: whoever wants it to stop has what they want */
    sigemptyset(&stops);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGUSR1);
    int signals = signalfd(-1, &stops, SFD_CLOEXEC | SFD_NONBLOCK); /* -1 is passed over by poll */
    for (int i = 0; i < t->n; i++)
        if (t->feed[i].pid)
            shutdown(t->feed[i].sock, SHUT_WR);
    wait_for_all(t, secs, signals);
    if (signals >= 0)
        close(signals);
    size_t memory = co_tracking_memory(t);
    for (int i = 0; i < t->n; i++) {
        fence(t, &t->feed[i], secs);
        report(&t->feed[i], t->feed[i].why, tell, ctx);
        co_free(t->feed[i].dir);
    }
    if (t->memory)
        munmap(t->memory, MEMORY_BYTES);
    co_free(t);
    return memory;
}
