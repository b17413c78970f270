/* worker.c -- programs for launchers to start: with TEST_WORKER=ROLE in its environment the test program is
 * one of them. */
#include "worker.h"

#include "harness.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int number(const char *name)
{
    const char *text = getenv(name);

    return text ? atoi(text) : -1;
}

static void touch(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    if (fd >= 0)
        close(fd);
}

static void exit_as_told(int sig, siginfo_t *info, void *unused)
{
    (void)sig;
    (void)unused;
    _exit(info->si_value.sival_int);
}

/* Creates a file named after itself, then waits for the file `go`. SIGUSR2 with a number: exits with that
 * status at once. */
static int wait_for_go(void)
{
    struct sigaction told = {.sa_sigaction = exit_as_told, .sa_flags = SA_SIGINFO};
    char path[128];

    sigaction(SIGUSR2, &told, NULL);
    snprintf(path, sizeof path, "up/%d.%d.%d.%d.%d", number("TEST_HOST"), number("RANK"),
             number("WORLD_SIZE"), number("TORCHELASTIC_RESTART_COUNT"), (int)getpid());
    touch(path);
    while (access("go", F_OK) != 0)
        poll(NULL, 0, 20);
    return 0;
}

/* More shared memory than there is. */
static int fill_shm(void)
{
    size_t len = 64 << 20;
    int fd = open("/dev/shm/filled", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    char *p = fd >= 0 && ftruncate(fd, (off_t)len) == 0 ? mmap(NULL, len, PROT_WRITE, MAP_SHARED, fd, 0)
                                                        : MAP_FAILED;

    if (p == MAP_FAILED)
        return 9;
    signal(SIGBUS, SIG_DFL); /* a sanitizer may have a handler for it */
    memset(p, 1, len);
    return 0;
}

/* Rank 1 connects to rank 2's host, as workers do; the others go on. */
static int call_the_other(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(7777)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    inet_pton(AF_INET, "10.77.0.3", &to.sin_addr);
    if (number("RANK") == 1)
        return connect(fd, (struct sockaddr *)&to, sizeof to) == 0 ? 0 : 9;
    for (;;) {
        puts("on");
        fflush(stdout);
        poll(NULL, 0, 100);
    }
}

/* Imitates an all-reduce that waits: ranks 0 to 2 wait in a lock, a poll and a socket. A moment later rank 3
 * hangs; it is the cause. */
static int hang_together(void)
{
    uint32_t lock = 0;
    int pair[2], rank = number("RANK");
    char byte;

    if (rank == 0)
        touch("began");
    if (rank == 0)
        syscall(SYS_futex, &lock, FUTEX_WAIT, 0, NULL);
    if (rank == 1)
        poll(NULL, 0, -1);
    if (rank == 2 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0)
        return (int)read(pair[0], &byte, 1);
    while (access("began", F_OK) != 0)
        poll(NULL, 0, 20);
    poll(NULL, 0, 100);
    puts("rank 3 goes on");
    fflush(stdout);
    for (;;)
        sleep(100);
}

/* Imitates an all-reduce: rank 0 waits in a lock, rank 2 in a poll. Rank 1 computes for ever; it is the
 * cause. */
static int spin_together(void)
{
    uint32_t lock = 0;
    int rank = number("RANK");

    if (rank == 0)
        syscall(SYS_futex, &lock, FUTEX_WAIT, 0, NULL);
    if (rank == 2)
        poll(NULL, 0, -1);
    for (volatile int on = 1; on;)
        ;
    return 9;
}

/* Threads that only check a clock, like those of libraries: half a percent of a core. */
static int idle(void)
{
    for (clock_t until = clock(); until != -1; poll(NULL, 0, 100)) {
        until += CLOCKS_PER_SEC / 2000;
        while (clock() < until)
            ;
    }
    return 9;
}

/* Computes TEST_WORK million steps that the compiler cannot remove; rank 0 prints when it began. */
static int compute(void)
{
    uint64_t x = 1;

    if (number("RANK") == 0)
        touch("began");
    for (long i = 0, n = 1000000L * number("TEST_WORK"); i < n; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    printf("rank %d of %d: %llx\n", number("RANK"), number("WORLD_SIZE"), (unsigned long long)x);
    return 0;
}

__attribute__((constructor)) static void be_a_worker(void)
{
    static const struct {
        const char *role;
        int (*run)(void);
    } roles[] = {{"wait", wait_for_go}, {"fill-shm", fill_shm},  {"call", call_the_other},
                 {"compute", compute},  {"hang", hang_together}, {"spin", spin_together},
                 {"idle", idle}};
    const char *role = getenv("TEST_WORKER");

    for (size_t i = 0; role && i < sizeof roles / sizeof *roles; i++)
        if (strcmp(role, roles[i].role) == 0) {
            int status = roles[i].run();
            fflush(NULL);
            _exit(status);
        }
}

const char *worker_program(void)
{
    static char path[1024];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

    path[n < 0 ? 0 : n] = '\0';
    return path;
}

int worker_run(const char *text, co_job_spec given)
{
    const char *argv[] = {"sh", "-c", text, NULL};
    co_roster *roster;
    int status = -1;

    given.terms = (co_terms){.run_id = "t", .nproc = given.terms.nproc, .min_hosts = 1, .max_hosts = 1};
    given.file = given.file ? given.file : "/bin/sh";
    given.argv = argv;
    given.host = "here";
    given.signal_names = "SIGTERM";
    given.grace_s = 5;
    sigemptyset(&given.signals);
    sigaddset(&given.signals, SIGTERM);
    setenv("TMPDIR", ".", 1);
    CHECK_OK(co_roster_local(&roster, &given.terms));
    CHECK_OK(co_job_run(&given, roster, &status));
    co_roster_close(roster);
    return status;
}
