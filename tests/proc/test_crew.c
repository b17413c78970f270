/* A crew of tiny functions: replaced when they die, fenced when they stall, left alone when they are only
 * slow. */
#include "proc/crew.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness.h"

enum { MOST = 8 };

/* Shared with the members. */
struct board {
    _Atomic uint64_t turns[MOST];
    _Atomic bool waiting[MOST];
    _Atomic int pid[MOST];
    _Atomic int failed; /* a member found something wrong */
    _Atomic int deaths;
};

struct scene {
    struct board *b;
    int (*act)(struct board *b, int slot, uint32_t inc);
    co_verdict verdict; /* the verdict on members that failed; members that exit with 0 are let go */
    int n_deaths, notices;
    co_death death[64];
};

static int member(void *ctx, int slot, uint32_t inc)
{
    struct scene *s = ctx;

    return s->act(s->b, slot, inc);
}

static uint64_t turns(void *ctx, int slot)
{
    return ((struct scene *)ctx)->b->turns[slot];
}

static bool waiting(void *ctx, int slot)
{
    return ((struct scene *)ctx)->b->waiting[slot];
}

static co_verdict died(void *ctx, const co_death *d)
{
    struct scene *s = ctx;

    CHECK(s->n_deaths < 64, "too many deaths");
    s->death[s->n_deaths++] = *d;
    s->b->deaths++;
    return WIFEXITED(d->status) && WEXITSTATUS(d->status) == 0 ? CO_CREW_LET_GO : s->verdict;
}

static void notice(void *ctx, int slot, const char *text)
{
    struct scene *s = ctx;

    CHECK(test_contains(text, "is stopped"), "%s", text);
    s->notices += slot >= 0;
}

static void scene_open(struct scene *s, int (*act)(struct board *, int, uint32_t))
{
    void *p = mmap(NULL, sizeof *s->b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(p != MAP_FAILED, "mmap");
    *s = (struct scene){.b = p, .act = act, .verdict = CO_CREW_REPLACE};
}

static co_crew *crew_of(struct scene *s, int size, double stall_s)
{
    co_crew *c = NULL;

    CHECK_OK(co_crew_start(&c, &(co_crew_spec){.size = size,
                                               .ctx = s,
                                               .main = member,
                                               .turns = turns,
                                               .waiting = waiting,
                                               .died = died,
                                               .notice = notice,
                                               .stall_s = stall_s}));
    return c;
}

static double now_s(void)
{
    return (double)co_now_ns() * 1e-9;
}

/* Runs turns for this long, or until a member dies. */
static void run_for(co_crew *c, const struct scene *s, double secs)
{
    for (double end = now_s() + secs; now_s() < end && s->n_deaths == 0;)
        CHECK_OK(co_crew_turn(c, 20, NULL, 0));
}

/* --- deaths -------------------------------------------------------------------------------------------- */
static int dies_thrice(struct board *b, int slot, uint32_t inc)
{
    int before = b->pid[slot];

    if (inc > 0 && (kill(before, 0) == 0 || errno != ESRCH))
        b->failed = 1; /* the previous process still exists */
    b->pid[slot] = getpid();
    if (slot == 1 || inc == 3)
        return 0;
    if (inc == 2)
        return 7;
    kill(getpid(), inc == 0 ? SIGKILL : SIGTERM);
    return 0;
}

TEST(the_dead_are_replaced_after_their_exit_by_the_next_incarnation)
{
    struct scene s;
    uint32_t inc[2] = {0, 0};

    scene_open(&s, dies_thrice);
    co_crew *c = crew_of(&s, 2, 5);
    while (co_crew_alive(c) > 0)
        CHECK_OK(co_crew_turn(c, 20, NULL, 0));
    CHECK(s.n_deaths == 5, "%d deaths: four of slot 0, one of slot 1", s.n_deaths);
    for (int i = 0; i < s.n_deaths; i++) {
        const co_death *d = &s.death[i];
        CHECK(d->inc == inc[d->slot]++, "slot %d inc %u", d->slot, d->inc);
        CHECK(!d->fenced && d->seen_ns, "nobody was fenced");
    }
    CHECK(inc[0] == 4 && inc[1] == 1, "a good exit is let go: %u, %u", inc[0], inc[1]);
    CHECK(!s.b->failed, "a successor ran beside its predecessor");
    CHECK(co_crew_pid(c, 0) == 0 && co_crew_pid(c, 1) == 0, "nobody is left");
    co_crew_free(c);
}

static int sleeps(struct board *b, int slot, uint32_t inc)
{
    b->pid[slot] = getpid();
    b->turns[slot]++;
    for (;;)
        pause();
    return (int)inc;
}

static bool all_have_pids(void *ctx)
{
    struct board *b = ctx;

    return b->pid[0] && b->pid[1] && b->pid[2];
}

TEST(the_verdict_end_ends_it_and_free_kills_the_rest)
{
    struct scene s;

    scene_open(&s, sleeps);
    s.verdict = CO_CREW_END;
    co_crew *c = crew_of(&s, 3, 60);
    test_until(all_have_pids, s.b, 10, "members");
    int pid[3] = {co_crew_pid(c, 0), co_crew_pid(c, 1), co_crew_pid(c, 2)};
    CHECK(pid[1] == s.b->pid[1], "pids");
    co_crew_kill(c, 1);
    co_err err = CO_OK;
    while (!err)
        err = co_crew_turn(c, 20, NULL, 0);
    CHECK(err == CO_EFAIL && s.n_deaths == 1 && s.death[0].slot == 1, "error %d, %d deaths", err, s.n_deaths);
    co_crew_free(c);
    for (int i = 0; i < 3; i++)
        CHECK(kill(pid[i], 0) != 0 && errno == ESRCH, "member %d lives on", i);
}

/* --- stalls -------------------------------------------------------------------------------------------- */
static int works(struct board *b, int slot, uint32_t inc)
{
    b->pid[slot] = getpid();
    while (inc == 0) {
        b->turns[slot]++;
        poll(NULL, 0, 1);
    }
    return 0;
}

static bool works_already(void *ctx)
{
    struct board *b = ctx;

    return b->turns[0] > 2 && b->turns[1] > 2;
}

static void stopped_is_fenced(bool while_waiting)
{
    const double stall_s = 0.6;
    struct scene s;

    scene_open(&s, works);
    co_crew *c = crew_of(&s, 2, stall_s);
    test_until(works_already, s.b, 10, "members at work");
    run_for(c, &s, 1.0); /* a member that computes is not stalled */
    CHECK(s.n_deaths == 0, "fenced at work");
    s.b->waiting[1] = while_waiting;
    double t0 = now_s();
    CHECK(kill(co_crew_pid(c, 1), SIGSTOP) == 0, "stop");
    run_for(c, &s, 20);
    double took = now_s() - t0;
    CHECK(s.n_deaths == 1, "%d deaths", s.n_deaths);
    const co_death *d = &s.death[0];
    CHECK(d->slot == 1 && d->fenced && d->state == 'T', "slot %d fenced %d state %c", d->slot, d->fenced,
          d->state);
    CHECK(took >= stall_s && d->still_s >= stall_s, "after %.2f s, of %.2f s it knows", took, d->still_s);
    CHECK(s.notices == 1, "%d notices", s.notices);
    CHECK(co_crew_pid(c, 1) != 0 && co_crew_alive(c) == 2, "it has a successor");
    test_note("fenced %.2f s after the stop; the deadline is %.2f s", took, stall_s);
    co_crew_free(c);
}

TEST(a_stopped_member_is_fenced_past_its_deadline_and_not_before)
{
    stopped_is_fenced(false);
}

TEST(a_stopped_member_is_fenced_also_while_it_waits_for_others)
{
    stopped_is_fenced(true); /* it cannot notice that its wait is over */
}

TEST(a_member_that_sleeps_without_waiting_is_fenced)
{
    struct scene s;

    scene_open(&s, sleeps);
    co_crew *c = crew_of(&s, 1, 0.3);
    run_for(c, &s, 20);
    CHECK(s.n_deaths == 1 && s.death[0].fenced && s.death[0].state == 'S', "%d deaths", s.n_deaths);
    co_crew_free(c);
}

static int waits(struct board *b, int slot, uint32_t inc)
{
    b->waiting[slot] = true;
    return sleeps(b, slot, inc);
}

TEST(waiting_members_have_no_deadline)
{
    struct scene s;

    scene_open(&s, waits);
    co_crew *c = crew_of(&s, 2, 0.2);
    run_for(c, &s, 1.5);
    CHECK(s.n_deaths == 0, "fenced while waiting");
    co_crew_free(c);
}

static int computes(struct board *b, int slot, uint32_t inc)
{
    b->turns[slot]++;
    for (volatile uint64_t i = 0;; i++)
        ;
    return (int)inc;
}

static void *computes_in_a_thread(void *b)
{
    return (void *)(intptr_t)computes(b, 0, 0);
}

/* Imitates a rank that waits for its loader's threads. */
static int lets_a_thread_compute(struct board *b, int slot, uint32_t inc)
{
    pthread_t t;

    if (pthread_create(&t, NULL, computes_in_a_thread, b) != 0)
        return 1;
    pthread_join(t, NULL);
    return slot + (int)inc;
}

TEST(a_long_computation_is_no_stall_in_whichever_thread)
{
    struct scene s, t;

    scene_open(&s, computes);
    scene_open(&t, lets_a_thread_compute);
    co_crew *c = crew_of(&s, 1, 0.2), *d = crew_of(&t, 1, 0.2);
    for (double end = now_s() + 1.2; now_s() < end;) {
        CHECK_OK(co_crew_turn(c, 10, NULL, 0));
        CHECK_OK(co_crew_turn(d, 10, NULL, 0));
    }
    CHECK(s.n_deaths == 0 && t.n_deaths == 0, "fenced while computing: %d, %d", s.n_deaths, t.n_deaths);
    co_crew_free(c);
    co_crew_free(d);
}

/* A member that runs only when no other process wants the CPU, while two others always want it. */
static int starves(struct board *b, int slot, uint32_t inc)
{
    cpu_set_t first;

    CPU_ZERO(&first);
    CPU_SET(0, &first);
    sched_setaffinity(0, sizeof first, &first);
    if (slot == 0)
        sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0});
    b->turns[slot]++;
    for (volatile uint64_t i = 0;; i++)
        if (slot > 0 && i % 100000 == 0)
            b->turns[slot]++;
    return (int)inc;
}

TEST(a_member_starved_of_cpu_is_not_fenced)
{
    struct scene s;

    scene_open(&s, starves);
    co_crew *c = crew_of(&s, 3, 0.2);
    run_for(c, &s, 1.5);
    CHECK(s.n_deaths == 0, "slot %d was fenced in state %c", s.death[0].slot, s.death[0].state);
    co_crew_free(c);
}

/* --- the supervisor itself ----------------------------------------------------------------------------- */
static bool gone(int pid)
{
    char path[64], line[256] = "";

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return true;
    char *got = fgets(line, sizeof line, f);
    fclose(f);
    char *after = got ? strrchr(line, ')') : NULL;
    return !after || after[2] == 'Z' || after[2] == 'X';
}

static bool all_gone(void *ctx)
{
    struct board *b = ctx;

    return gone(b->pid[0]) && gone(b->pid[1]) && gone(b->pid[2]);
}

static pid_t supervisor_of(struct scene *s, int size, double stall_s)
{
    pid_t pid = fork();

    if (pid == 0) {
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        co_crew *c = crew_of(s, size, stall_s);
        for (;;)
            CHECK_OK(co_crew_turn(c, 20, NULL, 0));
    }
    setpgid(pid, pid);
    return pid;
}

TEST(members_die_with_their_supervisor)
{
    struct scene s;

    scene_open(&s, sleeps);
    pid_t pid = supervisor_of(&s, 3, 60);
    test_until(all_have_pids, s.b, 10, "members");
    CHECK(!gone(s.b->pid[0]), "member 0 is not there");
    kill(pid, SIGKILL);
    CHECK(test_wait(pid, 10) == 128 + SIGKILL, "the supervisor");
    test_until(all_gone, s.b, 10, "members to vanish");
}

TEST(a_stop_of_the_whole_group_past_the_deadline_fences_nobody)
{
    struct scene s;

    scene_open(&s, works);
    pid_t pid = supervisor_of(&s, 2, 0.4);
    test_until(works_already, s.b, 10, "members at work");
    for (int i = 0; i < 3; i++) {
        kill(-pid, SIGSTOP);
        poll(NULL, 0, 700); /* the test is about the length of this stop */
        uint64_t before = s.b->turns[0];
        kill(-pid, SIGCONT);
        for (double end = now_s() + 10; s.b->turns[0] < before + 100 && now_s() < end;)
            poll(NULL, 0, 5);
        CHECK(s.b->turns[0] >= before + 100, "they did not go on");
    }
    CHECK(s.b->deaths == 0, "%d fenced", s.b->deaths);
    kill(-pid, SIGKILL);
    test_wait(pid, 10);
}

/* --- descriptors --------------------------------------------------------------------------------------- */
/* How many are open beyond the standard ones, and whether `expected` is one of them. */
static int others_open(int expected, bool *has)
{
    co_fds now;
    int n = 0;

    co_fds_open_now(&now);
    for (int fd = 3; fd < CO_FDS_MOST; fd++)
        n += co_fds_has(&now, fd);
    *has = co_fds_has(&now, expected);
    return n;
}

static int kept; /* the descriptor that members keep */

static int counts_descriptors(struct board *b, int slot, uint32_t inc)
{
    bool has;
    int n = others_open(kept, &has);

    if (n != 1 || !has)
        b->failed = 1 + n;
    b->pid[slot] = getpid();
    for (;;) {
        b->turns[slot] += 1 + inc;
        usleep(1000);
    }
    return 0;
}

static bool all_counted(void *ctx)
{
    struct board *b = ctx;

    return b->pid[0] && b->pid[1];
}

TEST(a_member_keeps_only_what_its_spec_names_and_a_close_of_ours_reaches_the_peer)
{
    struct scene s;
    co_crew *c;
    int peers[2], pair[2];
    char byte;

    scene_open(&s, counts_descriptors);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, peers) == 0 && pipe(pair) == 0, "%m");
    kept = pair[1];
    co_crew_spec spec = {
        .size = 2, .ctx = &s, .main = member, .turns = turns, .waiting = waiting, .died = died, .stall_s = 60};
    co_fds_add(&spec.keep, kept);
    CHECK_OK(co_crew_start(&c, &spec));
    test_until(all_counted, s.b, 10, "members");
    CHECK(s.b->failed == 0, "a member has %d descriptors more", s.b->failed - 1);
    close(peers[0]);
    struct pollfd p = {.fd = peers[1], .events = POLLIN};
    CHECK(poll(&p, 1, 10000) == 1 && read(peers[1], &byte, 1) == 0, "the peer does not see the end");
    CHECK(co_crew_alive(c) == 2 && s.n_deaths == 0, "the members live");
    co_crew_free(c);
}

static int counts_alone(void *ctx)
{
    bool has;

    return others_open(*(int *)ctx, &has) == 1 && has ? 7 : 1;
}

TEST(a_child_keeps_only_what_its_spec_names)
{
    pid_t pid;
    int fd, status, pair[2];

    CHECK(pipe(pair) == 0, "%m");
    co_child_spec spec = {.main = counts_alone, .ctx = &pair[1]};
    co_fds_add(&spec.keep, pair[1]);
    CHECK_OK(co_child_start(&pid, &fd, &spec));
    CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7, "exit status %d", WEXITSTATUS(status));
    close(fd);
}

/* --- the rest ------------------------------------------------------------------------------------------ */
static int complains(struct board *b, int slot, uint32_t inc)
{
    fprintf(stderr, "slot %d says %u\n", slot, inc);
    return b->failed;
}

TEST(a_members_standard_error_goes_to_its_log)
{
    struct scene s;
    co_crew *c;

    scene_open(&s, complains);
    CHECK_OK(co_crew_start(&c, &(co_crew_spec){.size = 2,
                                               .ctx = &s,
                                               .main = member,
                                               .turns = turns,
                                               .waiting = waiting,
                                               .died = died,
                                               .stall_s = 5,
                                               .log_dir = "."}));
    while (co_crew_alive(c) > 0)
        CHECK_OK(co_crew_turn(c, 20, NULL, 0));
    co_crew_free(c);
    test_run r = test_sh("cat *-1.log");
    CHECK(strcmp(r.out, "slot 1 says 0\n") == 0, "%s", r.out);
    free(r.out);
}

/* A planted link would make a rank write elsewhere, a FIFO would make it wait. Both write to our own standard
 * error instead and say why. */
TEST_WITHIN(a_link_or_a_fifo_in_place_of_a_members_log_is_refused_and_nobody_waits, 20)
{
    struct scene s;
    co_crew *c;
    char host[64] = "", path[3][100];

    gethostname(host, sizeof host - 1);
    for (int i = 0; i < 3; i++)
        snprintf(path[i], sizeof path[i], "%.60s-%d.log", host, i);
    CHECK(symlink("victim", path[0]) == 0 && mkfifo(path[1], 0600) == 0, "%m");
    int saved = dup(STDERR_FILENO), to = open("said", O_WRONLY | O_CREAT | O_APPEND, 0600);
    CHECK(saved >= 0 && to >= 0 && dup2(to, STDERR_FILENO) >= 0, "%m");
    scene_open(&s, complains);
    co_err err = co_crew_start(&c, &(co_crew_spec){.size = 3,
                                                   .ctx = &s,
                                                   .main = member,
                                                   .turns = turns,
                                                   .waiting = waiting,
                                                   .died = died,
                                                   .stall_s = 5,
                                                   .log_dir = "."});
    while (!err && co_crew_alive(c) > 0)
        err = co_crew_turn(c, 20, NULL, 0);
    dup2(saved, STDERR_FILENO);
    CHECK_OK(err);
    co_crew_free(c);
    test_run r = test_sh("cat said; test -e victim && echo written");
    CHECK(test_contains(r.out, "-0.log is a link; ") && test_contains(r.out, "slot 0 says 0"), "%s", r.out);
    CHECK(test_contains(r.out, "-1.log is not a regular file") && test_contains(r.out, "slot 1 says 0"), "%s",
          r.out);
    CHECK(!test_contains(r.out, "slot 2") && !test_contains(r.out, "written"), "%s", r.out);
    free(r.out);
}

static int fails(void *ctx)
{
    return *(int *)ctx;
}

TEST(a_child_of_ones_own_is_watched_by_its_descriptor)
{
    pid_t pid;
    int fd, status, seven = 7;

    CHECK_OK(co_child_start(&pid, &fd, &(co_child_spec){.main = fails, .ctx = &seven}));
    struct pollfd p = {.fd = fd, .events = POLLIN};
    CHECK(poll(&p, 1, 10000) == 1, "its exit shows");
    CHECK(waitpid(pid, &status, WNOHANG) == pid && WEXITSTATUS(status) == 7, "its status");
    close(fd);
}

TEST(a_limit_of_open_files_is_named_when_it_keeps_a_child_from_being_watched)
{
    pid_t pid;
    int fd, seven = 7;
    struct rlimit before;

    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0, "getrlimit");
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, before.rlim_max});
    co_err err = co_child_start(&pid, &fd, &(co_child_spec){.main = fails, .ctx = &seven});
    setrlimit(RLIMIT_NOFILE, &before);
    CHECK(err == CO_EIO && test_contains(co_errmsg(), "ulimit -n") && !test_contains(co_errmsg(), "Linux 5.3"),
          "error %d: %s", err, co_errmsg());
}

TEST(signals_come_through_the_descriptor_and_members_do_not_get_them)
{
    struct scene s;
    int fd;

    CHECK_OK(co_signals_open(&fd));
    CHECK(co_signals_next(fd) == 0, "none yet");
    scene_open(&s, sleeps);
    co_crew *c = crew_of(&s, 3, 60);
    test_until(all_have_pids, s.b, 10, "members");
    kill(0, SIGINT); /* Ctrl-C: the whole group */
    kill(0, SIGTERM);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    CHECK_OK(co_crew_turn(c, 1000, &p, 1));
    CHECK(p.revents & POLLIN, "a turn ends at a signal");
    int a = co_signals_next(fd), b = co_signals_next(fd);
    CHECK(a == SIGINT && b == SIGTERM && co_signals_next(fd) == 0, "got %d, %d", a, b);
    run_for(c, &s, 0.1);
    CHECK(s.n_deaths == 0, "members stay until they are told");
    co_crew_free(c);
    close(fd);
}

TEST(there_is_a_cpu_to_use)
{
    CHECK(co_cpus_usable() >= 1 && co_cpus_usable() <= 65536, "%d", co_cpus_usable());
}
