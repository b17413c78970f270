/* A job with a fake roster that sends events when the test wants them. */
#include "harness.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/job.h"
#include "roster/roster_int.h"

/* The first round begins and stops before the job reads its events. The second round is run; then the job is
 * over. */
typedef struct hasty {
    co_roster base;
    int said;
    bool stopped, done;
} hasty;

static co_err turn(co_roster *r, int timeout_ms, co_roster_event *ev)
{
    hasty *h = (hasty *)r;
    co_round round = {.hosts = 1, .master_addr = "localhost", .master_port = 1};

    (void)timeout_ms;
    *ev = (co_roster_event){.kind = CO_ROSTER_NOTHING};
    if (h->said == 0 || (h->said == 2 && h->stopped)) {
        round.number = round.world = h->said == 0 ? 1 : 2;
        *ev = (co_roster_event){.kind = CO_ROSTER_BEGIN, .round = round};
    } else if (h->said == 1) {
        *ev = (co_roster_event){.kind = CO_ROSTER_STOP};
    } else if (h->said == 3 && h->done) {
        *ev = (co_roster_event){.kind = CO_ROSTER_OVER};
    }
    h->said += ev->kind != CO_ROSTER_NOTHING;
    return CO_OK;
}

static void stopped(co_roster *r)
{
    ((hasty *)r)->stopped = true;
}

static void done(co_roster *r)
{
    ((hasty *)r)->done = true;
}

/* A roster that never answers a host that leaves. When the worker is gone, a second signal ends the wait. */
typedef struct deaf {
    co_roster base;
    bool begun, left;
} deaf;

/* Are there guards, that is, children other than the anchor? */
static bool has_guards(void)
{
    char text[64];
    int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC), children = 0;
    ssize_t n = read(fd, text, sizeof text);

    close(fd);
    for (ssize_t i = 0; i < n; i++)
        children += text[i] == ' ';
    return children > 1;
}

static co_err deaf_turn(co_roster *r, int timeout_ms, co_roster_event *ev)
{
    deaf *d = (deaf *)r;
    co_round round = {.number = 1, .world = 1, .hosts = 1, .master_addr = "localhost", .master_port = 1};

    (void)timeout_ms;
    *ev = (co_roster_event){.kind = d->begun ? CO_ROSTER_NOTHING : CO_ROSTER_BEGIN, .round = round};
    if (d->left && !has_guards())
        kill(getpid(), SIGTERM);
    d->begun = true;
    return CO_OK;
}

static void deaf_leave(co_roster *r, const co_leave *how)
{
    (void)how;
    ((deaf *)r)->left = true;
}

static int run(co_roster *r, const char *text, int fd)
{
    const char *argv[] = {"sh", "-c", text, NULL};
    int status = -1;
    co_job_spec spec = {.terms = {.run_id = "t", .nproc = 1, .min_hosts = 1, .max_hosts = 1},
                        .file = "/bin/sh",
                        .argv = argv,
                        .host = "here",
                        .signal_names = "SIGTERM",
                        .grace_s = 5,
                        .out_fd = fd,
                        .err_fd = fd};

    sigemptyset(&spec.signals);
    sigaddset(&spec.signals, SIGTERM);
    setenv("TMPDIR", ".", 1);
    CHECK_OK(co_job_run(&spec, r, &status));
    return status;
}

TEST(a_job_that_was_asked_to_end_is_preempted_also_when_the_roster_does_not_answer)
{
    static const struct roster_ops ops = {.turn = deaf_turn, .leave = deaf_leave};
    deaf d = {.base.ops = &ops};
    char line[100];

    snprintf(line, sizeof line, "trap 'exit 1' TERM; kill %d; while :; do sleep 0.05; done", (int)getpid());
    int status = run(&d.base, line, STDOUT_FILENO);
    CHECK(d.left && status == CO_EXIT_PREEMPTED, "status %d", status);
}

TEST(a_round_that_is_stopped_before_it_was_begun_is_not_begun)
{
    static const struct roster_ops ops = {.turn = turn, .done = done, .stopped = stopped};
    hasty h = {.base.ops = &ops};
    int fd = open("out", O_RDWR | O_CREAT | O_APPEND, 0644);
    char text[256] = "";

    int status = run(&h.base, "echo world $WORLD_SIZE", fd);
    CHECK(pread(fd, text, sizeof text - 1, 0) > 0, "nothing was printed");
    CHECK(status == 0 && strstr(text, "world 2") && !strstr(text, "world 1"), "%d: %s", status, text);
    close(fd);
}
