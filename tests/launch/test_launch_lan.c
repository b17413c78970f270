/* `cohort launch` itself on hosts with a network of their own. */
#include "hosts.h"

#include <signal.h>

TEST(two_hosts_run_the_same_line_and_every_worker_knows_its_place)
{
    ns_lan lan = ns_open(2);
    pid_t pid[2];
    char want[200];

    for (int i = 2; i-- > 0;)
        pid[i] = launch(
            &lan, i, token_env(),
            "--nnodes=2 --nproc-per-node=2 --rdzv-endpoint=10.77.0.1:29400 --no-python sh -c"
            " 'echo place $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK/$GROUP_WORLD_SIZE"
            " $MASTER_ADDR $TORCHELASTIC_RUN_ID token=$COHORT_TOKEN. gloo=$GLOO_SOCKET_IFNAME.'");
    for (int i = 0; i < 2; i++) {
        int status = test_wait(pid[i], 30);
        char *text = output(i);
        CHECK(status == 0, "host %d: status %d: %s", i, status, text);
        for (int local = 0; local < 2; local++) {
            snprintf(want, sizeof want, "place %d/4 %d/2 %d/2 10.77.0.1 none token=. gloo=eth0.",
                     2 * i + local, local, i);
            CHECK(strstr(text, want), "host %d lacks \"%s\": %s", i, want, text);
        }
    }
}

TEST(a_failing_worker_ends_both_hosts_with_its_status_and_its_name)
{
    ns_lan lan = ns_open(2);
    pid_t pid[2];

    for (int i = 0; i < 2; i++)
        pid[i] = launch(&lan, i, token_env(),
                        "--nnodes=2 --nproc-per-node=2 --rdzv-endpoint=10.77.0.1:29400 --no-python sh -c"
                        " 'if [ $RANK = 3 ]; then echo about to fail; exit 7; fi; sleep 60'");
    for (int i = 0; i < 2; i++) {
        int status = test_wait(pid[i], 30);
        char *text = output(i);
        CHECK(status == 7, "host %d: status %d: %s", i, status, text);
        CHECK(strstr(text, "rank 3") && strstr(text, "about to fail"), "host %d: %s", i, text);
    }
}

TEST(a_launch_of_one_host_refuses_the_second_with_both_values)
{
    ns_lan lan = ns_open(2);
    CHECK(test_sh("mkfifo go").status == 0, "mkfifo");
    pid_t a = launch(&lan, 0, token_env(),
                     "--nnodes=1 --rdzv-endpoint=10.77.0.1:29400 --no-python sh -c 'read line <go; exit 0'");

    pid_t b = launch(&lan, 1, token_env(),
                     "--nnodes=2 --rdzv-endpoint=10.77.0.1:29400 --no-python sh -c 'read line <go; exit 0'");
    int status = test_wait(b, 30);
    char *text = output(1);
    CHECK(status == 2 && strstr(text, "it was started with --nnodes=1, this one with --nnodes=2"),
          "status %d: %s", status, text);
    CHECK(test_sh("echo > go").status == 0, "go");
    status = test_wait(a, 30);
    text = output(0);
    CHECK(status == 0 && strstr(text, "it was started with --nnodes=2, this one with --nnodes=1"),
          "status %d: %s", status, text);
}

TEST(sixty_four_workers_on_eight_hosts_start_and_meet)
{
    ns_lan lan = ns_open(8);
    pid_t pid[8];
    double before = co_now_s();
    int seen = 0;

    for (int i = 8; i-- > 0;)
        pid[i] = launch(&lan, i, token_env(),
                        "--nnodes=8 --nproc-per-node=8 --rdzv-endpoint=10.77.0.1:29400 --no-python sh -c "
                        "'echo rank-$RANK-of-$WORLD_SIZE.'");
    for (int i = 0; i < 8; i++) {
        int status = test_wait(pid[i], 50);
        char *text = output(i);
        CHECK(status == 0, "host %d: status %d: %s", i, status, text);
        for (int rank = 0; rank < 64; rank++) {
            char want[64];
            snprintf(want, sizeof want, "rank-%d-of-64.", rank);
            seen += strstr(text, want) != NULL;
        }
    }
    double took = co_now_s() - before;
    test_note("started, met and ended in %.2f s", took);
    CHECK(took < 20, "took %.1f s; 3 on two idle cores", took);
    CHECK(seen == 64, "%d of 64 ranks were seen", seen);
}

static void ends(pid_t pid, int i, int want, const char *words)
{
    int status = test_wait(pid, 20);
    char *text = output(i);

    test_note("host %d: %s", i, text);
    CHECK(status == want && strstr(text, words), "host %d: status %d, wanted %d: %s", i, status, want, text);
}

TEST(a_signal_to_one_host_ends_the_workers_of_all)
{
    ns_lan lan = ns_open(2);
    pid_t pid[2];

    two_running(&lan, pid);
    kill(pid[1], SIGTERM);
    ends(pid[1], 1, 75, "");
    ends(pid[0], 0, 75, "was asked to end");
}

static bool token_is_shown(void *token)
{
    char *at = access("out0", F_OK) == 0 ? strstr(output(0), "COHORT_TOKEN=") : NULL;

    return at && sscanf(at, "%50[^ \n]", (char *)token) == 1;
}

TEST(the_first_host_shows_a_token_without_which_nobody_joins)
{
    static const char line[] = "--nnodes=2 --rdzv-endpoint=10.77.0.1:29400 --no-python sh -c 'env; tr "
                               "\"\\\\0\" \" \" </proc/$PPID/cmdline'";
    ns_lan lan = ns_open(2);
    char token[64] = "";
    pid_t pid[2];

    pid[0] = launch(&lan, 0, "", line);
    test_until(token_is_shown, token, 20, "a token on the first host's screen");
    pid[1] = launch(&lan, 1, "", line);
    ends(pid[1], 1, 2, "this host has no token to join the job at 10.77.0.1:29400");
    pid[1] = launch(&lan, 1, token, line);
    for (int i = 0; i < 2; i++) {
        CHECK(test_wait(pid[i], 20) == 0, "host %d: %s", i, output(i));
        char *text = output(i), *shown = strstr(text, token + 13);
        CHECK(i == 0 ? shown && !strstr(shown + 1, token + 13) : !shown,
              "host %d shows the token to its workers: %s", i, text);
    }
}

static bool screen_has(void *words)
{
    return access("out1", F_OK) == 0 && strstr(output(1), words);
}

/* Host 1 is started as the first host, but with an address of host 0. */
static void waits_with(const ns_lan *lan, const char *args, const char *words, const char *not_these)
{
    char line[400];

    snprintf(line, sizeof line, "--nnodes=2 %s --no-python true", args);
    remove("out1");
    pid_t pid = launch(lan, 1, token_env(), line);
    test_until(screen_has, "waiting for 2 hosts", 10, "an invitation");
    char *text = output(1);
    CHECK(strstr(text, words) && !(*not_these && strstr(text, not_these)), "%s: %s", args, text);
    kill(pid, SIGTERM);
    test_wait(pid, 20);
}

TEST(a_first_host_that_lacks_the_address_says_which_flag_is_for_it)
{
    static char doubt[] = "10.77.0.1 is no address of this host (it has 10.77.0.2)";
    ns_lan lan = ns_open(2);

    waits_with(&lan, "--node-rank=0 --master-addr=10.77.0.1", doubt, "");
    waits_with(&lan, "--master-addr=10.77.0.1", "should this be --node-rank=1?", "");
    waits_with(&lan, "--master-addr=10.77.0.2", "on the others with --node-rank=1", "is no address");
    waits_with(&lan, "--node-rank=0 --rdzv-endpoint=0.0.0.0:29400", "with --node-rank=1", "is no address");
    waits_with(&lan, "--master-addr=10.77.0.1 --local-addr=10.77.0.2", "", doubt);
    waits_with(&lan, "--master-addr=no-such-host.invalid", "", "is no address");
    waits_with(&lan, "--rdzv-endpoint=10.77.0.2:29400", "run the same line on the others", "--node-rank");
}

TEST(an_endpoint_at_localhost_says_who_can_come)
{
    ns_lan lan = ns_open(2);

    waits_with(&lan, "--rdzv-endpoint=localhost:29400",
               "Only launchers on this host can come to that address: for others, name one", "");
    waits_with(&lan, "--rdzv-endpoint=10.77.0.2:29400", "", "Only launchers");
}

/* In an elastic job the other host goes on. */
TEST(a_host_that_cannot_start_its_workers_costs_a_restart_not_the_job)
{
    ns_lan lan = ns_open(2);
    const char *job =
        "--nnodes=1:2 --max-restarts=1 --rdzv-conf=last_call_timeout=0.2 --rdzv-endpoint=10.77.0.1:29400 ";
    char line[512];
    pid_t a, b;

    snprintf(line, sizeof line,
             "%s--no-python sh -c 'touch up$TORCHELASTIC_RESTART_COUNT; [ $TORCHELASTIC_RESTART_COUNT = 1 ] "
             "|| exec sleep 60'",
             job);
    a = launch(&lan, 0, token_env(), line);
    test_until(is_file_there, "up0", 20, "the first round");
    snprintf(line, sizeof line, "%s--nproc-per-node=64 --no-python sh -c 'exec sleep 60'", job);
    CHECK(test_sh("printf '#!/bin/sh\\nulimit -n 40; exec $COHORT \"$@\"\\n' > narrow; chmod +x narrow").status ==
              0,
          "narrow");
    ns_enter(&lan, 1);
    b = test_spawn("out1", "%s TMPDIR=$PWD exec ./narrow launch %s", token_env(), line);
    ns_leave(&lan);
    int status = test_wait(b, 30);
    CHECK(status == 1 && strstr(output(1), "Too many open files"), "status %d: %s", status, output(1));
    status = test_wait(a, 30);
    CHECK(status == 0 && strstr(output(0), "could not start its workers"), "status %d: %s", status, output(0));
}

#define TWICE                                                                                                \
    "--nnodes=1:2 --rdzv-conf=last_call_timeout=0.1 --rdzv-endpoint=10.77.0.1:29400 --no-python sh -c "      \
    "'echo one of $WORLD_SIZE; >up$WORLD_SIZE; [ $WORLD_SIZE = 2 ] || exec sleep 60'"

TEST(what_workers_said_before_a_host_joined_stays_in_their_files)
{
    ns_lan lan = ns_open(2);
    pid_t pid[2];

    pid[0] = launch(&lan, 0, token_env(), "--log-dir=log0 " TWICE);
    test_until(is_file_there, "up1", 20, "the first round");
    pid[1] = launch(&lan, 1, token_env(), "--log-dir=log1 " TWICE);
    for (int i = 0; i < 2; i++) {
        int status = test_wait(pid[i], 30);
        CHECK(status == 0, "host %d: status %d: %s", i, status, output(i));
    }
    test_run r = test_sh("cat log0/*/attempt_0/0/stdout.log");
    CHECK(strcmp(r.out, "one of 1\none of 2\n") == 0, "%s", r.out);
    free(r.out);
}
