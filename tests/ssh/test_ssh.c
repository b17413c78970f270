/* `cohort launch --hosts`: real sshd on two hosts that are namespaces (net/ns.h), the conductor on a
 * third.
 *
 * Each host has its own home. The shell of the second host prints junk at login. The tests recognise every
 * process of a job by a variable of its workers, and by the name of the test's folder in the command lines of
 * ssh and of the copied programs.
 */
#include "harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "launch/hosts.h"

static char here[256], mark[64];

static void sh_ok(const char *line)
{
    test_run r = test_sh("%s", line);

    CHECK(r.status == 0, "%s: %s", line, r.out);
    free(r.out);
}

static void write_text(const char *path, const char *text)
{
    CHECK_OK(co_fs_write_atomic(path, text, strlen(text)));
}

static bool answers(void *addr)
{
    co_patience p = co_patience_s(1);
    co_addr to;
    int fd, n;

    if (co_net_resolve(&to, 1, &n, addr, 22, &p) || co_net_connect(&fd, &to, &p))
        return false;
    close(fd);
    return true;
}

static void start_sshd(const ns_lan *lan, int i)
{
    char text[2048], path[32], addr[24];

    snprintf(addr, sizeof addr, "10.77.0.%d", i + 1);
    snprintf(path, sizeof path, "sshd%d", i);
    snprintf(text, sizeof text,
             "Port 22\nListenAddress %s\nHostKey %s/hostkey\nAuthorizedKeysFile %s/keys%d\nPidFile none\n"
             "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n"
             "StrictModes no\nUsePAM no\nSetEnv HOME=%s/home%d\n",
             addr, here, here, i, here, i);
    write_text(path, text);
    snprintf(text, sizeof text,
             "mkdir -p home%d && cp idkey.pub keys%d && echo '%s '\"$(cat hostkey.pub)\" >> known", i, i, addr);
    sh_ok(text);
    ns_enter(lan, i);
    test_spawn("sshd.log", "exec /usr/sbin/sshd -D -e -f sshd%d", i);
    test_until(answers, addr, 10, "sshd to answer");
    ns_leave(lan);
}

/* Opens hosts a and b with sshd, and a third host for the conductor. */
static ns_lan open_hosts(void)
{
    ns_lan lan = ns_open(3);
    char text[2048];

    if (access("/usr/sbin/sshd", X_OK) != 0 || test_sh("command -v ssh ssh-keygen").status != 0)
        test_skip("no sshd or ssh here (packages openssh-server, openssh-client)");
    test_may_leak();
    CHECK(getcwd(here, sizeof here), "getcwd");
    snprintf(mark, sizeof mark, "COHORT_TEST_MARK=%d-%lld", (int)getpid(), (long long)co_now_ns());
    sh_ok("mkdir -p /run/sshd && ssh-keygen -q -t ed25519 -N '' -f hostkey && ssh-keygen -q -t ed25519 -N '' "
          "-f "
          "idkey");
    snprintf(text, sizeof text,
             "Host a\n HostName 10.77.0.1\nHost b\n HostName 10.77.0.2\nHost *\n User root\n"
             " IdentityFile %s/idkey\n IdentitiesOnly yes\n IdentityAgent none\n StrictHostKeyChecking yes\n"
             " UserKnownHostsFile %s/known\n GlobalKnownHostsFile none\n"
             " KexAlgorithms curve25519-sha256\n Ciphers aes128-gcm@openssh.com\n",
             here, here);
    write_text("cfg", text);
    for (int i = 0; i < 2; i++)
        start_sshd(&lan, i);
    write_text("home1/.bashrc", "printf 'junk without end'; echo more junk >&2; export PET_NNODES=7\n");
    return lan;
}

static pid_t conduct(const ns_lan *lan, const char *args)
{
    ns_enter(lan, 2);
    pid_t pid = test_spawn(
        "out", "unset OMP_NUM_THREADS; exec %s launch --env TMPDIR=$PWD --ssh \"ssh -F '%s/cfg'\" --env %s %s",
        test_cohort(), here, mark, args);
    ns_leave(lan);
    return pid;
}

static char *conducted(const ns_lan *lan, const char *args, int want)
{
    double began = co_now_s();
    int status = test_wait(conduct(lan, args), 40);
    char *text = output_of("out");

    test_note("%.2f s: %.60s", co_now_s() - began, args);
    CHECK(status == want, "status %d, wanted %d: %s", status, want, text);
    return text;
}

static int times(const char *text, const char *words)
{
    int n = 0;

    for (; (text = strstr(text, words)); text++)
        n++;
    return n;
}

/* --- what is left --------------------------------------------------------------------------------------- */
static bool has_words(const char *pid, const char *file, const char *words)
{
    static char text[1 << 16];
    char path[300];

    snprintf(path, sizeof path, "/proc/%s/%s", pid, file);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof text, f) : 0;
    if (f)
        fclose(f);
    return n && memmem(text, n, words, strlen(words));
}

/* Counts processes, other than this test, with these words in their command line or environment. */
static int processes_with(const char *in_command, const char *in_environment)
{
    DIR *d = opendir("/proc");
    struct dirent *e;
    int n = 0;

    while (d && (e = readdir(d)))
        if (atoi(e->d_name) > 0 && atoi(e->d_name) != (int)getpid())
            n += has_words(e->d_name, "cmdline", in_command) || has_words(e->d_name, "environ", in_environment);
    closedir(d);
    return n;
}

static bool nothing_left(void *unused)
{
    return processes_with(here, mark) == 0;
}

static void check_nothing_left(const char *after)
{
    CHECK(nothing_left(NULL), "after %s something is left: %s", after, output_of("out"));
}

static const char waiting[] = "--hosts a,b --no-python sh -c 'touch began$RANK; exec sleep 100'";

static pid_t two_begin(const ns_lan *lan, const char *args)
{
    sh_ok("rm -f began?");
    pid_t pid = conduct(lan, args);
    test_until(is_file_there, "began0", 20, "rank 0 to run");
    test_until(is_file_there, "began1", 20, "rank 1 to run");
    CHECK(!nothing_left(NULL), "the job is not seen");
    return pid;
}

/* --- the tests ------------------------------------------------------------------------------------------ */
TEST(hosts_over_ssh_run_every_rank_with_a_copy_of_this_program)
{
    ns_lan lan = open_hosts();
    char *text =
        conducted(&lan,
                  "--hosts a,b --nproc-per-node=2 --no-python sh -c 'echo rank $RANK of $WORLD_SIZE at"
                  " $MASTER_ADDR in $PWD; cat; echo $RANK >&2'",
                  0);

    CHECK(times(text, "copying it") == 2, "%s", text);
    for (int rank = 0; rank < 4; rank++) {
        char want[400];
        snprintf(want, sizeof want, "[%s:%d] rank %d of 4 at 10.77.0.1 in %s\n", rank < 2 ? "a" : "b", rank,
                 rank, here);
        CHECK(strstr(text, want), "no \"%s\" in %s", want, text);
    }
    CHECK(!strstr(text, "junk") && !strstr(text, "cohort-ssh") && !strchr(text, 036), "%s", text);
    CHECK(times(text, "OMP_NUM_THREADS=1") == 1, "said once for all: %s", text);

    write_text("list", "# two\na slots=1  # one worker\n\n root@b slots=2 max_slots=4\n");
    text =
        conducted(&lan,
                  "--hostfile list --no-python sh -c 'if [ $RANK = 2 ]; then echo $RANK of $WORLD_SIZE, here "
                  "$LOCAL_WORLD_SIZE; exit 3; fi; exec sleep 50'",
                  3);
    CHECK(!strstr(text, "copying"), "copied again: %s", text);
    CHECK(strstr(text, "[b:2] 2 of 3, here 2\n"), "%s", text);
    CHECK(times(text, "cohort: rank 2 on b (local rank 1, pid ") == 1 && times(text, "  | 2 of 3") == 1, "%s",
          text);

    text = conducted(&lan, "--hosts b --no-python sh -c 'printf no-newline; exit 255'", 255);
    CHECK(strstr(text, "no-newlinecohort: rank 0"), "one host's output is changed: \"%s\"", text);
    text = conducted(&lan, "--hosts a,b ./is-not-there.py", 2);
    CHECK(strstr(text, "cohort: a: launch: no program ./is-not-there.py in"), "%s", text);
    check_nothing_left("all");
}

TEST(signals_to_the_conductor_end_every_host_and_so_does_its_death)
{
    static const struct {
        int sig, status;
    } row[] = {{SIGTERM, 75}, {SIGINT, 130}};
    ns_lan lan = open_hosts();
    char token[64];

    signal(SIGINT, SIG_DFL);
    snprintf(token, sizeof token, "%s", token_env() + 13);
    for (size_t i = 0; i < CO_COUNT(row); i++) {
        setenv("COHORT_TOKEN", token, 1);
        pid_t pid = two_begin(&lan, waiting);
        unsetenv("COHORT_TOKEN");
        CHECK(processes_with(token, token) == 0, "the token can be seen");
        double began = co_now_s();
        kill(pid, row[i].sig);
        int status = test_wait(pid, 20);
        char *text = output_of("out");
        test_note("signal %d: %.2f s", row[i].sig, co_now_s() - began);
        CHECK(status == row[i].status, "signal %d: status %d: %s", row[i].sig, status, text);
        CHECK(times(text, "passed on to all workers") == 1 && !strstr(text, token), "%s", text);
        check_nothing_left("a signal");
    }
    pid_t pid = two_begin(&lan, waiting);
    double began = co_now_s();
    kill(pid, SIGKILL);
    CHECK(test_wait(pid, 5) == 128 + SIGKILL, "killed");
    test_until(nothing_left, NULL, 5, "everything to end after the conductor was killed");
    test_note("conductor killed: %.2f s", co_now_s() - began);

    pid = two_begin(&lan,
                    "--hosts a,b --no-python sh -c 'trap \"touch heard$RANK\" USR1; touch began$RANK; while "
                    ":; do sleep 0.1; done'");
    kill(pid, SIGUSR1);
    test_until(is_file_there, "heard0", 10, "rank 0 to hear");
    test_until(is_file_there, "heard1", 10, "rank 1 to hear");
    kill(pid, SIGUSR1); /* comes at the same moment, so it counts as the same request */
    kill(pid, SIGINT);  /* the user pressed Ctrl-C: kills the workers */
    int status = test_wait(pid, 10);
    CHECK(status == 128 + SIGUSR1, "status %d: %s", status, output_of("out"));
    check_nothing_left("two signals");
}

static bool ssh_to_b_killed(void *unused)
{
    test_run r = test_sh(
        "kill -9 $(ps -eo pid,args | sed -n 's|^ *\\([0-9]*\\) ssh -F %s/cfg.* b exec sh.*|\\1|p')", here);

    free(r.out);
    return r.status == 0;
}

TEST(a_host_that_ssh_cannot_reach_or_loses_ends_the_others)
{
    ns_lan lan = open_hosts();
    pid_t pid = two_begin(&lan, waiting);

    test_until(ssh_to_b_killed, NULL, 5, "ssh to be found");
    int status = test_wait(pid, 10);
    char *text = output_of("out");
    CHECK(status == 1 && strstr(text, "host b: ssh was killed by SIGKILL"), "status %d: %s", status, text);
    test_until(nothing_left, NULL, 5, "everything to end after ssh was killed");

    write_text("keys1", "");
    text = conducted(&lan, waiting, 2);
    CHECK(strstr(text, "cohort: host b: ssh: root@10.77.0.2: Permission denied (publickey). (does `ssh -F"),
          "%s", text);
    text = conducted(&lan,
                     "--hosts a,b --nnodes=1:2 --rdzv-conf last_call_timeout=0.2 --no-python sh -c 'echo "
                     "$RANK of $WORLD_SIZE'",
                     0);
    CHECK(strstr(text, "host b: ssh") && strstr(text, "0 of 1\n"), "an elastic job needs not all: %s", text);
    text = conducted(&lan, "--hosts no-such-host.invalid --no-python true", 2);
    CHECK(strstr(text, "cohort: host no-such-host.invalid: ssh: Could not resolve hostname"), "%s", text);
    check_nothing_left("all");
}

TEST(a_home_that_takes_no_copy_is_said)
{
    ns_lan lan = open_hosts();

    write_text("home0/.cache", "a file");
    char *text = conducted(&lan, "--hosts a --no-python true", 2);
    CHECK(strstr(text, "host a: cohort cannot be copied to") && strstr(text, "home0/.cache"), "%s", text);
    sh_ok(
        "rm home0/.cache && mkdir home0/bin && cp $COHORT home0/bin/cohort && echo 'PATH=$HOME/bin:$PATH' > "
        "home0/.bashrc");
    text = conducted(&lan, "--hosts a --no-python true", 0);
    CHECK(!*text && !co_fs_exists("home0/.cache"), "copied although it is in PATH: %s", text);
}

/* Kills the sessions of sshd that were cut off: they would wait for their clients longer than the test
 * lasts. */
static void end_all_on(const ns_lan *lan)
{
    for (int i = 0; i < lan->n; i++) {
        struct stat st;
        CHECK(fstat(lan->host[i], &st) == 0, "a namespace");
        test_run r = test_sh("for p in /proc/[0-9]*; do [ \"$(readlink $p/ns/net)\" != 'net:[%lu]' ] ||"
                             " kill -9 ${p#/proc/}; done",
                             (unsigned long)st.st_ino);
        free(r.out);
    }
}

TEST_LONG(a_network_that_is_cut_leaves_nothing_running)
{
    ns_lan lan = open_hosts();
    pid_t pid = two_begin(&lan, waiting);
    double began = co_now_s();

    ns_cable(&lan, 1, false);
    int status = test_wait(pid, 40);
    char *text = output_of("out");
    test_note("host b cut: %.1f s: %s", co_now_s() - began, text);
    CHECK(status == 1 && strstr(text, "host b was lost: no sign of life for"), "status %d: %s", status, text);
    test_until(nothing_left, NULL, 10, "everything to end on both sides of the cut");

    ns_cable(&lan, 1, true);
    pid = two_begin(&lan, waiting);
    began = co_now_s();
    ns_cable(&lan, 2, false);
    status = test_wait(pid, 100);
    text = output_of("out");
    test_note("conductor cut: %.1f s: %s", co_now_s() - began, text);
    CHECK(status == 1 && strstr(text, "the connection was lost"), "status %d: %s", status, text);
    test_until(nothing_left, NULL, 80, "everything to end after the conductor was cut off");
    test_note("nothing left after %.1f s", co_now_s() - began);
    end_all_on(&lan);
}

TEST(listed_hosts_that_are_this_one_need_no_ssh)
{
    test_run r =
        test_sh("TMPDIR=$PWD COHORT_SSH=/no/such/ssh $COHORT launch --hosts localhost,localhost --env A=1 "
                "--env 'B=2,C=3' --no-python sh -c 'echo $RANK-$WORLD_SIZE-$A-$B-$C'");

    CHECK(r.status == 0 && strstr(r.out, "[localhost:0] 0-2-1-2-3\n") &&
              strstr(r.out, "[localhost:1] 1-2-1-2-3\n"),
          "status %d: %s", r.status, r.out);
    free(r.out);
    r = test_sh("TMPDIR=$PWD $COHORT launch --hosts a,b --ssh /no/such/ssh --no-python true");
    CHECK(r.status == 2 && strstr(r.out, "/no/such/ssh: No such file or directory"), "status %d: %s",
          r.status, r.out);
    free(r.out);
}

TEST(this_hosts_own_name_needs_no_ssh_whether_or_not_it_leads_anywhere)
{
    static const char line[] =
        "TMPDIR=$PWD unshare -u sh -c 'hostname nowhere.invalid && exec $COHORT launch "
        "--ssh \"ssh -F $PWD/cfg\" --log-dir=logs --hosts %s --no-python echo \"\\$0\" ran'";

    if (test_sh("command -v ssh && unshare -u true").status != 0)
        test_skip("no ssh, or no names of hosts of one's own here");
    test_may_leak();
    write_text("cfg", "Host other\n HostName nowhere\nHost far\n HostName nowhere.invalid\n Port 2222\n");
    test_run r = test_sh(line, "nowhere,nowhere.invalid");
    CHECK(r.status == 0, "status %d: %s", r.status, r.out);
    /* both hosts belong to one job, which has its own id */
    r = test_sh("ls logs | sed 's/.........$//' | sort | uniq -c");
    CHECK(strstr(r.out, " 2 ") && !strstr(r.out, "none") && strlen(r.out) < 20, "%s", r.out);
    r = test_sh(line, "other");
    CHECK(r.status == 0, "status %d: %s", r.status, r.out);
    r = test_sh(line, "far");
    CHECK(r.status == 2, "status %d: %s", r.status, r.out);
    r = test_sh(line, "nowhere.else.invalid");
    CHECK(r.status == 2, "status %d: %s", r.status, r.out);
}

TEST(flags_that_contradict_a_list_of_hosts_are_refused)
{
    static const struct {
        const char *args, *words;
    } row[] = {
        {"--hosts a,b --node-rank=0 x", "--node-rank does not go with --hosts"},
        {"--hostfile l --rdzv-endpoint=a:1 x", "--rdzv-endpoint does not go with --hostfile"},
        {"--hosts a,b --nnodes=3 x", "--nnodes=3, but the list has 2 hosts"},
        {"--hosts a,b --nnodes=3:4 x", "--nnodes=3:4, but the list has 2 hosts"},
        {"--hosts a,b --rdzv-backend=etcd-v3 x", "--rdzv-backend=etcd-v3 does not go with --hosts"},
        {"--hosts a,,b x", "a name is missing"},
        {"--hosts a:4 x", "a number of workers is slots=N"},
        {"--hosts=-oProxyCommand=x x", "is no name of a host"},
        {"--hosts 'a;b' x", "is no name of a host"},
        {"--hosts a --grace=soon x", "--grace=soon: a number of seconds"},
        {"--hosts a --ssh \"ssh 'x\" x", "a quote is not closed"},
        {"--hosts a --env NO_SUCH_VARIABLE x", "NO_SUCH_VARIABLE is not set here"},
        {"--hosts a --env COHORT_TOKEN=x x", "COHORT_TOKEN is not for workers"},
        {"--hostfile /no/such/file x", "/no/such/file"},
    };

    for (size_t i = 0; i < CO_COUNT(row); i++) {
        test_run r = test_sh("$COHORT launch %s", row[i].args);
        CHECK(r.status == 2 && strstr(r.out, row[i].words), "%s: status %d: %s", row[i].args, r.status, r.out);
        free(r.out);
    }
}

TEST(what_hosts_print_while_a_job_over_ssh_ends_and_nobody_reads_is_counted_not_kept)
{
    sh_ok("mkfifo unread");
    int fd = open("unread", O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0, "%m");
    pid_t pid =
        test_spawn("out", /* the worker prints 64 MB when it is asked to end */
                   "exec %s launch --hosts localhost --no-python sh -c 'trap \"yes 0123456789 |"
                   " head -c 64000000; exit 0\" TERM; : > ready; while :; do sleep 0.05; done' > unread",
                   test_cohort());
    test_until(is_file_there, "ready", 20, "the worker");
    kill(pid, SIGTERM);
    int status = test_wait(pid, 30);
    const char *text = output_of("out");
    CHECK(status == 75 && strstr(text, " kB that came while the job ended are not shown"), "status %d: %s",
          status, text);
    close(fd);
}

/* The conductor's line is `cohort train`; each host is told its number and where to meet. */
TEST(hosts_on_a_train_line_make_every_host_run_the_training)
{
    ns_lan lan = open_hosts();
    char line[400];

    ns_enter(&lan, 2);
    snprintf(line, sizeof line,
             "exec $COHORT train data=digits --hosts a,b --nproc_per_node=2 --env TMPDIR=$PWD --ssh \"ssh -F "
             "'%s/cfg'\" "
             "trainer.max_steps=1",
             here);
    int status = test_wait(test_spawn("out", "%s", line), 40);
    ns_leave(&lan);
    char *text = output_of("out");
    CHECK(status == 0, "status %d: %s", status, text);
    const char *sha = strstr(text, "weights_sha256 "), *guest = strstr(text, ", weights ");
    CHECK(sha && guest && strncmp(sha + 15, guest + 10, 16) == 0, "the hosts do not agree: %s", text);
    char hash[65];
    snprintf(hash, sizeof hash, "%.64s", sha + 15);
    test_run alone = test_sh("$COHORT train data=digits trainer.devices=1 trainer.max_steps=1 run.dir=alone");
    CHECK(alone.status == 0 && strstr(alone.out, hash), "one host has other weights: %s", alone.out);
    free(alone.out);
    status = test_wait(test_spawn("out", "exec $COHORT train dta=digits --hosts a,b"), 40);
    text = output_of("out");
    CHECK(status == 2 && strstr(text, "unknown key \"dta\"") && !strstr(text, "ssh"), "status %d: %s", status,
          text);
    status = test_wait(test_spawn("out", "exec $COHORT train --hosts a,b --detach"), 40);
    text = output_of("out");
    CHECK(status == 2 && strstr(text, "--detach starts one run here"), "status %d: %s", status, text);
}

TEST(one_host_of_a_list_trains_there_and_the_conductor_passes_its_signals_on)
{
    ns_lan lan = open_hosts();

    ns_enter(&lan, 2);
    pid_t pid = test_spawn(
        "out",
        "exec $COHORT train data=digits --hosts a --nproc_per_node=1 --env TMPDIR=$PWD --ssh \"ssh -F "
        "'%s/cfg'\" trainer.max_epochs=-1 run.dir=there",
        here);
    test_until(is_file_there, "there/events.jsonl", 20, "the training to begin");
    kill(pid, SIGTERM);
    int status = test_wait(pid, 40);
    ns_leave(&lan);
    char *text = output_of("out");
    CHECK(status == 75, "status %d: %s", status, text);
    CHECK(strstr(text, "ranks     1 ") && strstr(text, "continue with: cohort train data=digits"), "%s", text);
}
