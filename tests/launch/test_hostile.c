/* Two thousand strangers at the door of a job of two hosts: nobody gets in, and the job succeeds with hardly
 * any delay.
 *
 * Four kinds in turn: random bytes; connected and silent; a byte at a time; the exact bytes that a real host
 * sent, all of them, recorded by a proxy between it and the roster. They come from a third host. The job
 * could take a third one (--nnodes=2:3), so a stranger that got in would show up as a member.
 */
#include "hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "worker.h"

enum { STRANGERS = 2000, RECORD = 1 << 16 };
enum { NOISE, SILENT, SLOW, REPLAY, KINDS };

static cpu_set_t all_cpus; /* the CPUs that the test may use */
static uint8_t record[RECORD];
static size_t recorded;

static co_addr door(const char *host)
{
    co_patience p = co_patience_s(5);
    co_addr a;
    int n;

    CHECK_OK(co_net_resolve(&a, 1, &n, host, 29400, &p));
    return a;
}

/* ---- the proxy ---- */
struct proxy {
    const ns_lan *lan;
    int listener;
};

/* Forwards one direction and records what goes to the roster; false: the connection has ended. */
static bool pass(int from, int to, bool keep)
{
    uint8_t buf[4096];
    ssize_t n = read(from, buf, sizeof buf);

    if (n < 0 && errno == EAGAIN)
        return true;
    if (n <= 0)
        return false;
    if (keep && recorded + (size_t)n <= RECORD) {
        memcpy(record + recorded, buf, (size_t)n);
        recorded += (size_t)n;
    }
    for (ssize_t done = 0; done < n;) {
        ssize_t w = write(to, buf + done, (size_t)(n - done));
        if (w < 0 && errno != EAGAIN)
            return false;
        done += w > 0 ? w : 0;
    }
    return true;
}

static void *forward(void *arg)
{
    struct proxy *x = arg;
    co_addr roster = door("10.77.0.1");
    co_patience p = co_patience_s(20);
    struct pollfd at = {.fd = x->listener, .events = POLLIN};
    int out = -1;

    ns_enter(x->lan, 2);
    poll(&at, 1, 20000);
    int in = accept4(x->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    CHECK(in >= 0, "nobody came to the proxy: %m");
    co_err err; /* the roster may not listen yet */
    while ((err = co_net_connect(&out, &roster, &p)) == CO_EPEER && co_now_ns() < p.until_ns)
        poll(NULL, 0, 20);
    CHECK_OK(err);
    for (bool open = true; open;) {
        struct pollfd both[2] = {{.fd = in, .events = POLLIN}, {.fd = out, .events = POLLIN}};
        poll(both, 2, -1);
        open = (!both[0].revents || pass(in, out, true)) && (!both[1].revents || pass(out, in, false));
    }
    close(in);
    close(out);
    return NULL;
}

/* ---- a run of two hosts ---- */
static pid_t start(const ns_lan *lan, int i, const char *roster, int work)
{
    char env[256], args[1500];

    snprintf(env, sizeof env, "TEST_WORKER=compute TEST_WORK=%d %s", work, token_env());
    snprintf(args, sizeof args,
             "--nnodes=2:3 --max-restarts=3 --rdzv-endpoint=%s:29400 --rdzv-conf=last_call_timeout=0.1"
             " --no-python %s",
             roster, worker_program());
    return launch(lan, i, env, args);
}

static void ends_well(const pid_t pid[2])
{
    for (int i = 0; i < 2; i++) {
        int status = test_wait(pid[i], 100), talk = 0;
        char *text = output(i);
        CHECK(status == 0 && strstr(text, " of 2: ") && !strstr(text, " of 3: "), "host %d: status %d: %s", i,
              status, text);
        CHECK(!strstr(text, "joins") && !strstr(text, "was lost"), "host %d: %s", i, text);
        for (const char *at = text; (at = strstr(at, "sent away")); at++)
            talk++;
        CHECK(talk <= 1 + (int)(100 / 15), "%d lines about strangers: %s", talk, text);
    }
    unlink("began");
}

/* ---- strangers ---- */
struct siege {
    const ns_lan *lan;
    int came, closed, heard; /* heard: bytes sent to them */
    double longest_s;        /* until one was closed */
    double took_s;           /* until all had come */
    atomic_bool over;
};

struct stranger {
    int fd, kind;
    size_t sent;
    double since;
};

static void comes(struct siege *s, struct stranger *o, int i, const co_addr *to, uint64_t *rng)
{
    co_patience p = co_patience_s(5);
    uint8_t noise[900];

    *o = (struct stranger){.fd = -1, .kind = i % KINDS, .since = co_now_s()};
    if (co_net_connect(&o->fd, to, &p))
        return; /* the job is over */
    s->came++;
    for (size_t k = 0; k < sizeof noise; k++)
        noise[k] = (uint8_t)test_u32(rng);
    if (o->kind == NOISE)
        send(o->fd, noise, sizeof noise, MSG_NOSIGNAL | MSG_DONTWAIT);
    else if (o->kind == REPLAY)
        send(o->fd, record, recorded, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Reads what was sent to a stranger; a slow stranger sends one more byte. */
static void goes_on(struct siege *s, struct stranger *o)
{
    uint8_t buf[4096];
    ssize_t n = recv(o->fd, buf, sizeof buf, MSG_DONTWAIT);

    if (n > 0)
        s->heard += (int)n;
    if (o->kind == SLOW && o->sent < recorded)
        o->sent += send(o->fd, record + o->sent, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    double took = co_now_s() - o->since;
    s->longest_s = took > s->longest_s ? took : s->longest_s;
    s->closed++;
    close(o->fd);
    o->fd = -1;
}

/* The job runs on one CPU and the strangers on another, as on separate hosts, so that the strangers' own
 * computing does not delay the job. With a single CPU they share it. */
static void stay_on(int which)
{
    cpu_set_t one;
    int n = 0;

    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all_cpus) && n++ == which)
            CPU_SET(cpu, &one);
    if (CPU_COUNT(&one) == 1)
        sched_setaffinity(0, sizeof one, &one);
}

static void *besiege(void *arg)
{
    static struct stranger all[STRANGERS];
    struct siege *s = arg;
    co_addr to = door("10.77.0.1");
    uint64_t rng = 9;
    double began = co_now_s();
    int n = 0;

    ns_enter(s->lan, 2);
    stay_on(1);
    for (double until = co_now_s() + 60;
         co_now_s() < until && s->closed < (n < STRANGERS ? STRANGERS : s->came);) {
        for (int k = 0; k < 8 && n < STRANGERS && !atomic_load(&s->over); k++, n++)
            comes(s, &all[n], n, &to, &rng);
        if (n == STRANGERS && s->took_s == 0)
            s->took_s = co_now_s() - began;
        for (int i = 0; i < n; i++)
            if (all[i].fd >= 0)
                goes_on(s, &all[i]);
        if (atomic_load(&s->over) && s->closed >= s->came)
            break;
        poll(NULL, 0, 1);
    }
    for (int i = 0; i < n; i++)
        if (all[i].fd >= 0)
            close(all[i].fd);
    return NULL;
}

static double run_once(const ns_lan *lan, int work, struct siege *s)
{
    double began = co_now_s();
    pid_t pid[2] = {start(lan, 0, "10.77.0.1", work), start(lan, 1, "10.77.0.1", work)};
    pthread_t thread;

    if (s) {
        *s = (struct siege){.lan = lan};
        test_until(is_file_there, "began", 30, "the workers to run");
        CHECK(co_thread_start(&thread, besiege, s) == 0, "no thread");
    }
    ends_well(pid);
    double took = co_now_s() - began;
    if (s) {
        atomic_store(&s->over, true);
        pthread_join(thread, NULL);
    }
    return took;
}

static void record_a_true_host(const ns_lan *lan)
{
    struct proxy x = {.lan = lan};
    pthread_t thread;

    ns_enter(lan, 2);
    CHECK_OK(co_net_listen(&x.listener, "10.77.0.3", 29400));
    ns_leave(lan);
    CHECK(co_thread_start(&thread, forward, &x) == 0, "no thread");
    pid_t pid[2] = {start(lan, 0, "10.77.0.1", 1), start(lan, 1, "10.77.0.3", 1)};
    ends_well(pid);
    pthread_join(thread, NULL);
    close(x.listener);
    CHECK(recorded > 500, "only %zu bytes were recorded", recorded);
}

/* Results of several runs: the shortest and longest time, and the least CPU time (launchers, guards and
 * workers). */
typedef struct times {
    double best, worst, cpu;
} times;

static void adds(times *t, double took, double cpu)
{
    t->best = t->best == 0 || took < t->best ? took : t->best;
    t->worst = took > t->worst ? took : t->worst;
    t->cpu = t->cpu == 0 || cpu < t->cpu ? cpu : t->cpu;
}

/* CPU seconds of all children that have ended. */
static double cpu_s(void)
{
    struct rusage u;

    getrusage(RUSAGE_CHILDREN, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* Runs the job alternately without and with strangers; at least `least` strangers must come while the job
 * runs. */
static void besieged(times *calm, times *hostile, int runs, int work, int least)
{
    ns_lan lan = ns_open(3);

    record_a_true_host(&lan);
    sched_getaffinity(0, sizeof all_cpus, &all_cpus);
    stay_on(0);
    for (int i = 0; i < runs; i++) {
        struct siege s;
        double c0 = cpu_s(), without = run_once(&lan, work, NULL), c1 = cpu_s(),
               with = run_once(&lan, work, &s);
        adds(calm, without, c1 - c0);
        adds(hostile, with, cpu_s() - c1);
        test_note(
            "%d came within %.1f s, %d were sent away, the longest after %.1f s; they were told %d bytes in "
            "all; a true host's %zu bytes were replayed; %.2f s, %.2f s without them",
            s.came, s.took_s, s.closed, s.longest_s, s.heard, recorded, with, without);
        CHECK(s.came >= least, "only %d of %d came while the job ran", s.came, STRANGERS);
        CHECK(s.closed == s.came, "%d of %d were not closed", s.came - s.closed, s.came);
    }
    test_note(
        "best of %d: %.2f s without strangers, %.2f s with %d of them: %+.1f %%; CPU time %.2f s and %.2f s: "
        "%+.1f %%",
        runs, calm->best, hostile->best, STRANGERS, 100 * (hostile->best / calm->best - 1), calm->cpu,
        hostile->cpu, 100 * (hostile->cpu / calm->cpu - 1));
}

TEST_LONG_WITHIN(two_thousand_strangers_neither_get_in_nor_hold_a_job_up, 120)
{
    times calm = {0}, hostile = {0};

    besieged(&calm, &hostile, 1, 1500, STRANGERS / 10); /* all of them on an idle machine */
    /* This limit finds a job that is held up, not one that a busy machine or a sanitizer slows down. The long
     * test has the limit of a twentieth. */
    CHECK(hostile.best < 3 * calm.best + 10, "%.2f s, %.2f s without strangers", hostile.best, calm.best);
}

/* Compares the time only on an idle machine. If the calm runs differ by more among themselves, only CPU time
 * is compared. */
TEST_LONG(two_thousand_strangers_cost_less_than_a_twentieth)
{
    times calm = {0}, hostile = {0};

    besieged(&calm, &hostile, 3, 6000, STRANGERS);
    CHECK(hostile.cpu < 1.05 * calm.cpu, "%.2f s of CPU time, %.2f s without strangers", hostile.cpu, calm.cpu);
    CHECK(hostile.best < 1.05 * calm.best || calm.worst > 1.05 * calm.best,
          "%.2f s, %.2f s without strangers", hostile.best, calm.best);
}
