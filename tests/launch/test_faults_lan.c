/* Faults between hosts: what each side prints, its exit status, and how soon. docs/faults.md lists them. */
#include "hosts.h"

#include <signal.h>

#include "worker.h"

#define END " --no-python sh -c 'exit 0'"

/* Packets that match are dropped where they arrive: nothing answers. */
static void drops(int host_fd, const char *match)
{
    char line[512];

    if (test_sh("nft --version").status != 0)
        test_skip("no nft command (package nftables): packets cannot be dropped");
    snprintf(
        line, sizeof line,
        "nft add table inet t && nft add chain inet t in '{ type filter hook input priority 0; }' && nft add "
        "rule inet t in %s drop",
        match);
    ns_sh(host_fd, line);
}

TEST(fault_of_an_endpoint_that_cannot_be_reached)
{
    static const struct {
        const char *name, *endpoint, *words;
    } cases[] = {
        {"unresolvable endpoint", "no-such-host.invalid:29400",
         "step resolve: the name no-such-host.invalid cannot be resolved"},
        {"closed port", "10.77.0.1:29401", "step connect: 10.77.0.1:29401 refuses: nothing listens there"},
        {"firewall drops packets", "10.77.0.1:29402", "step connect: 10.77.0.1:29402 does not answer"},
        {"no network leads there", "192.0.2.1:29400", "step route: no route to 192.0.2.1"}};
    enum { N = sizeof cases / sizeof *cases };
    ns_lan lan = ns_open(2);
    pid_t pid[N];

    drops(lan.host[0], "tcp dport 29402");
    double began = co_now_s();
    for (int i = 0; i < N; i++) {
        char args[256], out[16];
        snprintf(args, sizeof args, "--nnodes=2 --rdzv-endpoint=%s --rdzv-conf=join_timeout=4" END,
                 cases[i].endpoint);
        snprintf(out, sizeof out, "case%d", i);
        pid[i] = launch_to(&lan, 1, out, token_env(), args);
    }
    for (int i = 0; i < N; i++) {
        char out[16];
        int status = test_wait(pid[i], 40);
        snprintf(out, sizeof out, "case%d", i);
        char *text = output_of(out);
        CHECK(strstr(text, "trying on: "), "%s: no word while it waited: %s", cases[i].name, text);
        char *last = strstr(text, "cohort: cannot join");
        fault_row(__func__, cases[i].name, began, 20, status, 1, last ? last : text, cases[i].words);
    }
}

TEST(fault_of_a_port_that_is_taken)
{
    ns_lan lan = ns_open(1);
    char want[80];
    int fd;

    ns_enter(&lan, 0);
    CHECK_OK(co_net_listen(&fd, "", 29400));
    ns_leave(&lan);
    pid_t holder = fork();
    if (holder == 0) {
        dup2(fd, 0);
        execlp("sleep", "sleep", "50", NULL);
        _exit(127);
    }
    close(fd);
    double began = co_now_s();
    pid_t pid = launch(&lan, 0, token_env(), "--nnodes=2 --rdzv-endpoint=10.77.0.1:29400" END);
    snprintf(want, sizeof want, "29400: the port is taken by process %d (sleep 50)", (int)holder);
    fault_ends(__func__, "port taken", began, 10, pid, 0, 2, want);
    kill(holder, SIGKILL);
    test_wait(holder, 5);
}

/* The second of two hosts is refused at once; the first reports that, waits for another host, and ends. */
TEST(fault_of_hosts_that_do_not_agree)
{
    static const struct {
        const char *name, *first, *second, *env, *to_second, *to_first;
        int token;
    } cases[] = {{"`--nnodes` differ", "--nnodes=2", "--nnodes=3", "",
                  "it was started with --nnodes=2, this one with --nnodes=3",
                  "it was started with --nnodes=3, this one with --nnodes=2", 1},
                 {"run ids differ", "--nnodes=2 --rdzv-id=monday", "--nnodes=2 --rdzv-id=friday", "",
                  "it was started with --rdzv-id=monday, this one with --rdzv-id=friday",
                  "it was started with --rdzv-id=friday, this one with --rdzv-id=monday", 1},
                 {"versions differ", "--nnodes=2", "--nnodes=2", "COHORT_FAULT=version=9.9.9",
                  "this one with cohort 9.9.9. Install the same version of cohort on both",
                  "it was started with cohort 9.9.9", 1},
                 {"wrong token", "--nnodes=2", "--nnodes=2", "",
                  "step token: 10.77.0.1 (reached from 10.77.0.2): the other side has another token",
                  "step token: 10.77.0.2 tried to join with another token", 2}};
    enum { N = sizeof cases / sizeof *cases };
    ns_lan lan = ns_open(2);
    pid_t first[N], second[N];
    char args[512], out[16];
    double began = co_now_s();

    for (int i = 0; i < N; i++) {
        snprintf(args, sizeof args, "--rdzv-endpoint=10.77.0.1:%d --rdzv-conf=join_timeout=4 %s" END,
                 29400 + i, cases[i].first);
        snprintf(out, sizeof out, "out%d", i);
        first[i] = launch_to(&lan, 0, out, token_of(1), args);
    }
    for (int i = 0; i < N; i++) {
        char env[128];
        snprintf(args, sizeof args, "--rdzv-endpoint=10.77.0.1:%d --rdzv-conf=join_timeout=30 %s" END,
                 29400 + i, cases[i].second);
        snprintf(out, sizeof out, "out%d", N + i);
        snprintf(env, sizeof env, "%s %s", cases[i].env, token_of((uint8_t)cases[i].token));
        second[i] = launch_to(&lan, 1, out, env, args);
    }
    for (int i = 0; i < N; i++)
        fault_ends(__func__, cases[i].name, began, 15, second[i], N + i, 2, cases[i].to_second);
    for (int i = 0; i < N; i++) {
        snprintf(args, sizeof args, "%s, on the first host, `join_timeout=4`", cases[i].name);
        fault_ends(__func__, args, began, 25, first[i], i, 1, cases[i].to_first);
        CHECK(strstr(output(i), "only 1 of 2 hosts came within 4 s"), "%s", output(i));
    }
}

TEST(fault_of_a_host_without_a_token)
{
    ns_lan lan = ns_open(2);
    double began = co_now_s();
    pid_t pid = launch(&lan, 1, "", "--nnodes=2 --rdzv-endpoint=10.77.0.1:29400" END);

    fault_ends(__func__, "no token and no terminal", began, 10, pid, 1, 2,
               "this host has no token to join the job at 10.77.0.1:29400");
}

TEST(fault_of_a_clock_that_is_five_minutes_off)
{
    static const char line[] = "--nnodes=2 --rdzv-endpoint=10.77.0.1:29400 --no-python sh -c"
                               " 'if [ $RANK = 1 ]; then exit 4; fi; exec sleep 50'";
    ns_lan lan = ns_open(2);
    char env[128];
    pid_t pid[2];
    double began = co_now_s();

    snprintf(env, sizeof env, "COHORT_FAULT=clock=300 %s", token_env());
    pid[0] = launch(&lan, 0, token_env(), line);
    pid[1] = launch(&lan, 1, env, line);
    fault_ends(__func__, "a clock 5 minutes off (and a failure there)", began, 15, pid[0], 0, 4,
               "(10.77.0.2) is 300 s ahead of that of host");
    CHECK(test_wait(pid[1], 30) == 4 && strstr(output(1), "is 300 s ahead of that of host"), "%s", output(1));
}

TEST(fault_of_a_host_whose_cable_is_pulled)
{
    ns_lan lan = ns_open(2);
    pid_t pid[2];

    two_running(&lan, pid);
    double began = co_now_s();
    ns_cable(&lan, 1, false);
    fault_ends(__func__, "a host vanishes (link down)", began, 10, pid[0], 0, 1,
               "was lost: no sign of life for");
    fault_ends(__func__, "the keeper of the roster vanishes (link down)", began, 12, pid[1], 1, 75,
               "which keeps the roster, was lost: no sign of life for");
}

static bool is_gone(void *pid)
{
    return kill(*(pid_t *)pid, 0) != 0;
}

TEST(fault_of_a_supervisor_that_is_killed)
{
    static const struct {
        const char *name, *words;
        int status;
    } sides[] = {{"supervisor of the roster's host killed with -9",
                  "which keeps the roster, was lost: the other side closed the connection", 75},
                 {"supervisor killed with -9", "was lost: the other side closed the connection", 1}};
    ns_lan lan = ns_open(2);

    for (int dead = 2; dead-- > 0;) {
        char began_file[] = "began0";
        pid_t pid[2], worker;
        began_file[5] = (char)('0' + dead);
        two_running(&lan, pid);
        worker = (pid_t)atoi(output_of(began_file));
        CHECK(worker > 1, "no worker %d", dead);
        double began = co_now_s();
        kill(pid[dead], SIGKILL);
        test_wait(pid[dead], 5);
        fault_ends(__func__, sides[dead].name, began, 10, pid[!dead], !dead, sides[dead].status,
                   sides[dead].words);
        test_until(is_gone, &worker, 10, "the end of the killed supervisor's worker");
        CHECK(unlink("began0") == 0 && unlink("began1") == 0, "the files of the workers");
    }
}

/* Hosts 1 and 2 do not hear each other; both hear host 0, which keeps the roster. */
static ns_lan cut_in_between(void)
{
    ns_lan lan = ns_open(3);

    drops(lan.host[1], "ip saddr 10.77.0.3");
    drops(lan.host[2], "ip saddr 10.77.0.2");
    return lan;
}

TEST(fault_of_two_hosts_cut_from_each_other_but_not_from_the_roster)
{
    ns_lan lan = cut_in_between();
    pid_t calm[3], calling[3];
    char env[128];
    double began = co_now_s();

    snprintf(env, sizeof env, "TEST_WORKER=call %s", token_env());
    for (int i = 0; i < 3; i++) {
        char line[1500], out[16];
        calm[i] =
            launch(&lan, i, token_env(), /* longer than silence may last */
                   "--nnodes=3 --rdzv-endpoint=10.77.0.1:29400 --rdzv-conf=lost_after=1.5 --no-python sh"
                   " -c 'sleep 2.5; echo rank $RANK of $WORLD_SIZE is done'");
        snprintf(line, sizeof line,
                 "--nnodes=3 --rdzv-endpoint=10.77.0.1:29401 --node-rank=%d --stall-after=1 --no-python %s",
                 i, worker_program());
        snprintf(out, sizeof out, "out%d", 3 + i);
        calling[i] = launch_to(&lan, i, out, env, line);
    }
    for (int i = 0; i < 3; i++)
        fault_ends(__func__, "two hosts cut from each other, a worker waits for the other, `--stall-after=1`",
                   began, 20, calling[i], 3 + i, 1, "in connect of a connection to 10.77.0.3 port 7777");
    for (int i = 0; i < 3; i++)
        fault_ends(__func__, "two hosts cut from each other, workers that do not mind", began, 20, calm[i], i,
                   0, "of 3 is done");
}
