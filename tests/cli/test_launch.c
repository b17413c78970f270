/* cohort launch on one host: the workers' environment, their output, how they end, and that nothing is
 * left. */
#include "cli/runs.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/net.h"

#define LAUNCH "$COHORT launch --nproc-per-node=2 "

/* An executable shell script in the test's folder. */
static void script(const char *name, const char *text)
{
    test_run r = test_sh("printf '#!/bin/sh\\n' > %s && cat >> %s <<'EOF' && chmod +x %s\n%s\nEOF\n", name,
                         name, name, text);

    CHECK(r.status == 0, "%s", r.out);
    free(r.out);
}

/* Runs a command line and checks its output and exit status. */
static void gives(int status, const char *words, const char *line)
{
    test_run r = test_sh("export OMP_NUM_THREADS=1 TMPDIR=$PWD; %s", line);

    CHECK(r.status == status, "%s: exit status %d, not %d\n%s", line, r.status, status, r.out);
    CHECK(strstr(r.out, words), "%s: no \"%s\" in\n%s", line, words, r.out);
    free(r.out);
}

static int count_of(const char *fmt, const char *what)
{
    test_run r = test_sh(fmt, what);
    int n = atoi(r.out);

    free(r.out);
    return n;
}

static bool line_is(const char *text, const char *name, const char *value)
{
    char want[512];

    snprintf(want, sizeof want, "\n%s=%s\n", name, value);
    return strstr(text, want) != NULL;
}

TEST(a_worker_finds_every_name_that_torchrun_sets)
{
    static const char *const fields[][2] = {
        {"RANK", "1"},
        {"LOCAL_RANK", "1"},
        {"WORLD_SIZE", "3"},
        {"LOCAL_WORLD_SIZE", "3"},
        {"GROUP_RANK", "0"},
        {"GROUP_WORLD_SIZE", "1"},
        {"ROLE_RANK", "1"},
        {"ROLE_WORLD_SIZE", "3"},
        {"ROLE_NAME", "trainer"},
        {"MASTER_ADDR", "localhost"},
        {"TORCHELASTIC_RESTART_COUNT", "0"},
        {"TORCHELASTIC_MAX_RESTARTS", "2"},
        {"TORCHELASTIC_USE_AGENT_STORE", "False"},
        {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT"},
        {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
        {"OMP_NUM_THREADS", "1"},
        {"KEPT", "as it was"}};
    char token[CO_TOKEN_TEXT];
    co_token t;

    CHECK_OK(co_token_make(&t));
    co_token_text(token, &t);
    test_run r =
        test_sh("unset OMP_NUM_THREADS; export KEPT='as it was' RANK=77 COHORT_TOKEN=%s TMPDIR=$PWD; $COHORT "
                "launch --standalone --nproc_per_node 3 --role=trainer --max_restarts=2 "
                "--local-ranks-filter=1 --log-prefix=none --no-python env",
                token);

    CHECK(r.status == 0, "%d\n%s", r.status, r.out);
    for (size_t i = 0; i < CO_COUNT(fields); i++)
        CHECK(line_is(r.out, fields[i][0], fields[i][1]), "%s is not %s in\n%s", fields[i][0], fields[i][1],
              r.out);
    CHECK(strstr(r.out, "OMP_NUM_THREADS=1 for each worker"), "no word about OMP_NUM_THREADS");
    CHECK(!strstr(r.out, token), "the token is in a worker's environment");
    const char *port = strstr(r.out, "\nMASTER_PORT="), *id = strstr(r.out, "\nTORCHELASTIC_RUN_ID=");
    CHECK(port && atoi(port + 13) > 1023, "no MASTER_PORT");
    CHECK(id && strcspn(id + 1, "\n") == strlen("TORCHELASTIC_RUN_ID=") + 36, "the run's id is no uuid");
    CHECK(strstr(r.out, "/attempt_0/1/error.json\n"), "no TORCHELASTIC_ERROR_FILE");
    CHECK(count_of("ls | wc -l%s", "") == 0, "something was left behind");
    free(r.out);
}

TEST(equal_lines_of_all_ranks_are_one_and_others_say_whose_they_are)
{
    script("p", "echo same; echo \"own $RANK\"; printf 'bar 1\\rbar 2\\rdone\\n'; printf 'no newline'");
    test_run r = {.out = NULL};
    /* Lines that come much later than the first stand alone: on a busy machine it may take a few tries. */
    for (int i = 0; i < 10 && (!r.out || !strstr(r.out, "[0-3] x4 same\n")); i++) {
        free(r.out);
        r = test_sh("$COHORT launch --nproc-per-node=4 p 2>/dev/null");
    }
    CHECK(strstr(r.out, "[0-3] x4 same\n") && strstr(r.out, "[2] own 2\n"), "%s", r.out);
    CHECK(strstr(r.out, " done\n") && !strstr(r.out, "bar 1"), "%s", r.out);
    CHECK(strstr(r.out, "no newline\n"), "%s", r.out);
    free(r.out);
    gives(0, "same\nown 0\nbar 1\rbar 2\rdone\nno newline", "$COHORT launch p"); /* one worker: as it is */
    gives(0, "[0] same", "$COHORT launch --log-prefix=rank p");
}

TEST(redirects_and_tee_make_torchruns_files)
{
    script("p", "echo out $RANK; echo err $RANK >&2");
    gives(0, "[default1]:out 1",
          LAUNCH "--log-dir=logs --rdzv-id=job/7 -r 0:3 -t 1:1 p > seen 2>&1; s=$?; cat seen; grep -q 'out "
                 "0' seen && s=9; "
                 "exit $s");
    gives(0, "out 0", "cat logs/job_7_*/attempt_0/0/stdout.log");
    gives(0, "err 0", "cat logs/job_7_*/attempt_0/0/stderr.log");
    gives(0, "out 1", "cat logs/job_7_*/attempt_0/1/stdout.log");
    gives(0, ":1] err 1", "cat logs/job_7_*/merged.log");
    gives(0, "r1.h:out 1",
          "$COHORT launch --nproc-per-node=2 --tee=3 --log-line-prefix-template='r${local_rank}.h:' "
          "--log-dir=l2 p");
}

TEST(what_a_worker_wrote_is_in_its_file_byte_for_byte)
{
    script("p", "head -c 70000 /dev/zero | tr '\\0' a; printf 'bar 1\\rbar 2\\r\\nno newline'");
    succeeds("./p > want; $COHORT launch --log-dir=logs --redirects=1 p && cmp want "
             "logs/*/attempt_0/0/stdout.log");
    succeeds("$COHORT launch --log-dir=l2 --tee=1 p > seen && cmp want l2/*/attempt_0/0/stdout.log");
}

TEST(an_executable_runs_by_the_python_of_its_first_line)
{
    if (test_sh("python3 -c 'print(1)'").status)
        test_skip("no python3");
    test_may_leak();
    succeeds("printf '#!/bin/sh\\nVENV=1 exec python3 \"$@\"\\n' > python; chmod +x python; "
             "printf '#!%s/python\\nimport os\\nprint(\"venv\", os.environ.get(\"VENV\"))\\n' $PWD > tool; "
             "chmod +x tool");
    gives(0, "venv 1", "$COHORT launch tool");
    gives(0, "venv None", "PYTHON_EXEC=python3 $COHORT launch tool"); /* which was asked for */
}

TEST(a_script_that_cannot_be_started_is_said_with_what_is_wrong_in_it)
{
    succeeds("printf '#!/bin/sh\\r\\ntrue\\n' > crlf; printf '#!/no/such/sh -e\\n' > lost; printf 'true\\n' "
             "> bare; chmod +x "
             "crlf lost bare");
    gives(127, "its first line ends with a carriage return", LAUNCH "crlf");
    gives(127, "its first line names /no/such/sh, which is not there", LAUNCH "lost");
    gives(127, "a script needs #!", LAUNCH "bare");
}

TEST(lines_of_two_hosts_stay_whole_under_load)
{
    script("p", "awk -v r=$RANK 'BEGIN { s = sprintf(\"%0200d\", r); for (i = 0; i < 20000; i++) print s }'");
    test_run r = test_sh("$COHORT launch --hosts localhost,localhost p > seen");
    CHECK(r.status == 0 && r.secs < 10, "status %d after %.1f s: a reader that keeps up is not waited for",
          r.status, r.secs);
    free(r.out);
    gives(0, "40000 0", "echo $(wc -l < seen) $(grep -vcE '^\\[localhost:[01]\\] [01]{200}$' seen)");
}

TEST(the_exit_status_is_that_of_the_first_failure)
{
    script("three", "[ $RANK = 1 ] && exit 3; sleep 60");
    script("segv", "[ $RANK = 0 ] && kill -SEGV $$; sleep 60");
    gives(3, "(local rank 1, pid", LAUNCH "three");
    gives(139, "killed by SIGSEGV (11)", LAUNCH "--log-dir=l segv");
    gives(0, "\"signal\": 11", "cat l/*/blame.json");
    gives(0, "\"rank\": 0", "cat l/*/blame.json");
    gives(2, "no program nowhere.py", LAUNCH "nowhere.py");
}

TEST(the_paragraph_has_the_last_twenty_lines_of_the_one_that_failed)
{
    script("p", "if [ $RANK = 1 ]; then i=0; while [ $i -lt 40 ]; do i=$((i+1)); echo line $i; done; exit 1; "
                "fi; sleep 60");
    test_run r = test_sh("TMPDIR=$PWD " LAUNCH "p 2>&1 >/dev/null");
    CHECK(r.status == 1 && strstr(r.out, "  | line 21\n") && strstr(r.out, "  | line 40\n"), "%s", r.out);
    CHECK(!strstr(r.out, "line 20\n"), "%s", r.out);
    free(r.out);
}

TEST(a_python_traceback_ends_in_the_first_line_of_the_paragraph)
{
    test_run have = test_sh("python3 -c 'print(1)'");
    if (have.status)
        test_skip("no python3");
    free(have.out);
    succeeds("printf 'import os\\nif os.environ[\"RANK\"] == \"1\": raise ValueError(\"odd\")\\n' > p.py");
    gives(1, "exited with status 1: ValueError: odd", LAUNCH "p.py");
    succeeds("printf 'import sys\\nprint(sys.argv[1:])\\n' > a.py");
    gives(0, "['--local_rank=0', 'x']", "$COHORT launch --legacy-local-rank a.py x");
    gives(0, "['x']", "$COHORT launch --legacy-local-rank --use_env a.py x");
    gives(0, "['x']", "$COHORT launch -m a x");
}

#define PARSER(flag)                                                                                         \
    "import argparse; p = argparse.ArgumentParser(); p.add_argument(\\\"" flag                               \
    "\\\", dest=\\\"n\\\", type=int, default=0); print(\\\"local\\\", p.parse_args().n)\\n"

TEST(a_script_that_reads_its_local_rank_from_an_argument_alone_gets_it)
{
    if (test_sh("python3 -c 'print(1)'").status)
        test_skip("no python3");
    test_may_leak();
    succeeds("printf \"" PARSER("--local_rank") "\" > old.py; printf \"" PARSER(
        "--local-rank") "\" > new.py; (echo '# LOCAL_RANK'; cat old.py) > env.py; echo 'print(\"none\")' > "
                        "none.py");
    gives(0, "[1] local 1\n", LAUNCH "old.py");
    gives(0, "old.py defines --local_rank and does not read LOCAL_RANK: it gets --local_rank=N",
          LAUNCH "old.py");
    gives(0, "[1] local 1\n", LAUNCH "new.py");
    gives(0, "[1] local 1\n", LAUNCH "-m old");
    gives(1, "0\n", LAUNCH "--use-env old.py | grep -c 'local 1'");
    gives(1, "0\n", LAUNCH "env.py | grep -c 'local 1'");
    gives(0, " none\n", LAUNCH "none.py");
}

TEST(what_python_cannot_read_is_named_and_a_shell_script_without_x_is_told_apart)
{
    if (test_sh("python3 -c 'print(1)'").status)
        test_skip("no python3");
    test_may_leak();
    succeeds("printf 'def f(\\n' > p.py; printf 'set -e\\necho hello there\\n' > s.sh");
    gives(1, "exited with status 1: SyntaxError: ", LAUNCH "p.py");
    gives(1, "chmod +x s.sh, unless it is a Python script: a file without execute permission is run by Python",
          LAUNCH "s.sh");
    test_run r = test_sh("TMPDIR=$PWD " LAUNCH "p.py");
    CHECK(!strstr(r.out, "chmod"), "%s", r.out);
    succeeds("printf 'print(\"SyntaxError: a word\"); exit(3)\\n' > w.py");
    r = test_sh("TMPDIR=$PWD " LAUNCH "w.py");
    CHECK(r.status == 3 && !strstr(r.out, "status 3: SyntaxError"), "%s", r.out);
}

TEST(a_traceback_with_pytorchs_mark_before_each_line_is_read)
{
    script("p", "[ $RANK = 1 ] || exec sleep 20; printf '[rank1]: Traceback (most recent call last):\\n"
                "[rank1]:   File \"p.py\", line 1\\n[rank1]: ValueError: odd\\n' >&2; exit 1");
    gives(1, "exited with status 1: ValueError: odd", LAUNCH "p");
}

TEST(a_join_code_in_the_environment_does_not_reach_the_workers)
{
    gives(0, "code=.", "COHORT_JOIN=secret $COHORT launch --no-python sh -c 'echo code=$COHORT_JOIN.'");
}

TEST(variables_are_set_on_one_host_too_and_flags_for_others_refused)
{
    gives(0, "A=1 2", "$COHORT launch --env A=1,B=2 --no-python sh -c 'echo A=$A $B'");
    gives(0, "0,1 eth0,eth1 7",
          "$COHORT launch --env D=0,1,N=eth0,eth1 --env C=7 --no-python sh -c 'echo $D $N $C'");
    gives(0, "D=0/here",
          "MINE=here $COHORT launch --env D=0,MINE --no-python sh -c 'echo D=$D/$MINE'"); /* it is set here */
    gives(2, "neither NAME nor NAME=VALUE", "$COHORT launch --env 0,1 --no-python true");
    gives(2, "--ssh is for --hosts", "$COHORT launch --ssh 'ssh -p 1' --no-python true");
    gives(2, "log files: mkdir", "touch file; $COHORT launch --log-dir file --no-python true");
}

TEST(a_key_of_rdzv_conf_that_means_nothing_is_said)
{
    gives(0, "foo has no effect here",
          "$COHORT launch --nnodes=1 --rdzv-endpoint=localhost:0 --rdzv-conf=foo=1,read_timeout=3 "
          "--no-python true");
}

TEST(a_job_without_log_files_needs_no_room_for_them)
{
    gives(0, "ran", "TMPDIR=/proc/nowhere $COHORT launch --no-python echo ran");
    gives(0, "the job goes on without log files", "TMPDIR=/proc/nowhere $COHORT launch --no-python echo ran");
}

TEST(all_workers_start_again_as_often_as_asked)
{
    script("p", "echo try $TORCHELASTIC_RESTART_COUNT; [ $TORCHELASTIC_RESTART_COUNT = 2 ] || [ $RANK = 0 ] "
                "|| exit 4");
    gives(0, "try 2", LAUNCH "--max-restarts=2 p");
    gives(4, "restart 1 of 1", LAUNCH "--max-restarts=1 p");
}

static bool has_two_lines(void *path)
{
    return count_of("cat %s 2>/dev/null | wc -l", path) >= 2;
}

/* Checks that no process of the test's scripts is left; each carries a number of this test. */
static bool nobody(void *mark)
{
    return count_of("ps -eo args | grep -v grep | grep -c 'sleep %s'", mark) == 0;
}

static pid_t start_with_children(const char *flags, const char *mark)
{
    char text[256];

    snprintf(text, sizeof text, "setsid sleep %s & sleep %s & echo up >> started; wait; sleep %s", mark, mark,
             mark);
    script("p", text);
    pid_t pid = test_spawn("log", "TMPDIR=$PWD exec $COHORT launch --nproc-per-node=2 %s ./p", flags);
    test_until(has_two_lines, "started", 20, "both workers");
    return pid;
}

TEST(nothing_outlives_a_launcher_that_was_killed)
{
    char mark[32];

    snprintf(mark, sizeof mark, "1000.%d", (int)getpid());
    pid_t pid = start_with_children("", mark);
    CHECK(!nobody(mark), "the children were not there");
    kill(pid, SIGKILL);
    test_until(nobody, mark, 10, "the end of all children");
    test_wait(pid, 10);
}

TEST(sigterm_reaches_every_worker_and_the_status_is_75)
{
    char mark[32];

    snprintf(mark, sizeof mark, "1000.%d", (int)getpid());
    pid_t pid = start_with_children("", mark);
    kill(pid, SIGTERM);
    CHECK(test_wait(pid, 20) == 75, "not 75");
    CHECK(nobody(mark), "a child is left");
    CHECK(count_of("ls -d cohort_* 2>/dev/null | wc -l%s", "") == 0, "a folder is left");
}

TEST(a_worker_that_ignores_sigterm_is_killed_after_the_grace_period)
{
    script("p", "trap '' TERM; echo up >> started; while :; do sleep 0.1; done");
    pid_t pid = test_spawn("log", "TMPDIR=$PWD exec $COHORT launch --nproc-per-node=2 --grace=0.3 ./p");
    test_until(has_two_lines, "started", 20, "both workers");
    kill(pid, SIGTERM);
    CHECK(test_wait(pid, 20) == 143, "not 128 + SIGTERM");
    gives(0, "has not ended within 0.3 s: killed", "cat log");
}

/* A worker that is a shell, which dies of SIGTERM at once, and the program that it runs, which saves until
 * there is a file `go`. */
static pid_t start_saving(const char *flags, const char *beside)
{
    char text[256];

    script("save", "trap 'echo $RANK >> asked; while ! test -e go; do sleep 0.05; done; echo $RANK >> saved; "
                   "exit 0' TERM; echo up >> started; while :; do sleep 0.05; done");
    snprintf(text, sizeof text, "%s./save; echo not reached", beside);
    script("p", text);
    pid_t pid = test_spawn("log", "TMPDIR=$PWD exec $COHORT launch --nproc-per-node=2 %s ./p", flags);
    test_until(has_two_lines, "started", 20, "both workers");
    return pid;
}

static bool both_were_asked(void *unused)
{
    (void)unused;
    return count_of("grep -c 'left 1 process running' log%s", "") == 2;
}

TEST(what_a_shell_runs_has_the_grace_period_and_one_sigterm)
{
    char beside[64];

    /* in its own session it has not got the signal, so it gets SIGTERM and shows when others would get it */
    snprintf(beside, sizeof beside, "setsid sleep 3000.%d & ", (int)getpid());
    pid_t pid = start_saving("", beside);
    kill(pid, SIGTERM);
    test_until(both_were_asked, NULL, 20, "what has left the worker's group to be asked to end");
    succeeds("touch go");
    CHECK(test_wait(pid, 20) == 75, "not 75");
    CHECK(count_of("cat %s | wc -l", "saved") == 2, "not saved");
    CHECK(count_of("cat %s | wc -l", "asked") == 2, "asked twice");
}

TEST(what_a_shell_runs_is_killed_after_the_grace_period_and_the_status_says_so)
{
    pid_t pid = start_saving("--grace=0.6", "");

    kill(pid, SIGTERM);
    CHECK(test_wait(pid, 20) == 143, "not 128 + SIGTERM");
    gives(0, "left running has not ended within 0.6 s: killed", "cat log");
}

/* A shell's background processes ignore SIGINT, so they still need SIGTERM. */
TEST(what_ignores_the_signal_that_ended_its_shell_is_asked_with_sigterm)
{
    char mark[32];

    signal(SIGINT, SIG_DFL);
    snprintf(mark, sizeof mark, "1000.%d", (int)getpid());
    pid_t pid = start_with_children("", mark);
    kill(pid, SIGINT);
    CHECK(test_wait(pid, 20) == 130, "not 130");
    gives(0, "left 2 processes running: asked to end", "cat log");
    CHECK(nobody(mark), "a child is left");
}

struct twice {
    const char *hosts;
    int first, second, status;
};

/* Workers that save when the file `go` exists. False: this machine was too slow. */
static bool is_signalled(const struct twice *t)
{
    bool key = t->second == SIGINT;

    succeeds("rm -f asked saved go started");
    pid_t pid = test_spawn("log", "TMPDIR=$PWD exec $COHORT launch --nproc-per-node=2 %s./p", t->hosts);
    test_until(has_two_lines, "started", 20, "both workers");
    double began = co_now_s();
    kill(pid, t->first);
    test_until(has_two_lines, "asked", 20, "both workers to be asked");
    kill(pid, t->second);
    bool late = co_now_s() - began > 0.7;
    if (!key)
        succeeds("touch go");
    int status = test_wait(pid, 20), saved = count_of("cat %s 2>/dev/null | wc -l", "saved");
    CHECK(late || (status == t->status && saved == (key ? 0 : 2)), "signal %d and %d: status %d, %d saved: %s",
          t->first, t->second, status, saved, test_sh("cat log").out);
    return !late;
}

/* A window that is closed: the shell's SIGHUP, then the kernel's. systemd: SIGTERM, then SIGHUP. Ctrl-C is
 * different. */
TEST(a_signal_that_comes_twice_within_a_moment_is_one_request_and_a_key_twice_is_two)
{
    static const struct twice rows[] = {{"", SIGHUP, SIGHUP, 129},
                                        {"", SIGTERM, SIGHUP, 75},
                                        {"--hosts=localhost ", SIGHUP, SIGHUP, 129},
                                        {"", SIGHUP, SIGINT, 129},
                                        {"--hosts=localhost ", SIGINT, SIGINT, 130}};

    signal(SIGINT, SIG_DFL);
    script("p",
           "trap 'echo $RANK >> asked; while ! test -e go; do sleep 0.02; done; echo $RANK >> saved; exit "
           "0' HUP TERM INT; echo up >> started; while :; do sleep 0.02; done");
    for (size_t i = 0, tries = 0; i < CO_COUNT(rows) && tries < 20; tries++)
        i += is_signalled(&rows[i]);
}

TEST(a_worker_that_ends_itself_on_sigusr1_is_heard)
{
    script("p", "trap 'echo saved $RANK; exit 0' USR1; echo up >> started; while :; do sleep 0.05; done");
    pid_t pid = test_spawn("log", "exec $COHORT launch --nproc-per-node=2 ./p");
    test_until(has_two_lines, "started", 20, "both workers");
    kill(pid, SIGUSR1);
    CHECK(test_wait(pid, 20) == 75, "not 75");
    gives(0, "saved 1", "cat log");
}

/* A launcher that may not kill other users' processes, and a worker that starts one of another user, as with
 * sudo. */
TEST(a_process_that_may_not_be_killed_is_named_and_not_waited_for)
{
    char text[256], mark[32];

    if (test_sh("setpriv --bounding-set=-kill true && setpriv --reuid=65534 true").status)
        test_skip("no setpriv, or not allowed (package util-linux, root)");
    test_may_leak();
    snprintf(mark, sizeof mark, "60.%d", (int)getpid());
    snprintf(text, sizeof text,
             "setpriv --reuid=65534 sleep %s & pid=$!; while ! grep -qs '^Uid:.65534' "
             "/proc/$pid/status; do sleep 0.02; done; echo $pid >> started; wait",
             mark);
    script("p", text);
    pid_t pid = test_spawn(
        "log",
        "TMPDIR=$PWD exec setpriv --bounding-set=-kill $COHORT launch --nproc-per-node=2 --grace=0.3 ./p");
    test_until(has_two_lines, "started", 20, "both workers");
    kill(pid, SIGTERM);
    int status = test_wait(pid, 20);
    gives(0, "(sleep) cannot be killed: Operation not permitted; left alone", "cat log");
    CHECK(status == 143, "status %d", status);
    CHECK(!nobody(mark), "it was killed after all");
    succeeds("kill $(cat started)");
}

static bool log_says(void *words)
{
    return count_of("grep -c '%s' log", words) == 1;
}

/* A debugger holds the worker, as the kernel may. */
TEST(a_third_key_leaves_alone_what_does_not_end_when_killed)
{
    static char passed_on[] = "passed on to all", once_more[] = "a second request to end";

    signal(SIGINT, SIG_DFL);
    script("p", "trap '' INT; echo $$ > worker; exec sleep 1000");
    pid_t pid = test_spawn("log", "TMPDIR=$PWD exec $COHORT launch ./p");
    test_until(is_there, "worker", 20, "the worker");
    pid_t held = count_of("until grep . worker; do sleep 0.02; done%s", "");
    if (ptrace(PTRACE_SEIZE, held, NULL, NULL) != 0)
        test_skip("no ptrace here: %m");
    kill(pid, SIGINT);
    test_until(log_says, passed_on, 20, "the first key's answer");
    kill(pid, SIGINT);
    test_until(log_says, once_more, 20, "the second key's answer");
    kill(pid, SIGINT);
    int status = test_wait(pid, 10);
    CHECK(status == 130, "status %d", status);
    gives(0, "(sleep) was killed and has not ended: the kernel or a debugger holds it; left alone", "cat log");
}

TEST(a_full_disk_under_log_dir_is_said_once_and_the_job_goes_on)
{
    script("p", "i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo 0123456789012345678901234567890123456789; "
                "done; echo end");
    test_run r = test_sh("{ (ulimit -f 1; trap '' XFSZ; $COHORT launch --nproc-per-node=2 --log-dir=l ./p "
                         "2>&1); echo is $?; } | cat");
    CHECK(strstr(r.out, "is 0\n") && strstr(r.out, " end\n"), "%s", r.out);
    const char *said = strstr(r.out, "goes on without log files");
    CHECK(said && !strstr(said + 1, "goes on without log files"), "%s", r.out);
    free(r.out);
}

TEST(output_that_cannot_be_written_is_said_once_on_the_other_one)
{
    static const char out[] = "cohort: standard output: No space left on device",
                      err[] = "cohort: standard error: No space left on device";

    gives(0, out, LAUNCH "--no-python echo hi 2>&1 >/dev/full");
    gives(0, out, "$COHORT launch --hosts localhost --no-python echo hi 2>&1 >/dev/full");
    /* Two writes that fail, at different times. That is said at the latest when the job ends. */
    gives(3, err, LAUNCH "--no-python sh -c 'echo hi >&2; sleep 0.2; echo hi >&2; exit 3' 2>/dev/full");
    CHECK(count_of("%s 2>&1 >/dev/full | grep -c 'standard output:'",
                   LAUNCH "--no-python sh -c 'echo hi; sleep 0.2; echo hi'") == 1,
          "once");
    CHECK(count_of("(%s | head -1) 2>&1 >/dev/null | wc -c", "$COHORT launch --no-python seq 100000") == 0,
          "a reader that has seen enough is no fault");
}

TEST(sixty_four_workers_start_in_a_second_or_two)
{
    script("p", "exit 0");
    test_run r = test_sh("OMP_NUM_THREADS=1 $COHORT launch --nproc-per-node=64 ./p");
    CHECK(r.status == 0 && r.secs < 10, "%d after %.2f s\n%s", r.status, r.secs, r.out);
    test_note("64 workers: %.0f ms", r.secs * 1e3);
    free(r.out);
}

TEST(a_program_that_floods_its_output_loses_nothing)
{
    script("p", "seq 1 20000");
    test_run r = test_sh("OMP_NUM_THREADS=1 " LAUNCH
                         "p | sed 's/^\\[[-0-9,]*\\] //; s/^x2 //' | sort -n | uniq | wc -l");
    CHECK(atoi(r.out) == 20000, "%s", r.out);
    free(r.out);
}
