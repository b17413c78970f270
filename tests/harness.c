/* harness.c -- runs every registered test in a child process, in its own group and folder, under a deadline.
 *
 * Output of a test is kept and shown only if it fails (or -v). Closes with "N passed, N failed".
 */
#include "harness.h"

/* Sanitizers make everything slower, and deadlines are there for what hangs. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { SLOWER = 3 };
#else
enum { SLOWER = 1 };
#endif

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"

enum { SKIPPED = 77, MAX_JOBS = 8, MAX_EXCEPT = 128, NOTES_SHOWN = 12 };

static test *tests;
static char repo[PATH_MAX], program[PATH_MAX], scratch[PATH_MAX / 2];
static FILE *notes; /* where test_note writes */

struct job {
    test *t;
    pid_t pid;
    char dir[PATH_MAX], log[PATH_MAX + 8], notes[PATH_MAX + 8];
    double started;
};

/* LeakSanitizer's, there in the asan variant only. */
__attribute__((weak)) int __lsan_do_recoverable_leak_check(void);
static int (*const leak_check)(void) = __lsan_do_recoverable_leak_check;

static bool may_leak;

void test_may_leak(void)
{
    may_leak = true;
}

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

void test_register(test *t)
{
    test **at = &tests;
    while (*at && (strcmp((*at)->file, t->file) < 0))
        at = &(*at)->next;
    while (*at && strcmp((*at)->file, t->file) == 0)
        at = &(*at)->next;
    t->next = *at;
    *at = t;
}

void test_fail(const char *file, int line, const char *cond, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    printf("%s:%d: %s\n    ", file, line, cond);
    vprintf(fmt, ap);
    printf("\n");
    va_end(ap);
    fflush(NULL);
    _exit(1);
}

void test_skip(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(notes, "SKIPPED: ");
    vfprintf(notes, fmt, ap);
    fprintf(notes, "\n");
    va_end(ap);
    fflush(NULL);
    _exit(SKIPPED);
}

void test_note(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vfprintf(notes, fmt, ap);
    fprintf(notes, "\n");
    va_end(ap);
    fflush(notes);
}

bool test_contains(const char *text, const char *words)
{
    return strstr(text, words) != NULL;
}

void test_has_all(const char *text, const char *const *wanted, size_t n)
{
    for (size_t i = 0; i < n; i++)
        CHECK(test_contains(text, wanted[i]), "not there: %s\n%s", wanted[i], text);
}

void test_own_runs(void)
{
    char cwd[PATH_MAX], path[PATH_MAX + 16];

    CHECK(getcwd(cwd, sizeof cwd), "getcwd");
    snprintf(path, sizeof path, "%s/runtime", cwd);
    CHECK(mkdir(path, 0700) == 0, "mkdir %s: %m", path);
    setenv("XDG_RUNTIME_DIR", path, 1);
}

const char *test_repo(const char *relative)
{
    static char buf[4][PATH_MAX + 256];
    static int turn;
    char *b = buf[turn++ % 4];
    snprintf(b, sizeof buf[0], "%s/%s", repo, relative);
    return b;
}

const char *test_cohort(void)
{
    return program;
}

static char *slurp(const char *path)
{
    FILE *f = fopen(path, "re");
    size_t len = 0, room = 1 << 16;
    char *text = malloc(room);
    while (f && !feof(f)) {
        if (len + 4096 > room)
            text = realloc(text, room *= 2);
        len += fread(text + len, 1, 4095, f);
    }
    text[len] = '\0';
    if (f)
        fclose(f);
    return text;
}

pid_t test_spawn(const char *out_file, const char *fmt, ...)
{
    char line[8192];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* also where it leaves the test's process group */
        int fd = open(out_file ? out_file : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0644);
        dup2(fd, 1);
        dup2(fd, 2);
        close(fd);
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    return pid;
}

int test_wait(pid_t pid, double timeout_s)
{
    double end = now() + timeout_s;
    int st;
    for (;;) {
        pid_t got = waitpid(pid, &st, WNOHANG);
        if (got == pid)
            return WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st);
        if (got < 0 || now() > end)
            return -1;
        poll(NULL, 0, 2);
    }
}

/* What a command printed may be freed by the test, or left to the end of its process: LeakSanitizer finds it
 * here. */
static void keep_reachable(char *text)
{
    static char *kept[4096];
    static size_t n;

    kept[n++ % CO_COUNT(kept)] = text;
}

test_run test_sh(const char *fmt, ...)
{
    char line[8192];
    static int n;
    char out[64];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    snprintf(out, sizeof out, ".out-%d-%d", (int)getpid(), n++);
    double t0 = now();
    pid_t pid = test_spawn(out, "%s", line);
    test_run r = {.status = test_wait(pid, 590)};
    r.secs = now() - t0;
    r.out = slurp(out);
    unlink(out);
    keep_reachable(r.out);
    return r;
}

void test_each_alloc_fails(co_err (*body)(void *), void *ctx)
{
    for (int64_t n = 1;; n++) {
        CHECK(n < 100000, "no end: does the body allocate in a loop?");
        uint64_t before = co_alloc_count();
        co_alloc_fail_at(n);
        co_err err = body(ctx);
        co_alloc_fail_at(0);
        uint64_t used = co_alloc_count() - before;
        if (used < (uint64_t)n) {
            CHECK(err == CO_OK, "fails without a failing allocation: %s", co_errmsg());
            return;
        }
        CHECK(err != CO_OK, "allocation %lld of %llu failed and nobody noticed", (long long)n,
              (unsigned long long)used);
    }
}

void test_until(bool (*cond)(void *), void *ctx, double timeout_s, const char *what)
{
    double end = now() + timeout_s;
    while (!cond(ctx)) {
        CHECK(now() < end, "waited %g s for: %s", timeout_s, what);
        poll(NULL, 0, 1);
    }
}

uint32_t test_u32(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u); /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (uint32_t)((z ^ (z >> 31)) >> 32);
}

float test_unit(uint64_t *state)
{
    return (float)(test_u32(state) >> 8) * 0x1p-23f - 1.0f;
}

/* Without a folder or a process there are no tests: a full disk, a limit of processes. */
static _Noreturn void give_up(const char *what, const char *name)
{
    printf("FAIL all of it: %s (%s): %s\n", what, name, strerror(errno));
    fflush(stdout);
    exit(1);
}

static void start(struct job *j, test *t, int number)
{
    *j = (struct job){.t = t, .started = now()};
    snprintf(j->dir, sizeof j->dir, "%s/%d", scratch, number);
    snprintf(j->log, sizeof j->log, "%s/%d.log", scratch, number);
    snprintf(j->notes, sizeof j->notes, "%s/%d.notes", scratch, number);
    if (mkdir(j->dir, 0777) != 0)
        give_up("no folder for a test", j->dir);
    fflush(NULL);
    j->pid = fork();
    if (j->pid < 0)
        give_up("no process for a test", t->name);
    if (j->pid != 0)
        return;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    static const int usual[] = {SIGINT, SIGQUIT, SIGHUP,
                                SIGPIPE}; /* a shell's background, nohup: they ignore some */
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        signal(usual[i], SIG_DFL);
    int fd = open(j->log, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(fd, 1);
    dup2(fd, 2);
    close(fd);
    close(0);
    open("/dev/null", O_RDONLY);
    notes = fopen(j->notes, "we");
    if (chdir(j->dir) != 0 || !notes)
        _exit(1);
    t->fn();
    fflush(NULL);
    if (leak_check && !may_leak && leak_check())
        _exit(1);
    _exit(0);
}

/* The first lines, and how many more there are. */
static void show_notes(const struct job *j, bool all)
{
    char *text = slurp(j->notes);
    int n = 0;

    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), n++)
        if (all || n < NOTES_SHOWN)
            printf("     # %s\n", line);
    if (!all && n > NOTES_SHOWN)
        printf("     # ... and %d lines more (-v shows them)\n", n - NOTES_SHOWN);
    free(text);
}

/* What a test leaves may be large: some have hundreds of megabytes. */
static void clear_up(const struct job *j)
{
    char cmd[3 * PATH_MAX + 64];

    snprintf(cmd, sizeof cmd, "rm -rf '%s' 2>/dev/null || { chmod -R u+rwx '%s'; rm -rf '%s'; }", j->dir,
             j->dir, j->dir);
    if (system(cmd) != 0)
        printf("     # could not remove %s\n", j->dir);
}

/* Returns 1 passed, 0 failed, -1 skipped. */
static int finish(struct job *j, int st, bool late, bool verbose)
{
    kill(-j->pid, SIGKILL); /* whatever the test left running */
    bool skipped = WIFEXITED(st) && WEXITSTATUS(st) == SKIPPED;
    bool ok = WIFEXITED(st) && WEXITSTATUS(st) == 0;
    printf("%s %s (%.1f s)%s\n",
           skipped ? "skip"
           : ok    ? "ok  "
                   : "FAIL",
           j->t->name, now() - j->started, late ? " past its deadline" : "");
    show_notes(j, verbose || !ok);
    if ((!ok && !skipped) || verbose) {
        if (WIFSIGNALED(st) && !late)
            printf("     killed by signal %d (%s)\n", WTERMSIG(st), strsignal(WTERMSIG(st)));
        char *text = slurp(j->log);
        size_t len = strlen(text);
        printf("%s%s\n", len > 12000 ? "...\n" : "", text + (len > 12000 ? len - 12000 : 0));
        free(text);
    }
    if (ok || skipped)
        clear_up(j);
    fflush(stdout);
    return skipped ? -1 : ok;
}

static void find_places(const char *argv0)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n < 0 ? 0 : n] = '\0';
    (void)argv0;
    char *slash = strrchr(self, '/'); /* .../build/VARIANT/tests */
    *slash = '\0';
    snprintf(program, sizeof program, "%.*s/cohort", PATH_MAX - 16, self);
    if (access(program, X_OK) != 0)
        snprintf(program, sizeof program, "%.*s/../cohort", PATH_MAX - 16, self);
    snprintf(repo, sizeof repo, "%.*s/../..", PATH_MAX - 16, self);
    char *real = realpath(repo, NULL);
    snprintf(repo, sizeof repo, "%s", real ? real : ".");
    free(real);
    real = realpath(program, NULL);
    if (real)
        snprintf(program, sizeof program, "%s", real);
    free(real);
    setenv("COHORT", program, 1);
    setenv("REPO", repo, 1);
    const char *tmp = getenv("TMPDIR");
    snprintf(scratch, sizeof scratch, "%s/cohort-tests-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(scratch))
        exit(1);
    setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:1", 1); /* nobody listens there */
    setenv("WANDB_MODE", "offline", 1); /* no test uploads to the public service, whatever key is here */
    setenv("XDG_RUNTIME_DIR", scratch, 1);
    char cache[PATH_MAX];
    snprintf(cache, sizeof cache, "%s/cache", scratch); /* gone with the tests */
    setenv("COHORT_CACHE", cache, 1);
}

static bool is_excepted(const test *t, const char *const *words)
{
    for (; *words; words++)
        if (strstr(t->name, *words) || strstr(t->file, *words))
            return true;
    return false;
}

static char *listed; /* the file of words: they point into it */

/* Adds the words of a file, one a line; # begins a comment. Returns the new count. */
static int except_listed(const char *path, const char **except, int n)
{
    listed = slurp(path);
    for (char *line = strtok(listed, "\n"); line; line = strtok(NULL, "\n")) {
        if (*line == '#')
            continue;
        if (n == MAX_EXCEPT - 1) {
            fprintf(stderr, "tests: %s has more than %d words\n", path, MAX_EXCEPT - 1);
            exit(2);
        }
        except[n++] = line;
    }
    if (!n) {
        fprintf(stderr, "tests: %s is not there, or has no words\n", path);
        exit(2);
    }
    return n;
}

int main(int argc, char **argv)
{
    const char *only = NULL, *except[MAX_EXCEPT] = {0};
    bool with_long = false, only_long = false, verbose = false;
    int jobs = 3, opt, excepted = 0, passed = 0, failed = 0, skipped = 0, number = 0, running = 0;
    struct job job[MAX_JOBS] = {0};

    while ((opt = getopt(argc, argv, "k:x:X:lLvj:")) != -1) {
        if (opt == 'k')
            only = optarg;
        else if (opt == 'x' && !except[MAX_EXCEPT - 2])
            except[excepted++] = optarg;
        else if (opt == 'X')
            excepted = except_listed(optarg, except, excepted);
        else if (opt == 'l' || opt == 'L')
            with_long = true, only_long = opt == 'L';
        else if (opt == 'v')
            verbose = true;
        else if (opt == 'j')
            jobs = atoi(optarg) < 1 ? 1 : atoi(optarg) > MAX_JOBS ? MAX_JOBS : atoi(optarg);
        else
            return 2;
    }
    find_places(argv[0]);
    test *t = tests;
    while (t || running) {
        for (; t && running < jobs; t = t->next) {
            if ((only && !strstr(t->name, only) && !strstr(t->file, only)) || (t->is_long && !with_long) ||
                (only_long && !t->is_long) || is_excepted(t, except))
                continue;
            int i = 0;
            while (job[i].pid)
                i++;
            start(&job[i], t, number++);
            running++;
        }
        for (int i = 0; i < jobs; i++) {
            int st = 0;
            if (!job[i].pid)
                continue;
            bool late = now() - job[i].started > job[i].t->deadline_s * SLOWER;
            if (late)
                kill(-job[i].pid, SIGKILL);
            if (waitpid(job[i].pid, &st, late ? 0 : WNOHANG) != job[i].pid)
                continue;
            int r = finish(&job[i], st, late, verbose);
            *(r < 0 ? &skipped : r ? &passed : &failed) += 1;
            job[i].pid = 0;
            running--;
        }
        poll(NULL, 0, 2);
    }
    char cmd[PATH_MAX];
    snprintf(cmd, sizeof cmd, "rm -rf '%s'", scratch);
    if (!failed && system(cmd) != 0)
        fprintf(stderr, "could not remove %s\n", scratch);
    printf("%d passed, %d failed", passed, failed);
    if (skipped)
        printf(", %d skipped", skipped);
    printf("\n");
    free(listed);
    return failed != 0;
}
