/* `cohort logs`: several hosts' files as one stream, filtered and followed; large files are not read
 * completely. */
#include "cli/runs.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "job/logs.h"

static void sh(const char *line)
{
    test_run r = test_sh("%s", line);

    CHECK(r.status == 0, "%s: %s", line, r.out);
    free(r.out);
}

/* A line of a merged.log, `ms` after 10:00. */
static void put(const char *folder, int ms, const char *host, const char *rank, const char *text)
{
    char path[256];

    CHECK_OK(co_fs_mkdirs(folder));
    snprintf(path, sizeof path, "%s/merged.log", folder);
    FILE *f = fopen(path, "a");
    CHECK(f, "%s", path);
    fprintf(f, "2026-11-16T10:%02d:%02d.%03d000Z [%s:%s] %s\n", ms / 60000, ms / 1000 % 60, ms % 1000, host,
            rank, text);
    fclose(f);
}

/* Two hosts with alternating lines, and other runs beside them. */
static void two_hosts(void)
{
    put("logs/job_aaaaaaaa", 1000, "a", "-", "begins: attempt 0, ranks 0 to 1 of 4");
    put("logs/job_bbbbbbbb", 1100, "b", "-", "begins: attempt 0, ranks 2 to 3 of 4");
    for (int i = 0; i < 6; i++) {
        char text[32];
        snprintf(text, sizeof text, "line %d", i);
        put(i % 2 ? "logs/job_bbbbbbbb" : "logs/job_aaaaaaaa", 2000 + 10 * i, i % 2 ? "b" : "a",
            (const char *[]){"0", "2", "1", "3"}[i % 4], text);
    }
    put("logs/job_aaaaaaaa", 3000, "a", "-", "ends: exit status 0");
    put("logs/job_bbbbbbbb", 3001, "b", "-", "ends: exit status 0");
    put("logs/job_cccccccc", 100, "a", "0", "an earlier run of the same id");
    put("logs/job_cccccccc", 110, "a", "-", "ends: exit status 0");
    put("logs/other_dddddddd", 900, "a", "0", "another run");
    put("logs/other_dddddddd", 2050, "a", "-", "ends: exit status 0");
}

static void shows(const char *line, const char *want)
{
    test_run r = test_sh("$COHORT logs %s", line);

    CHECK(r.status == 0 && strcmp(r.out, want) == 0, "logs %s: status %d:\n%swanted:\n%s", line, r.status,
          r.out, want);
    free(r.out);
}

static void refused(const char *line, const char *words)
{
    test_run r = test_sh("$COHORT logs %s", line);

    CHECK(r.status == 2 && strstr(r.out, words), "logs %s: status %d: %s", line, r.status, r.out);
    free(r.out);
}

#define ALL                                                                                                  \
    "[a:-] begins: attempt 0, ranks 0 to 1 of 4\n[b:-] begins: attempt 0, ranks 2 to 3 of 4\n"               \
    "[a:0] line 0\n[b:2] line 1\n[a:1] line 2\n[b:3] line 3\n[a:0] line 4\n[b:2] line 5\n"                   \
    "[a:-] ends: exit status 0\n[b:-] ends: exit status 0\n"

TEST(the_files_of_all_hosts_are_one_stream_in_time_order)
{
    two_hosts();
    shows("logs", ALL);
    shows("", ALL);
    shows("job", ALL);
    shows("logs/job_bbbbbbbb logs/job_aaaaaaaa", ALL);
    shows("--rank 0,2-3 logs", "[a:0] line 0\n[b:2] line 1\n[b:3] line 3\n[a:0] line 4\n[b:2] line 5\n");
    shows("--rank - logs --host a",
          "[a:-] begins: attempt 0, ranks 0 to 1 of 4\n[a:-] ends: exit status 0\n");
    shows("logs --rank 3,- --host b", "[b:-] begins: attempt 0, ranks 2 to 3 of 4\n[b:3] line 3\n"
                                      "[b:-] ends: exit status 0\n");
    shows("logs --rank 7",
          "cohort: no line of rank 7; what there is: ranks 0 to 1 on a, ranks 2 to 3 on b\n");
    shows("logs --rank 3 --host a --tail 1",
          "cohort: no line of rank 3 on host a; what there is: ranks 0 to 1 on a, ranks 2 to 3 on b\n");
    shows("logs --host zz 2>/dev/null", "");
    shows("logs --rank=1 --time", "2026-11-16T10:00:02.020000Z [a:1] line 2\n");
    shows("logs --host b --tail 2", "[b:2] line 5\n[b:-] ends: exit status 0\n");
    shows("logs --rank 0-3 --tail 3", "[b:3] line 3\n[a:0] line 4\n[b:2] line 5\n");
    shows("logs --tail 0", "");
    shows("logs --tail 1000", ALL);
    shows("logs --since 2026-11-16T10:00:02.040 --rank 0-3", "[a:0] line 4\n[b:2] line 5\n");
    shows("logs --since 2026-11-16T10:00:02.020 --rank 0-3 --tail 2", "[a:0] line 4\n[b:2] line 5\n");
    shows("logs --since '2026-11-17 00:00'", "");
    shows("logs --follow --rank 3", "[b:3] line 3\n"); /* the job has ended, so --follow ends */
    shows("logs --json --rank 2 --tail 1",
          "{\"time\":\"2026-11-16T10:00:02.050000Z\",\"host\":\"b\",\"rank\":2,\"text\":\"line 5\"}\n");
    shows("logs --json --tail 1 --host a", "{\"time\":\"2026-11-16T10:00:03.000000Z\",\"host\":\"a\","
                                           "\"rank\":null,\"text\":\"ends: exit status 0\"}\n");
    shows("logs/job_cccccccc", "[a:0] an earlier run of the same id\n[a:-] ends: exit status 0\n");
    shows("other", "[a:0] another run\n[a:-] ends: exit status 0\n");
    sh("mkdir -p all/from-a all/from-b && mv logs/job_aaaaaaaa all/from-a && mv logs/job_bbbbbbbb "
       "all/from-b");
    shows("all", ALL);
    shows("all/from-a all/from-b", ALL);
}

TEST(jobs_without_an_id_that_ran_at_the_same_time_on_a_host_are_not_mixed)
{
    static const char *const hosts[] = {"a", "b"};

    for (int job = 0; job < 2; job++)
        for (int i = 0; i < 2; i++) {
            char folder[64], text[32];
            snprintf(folder, sizeof folder, "logs/none_%04d%04d", job, i);
            snprintf(text, sizeof text, "job %d", job);
            put(folder, 1000 + 100 * job + i, hosts[i], i ? "1" : "0", text);
            put(folder, 2000 + i, hosts[i], "-", "ends: exit status 0");
        }
    shows("logs --rank 0-9", "[a:0] job 1\n[b:1] job 1\n");
    shows("none --rank 0-9", "[a:0] job 1\n[b:1] job 1\n");
    sh("for i in logs/none_*; do mv $i logs/j_${i#*_}; done"); /* an id that was given is one job's */
    shows("logs --rank 0-9", "[a:0] job 0\n[b:1] job 0\n[a:0] job 1\n[b:1] job 1\n");
}

TEST(lines_that_are_none_stay_with_the_line_before_them)
{
    put("l/x_aaaaaaaa", 1, "a", "0", "first");
    sh("printf 'more of it\\n[a:1] no time\\n2026-11-16T10:00:00.002000Z [a:x] no rank\\n"
       "2026-11-16T10:00:00.002000Z [\\n\\n2026-11-16T10:00:00.002\\n' >> l/x_aaaaaaaa/merged.log");
    put("l/x_aaaaaaaa", 5, "a", "1", "\xff\x01 bytes");
    put("l/x_aaaaaaaa", 6, "a", "1", "");
    sh("printf 'torn' >> l/x_aaaaaaaa/merged.log");
    shows("l", "[a:0] first\n[a:0] more of it\n[a:0] [a:1] no time\n[a:0] 2026-11-16T10:00:00.002000Z [a:x] "
               "no rank\n"
               "[a:0] 2026-11-16T10:00:00.002000Z [\n[a:0] \n[a:0] 2026-11-16T10:00:00.002\n[a:1] \xff\x01 "
               "bytes\n[a:1] \n"); /* except a line that a full disk has cut */
    test_run r = test_sh("$COHORT logs l --json --since 2026-11-16T10:00:00.005 --tail 2 | head -1");
    CHECK(strstr(r.out, "\"text\":\"?\\u0001 bytes\"}"), "%s", r.out);
    free(r.out);
}

TEST(what_is_no_launched_run_is_refused_with_what_to_do)
{
    sh("mkdir -p empty run && touch run/events.jsonl");
    refused("empty", "`cohort launch --log-dir=empty ...` writes one");
    refused("run", "run is of `cohort train`: `cohort attach run` watches it");
    refused("nothing", "no folder nothing, and no run of that id");
    put("l/x_aaaaaaaa", 1, "a", "0", "first");
    refused("l --rank 3-1", "--rank=3-1: ranks and ranges are needed");
    refused("l --rank ,", "ranks and ranges");
    refused("l --rank=-3", "ranks and ranges");
    refused("l --since yesterday", "--since=yesterday: 30s, 10m");
    refused("l --tail many", "--tail=many: a number of lines");
    refused("l --folow", "did you mean --follow");
}

static char *text_of(const char *path)
{
    char *text = NULL;
    size_t len;

    test_may_leak();
    CHECK_OK(co_fs_read(&text, &len, path, 1 << 20));
    return text;
}

static bool has_words(void *words)
{
    return access("out", F_OK) == 0 && strstr(text_of("out"), words);
}

TEST(a_job_is_followed_through_a_restart_to_its_end)
{
    sh("mkfifo go");
    pid_t job = test_spawn(
        "job.out",
        "exec $COHORT launch --log-dir=logs --rdzv-id=j --nproc-per-node=2 --max-restarts=1 --no-python sh -c"
        " 'echo round $TORCHELASTIC_RESTART_COUNT of $RANK; if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then"
        " [ $RANK = 0 ] && exit 3; exec sleep 50; fi; [ $RANK = 1 ] || read line <go; echo last words'");
    sh("until ls logs/j_*/merged.log; do :; done");
    pid_t logs = test_spawn("out", "exec $COHORT logs logs -f");
    test_until(has_words, "round 1 of 0", 20, "the second attempt");
    sh("echo > go");
    CHECK(test_wait(job, 20) == 0, "%s", text_of("job.out"));
    CHECK(test_wait(logs, 20) == 0, "%s", text_of("out"));
    static const char *const words[] = {":-] begins: attempt 0, ranks 0 to 1 of 2",
                                        "round 0 of 0",
                                        ":-] cause: rank 0 on ",
                                        "exited with status 3",
                                        ":-] begins: attempt 1, ranks 0 to 1 of 2",
                                        "last words",
                                        ":-] ends: exit status 0\n"};
    const char *at = text_of("out");
    for (size_t i = 0; i < CO_COUNT(words); i++) {
        CHECK((at = strstr(at, words[i])), "no \"%s\" there, or in another order:\n%s", words[i],
              text_of("out"));
        at += strlen(words[i]);
    }
    CHECK(*at == '\0', "after the end: %s", at);
}

TEST(a_job_whose_launcher_was_killed_is_followed_to_there)
{
    pid_t job = test_spawn(
        "job.out",
        "exec $COHORT launch --log-dir=logs --rdzv-id=j --no-python sh -c 'echo hello; exec sleep 50'");
    sh("until grep hello logs/j_*/merged.log; do :; done");
    pid_t logs = test_spawn("out", "exec $COHORT logs j --follow");
    test_until(has_words, "hello", 20, "a line");
    CHECK(test_wait(logs, 0) == -1, "ended before the job");
    kill(job, SIGKILL);
    CHECK(test_wait(logs, 10) == 0, "%s", text_of("out"));
    CHECK(has_words("begins: attempt 0, rank 0 of 1\n"), "%s", text_of("out"));
    CHECK(has_words("is gone and wrote no \"ends:\" line"), "%s", text_of("out"));
    test_wait(job, 10);
}

TEST(a_host_that_comes_late_is_followed_too_and_another_run_is_not)
{
    put("logs/j_aaaaaaaa", 1000, "a", "0", "one");
    int held = open("logs/j_aaaaaaaa/merged.log", O_RDONLY | O_CLOEXEC);
    CHECK(held >= 0 && flock(held, LOCK_EX | LOCK_NB) == 0, "flock"); /* as its launcher does */
    pid_t logs = test_spawn("out", "exec $COHORT logs logs -f");
    test_until(has_words, "one", 20, "the first line");
    put("logs/j_bbbbbbbb", 1100, "b", "1", "two");
    test_until(has_words, "[b:1] two", 20, "the other host");
    put("logs/k_cccccccc", 1200, "c", "0", "not this");
    put("logs/j_bbbbbbbb", 1500, "b", "1", "three");
    test_until(has_words, "three", 20, "more of it");
    put("logs/j_aaaaaaaa", 1600, "a", "-", "ends: exit status 0");
    put("logs/j_bbbbbbbb", 1601, "b", "-", "ends: exit status 0");
    CHECK(test_wait(logs, 10) == 0, "%s", text_of("out"));
    CHECK(!strstr(text_of("out"), "not this"), "%s", text_of("out"));
}

static long long bytes_read(void)
{
    long long n = -1;
    FILE *f = fopen("/proc/self/io", "re");

    if (!f || fscanf(f, "rchar: %lld", &n) != 1)
        test_skip("no /proc/self/io");
    fclose(f);
    return n;
}

static int lines_of(co_logs_spec spec, long long *read)
{
    const char *word = "big";
    long long before = bytes_read();
    co_log_line l;
    co_logs *logs;
    int n = 0;

    spec.words = &word;
    spec.n = 1;
    CHECK_OK(co_logs_open(&logs, &spec));
    for (;;) {
        CHECK_OK(co_logs_next(logs, &l));
        if (!l.text)
            break;
        n++;
    }
    co_logs_close(logs);
    *read = bytes_read() - before;
    return n;
}

TEST(the_end_and_a_time_of_a_large_file_are_found_without_reading_it)
{
    enum { LINES = 400000 };
    co_logs_spec spec = {.tail = 100};
    char stamp[CO_STAMP];
    long long read;

    CHECK(mkdir("big", 0777) == 0, "mkdir");
    FILE *f = fopen("big/merged.log", "w");
    for (int i = 0; i < LINES; i++) {
        co_stamp(stamp, 1.7e9 + i);
        fprintf(f, "%s [a:%d] line %d with some text after it\n", stamp, i % 1000 == 0 ? 9 : i % 4, i);
    }
    long size = ftell(f);
    fclose(f);
    int n = lines_of(spec, &read);
    test_note("a file of %ld bytes; the last 100 lines: %lld bytes read", size, read);
    CHECK(n == 100 && read < 1 << 20, "%d lines", n);
    spec.tail = -1;
    co_stamp(spec.since, 1.7e9 + LINES - 1000);
    n = lines_of(spec, &read);
    test_note("the last 1000 seconds: %lld bytes read", read);
    CHECK(n == 1000 && read < 8 << 20, "%d lines, %lld bytes", n, read);
    spec = (co_logs_spec){.tail = 20, .ranks = "9"};
    n = lines_of(spec, &read);
    test_note("the last 20 of a rank that says little: %lld bytes read", read);
    CHECK(n == 20 && read < 16 << 20, "%d lines, %lld bytes", n, read);
    spec = (co_logs_spec){.tail = -1};
    n = lines_of(spec, &read);
    CHECK(n == LINES, "%d lines", n);
}
