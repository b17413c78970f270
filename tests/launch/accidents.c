/* accidents.c -- see accidents.h.
 *
 * On a busy machine a short stop may last so long that it counts as a loss; then the outcome cannot be
 * predicted.
 */
#include "accidents.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "worker.h"

enum { MOST_UP = 256 };
static const double lost_s = 2, short_s = 0.15;

/* A worker that runs. */
typedef struct up {
    int host, rank, world, restarts, pid;
} up;

void start_agent(stage *g, int host)
{
    char env[256], args[1500], out[32];

    snprintf(out, sizeof out, "out%d.%d", host, g->started++);
    snprintf(env, sizeof env, "TMPDIR=$PWD/tmp%d TEST_WORKER=wait TEST_HOST=%d TEST_SCHEDULE=%s %s", host,
             host, g->mark, token_env());
    snprintf(
        args, sizeof args,
        "--nnodes=%d:%d --nproc-per-node=%d --max-restarts=%d --grace=0.4 --rdzv-endpoint=10.77.0.1:29400 "
        "--rdzv-conf=lost_after=%g,last_call_timeout=0.2,join_timeout=10 --no-python %s",
        g->s.min, g->s.max, g->s.nproc, g->s.restarts, lost_s, worker_program());
    g->agent[host] = launch_to(g->lan, host, out, env, args);
}

/* ---- which workers run ---- */
static int all_up(up *out)
{
    DIR *d = opendir("up");
    int n = 0;

    CHECK(d, "no folder up");
    for (struct dirent *e; (e = readdir(d)) && n < MOST_UP;) {
        up *u = &out[n];
        if (sscanf(e->d_name, "%d.%d.%d.%d.%d", &u->host, &u->rank, &u->world, &u->restarts, &u->pid) == 5 &&
            kill(u->pid, 0) == 0)
            n++;
    }
    closedir(d);
    return n;
}

/* Do exactly the workers run that should? Those of host `but` are not checked (-1: all are). */
static bool is_as(const stage *g, const outlook *o, int but, char *says, size_t size)
{
    up u[MOST_UP];
    int n = all_up(u), world = outlook_hosts(o) * g->s.nproc, right = 0, wrong = 0;
    bool seen[HOSTS * 2] = {false};

    for (int i = 0; i < n; i++) {
        bool fits = u[i].host >= 0 && u[i].host < HOSTS && o->in[u[i].host] && u[i].world == world &&
                    u[i].restarts == o->restarts && u[i].rank >= 0 && u[i].rank < world;
        if (fits && !seen[u[i].rank])
            right += seen[u[i].rank] = true;
        else
            wrong += u[i].host != but;
    }
    snprintf(says, size, "%d of %d workers of restart %d run, and %d others", right, world, o->restarts, wrong);
    return right == world && wrong == 0;
}

void say_screens(void)
{
    test_run r = test_sh("for f in out*; do echo \"--- $f\"; cat $f; done");

    printf("%s\n", r.out);
    free(r.out);
}

/* ---- the expected outcome of a step ---- */
void ends_with(stage *g, int host, int want)
{
    int status = test_wait(g->agent[host], BOUND_S);

    HOLDS(g, status == want, "host %d: status %d, not %d", host, status, want);
    g->agent[host] = 0;
}

void settles(stage *g, const outlook *o, int but)
{
    double until = co_now_s() + BOUND_S;
    char says[128];

    for (int i = 0; i < HOSTS; i++)
        if (o->status[i] >= 0 && i != but && g->agent[i]) /* not judged yet */
            ends_with(g, i, o->status[i]);
    while (!o->over && !is_as(g, o, but, says, sizeof says)) {
        HOLDS(g, co_now_s() < until, "%s", says);
        for (int i = 0; i < HOSTS; i++)
            HOLDS(g, !o->in[i] || i == but || waitpid(g->agent[i], NULL, WNOHANG) == 0, "host %d ended; %s",
                  i, says);
        poll(NULL, 0, 5);
    }
}

/* ---- steps ---- */
/* A worker of the current round: on this host, or (with `other`) on any other. */
static pid_t worker_of(const stage *g, const outlook *o, int host, int local, bool other)
{
    up u[MOST_UP];
    int n = all_up(u);

    for (int i = 0; i < n; i++)
        if ((g->s.hasty || u[i].restarts == o->restarts) && (u[i].host == host) != other &&
            (other || u[i].rank % g->s.nproc == local))
            return u[i].pid;
    HOLDS(g, g->s.hasty, "no worker of host %d", host);
    return 0;
}

static bool is_stopped(void *pid)
{
    char path[64], text[256] = "";

    snprintf(path, sizeof path, "/proc/%d/stat", *(pid_t *)pid);
    FILE *f = fopen(path, "re");
    const char *at = f && fgets(text, sizeof text, f) ? strrchr(text, ')') : NULL;
    if (f)
        fclose(f);
    return at && (at[2] == 'T' || at[2] == 'Z');
}

/* Never signals process 0: in a hasty schedule the worker may not exist. */
static void signal_to(pid_t pid, int sig)
{
    if (pid > 0)
        kill(pid, sig);
}

static bool is_stopped_or_gone(void *pid)
{
    return kill(*(pid_t *)pid, 0) != 0 || is_stopped(pid);
}

/* Waits until it is really stopped: a later signal could otherwise take effect first. */
static void stop(pid_t pid)
{
    if (pid <= 0)
        return;
    kill(pid, SIGSTOP);
    test_until(is_stopped_or_gone, &pid, 20, "a process to stop");
}

/* Until the others have drawn their conclusions. */
static void concludes(stage *g, const outlook *o, int but)
{
    if (g->s.hasty)
        poll(NULL, 0, (int)(lost_s * 1.2e3));
    else
        settles(g, o, but);
}

static void signal_all_of(int host, int sig)
{
    up u[MOST_UP];

    for (int i = all_up(u); i-- > 0;)
        if (u[i].host == host)
            kill(u[i].pid, sig);
}

void lets_go(void)
{
    FILE *f = fopen("go", "we");

    CHECK(f && fclose(f) == 0, "%m");
    for (int i = 0; i < HOSTS; i++)
        signal_all_of(i, SIGCONT); /* a hasty step may have stopped one and then failed to continue it */
}

/* Does something for a short time; false: it took so long that it may count as a loss. */
static bool shortly(double began)
{
    poll(NULL, 0, (int)(short_s * 1e3));
    return co_now_s() - began < lost_s / 3;
}

bool happens(stage *g, const outlook *now, const outlook *next, const event *e)
{
    pid_t agent = g->agent[e->host], worker, stopped;
    double began = co_now_s();
    bool sure = true;

    switch (e->kind) {
    case EV_KILL_WORKER:
        signal_to(worker_of(g, now, e->host, e->local, false), SIGKILL);
        break;
    case EV_EXIT_WORKER:
        worker = worker_of(g, now, e->host, e->local, false);
        if (worker)
            sigqueue(worker, SIGUSR2, (union sigval){.sival_int = e->status});
        break;
    case EV_KILL_ALL:
        signal_all_of(e->host, SIGKILL);
        break;
    case EV_STOP_WORKER:
        worker = worker_of(g, now, e->host, e->local, false);
        stop(worker);
        shortly(began);
        signal_to(worker, SIGCONT);
        break;
    case EV_KILL_BESIDE_STOPPED:
        stopped = worker_of(g, now, e->host, 0, true);
        worker = worker_of(g, now, e->host, e->local, false);
        stop(stopped);
        signal_to(worker, SIGKILL);
        break;
    case EV_KILL_AGENT:
        g->killed = true;
        signal_to(agent, SIGKILL);
        break;
    case EV_TERM_STUCK:
        stop(worker_of(g, now, e->host, e->local, false));
        signal_to(agent, SIGTERM);
        break;
    case EV_TERM_AGENT:
        signal_to(agent, SIGTERM);
        break;
    case EV_FREEZE_SHORT:
        stop(agent);
        sure = shortly(began);
        signal_to(agent, SIGCONT);
        break;
    case EV_FREEZE_LONG:
        stop(agent);
        if (outlook_hosts(now) > 1) { /* until the others have drawn their conclusions */
            outlook others = *next;
            others.over = e->host == 0 || next->over;
            concludes(g, &others, e->host);
        }
        signal_to(agent, SIGCONT);
        break;
    case EV_CUT_SHORT:
        ns_cable(g->lan, e->host, false);
        sure = shortly(began);
        ns_cable(g->lan, e->host, true);
        sure = sure && co_now_s() - began < lost_s / 3;
        break;
    case EV_CUT_LONG:
        ns_cable(g->lan, e->host, false);
        concludes(g, next, -1);
        ns_cable(g->lan, e->host, true);
        break;
    case EV_JOIN:
        if (!agent)
            start_agent(g, e->host);
        break;
    case EVENT_COUNT:
        break;
    }
    return sure;
}
