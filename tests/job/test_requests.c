/* What the roster says about a request to end is in the event's fields; its text is for people and may be
 * anything. */
#include "harness.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/job.h"
#include "roster/roster_int.h"

/* A roster with a round of one worker; when the worker is ready, the round ends with the test's event. */
typedef struct scripted {
    co_roster base;
    bool begun, over;
    co_roster_event ending;
} scripted;

static co_err turn(co_roster *r, int timeout_ms, co_roster_event *ev)
{
    scripted *s = (scripted *)r;
    co_round round = {.number = 1, .world = 1, .hosts = 1, .master_addr = "localhost", .master_port = 1};

    (void)timeout_ms;
    *ev = (co_roster_event){.kind = s->begun ? CO_ROSTER_NOTHING : CO_ROSTER_BEGIN, .round = round};
    if (s->begun && !s->over && access("ready", F_OK) == 0) {
        *ev = s->ending;
        s->over = true;
    }
    s->begun = true;
    return CO_OK;
}

static const struct roster_ops ops = {.turn = turn};

/* The output of a job that the roster ends with this event. */
static void run(char *out, size_t size, co_roster_event ending)
{
    const char *argv[] = {"sh", "-c",
                          "for s in TERM USR1 USR2; do trap \"echo got $s; exit 0\" $s; done; : > ready; "
                          "while :; do echo; sleep 0.02; done",
                          NULL};
    scripted s = {.base.ops = &ops, .ending = ending};
    int status = -1, fd = open("out", O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0644);
    co_job_spec spec = {.terms = {.run_id = "t", .nproc = 1, .min_hosts = 1, .max_hosts = 1},
                        .file = "/bin/sh",
                        .argv = argv,
                        .host = "here",
                        .signal_names = "SIGTERM",
                        .grace_s = 20,
                        .out_fd = fd,
                        .err_fd = fd};

    unlink("ready");
    s.ending.kind = CO_ROSTER_OVER;
    s.ending.status = CO_EXIT_PREEMPTED;
    sigemptyset(&spec.signals);
    setenv("TMPDIR", ".", 1);
    CHECK_OK(co_job_run(&spec, &s.base, &status));
    ssize_t n = pread(fd, out, size - 1, 0);
    out[n > 0 ? n : 0] = '\0';
    close(fd);
    CHECK(status == CO_EXIT_PREEMPTED, "status %d: %s", status, out);
}

TEST(workers_get_the_signal_in_the_field_of_an_event_whatever_its_text_says)
{
    static const char *const texts[] = {"", "host b was asked to end: SIGUSR1 on b", "SIGUSR2 on b",
                                        "SIGKILL on b, or SIGTERM on c", "\xff SIG on %s%n"};
    static const struct {
        int sig;
        const char *got;
    } cases[] = {{SIGUSR1, "got USR1"}, {0, "got TERM"}};
    char out[8192];

    for (size_t k = 0; k < CO_COUNT(cases); k++)
        for (size_t i = 0; i < CO_COUNT(texts); i++) {
            co_roster_event ev = {.sig = cases[k].sig, .origin = CO_ORIGIN_SCHEDULER, .host = "b"};
            snprintf(ev.text, sizeof ev.text, "%s", texts[i]);
            run(out, sizeof out, ev);
            CHECK(strstr(out, cases[k].got), "\"%s\", signal %d: %s", texts[i], cases[k].sig, out);
        }
}

TEST(a_request_of_the_conductor_is_not_repeated_by_its_hosts_whatever_its_text_says)
{
    static const char text[] = "SIGTERM on the command that started the job";
    co_roster_event ev = {.sig = SIGTERM, .origin = CO_ORIGIN_CONDUCTOR, .host = "b"};
    char out[8192];

    snprintf(ev.text, sizeof ev.text, "somebody reworded this");
    run(out, sizeof out, ev);
    CHECK(!strstr(out, "reworded"), "said on a host: %s", out);
    ev.origin = CO_ORIGIN_USER;
    snprintf(ev.text, sizeof ev.text, "%s", text);
    run(out, sizeof out, ev);
    CHECK(strstr(out, text), "a user's request was not said: %s", out);
}

/* A worker that ends on SIGTERM. */
typedef struct obliging {
    co_roster base;
    bool begun;
    co_leave how;
} obliging;

static co_err obliging_turn(co_roster *r, int timeout_ms, co_roster_event *ev)
{
    obliging *o = (obliging *)r;
    co_round round = {.number = 1, .world = 1, .hosts = 1, .master_addr = "localhost", .master_port = 1};

    (void)timeout_ms;
    *ev = (co_roster_event){.kind = o->begun ? CO_ROSTER_NOTHING : CO_ROSTER_BEGIN, .round = round};
    if (o->how.sig)
        *ev = leave_event(&o->how);
    o->begun = true;
    return CO_OK;
}

static void obliging_leave(co_roster *r, const co_leave *how)
{
    ((obliging *)r)->how = *how;
}

TEST(a_line_of_the_conductor_that_is_too_long_is_ignored_and_the_next_is_heard)
{
    static const struct roster_ops obeys = {.turn = obliging_turn, .leave = obliging_leave};
    const char *argv[] = {"sh", "-c", "while :; do sleep 0.02; done", NULL};
    obliging o = {.base.ops = &obeys};
    int ends[2], status = -1;
    char line[500];

    CHECK(pipe(ends) == 0, "pipe: %m");
    memset(line, 'x', sizeof line);
    memcpy(line + sizeof line - 6, "\nTERM\n", 6);
    CHECK(write(ends[1], line, sizeof line) == (ssize_t)sizeof line, "write: %m");
    co_job_spec spec = {.terms = {.run_id = "t", .nproc = 1, .min_hosts = 1, .max_hosts = 1},
                        .file = "/bin/sh",
                        .argv = argv,
                        .host = "here",
                        .signal_names = "SIGTERM",
                        .control_fd = ends[0],
                        .grace_s = 20,
                        .out_fd = STDOUT_FILENO,
                        .err_fd = STDOUT_FILENO};
    sigemptyset(&spec.signals);
    sigaddset(&spec.signals, SIGTERM);
    setenv("TMPDIR", ".", 1);
    CHECK_OK(co_job_run(&spec, &o.base, &status));
    CHECK(o.how.sig == SIGTERM && o.how.origin == CO_ORIGIN_CONDUCTOR && status == CO_EXIT_PREEMPTED,
          "signal %d of origin %d, status %d", o.how.sig, o.how.origin, status);
}
