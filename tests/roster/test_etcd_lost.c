/* The host that keeps the roster is lost, and the others meet again through a real etcd. */
#include "roster/etcds.h"

#include <sys/wait.h>

#include "base/clock.h"
#include "roster/etcd/etcd_int.h"
#include "roster/rosters.h"
#include "net/ns.h"

TEST(when_the_keeper_is_killed_the_others_go_on)
{
    pid_t pid[3];
    etcds e;

    etcds_open(&e, 1, "127.0.0.1");
    start(&e, pid, 3, "--nnodes=1:3 --max-restarts=2 --rdzv-conf=lease=2,last_call_timeout=5");
    double before = co_now_s();
    kill(pid[0], SIGKILL);
    wait_for("began0.1");
    wait_for("began1.1");
    test_note("the others went on after %.1f s, with a lease of 2 s", co_now_s() - before);
    CHECK(access("began2.1", F_OK) != 0, "a rank of a host that is gone");
    go();
    for (int i = 1; i < 3; i++) {
        ends(pid[i], i, 0, "was lost, and it kept the roster: the other side closed the connection");
        CHECK(strstr(output(i), "of 2, restart 1.") && !strstr(output(i), "restart 2"), "%s", output(i));
    }
    test_wait(pid[0], 5);
    etcds_close(&e);
}

TEST(without_restarts_or_enough_hosts_a_lost_keeper_ends_the_job)
{
    static const struct {
        const char *flags, *words;
    } cases[] = {
        {"--nnodes=1:3 --rdzv-conf=lease=2,last_call_timeout=5", "and it kept the roster"},
        {"--nnodes=3 --max-restarts=3 --rdzv-conf=lease=2", "2 hosts are left, at least 3 are needed"}};
    pid_t pid[3];
    etcds e;

    etcds_open(&e, 1, "127.0.0.1");
    for (size_t k = 0; k < CO_COUNT(cases); k++) {
        start(&e, pid, 3, cases[k].flags);
        kill(pid[0], SIGKILL);
        ends(pid[1], 1, 1, cases[k].words);
        ends(pid[2], 2, 1, cases[k].words);
        test_wait(pid[0], 5);
        CHECK(test_sh("rm -f began* out0").status == 0, "rm");
    }
    etcds_close(&e);
}

/* The scene of n hosts that meet through etcd and count as lost after 1 s. */
static scene some_hosts(const etcds *e, int n)
{
    scene s = scene_of(n, n, "");

    s.where.endpoint[0] = '\0';
    s.where.insecure = true;
    s.where.lost_after_s = 1;
    s.where.etcd = (co_meet_etcd){.members = e->members, .lease_s = 2};
    return s;
}

/* Starts a process with a host that keeps the roster. */
static pid_t keeper_process(scene s, void (*plays)(co_roster *a))
{
    pid_t pid = fork();

    if (pid != 0) {
        wait_for("keeps");
        return pid;
    }
    co_roster *a = host(s, "a");
    talk(a, "find this one (port ");
    CHECK_OK(co_fs_write_atomic("keeps", "", 0));
    event(a, CO_ROSTER_BEGIN);
    plays(a);
    co_roster_close(a);
    _exit(0);
}

static void is_done_for_ever(co_roster *a)
{
    co_roster_done(a);
    for (;;)
        pause();
}

static void is_done_last(co_roster *a)
{
    talk(a, "is gone ("); /* no work of that host is missing */
    co_roster_done(a);
    CHECK(event(a, CO_ROSTER_OVER).status == 0, "status");
}

static void suspend(pid_t pid)
{
    int stopped;

    kill(pid, SIGSTOP);
    CHECK(waitpid(pid, &stopped, WUNTRACED) == pid && WIFSTOPPED(stopped), "it does not stop");
}

static bool keeper_is_done(void *roster)
{
    return __atomic_load_n(&((network *)roster)->client.past.keeper_done, __ATOMIC_RELAXED);
}

/* Whether this host's DONE has been sent. After it the host sends nothing that the keeper needs. */
static bool has_said_done(void *roster)
{
    return __atomic_load_n(&((network *)roster)->client.past.done, __ATOMIC_RELAXED);
}

TEST(a_job_whose_hosts_were_all_done_ends_well_though_the_keeper_dies)
{
    etcds e;

    etcds_open(&e, 1, "127.0.0.1");
    scene s = some_hosts(&e, 2);
    pid_t pid = keeper_process(s, is_done_for_ever);
    co_roster *b = host(s, "b");
    event(b, CO_ROSTER_BEGIN);
    test_until(keeper_is_done, b, 10, "the keeper to say that it is done");
    suspend(pid); /* from now on the keeper does not hear what b sends */
    co_roster_done(b);
    talk(b, "and it kept the roster: no sign of life");
    co_roster_event over = event(b, CO_ROSTER_OVER);
    CHECK(over.status == 0 && !over.has_cause, "status %d, blame of %s", over.status, over.cause.host);
    co_roster_close(b);
    kill(pid, SIGKILL);
    test_wait(pid, 5);
    etcds_close(&e);
}

TEST(a_host_that_is_done_hears_how_the_job_ends_from_a_keeper_that_was_only_silent)
{
    etcds e;

    etcds_open(&e, 1, "127.0.0.1");
    scene s = some_hosts(&e, 2);
    s.where.etcd.lease_s = 10; /* the keeper does not lose its place */
    pid_t pid = keeper_process(s, is_done_last);
    co_roster *b = host(s, "b");
    event(b, CO_ROSTER_BEGIN);
    co_roster_done(b);
    test_until(has_said_done, b, 10, "what b said to be on its way");
    suspend(pid);
    /* no restart is left, but b alone cannot know whether the job needs one */
    test_note("%s", event(b, CO_ROSTER_STOP).text);
    co_roster_stopped(b);
    kill(pid, SIGCONT);
    co_roster_event over = event(b, CO_ROSTER_OVER);
    CHECK(over.status == 0 && !over.has_cause, "status %d, blame of %s", over.status, over.cause.host);
    co_roster_close(b);
    int status = test_wait(pid, 10);
    CHECK(status == 0, "status %d", status);
    etcds_close(&e);
}

/* Starts a process with a host that is not done when the keeper is lost. */
static pid_t undone_process(scene s)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    co_roster *c = host(s, "c");
    event(c, CO_ROSTER_BEGIN);
    CHECK_OK(co_fs_write_atomic("began", "", 0));
    co_roster_event over = event(c, CO_ROSTER_OVER);
    CHECK(over.status == 1 && over.has_cause, "status %d", over.status);
    co_roster_close(c);
    _exit(0);
}

/* Host a keeps the roster. Hosts a and b are done, c is not, and a is killed. No restart is left, so c ends
 * and notes this in etcd, which ends b as well. */
static void ends_what_waits(bool c_is_late)
{
    etcds e;

    etcds_open(&e, 1, "127.0.0.1");
    scene s = some_hosts(&e, 3);
    s.where.join_timeout_s = 600;
    pid_t a = keeper_process(s, is_done_for_ever), c = undone_process(s);
    co_roster *b = host(s, "b");
    event(b, CO_ROSTER_BEGIN);
    co_roster_done(b);
    test_until(keeper_is_done, b, 10, "the keeper to say that it is done");
    wait_for("began");
    if (c_is_late)
        suspend(c);
    kill(a, SIGKILL);
    talk(b, "was lost, and it kept the roster");
    if (c_is_late) {
        talk(b, "this host keeps the roster now");
        kill(c, SIGCONT);
    }
    co_roster_event over = event(b, CO_ROSTER_OVER);
    test_note("%s", over.text);
    CHECK(over.status == 1 && test_contains(over.text, "no restart was left when host a"), "status %d: %s",
          over.status, over.text);
    co_roster_close(b);
    int status = test_wait(c, 10);
    CHECK(status == 0, "status %d", status);
    test_wait(a, 5);
    etcds_close(&e);
}

TEST(a_host_that_is_done_does_not_wait_for_one_that_could_not_go_on)
{
    ends_what_waits(false);
}

TEST(a_host_that_is_done_and_keeps_the_roster_hears_of_one_that_could_not_go_on)
{
    ends_what_waits(true);
}

TEST(a_host_that_is_asked_to_end_while_the_keeper_is_lost_ends)
{
    pid_t pid[2];
    etcds e;

    etcds_open(&e, 1, "127.0.0.1");
    start(&e, pid, 2, "--nnodes=1:2 --max-restarts=2 --rdzv-conf=lease=2,lost_after=1,last_call_timeout=1");
    kill(pid[0], SIGSTOP); /* what the other host sends arrives, but nobody reads it */
    double before = co_now_s();
    kill(pid[1], SIGTERM);
    ends(pid[1], 1, 75, "SIGTERM: passed on to all workers");
    CHECK(co_now_s() - before < 6, "took %.1f s", co_now_s() - before);
    CHECK(!strstr(output(1), "keeps the roster now"), "it met again: %s", output(1));
    kill(pid[0], SIGKILL);
    test_wait(pid[0], 5);
    etcds_close(&e);
}

TEST(a_keeper_whose_cable_is_pulled_stops_and_the_others_go_on_without_it)
{
    static const char flags[] =
        "--nnodes=1:3 --max-restarts=1 --rdzv-conf=lease=2,lost_after=1.5,last_call_timeout=3,join_timeout=";
    ns_lan lan = ns_open(4);
    pid_t pid[3];
    etcds e;

    ns_enter(&lan, 3);
    etcds_open(&e, 1, "10.77.0.4");
    for (int i = 0; i < 3; i++) {
        char whole[200];
        snprintf(whole, sizeof whole, "%s%d", flags, i == 0 ? 2 : 20);
        ns_enter(&lan, i);
        pid[i] = launch(&e, i, whole,
                        "touch began$RANK.$TORCHELASTIC_RESTART_COUNT;"
                        "trap \"touch stopped$RANK.$TORCHELASTIC_RESTART_COUNT; exit 1\" TERM;"
                        "while ! test -e go; do sleep 0.05; done");
        if (i == 0)
            test_until(host_0_says, "find this one (port ", 20, "host 0 to keep the roster");
    }
    for (int i = 0; i < 3; i++) {
        char path[32];
        snprintf(path, sizeof path, "began%d.0", i);
        wait_for(path);
    }
    double before = co_now_s();
    ns_cable(&lan, 0, false);
    wait_for("stopped0.0");
    test_note("the cut-off keeper's worker was stopped after %.1f s", co_now_s() - before);
    wait_for("began0.1");
    wait_for("began1.1");
    test_note("the others went on after %.1f s", co_now_s() - before);
    CHECK(access("stopped0.1", F_OK) != 0, "stopped again");
    ends(pid[0], 0, 1, "no longer keeps the roster: it has lost a host and not reached etcd for");
    CHECK(strstr(output(0), "cannot join the job job: step etcd"), "%s", output(0));
    go();
    ends(pid[1], 1, 0, "and it kept the roster: no sign of life");
    ends(pid[2], 2, 0, "and it kept the roster: no sign of life");
    etcds_close(&e);
    ns_leave(&lan);
}

TEST(a_keeper_cut_off_from_etcd_goes_on_and_a_new_host_does_not_begin_the_job_beside_it)
{
    static const char flags[] = "--nnodes=1:2 --rdzv-conf=lease=2,last_call_timeout=0.2,join_timeout=";
    ns_lan lan = ns_open(3);
    char whole[120];
    pid_t pid[2];
    etcds e;

    ns_enter(&lan, 2);
    etcds_open(&e, 1, "10.77.0.3");
    for (int i = 0; i < 2; i++) {
        ns_enter(&lan, i);
        snprintf(whole, sizeof whole, "%s%d", flags, i == 0 ? 20 : 6);
        pid[i] = launch(&e, i, whole, WAITS);
        if (i == 0) {
            wait_for("began0.0");
            ns_cable(&lan, 0, false);
        }
    }
    ends(pid[1], 1, 1, "began it and may go on with it, though etcd no longer hears of that host");
    CHECK(strstr(output(1), "this host may begin it anew in "), "it does not say when: %s", output(1));
    CHECK(test_wait(pid[0], 0) == -1, "the first host did not go on: %s", output(0));
    go();
    ends(pid[0], 0, 0, "ended 0");
    ns_cable(&lan, 0, true);
    etcds_close(&e);
    ns_leave(&lan);
}

TEST(no_first_round_begins_before_etcd_knows_of_it)
{
    etcds e;

    etcds_open(&e, 1, "127.0.0.1");
    scene s = some_hosts(&e, 2);
    s.terms.min_hosts = 1;
    s.where.last_call_s = 1;
    s.where.etcd.lease_s = 1;
    co_roster *a = host(s, "a");
    talk(a, "1 host is here, enough to start");
    kill(e.pid[0], SIGSTOP);
    talk(a, "no longer keeps the roster: it has not reached etcd for"); /* and began none */
    kill(e.pid[0], SIGCONT);
    event(a, CO_ROSTER_BEGIN);
    co_roster_done(a);
    CHECK(event(a, CO_ROSTER_OVER).status == 0, "status");
    co_roster_close(a);
    etcds_close(&e);
}

TEST_LONG(a_job_whose_hosts_were_all_killed_begins_anew_after_six_leases)
{
    static const char flags[] = "--nnodes=1:2 --rdzv-conf=lease=1,last_call_timeout=0.2";
    pid_t pid;
    etcds e;

    etcds_open(&e, 1, "127.0.0.1");
    start(&e, &pid, 1, flags);
    kill(pid, SIGKILL);
    test_wait(pid, 5);
    double before = co_now_s();
    go();
    pid = launch(&e, 1, flags, "echo anew");
    ends(pid, 1, 0, "anew");
    CHECK(strstr(output(1), "this host may begin it anew in "), "%s", output(1));
    double took = co_now_s() - before;
    CHECK(took > 3 && took < 10, "took %.1f s", took);
    before = co_now_s();
    pid = launch(&e, 2, flags, "exit 3");
    ends(pid, 2, 3, "exited with status 3");
    pid = launch(&e, 3, flags, "echo after a failure");
    ends(pid, 3, 0, "after a failure");
    took = co_now_s() - before;
    CHECK(took < 4, "took %.1f s after an end and a failure", took);
    etcds_close(&e);
}

TEST_LONG(a_keeper_that_was_suspended_finds_its_place_taken_and_joins_the_others)
{
    pid_t pid[3];
    etcds e;

    etcds_open(&e, 1, "127.0.0.1");
    start(&e, pid, 3, "--nnodes=1:3 --max-restarts=3 --rdzv-conf=lease=2,lost_after=1,last_call_timeout=3");
    kill(pid[0], SIGSTOP);
    wait_for("began0.1");
    wait_for("began1.1");
    kill(pid[0], SIGCONT);
    wait_for("began2.1"); /* three hosts again; a host that joins does not cost a restart */
    go();
    for (int i = 0; i < 3; i++)
        ends(pid[i], i, 0, "of 3, restart 1.");
    etcds_close(&e);
}

TEST_LONG(a_host_that_was_cut_off_while_the_job_ended_finds_how_it_ended)
{
    static const char flags[] =
        "--nnodes=1:3 --max-restarts=1 --rdzv-conf=lease=2,lost_after=1,last_call_timeout=3";
    ns_lan lan = ns_open(4);
    pid_t pid[3];
    etcds e;

    ns_enter(&lan, 3);
    etcds_open(&e, 1, "10.77.0.4");
    for (int i = 0; i < 3; i++) {
        ns_enter(&lan, i);
        pid[i] = launch(&e, i, flags, WAITS);
        if (i == 0)
            test_until(host_0_says, "find this one (port ", 20, "host 0 to keep the roster");
    }
    for (int i = 0; i < 3; i++) {
        char path[32];
        snprintf(path, sizeof path, "began%d.0", i);
        wait_for(path);
    }
    ns_cable(&lan, 2, false);
    wait_for("began0.1");
    wait_for("began1.1");
    go();
    ends(pid[0], 0, 0, "ended");
    ends(pid[1], 1, 0, "ended");
    CHECK(test_wait(pid[2], 0) == -1, "it ended by itself: %s", output(2));
    ns_cable(&lan, 2, true);
    ends(pid[2], 2, 0, "the job ended while this host was cut off");
    etcds_close(&e);
    ns_leave(&lan);
}
