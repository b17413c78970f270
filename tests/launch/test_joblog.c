/* job.log: the lines of all hosts in one file, in time order, on the host that keeps the roster. */
#include <signal.h>

#include "hosts.h"
#include "roster/rosters.h"

#define JOB "--nnodes=2 --rdzv-endpoint=10.77.0.1:29400 "

static char *job_log(void)
{
    test_may_leak();
    test_run r = test_sh("cat log0/*/job.log");

    CHECK(r.status == 0, "no job.log: %s", r.out);
    return r.out;
}

static int count_of(const char *text, const char *words)
{
    int n = 0;

    for (const char *at = text; (at = strstr(at, words)); at += strlen(words))
        n++;
    return n;
}

static void in_order(char *text)
{
    char last[28] = "";

    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        CHECK(strlen(line) > 28 && strncmp(last, line, 27) <= 0, "after %s comes %s", last, line);
        snprintf(last, sizeof last, "%.27s", line);
    }
}

/* Each worker prints a line when the other's line is in the other launcher's file, so the order is known.
 */
#define RELAY                                                                                                \
    "--no-python sh -c 'for i in 1 2 3 4 5; do"                                                              \
    " [ $RANK = 1 ] && until grep -qs \"step $i of 0\" log0/*/merged.log; do sleep 0.01; done;"              \
    " echo step $i of $RANK;"                                                                                \
    " [ $RANK = 0 ] && until grep -qs \"step $i of 1\" log1/*/merged.log; do sleep 0.01; done; done; true'"

TEST(job_log_has_the_lines_of_all_hosts_in_the_order_of_time)
{
    ns_lan lan = ns_open(2);
    pid_t pid[2];
    char clock[200];

    snprintf(clock, sizeof clock, "COHORT_FAULT=clock=300 %s", token_env());
    pid[0] = launch(&lan, 0, token_env(), JOB "--log-dir=log0 " RELAY);
    pid[1] = launch(&lan, 1, clock, JOB "--log-dir=log1 " RELAY);
    for (int i = 0; i < 2; i++) {
        int status = test_wait(pid[i], 60);
        CHECK(status == 0, "host %d: status %d: %s", i, status, output(i));
    }
    char *text = job_log(), *at = text;
    for (int i = 1; i <= 5; i++)
        for (int rank = 0; rank < 2; rank++) {
            char want[40];
            snprintf(want, sizeof want, "step %d of %d\n", i, rank);
            at = strstr(at, want);
            CHECK(at, "\"%s\" is missing, or too early: %s", want, text);
        }
    CHECK(count_of(text, "begins: ") == 2 && count_of(text, "ends: ") == 1, "%s", text);
    at = strrchr(text, ']');
    CHECK(strcmp(at, "] ends: exit status 0\n") == 0, "the last line is %s", at);
    in_order(text);
    CHECK(test_sh("ls log1/*/job.log").status != 0, "host 1 does not keep the roster");
    test_run logs = test_sh("$COHORT logs log0 --follow --rank 1");
    CHECK(logs.status == 0 && count_of(logs.out, "step") == 5, "cohort logs log0: %s", logs.out);
    logs = test_sh("$COHORT logs log0 log1");
    CHECK(logs.status == 0 && count_of(logs.out, "step 3 of 1") == 1, "cohort logs log0 log1: %s", logs.out);
}

/* One of two hosts gets SIGTERM; both workers print a last line. */
#define SAVES                                                                                                \
    "--no-python sh -c 'trap \"echo saved $RANK; exit 0\" TERM; >up$RANK; while :; do sleep 0.02; done'"

static void last_words(int asked)
{
    ns_lan lan = ns_open(2);
    pid_t pid[2] = {launch(&lan, 0, token_env(), JOB "--log-dir=log0 " SAVES),
                    launch(&lan, 1, token_env(), JOB "--log-dir=log1 " SAVES)};

    test_until(is_file_there, "up0", 20, "rank 0");
    test_until(is_file_there, "up1", 20, "rank 1");
    kill(pid[asked], SIGTERM);
    for (int i = 0; i < 2; i++) {
        int status = test_wait(pid[i], 30);
        CHECK(status == 75, "host %d: status %d: %s", i, status, output(i));
    }
    char *text = job_log();
    CHECK(strstr(text, "] saved 0\n") && strstr(text, "] saved 1\n"), "%s", text);
}

TEST(last_words_after_a_signal_to_the_keeper_are_in_job_log)
{
    last_words(0);
}

TEST(last_words_after_a_signal_to_another_host_are_in_job_log)
{
    last_words(1);
}

TEST(last_words_that_take_longer_than_the_keepers_are_in_job_log)
{
    ns_lan lan = ns_open(2);
    const char *slow = "--no-python sh -c 'late() { until grep -qs \"waiting for the other hosts\" out0; do "
                       "sleep 0.02; done;"
                       " echo saved late; }; trap \"[ $RANK = 0 ] || late; exit 0\" TERM; >up$RANK;"
                       " while :; do sleep 0.02; done'";
    char line[2][512];
    pid_t pid[2];

    for (int i = 0; i < 2; i++) {
        snprintf(line[i], sizeof line[i], JOB "--log-dir=log%d %s", i, slow);
        pid[i] = launch(&lan, i, token_env(), line[i]);
    }
    test_until(is_file_there, "up0", 20, "rank 0");
    test_until(is_file_there, "up1", 20, "rank 1");
    kill(pid[0], SIGTERM);
    for (int i = 0; i < 2; i++) {
        int status = test_wait(pid[i], 30);
        CHECK(status == 75, "host %d: status %d: %s", i, status, output(i));
    }
    char *text = job_log();
    CHECK(strstr(text, "] saved late\n") && !strstr(text, "may be missing"), "%s", text);
}

TEST(what_a_host_says_when_it_leaves_an_elastic_job_is_in_job_log)
{
    ns_lan lan = ns_open(2);
    const char *leaves =
        "--nnodes=1:2 --rdzv-conf=last_call_timeout=20 --rdzv-endpoint=10.77.0.1:29400 --no-python sh -c "
        "'trap \"echo left "
        "$GROUP_RANK; exit 0\" INT; >up$RANK; [ $WORLD_SIZE = 2 ] || exit 0; while :; do sleep 0.02; done'";
    char line[2][512];
    pid_t pid[2];

    for (int i = 0; i < 2; i++) {
        snprintf(line[i], sizeof line[i], "--log-dir=log%d %s", i, leaves);
        pid[i] = launch(&lan, i, token_env(), line[i]);
    }
    test_until(is_file_there, "up0", 20, "rank 0");
    test_until(is_file_there, "up1", 20, "rank 1");
    kill(pid[1], SIGINT);
    int status = test_wait(pid[1], 30);
    CHECK(status == 130, "host 1: status %d: %s", status, output(1));
    status = test_wait(pid[0], 30);
    CHECK(status == 0, "host 0: status %d: %s", status, output(0));
    CHECK(strstr(job_log(), "] left 1\n"), "%s", job_log());
}

TEST(a_keeper_that_was_killed_is_read_to_its_last_line)
{
    ns_lan lan = ns_open(2);
    pid_t pid[2];

    test_may_leak();
    pid[0] = launch(
        &lan, 0, token_env(),
        JOB
        "--log-dir=log0 --no-python sh -c 'echo last words; until grep -qs last.words log0/*/merged.log; do "
        "sleep 0.01; done; >up0; exec sleep 60'");
    pid[1] = launch(&lan, 1, token_env(), JOB "--log-dir=log1 --no-python sh -c 'exec sleep 60'");
    test_until(is_file_there, "up0", 20, "rank 0");
    kill(pid[0], SIGKILL);
    CHECK(test_wait(pid[0], 20) == 128 + SIGKILL && test_wait(pid[1], 20) == 75, "%s", output(1));
    test_run logs = test_sh("$COHORT logs log0 --follow");
    CHECK(logs.status == 0 && count_of(logs.out, "] last words") == 1, "%s", logs.out);
}

/* 1 MB at 8 Mbit/s: when the worker has ended, most of it is still being sent. */
TEST(the_last_lines_come_through_a_slow_network)
{
    ns_lan lan = ns_open(2);
    pid_t pid[2];

    test_may_leak();
    ns_enter(&lan, 1);
    test_run tc = test_sh("tc qdisc add dev eth0 root tbf rate 8mbit burst 32kbit latency 400ms");
    ns_leave(&lan);
    if (tc.status != 0)
        test_skip("no slow networks here: %s", tc.out);
    pid[0] = launch(&lan, 0, token_env(), JOB "--log-dir=log0 --redirects=3 --no-python sh -c true");
    pid[1] =
        launch(&lan, 1, token_env(),
               JOB "--log-dir=log1 --redirects=3 --no-python sh -c 'seq 1000000 1010000 | sed s/$/$(printf "
                   "%090d 1)/'");
    for (int i = 0; i < 2; i++) {
        int status = test_wait(pid[i], 30);
        CHECK(status == 0, "host %d: status %d: %s", i, status, output(i));
    }
    char *text =
        test_sh("cat log0/*/job.log | grep -c '] 10[0-9]*1$'; grep -c 'missing\\|could not' log0/*/job.log").out;
    CHECK(strcmp(text, "10001\n0\n") == 0, "lines, and lines about missing ones: %s", text);
}

TEST(a_flood_of_another_host_is_in_job_log_or_counted_there)
{
    ns_lan lan = ns_open(2);
    pid_t pid[2];
    char *text;
    long long lines = 0, told = 0;

    for (int i = 0; i < 2; i++)
        pid[i] = launch(&lan, i, token_env(),
                        i ? JOB "--log-dir=log1 --redirects=3 --no-python sh -c 'seq 1000000 1299999'"
                          : JOB "--log-dir=log0 --redirects=3 --no-python sh -c 'seq 1000000 1299999'");
    for (int i = 0; i < 2; i++) {
        int status = test_wait(pid[i], 60);
        CHECK(status == 0, "host %d: status %d: %s", i, status, output(i));
    }
    test_may_leak();
    text = test_sh("awk '/] 1[0-9]*$/ {n++} / lines of .* could not/ {m += $3} END {print n, m + 0}' "
                   "log0/*/job.log")
               .out;
    CHECK(sscanf(text, "%lld %lld", &lines, &told) == 2, "%s", text);
    test_note("%lld lines in job.log, %lld said to be missing", lines, told);
    CHECK(lines + told == 600000, "%lld lines and %lld told", lines, told);
    CHECK(test_sh("grep -c '] 1[0-9]*$' log1/*/merged.log | grep -qx 300000").status == 0, "its own file");
}

TEST(lines_go_to_the_keeper_who_wants_them_and_also_after_the_end)
{
    scene s = scene_of(2, 2, "127.0.0.1");
    co_str heard = {0};

    s.where.logs = true;
    co_roster *a = host(s, "a"), *b = host(s, "b");
    event(a, CO_ROSTER_BEGIN);
    event(b, CO_ROSTER_BEGIN);
    CHECK(co_roster_keeps(a) && !co_roster_keeps(b), "a keeps the roster");
    CHECK(co_roster_log(b, "one\ntwo\n", 8), "taken");
    leave(b, SIGTERM, 75);
    event(a, CO_ROSTER_OVER);
    event(b, CO_ROSTER_OVER);
    CHECK(co_roster_log(b, "three\n", 6), "taken");
    co_roster_close(b);
    co_roster_finish(a);
    CHECK(co_roster_logged(a, &heard) == 0, "none is lost");
    CHECK(strcmp(co_str_text(&heard), "one\ntwo\nthree\n") == 0, "heard %s", co_str_text(&heard));
    co_roster_close(a);
    co_str_fini(&heard);
}

TEST(nobody_sends_lines_to_a_keeper_who_keeps_none)
{
    scene s = scene_of(2, 2, "127.0.0.1");
    co_str heard = {0};
    char *much = calloc(1, 1 << 20);

    memset(much, '\n', (1 << 20) - 1);
    co_roster *a = host(s, "a"), *b = host(s, "b");
    event(a, CO_ROSTER_BEGIN);
    event(b, CO_ROSTER_BEGIN);
    for (int i = 0; i < 64; i++)
        CHECK(co_roster_log(b, much, 1 << 20), "there is no limit to what goes nowhere");
    co_roster_done(a);
    co_roster_done(b);
    event(a, CO_ROSTER_OVER);
    event(b, CO_ROSTER_OVER);
    co_roster_close(b);
    co_roster_finish(a);
    CHECK(co_roster_logged(a, &heard) == 0 && heard.len == 0, "%zu bytes", heard.len);
    co_roster_close(a);
    co_str_fini(&heard);
    free(much);
}
