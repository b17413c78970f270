/* `cohort train --detach` and `cohort attach`: a run without a terminal, and a run watched from another
 * terminal. */
#include "cli/runs.h"
#include "train/program.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG_RUN                                                                                             \
    SMALL " trainer.max_epochs=1000000 trainer.max_time=2m callbacks.model_checkpoint.every_n_steps=50"

/* Starts a run in the background; its pid. */
static int detach(const char *dir)
{
    json_t *v = NULL;
    test_run r = test_sh("$COHORT train " LONG_RUN " run.dir=%s --detach --json 2>said", dir);

    CHECK(r.status == 0, "exit status %d: %s", r.status, r.out);
    CHECK_OK(co_json_parse(&v, r.out, strlen(r.out), "--detach"));
    CHECK(strcmp(text_in(v, "dir"), dir) == 0, "%s", r.out);
    int pid = (int)number_in(v, "pid");
    json_decref(v);
    free(r.out);
    return pid;
}

struct text {
    const char *file, *words;
};

static bool has_said(void *arg)
{
    const struct text *t = arg;
    char *text = NULL;
    bool yes = co_fs_exists(t->file) && co_fs_read(&text, NULL, t->file, 1 << 24) == CO_OK &&
               test_contains(text, t->words);

    co_free(text);
    return yes;
}

TEST(a_detached_run_has_started_when_the_command_returns_and_outlives_its_session)
{
    test_own_runs();
    test_run r = test_sh("setsid -w sh -c '$COHORT train " LONG_RUN " run.dir=r --detach'; echo status $?");
    CHECK(test_contains(r.out, "\nr\nstatus 0\n") || test_contains(r.out, "status 0"), "%s", r.out);
    CHECK(test_contains(r.out, "global batch 64 = slice") && test_contains(r.out, "detached  pid ") &&
              test_contains(r.out, "cohort attach ") && test_contains(r.out, "cohort stop "),
          "%s", r.out);
    CHECK(co_fs_exists("r/lease.json") && co_fs_exists("r/train.log"), "nothing has started");
    free(r.out);
    r = test_sh(
        "cd r && pid=$(sed -n 's/.*\"pid\": *\\([0-9]*\\).*/\\1/p' lease.json); "
        "ps -o tty= -o sess= -o pid= -p $pid; readlink /proc/$pid/fd/0 /proc/$pid/fd/1 /proc/$pid/fd/2");
    char tty[16] = "";
    int session = 0, pid = -1;
    CHECK(sscanf(r.out, "%15s %d %d", tty, &session, &pid) == 3 && strcmp(tty, "?") == 0 && session == pid,
          "%s", r.out);
    CHECK(test_contains(r.out, "/dev/null\n/dev/null\n/dev/null\n"), "%s", r.out);
    free(r.out);
    kill(pid, SIGHUP); /* the terminal is closed */
    struct text more = {"r/train.log", "epoch 2/"};
    test_until(has_said, &more, 20, "a second epoch");
    r = test_sh("$COHORT stop r --wait");
    CHECK(r.status == 0 && process_gone(pid), "%s", r.out);
    free(r.out);
    r = test_sh("$COHORT attach r");
    CHECK(r.status == 75 && test_contains(r.out, "continue with: "), "exit status %d: %s", r.status, r.out);
    free(r.out);
}

TEST(what_is_wrong_with_a_detached_line_is_told_at_once_with_its_status)
{
    test_own_runs();
    test_run r = test_sh("$COHORT train trainer.slices=3 --detach; echo $?; ls");
    CHECK(test_contains(r.out, "power of two") && test_contains(r.out, "\n2\nruntime\n"), "%s", r.out);
    free(r.out);
    r = test_sh("$COHORT train -m seed=1,2 --detach; echo $?; ls");
    CHECK(test_contains(r.out, "--detach") && test_contains(r.out, "\n2\nruntime\n"), "%s", r.out);
    free(r.out);
    succeeds("$COHORT train " SMALL " trainer.max_steps=2 run.dir=r");
    r = test_sh("$COHORT train " SMALL " run.dir=r --detach");
    CHECK(r.status == 2 && test_contains(r.out, "holds a run already"), "%d %s", r.status, r.out);
    free(r.out);
    r = test_sh("$COHORT train " SMALL " trainer.max_steps=2 run.dir=r ckpt_path=auto --detach 2>err");
    CHECK(r.status == 0 && strcmp(r.out, "r\n") == 0, "%d %s", r.status, r.out);
    free(r.out);
}

TEST(attach_shows_the_run_leaves_it_alone_and_ends_with_it)
{
    test_own_runs();
    int pid = detach("r");
    pid_t look = test_spawn("seen", "exec $COHORT attach");
    struct text progress = {"seen", " samples/s"}, epoch = {"seen", " * Acc@1"};
    test_until(has_said, &progress, 20, "progress");
    test_until(has_said, &epoch, 20, "an epoch");
    kill(look, SIGINT);
    CHECK(test_wait(look, 10) == 0, "Ctrl-C does not detach");
    struct text left = {"seen", "the run goes on"};
    CHECK(has_said(&left) && kill(pid, 0) == 0, "the run is gone");
    look = test_spawn("again", "exec $COHORT attach %d", pid);
    epoch.file = "again"; /* the first screen may be too many lines ago */
    test_until(has_said, &epoch, 20, "an epoch, again");
    kill(pid, SIGTERM);
    CHECK(test_wait(look, 20) == 75, "not the run's status");
    struct text end = {"again", "continue with: "};
    CHECK(has_said(&end), "the end was not shown");
    CHECK(!co_fs_exists("r/lease.json"), "it has not ended");
}

TEST(attach_without_a_word_needs_one_run_and_a_wrong_word_lists_them)
{
    test_own_runs();
    test_run r = test_sh("$COHORT attach");
    CHECK(r.status == 2 && test_contains(r.out, "no runs on this machine"), "%d %s", r.status, r.out);
    free(r.out);
    detach("a");
    detach("b");
    r = test_sh("$COHORT attach");
    CHECK(r.status == 2 && test_contains(r.out, "there are 2 runs") && test_contains(r.out, "/a\n") &&
              test_contains(r.out, "/b\n"),
          "%d %s", r.status, r.out);
    free(r.out);
    r = test_sh("$COHORT attach nowhere; $COHORT stop --all --wait >/dev/null");
    CHECK(test_contains(r.out, "no run is \"nowhere\""), "%s", r.out);
    free(r.out);
}

TEST(a_run_that_was_killed_is_told_so_with_how_to_go_on)
{
    test_own_runs();
    int pid = detach("r");
    pid_t look = test_spawn("seen", "exec $COHORT attach %d", pid);
    struct text first = {"seen", "global batch 64 = slice"}, killed = {"seen", "it was killed"};
    test_until(has_said, &first, 20, "the first screen");
    kill(pid, SIGKILL);
    CHECK(test_wait(look, 20) == 1 && has_said(&killed), "not told");
    test_run r = test_sh("ls runtime/cohort; $COHORT ps; ls runtime/cohort | wc -l");
    CHECK(test_contains(r.out, "no runs") && test_contains(r.out, "\n0\n"), "%s", r.out);
    free(r.out);
}
