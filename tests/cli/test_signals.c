/* A run that is asked to stop saves, exits with 75 and says how to continue; no other run may write to its
 * folder meanwhile. */
#include "cli/runs.h"

#include <signal.h>
#include <unistd.h>

#define LONG_RUN                                                                                             \
    SMALL " trainer.max_epochs=1000000 trainer.max_time=2m callbacks.model_checkpoint.every_n_steps=50"

static pid_t start_run(const char *dir)
{
    char last[128];
    pid_t pid = test_spawn("log", "exec $COHORT train " LONG_RUN " run.dir=%s", dir);

    snprintf(last, sizeof last, "%s/checkpoints/last", dir);
    test_until(is_there, last, 20, "a first checkpoint");
    return pid;
}

static char *log_text(void)
{
    char *text;
    size_t len;

    CHECK_OK(co_fs_read(&text, &len, "log", 1 << 24));
    return text;
}

/* Runs the line that the program printed, up to five more steps. */
static void continue_as_told(const char *log, const char *dir)
{
    const char *line = strstr(log, "continue with: ");
    json_t *v = json_of("%s/summary.json", dir);
    long long steps = number_in(v, "steps");

    CHECK(line, "no line to continue with:\n%s", log);
    line += strlen("continue with: ");
    CHECK(strcmp(text_in(v, "status"), "stopped") == 0, "%s", text_in(v, "status"));
    json_decref(v);
    test_run r = test_sh("%.*s trainer.max_steps=%lld", (int)strcspn(line, "\n"), line, steps + 5);
    CHECK(r.status == 0, "exit status %d\n%s", r.status, r.out);
    v = json_of("%s/summary.json", dir);
    CHECK(number_in(v, "steps") == steps + 5, "%lld steps after %lld", number_in(v, "steps"), steps);
    json_decref(v);
    free(r.out);
}

static void stops_on(int sig)
{
    pid_t pid = start_run("r");

    kill(pid, sig);
    int status = test_wait(pid, 20);
    char *log = log_text();
    CHECK(status == 75, "%s: exit status %d\n%s", strsignal(sig), status, log);
    continue_as_told(log, "r");
    co_free(log);
}

TEST(sigterm_saves_and_exits_with_75_and_the_line_to_continue_with)
{
    stops_on(SIGTERM);
}
TEST(sigint_saves_and_exits_with_75_and_the_line_to_continue_with)
{
    stops_on(SIGINT);
}
TEST(sigusr1_saves_and_exits_with_75_and_the_line_to_continue_with)
{
    stops_on(SIGUSR1);
}

/* The lease is the first file there: the signal comes before the first step, mostly before there are
 * ranks. */
TEST(a_signal_before_the_first_step_is_answered_too)
{
    for (int i = 0; i < 5; i++) {
        char dir[16], lease[32];
        snprintf(dir, sizeof dir, "r%d", i);
        snprintf(lease, sizeof lease, "%s/lease.json", dir);
        pid_t pid = test_spawn("log", "exec $COHORT train " LONG_RUN " run.dir=%s", dir);
        test_until(is_there, lease, 20, "the lease");
        kill(pid, SIGTERM);
        int status = test_wait(pid, 20);
        char *log = log_text();
        CHECK(status == 75, "exit status %d\n%s", status, log);
        continue_as_told(log, dir);
        co_free(log);
    }
}

struct link_is_not {
    const char *path;
    char old[128];
};

static bool moved(void *ctx)
{
    struct link_is_not *l = ctx;
    char now[128];
    ssize_t n = readlink(l->path, now, sizeof now - 1);

    now[n < 0 ? 0 : n] = '\0';
    return n > 0 && strcmp(now, l->old) != 0;
}

TEST(sighup_ends_nothing)
{
    pid_t pid = start_run("r");
    struct link_is_not last = {.path = "r/checkpoints/last"};

    for (int i = 0; i < 2; i++) {
        kill(pid, SIGHUP);
        CHECK(readlink(last.path, last.old, sizeof last.old - 1) > 0, "no link");
        test_until(moved, &last, 20, "a newer checkpoint after SIGHUP");
    }
    kill(pid, SIGTERM);
    CHECK(test_wait(pid, 20) == 75, "it did not stop as asked");
}

TEST(a_run_folder_in_use_is_refused_within_a_second_naming_its_user)
{
    pid_t pid = start_run("r");
    char who[32];
    test_run r = test_sh("exec $COHORT train " SMALL " run.dir=r");

    snprintf(who, sizeof who, "in use by pid %d", (int)pid);
    CHECK(r.status == 2 && r.secs < 1, "exit status %d after %g s", r.status, r.secs);
    CHECK(test_contains(r.out, who) && test_contains(r.out, "run.dir"), "%s", r.out);
    free(r.out);
    r = test_sh("exec $COHORT train " LONG_RUN " run.dir=r ckpt_path=auto");
    CHECK(r.status == 2 && test_contains(r.out, who), "exit status %d\n%s", r.status, r.out);
    free(r.out);
    kill(pid, SIGTERM);
    CHECK(test_wait(pid, 20) == 75, "it was disturbed");
}
