/* test_events.c -- the record: lines, full disks, the lease while it is written. */
#include "track_test.h"
#include "track/track_int.h"

#include <unistd.h>
#include <sys/syscall.h>
#include <stdlib.h>
#include <poll.h>
#include <errno.h>
#include <math.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

TEST(events_are_lines_of_json_with_step_name_value_and_time)
{
    co_folder *f;
    CHECK_OK(co_folder_open(&f, "run", "t"));
    co_event_scalar(f, 3, "train/\"loss\"", 0.1);
    co_event_scalar(f, 4, "loss", NAN);
    co_event_scalar(f, 4, "loss", -INFINITY);
    co_event_json(f, json_pack("{s:s,s:i,s:i}", "name", "checkpoint", "step", 4, "t", 1));
    co_event_json(f, json_object());
    co_event_text(f, "{\"name\":\"h\"}", 12);
    CHECK(!co_fs_exists("run/events.jsonl"), "buffered");
    CHECK_OK(co_events_flush(f));
    char *text = slurp("run/events.jsonl"), *line = text;
    static const char *const want[] = {"{\"step\":3,\"name\":\"train/\\\"loss\\\"\",\"value\":0.1,\"t\":",
                                       "{\"step\":4,\"name\":\"loss\",\"value\":\"nan\",\"t\":",
                                       "{\"step\":4,\"name\":\"loss\",\"value\":\"-inf\",\"t\":",
                                       "{\"name\":\"checkpoint\",\"step\":4,\"t\":1",
                                       "{\"t\":1",
                                       "{\"name\":\"h\",\"t\":1"};
    for (size_t i = 0; i < CO_COUNT(want); i++) {
        json_t *v;
        size_t len = strcspn(line, "\n");
        CHECK(!strncmp(line, want[i], strlen(want[i])), "%s", line);
        CHECK_OK(co_json_parse(&v, line, len, "line"));
        double t = 0;
        CHECK(co_json_f64(v, "t", &t) && t > 1e9, "t %g", t);
        json_decref(v);
        line += len + 1;
    }
    CHECK(!*line, "more lines");
    co_free(text);
    co_folder_close(f);
}

TEST(a_line_cut_by_a_crash_is_closed_before_the_next)
{
    co_folder *f;
    CHECK_OK(co_fs_mkdirs("run"));
    CHECK_OK(co_fs_write_atomic("run/events.jsonl", "{\"step\":1", 9));
    CHECK_OK(co_folder_open(&f, "run", "t"));
    co_event_scalar(f, 2, "loss", 5);
    co_folder_close(f);
    char *text = slurp("run/events.jsonl");
    CHECK(!strncmp(text, "{\"step\":1\n{\"step\":2,", 20), "%s", text);
    co_free(text);
}

static int warnings, notices;
static void count(void *ctx, co_log_level level, const char *text)
{
    warnings += level == CO_LOG_WARN;
    notices += level == CO_LOG_INFO;
}

/* Every step from 0 to n-1 once and in order. */
static void check_steps(const char *path, int n)
{
    char *text = slurp(path), *line = text;
    for (int i = 0; i < n; i++) {
        json_t *v;
        long long step = -1;
        size_t len = strcspn(line, "\n");
        CHECK(line[len] == '\n', "line %d is cut", i);
        CHECK_OK(co_json_parse(&v, line, len, path));
        CHECK(co_json_i64(v, "step", &step) && step == i, "line %d has step %lld", i, step);
        json_decref(v);
        line += len + 1;
    }
    CHECK(!*line, "more lines: %s", line);
    co_free(text);
}

TEST(a_disk_that_refuses_and_then_takes_again_loses_nothing)
{
    co_folder *f;
    struct rlimit small = {5000, RLIM_INFINITY}, large = {RLIM_INFINITY, RLIM_INFINITY};
    int n = 0;
    signal(SIGXFSZ, SIG_IGN);
    co_log_to(count, NULL, CO_LOG_DEBUG);
    CHECK_OK(co_folder_open(&f, "run", "t"));
    for (int round = 0; round < 3; round++) {
        CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0, "setrlimit"); /* writes past it fail, the last in part */
        for (int i = 0; i < 1500; i++)
            co_event_scalar(f, n++, "loss", 0.25);
        CHECK_FAILS(co_events_flush(f), CO_EIO, "run/events.jsonl");
        CHECK_FAILS(co_events_flush(f), CO_EIO, "run/events.jsonl");
        CHECK(warnings == round + 1, "%d warnings", warnings);
        CHECK(setrlimit(RLIMIT_FSIZE, &large) == 0, "setrlimit");
        CHECK_OK(co_events_flush(f));
        CHECK(notices == round + 1, "%d notices", notices);
        check_steps("run/events.jsonl", n);
    }
    co_folder_close(f);
}

TEST(past_one_mebibyte_events_are_counted_and_the_count_is_written)
{
    co_folder *f;
    struct rlimit small = {0, RLIM_INFINITY}, large = {RLIM_INFINITY, RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    CHECK_OK(co_folder_open(&f, "run", "t"));
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0, "setrlimit");
    for (int i = 0; i < 40000; i++)
        co_event_scalar(f, i, "loss", 0.25);
    CHECK(co_events_flush(f) == CO_EIO, "flush");
    CHECK(setrlimit(RLIMIT_FSIZE, &large) == 0, "setrlimit");
    CHECK_OK(co_events_flush(f));
    char *text = slurp("run/events.jsonl");
    size_t len = strlen(text);
    int lines = 0, lost = 0;
    for (char *s = text; (s = strchr(s, '\n')); s++)
        lines++;
    CHECK(len > (1 << 20) - 200 && len < (1 << 20) + 200, "%zu bytes", len);
    char *at = strstr(text, "{\"name\":\"events_lost\",\"value\":");
    CHECK(at && sscanf(at, "{\"name\":\"events_lost\",\"value\":%d,", &lost) == 1, "no count");
    CHECK(lines - 1 + lost == 40000, "%d lines and %d lost", lines, lost);
    co_free(text);
    co_folder_close(f);
}

TEST(a_full_disk_that_gets_space_again_loses_nothing)
{
    co_folder *f;
    CHECK(mkdir("disk", 0777) == 0, "mkdir");
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", "disk", "tmpfs", 0, "size=128k") != 0)
        test_skip("no tmpfs can be mounted here: %s (RLIMIT_FSIZE stands in for it in another test)",
                  strerror(errno));
    CHECK_OK(co_folder_open(&f, "disk/run", "t"));
    int fd = open("disk/ballast", O_WRONLY | O_CREAT, 0600), n = 0;
    static char zeros[4096];
    while (write(fd, zeros, sizeof zeros) > 0)
        ;
    for (int i = 0; i < 3000; i++)
        co_event_scalar(f, n++, "loss", 0.5);
    CHECK_FAILS(co_events_flush(f), CO_EIO, "No space left");
    CHECK(ftruncate(fd, 4096) == 0, "ftruncate");
    co_event_scalar(f, n++, "loss", 0.5);
    co_err err = co_events_flush(f); /* it may hold only part of it, still */
    CHECK(err == CO_OK || err == CO_EIO, "flush: %s", co_errmsg());
    CHECK(mount("tmpfs", "disk", "tmpfs", MS_REMOUNT, "size=4m") == 0, "remount");
    CHECK_OK(co_events_flush(f));
    check_steps("disk/run/events.jsonl", n);
    co_folder_close(f);
}

TEST(no_line_is_written_into_a_folder_that_another_has_taken_over)
{
    co_folder *f;
    json_t *v;
    CHECK_OK(co_folder_open(&f, "run", "t"));
    CHECK_OK(co_json_read(&v, "run/lease.json", 1 << 16));
    json_object_set_new(v, "run_id", json_string("another"));
    CHECK_OK(co_json_write(v, "run/lease.json"));
    json_decref(v);
    co_event_scalar(f, 1, "loss", 1);
    f->renewed_s = -1000; /* the lease is looked at every few seconds: now */
    CHECK_FAILS(co_events_flush(f), CO_EFAIL, "was taken over by pid");
    CHECK_FAILS(co_events_flush(f), CO_EFAIL, "was taken over by pid");
    CHECK_FAILS(co_folder_write(f, "summary", "x", 1), CO_EFAIL, "was taken over by pid");
    co_folder_close(f);
    CHECK(!co_fs_exists("run/events.jsonl") && co_fs_exists("run/lease.json"),
          "the other's folder is left alone");
}

TEST(a_lease_is_renewed_while_events_are_flushed)
{
    co_folder *f;
    struct stat st;
    struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    CHECK_OK(co_folder_open(&f, "run", "t"));
    CHECK(utimensat(AT_FDCWD, "run/lease.json", old, 0) == 0, "utimensat");
    f->renewed_s = -1000;
    CHECK_OK(co_events_flush(f));
    CHECK(stat("run/lease.json", &st) == 0 && st.st_mtime > 1000000000, "not touched");
    CHECK(unlink("run/lease.json") == 0, "unlink"); /* by a hand that meant well */
    f->renewed_s = -1000;
    CHECK_OK(co_events_flush(f));
    CHECK(co_fs_exists("run/lease.json"), "taken again");
    co_folder_close(f);
}

static bool renewer_is_gone(void *ctx)
{
    co_folder *f = ctx;
    struct pollfd p = {.fd = f->renewer_fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

/* The next flush after this one sees what its renewer found. */
static co_err flush_and_flush(co_folder *f)
{
    f->renewed_s = -1000;
    CHECK_OK(co_events_flush(f));
    CHECK(f->renewer > 0, "nobody renews the second lease");
    test_until(renewer_is_gone, f, 10, "the renewer's end");
    return co_events_flush(f);
}

/* The renewer is stopped as if its disk hung. */
TEST_WITHIN(a_flush_does_not_wait_for_the_lease_of_a_second_folder_and_learns_of_its_loss, 20)
{
    co_folder *f;

    CHECK(mkdir("elsewhere", 0777) == 0, "%m");
    CHECK_OK(co_folder_open(&f, "run", "t"));
    CHECK_OK(co_folder_lease_too(f, "elsewhere", "dirpath"));
    CHECK_OK(flush_and_flush(f));
    CHECK(f->renewer == 0, "it was not reaped");
    pid_t hung = fork(); /* in the renewer's place */
    if (hung == 0)
        for (;;)
            pause();
    f->renewer = hung;
    f->renewer_fd = (int)syscall(SYS_pidfd_open, hung, 0);
    for (int i = 0; i < 3; i++) {
        f->renewed_s = -1000;
        CHECK_OK(co_events_flush(f));
        CHECK(f->renewer == hung, "another one was started beside it");
    }
    kill(hung, SIGKILL);
    test_until(renewer_is_gone, f, 10, "the renewer's end");
    CHECK_OK(co_events_flush(f));
    test_run r = test_sh("sed -i 's/\"run_id\": *\"[^\"]*\"/\"run_id\":\"another\"/' elsewhere/lease.json && "
                         "cat elsewhere/lease.json");
    CHECK(test_contains(r.out, "another"), "%s", r.out);
    free(r.out);
    CHECK_FAILS(flush_and_flush(f), CO_EFAIL, "elsewhere was taken over");
    CHECK_FAILS(co_events_flush(f), CO_EFAIL, "elsewhere was taken over");
    co_folder_close(f);
}
