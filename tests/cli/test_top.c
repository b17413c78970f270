/* `cohort top` as a user types it: on a terminal, once as text and as JSON, of a live run and of one that
 * has ended. */
#include "cli/runs.h"
#include "launch/pty.h"

#include <sys/ioctl.h>
#include <sys/stat.h>

#define RUN SMALL " trainer.devices=2 trainer.max_epochs=1000000 trainer.max_time=1m run.dir=r"

static json_t *top_json(const char *what)
{
    json_t *v = NULL;
    test_run r = test_sh("$COHORT top --once --json %s", what);

    CHECK(r.status == 0, "%d: %s", r.status, r.out);
    CHECK_OK(co_json_parse(&v, r.out, strlen(r.out), "top"));
    free(r.out);
    return v;
}

static const json_t *ranks_of(const json_t *all)
{
    const json_t *run = json_array_get(json_object_get(all, "runs"), 0);

    return json_object_get(json_array_get(json_object_get(run, "hosts"), 0), "ranks");
}

static bool has_ranks(void *unused)
{
    (void)unused;
    json_t *all = top_json("r");
    const json_t *share =
        json_object_get(json_object_get(json_array_get(ranks_of(all), 1), "figures"), "compute_percent");
    bool there = share != NULL;

    json_decref(all);
    return there;
}

static void resize(const pty *p, int rows, int cols)
{
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};

    CHECK(ioctl(p->fd, TIOCSWINSZ, &size) == 0, "TIOCSWINSZ");
}

TEST(top_shows_a_run_while_it_goes_on_stops_it_after_a_yes_and_shows_how_it_ended)
{
    static pty p;

    test_own_runs();
    succeeds("$COHORT train " RUN " --detach");
    test_until(has_ranks, NULL, 20, "figures of both ranks");
    test_run r = test_sh("$COHORT top --once");
    CHECK(r.status == 0 && test_contains(r.out, "1 run") && test_contains(r.out, "samples/s") &&
              test_contains(r.out, "compute exchange"),
          "%s", r.out);
    free(r.out);
    pty_open(&p, "TERM=xterm LC_ALL=C.UTF-8 exec $COHORT top --every 0.2");
    resize(&p, 24, 80);
    pty_expect(&p, "doing"); /* the only run is open at once */
    pty_type(&p, "h");
    pty_expect(&p, "any key: back");
    pty_type(&p, "x\033"); /* and to the list of runs, below which the run is shown */
    resize(&p, 50, 200);
    pty_expect(&p, "write MB/s"); /* a column for wide terminals */
    pty_type(&p, "k");
    pty_expect(&p, "y: yes");
    pty_type(&p, "n");
    pty_type(&p, "ky");
    pty_expect(&p, "asked");
    pty_expect(&p, "stopped"); /* a run that has ended stays in the list */
    pty_type(&p, "q");
    CHECK(pty_end(&p) == 0 && test_contains(p.seen, "\033[?1049l"), "the terminal is put back");
    json_t *all = top_json("r");
    const json_t *run = json_array_get(json_object_get(all, "runs"), 0);
    CHECK(strcmp(text_in(run, "state"), "stopped") == 0 && strcmp(text_in(run, "task"), "train") == 0 &&
              number_in(run, "step") > 0 && json_array_size(ranks_of(all)) == 2 &&
              json_is_null(json_object_get(run, "pid")),
          "as its folder has it");
    json_decref(all);
}

TEST(top_refuses_what_it_cannot_do_and_says_what_to_type)
{
    static const struct {
        const char *line, *words;
    } cases[] = {{"$COHORT top </dev/null", "cohort top --once"},
                 {"$COHORT top --json", "add --once"},
                 {"$COHORT top --once --every 0", "0.1 to 3600"},
                 {"$COHORT top --once --every x", "0.1 to 3600"},
                 {"$COHORT top --once a b", "one run"},
                 {"$COHORT top --once 999999", "no live run has pid 999999"},
                 {"$COHORT top --once nowhere", "nowhere does not exist"},
                 {"$COHORT top --once .", "is no run folder"},
                 {"$COHORT top --onec", "did you mean --once"}};
    static const char *const terms[] = {"dumb", "no-such-terminal"};

    test_own_runs();
    for (size_t i = 0; i < CO_COUNT(cases); i++) {
        test_run r = test_sh("%s", cases[i].line);
        CHECK(r.status == 2 && test_contains(r.out, cases[i].words), "%s: %d %s", cases[i].line, r.status,
              r.out);
        free(r.out);
    }
    for (size_t i = 0; i < CO_COUNT(terms); i++) {
        static pty p;
        char line[128];
        snprintf(line, sizeof line, "TERM=%s exec $COHORT top", terms[i]);
        pty_open(&p, line);
        CHECK(pty_end(&p) == 2 && test_contains(p.seen, "cohort top --once"), "%s", p.seen);
    }
    test_run r = test_sh("$COHORT top --once; $COHORT top --once --json");
    CHECK(r.status == 0 && test_contains(r.out, "no runs on this machine") &&
              test_contains(r.out, "\"runs\":[]"),
          "%s", r.out);
    free(r.out);
}

TEST_LONG(without_an_interval_the_record_has_no_figures_of_machines_and_top_has_them_still)
{
    test_own_runs();
    succeeds("$COHORT train " RUN " trainer.system_every=0 --detach");
    test_until(has_ranks, NULL, 20, "figures of both ranks");
    succeeds("$COHORT stop r --wait");
    test_run r = test_sh("grep -c system/ r/events.jsonl");
    CHECK(strcmp(r.out, "0\n") == 0, "%s figures in the record", r.out);
    free(r.out);
    json_t *v = json_of("%s/summary.json", "r");
    CHECK(json_object_size(json_object_get(v, "system")) > 5, "the summary has their means");
    json_decref(v);
}

static bool has_stalled(void *unused)
{
    (void)unused;
    json_t *all = top_json("r");
    const char *state = text_in(json_array_get(json_object_get(all, "runs"), 0), "state");
    bool stalled = strcmp(state, "stalled") == 0;

    json_decref(all);
    return stalled;
}

TEST_LONG(a_rank_that_hangs_is_marked_before_it_is_replaced)
{
    test_own_runs();
    succeeds("$COHORT train " RUN " trainer.stall_s=30 --detach");
    test_until(has_ranks, NULL, 20, "figures of both ranks");
    json_t *all = top_json("r");
    pid_t rank = (pid_t)number_in(json_array_get(ranks_of(all), 1), "pid");
    json_decref(all);
    CHECK(kill(rank, SIGSTOP) == 0, "stop");
    test_until(has_stalled, NULL, 20, "the run has stalled");
    test_run r = test_sh("$COHORT top --once r");
    CHECK(test_contains(r.out, "s without progress"), "%s", r.out);
    free(r.out);
    CHECK(kill(rank, SIGCONT) == 0, "go on");
    succeeds("$COHORT stop r --wait");
}
