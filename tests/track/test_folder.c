/* test_folder.c -- the run folder: names, writing, discarding. */
#include "track_test.h"

#include <signal.h>
#include <sys/stat.h>

TEST(a_dated_folder_is_made_and_a_second_one_gets_a_number)
{
    co_folder *f[3];
    for (int i = 0; i < 3; i++)
        CHECK_OK(co_folder_open(&f[i], NULL, "demo"));
    const char *a = co_folder_path(f[0]), *b = co_folder_path(f[1]), *c = co_folder_path(f[2]);
    int y, mo, d, h, mi, s, end = 0;
    CHECK(sscanf(a, "logs/demo/runs/%4d-%2d-%2d_%2d-%2d-%2d%n", &y, &mo, &d, &h, &mi, &s, &end) == 6 && !a[end],
          "%s", a);
    CHECK(strcmp(a, b) && strcmp(b, c) && strcmp(a, c), "%s %s %s", a, b, c);
    if (!strncmp(a, c, strlen(a))) /* all within one second, as nearly always */
        CHECK(!strcmp(b + strlen(a), "-2") && !strcmp(c + strlen(a), "-3"), "%s %s", b, c);
    CHECK(strcmp(co_folder_run_id(f[0]), co_folder_run_id(f[1])), "run ids");
    CHECK_OK(co_folder_write(f[0], "config.yaml", "a: 1\n", 5));
    CHECK_OK(co_folder_write(f[0], "plots/deep/x.svg", "x", 1));
    json_t *v = json_pack("{s:i}", "steps", 3);
    CHECK_OK(co_folder_write_json(f[0], "summary.json", v));
    json_decref(v);
    char path[512];
    snprintf(path, sizeof path, "%s/summary.json", a);
    CHECK_OK(co_json_read(&v, path, 1000));
    CHECK(json_integer_value(json_object_get(v, "steps")) == 3, "steps");
    json_decref(v);
    snprintf(path, sizeof path, "%s/plots/deep/x.svg", a);
    CHECK(co_fs_exists(path), "%s", path);
    for (int i = 0; i < 3; i++)
        co_folder_close(f[i]);
    co_folder_close(NULL);
}

TEST(discard_removes_what_we_made_and_nothing_else)
{
    co_folder *f;
    CHECK_OK(co_folder_open(&f, "a/b/c/", "t"));
    CHECK(!strcmp(co_folder_path(f), "a/b/c") && co_fs_exists("a/b/c/lease.json"), "made");
    CHECK_OK(co_folder_write(f, "x", "x", 1));
    co_event_scalar(f, 1, "loss", 1);
    co_folder_discard(f);
    CHECK(!co_fs_exists("a"), "a is still there");

    CHECK_OK(co_fs_mkdirs("a/keep"));
    CHECK_OK(co_folder_open(&f, "a/b/c", "t"));
    co_folder_discard(f);
    CHECK(co_fs_exists("a/keep") && !co_fs_exists("a/b"), "only ours goes");

    CHECK_OK(co_fs_mkdirs("old"));
    CHECK_OK(co_fs_write_atomic("old/file", "x", 1));
    CHECK_OK(co_folder_open(&f, "old", "t"));
    co_event_scalar(f, 1, "loss", 1);
    co_folder_discard(f);
    CHECK(co_fs_exists("old/file") && !co_fs_exists("old/lease.json") && !co_fs_exists("old/events.jsonl"),
          "old");
    co_folder_discard(NULL);
}

TEST(a_folder_that_cannot_be_is_bad_input_with_its_path)
{
    co_folder *f = NULL;
    CHECK_OK(co_fs_write_atomic("file", "x", 1));
    CHECK_FAILS(co_folder_open(&f, "file/run", "t"), CO_EINPUT, "file/run");
    CHECK_FAILS(co_folder_open(&f, "file/deep/run", "t"), CO_EINPUT, "file/deep/run");
    CHECK_FAILS(co_folder_open(&f, "file", "t"), CO_EINPUT, "run folder file");
    CHECK_FAILS(co_folder_open(&f, "/proc/nowhere/run", "t"), CO_EINPUT, "/proc/nowhere");
    CHECK_FAILS(co_folder_open(&f, "", "t"), CO_EINPUT, "run.dir is empty");
    CHECK_FAILS(co_folder_open(&f, NULL, "../up"), CO_EINPUT, "task_name \"../up\"");
    if (geteuid() == 0)
        CHECK_FAILS(co_folder_open(&f, "/proc/self", "t"), CO_EINPUT,
                    "run folder /proc/self cannot be written");
    CHECK(!f, "out was written");
}

TEST(every_failing_allocation_of_opening_a_folder_is_an_error)
{
    /* close gives the lease back as far as memory allows; so each round starts from a free one */
    co_folder *f;
    for (int64_t n = 1;; n++) {
        uint64_t before = co_alloc_count();
        co_alloc_fail_at(n);
        f = NULL;
        co_err err = co_folder_open(&f, "x/y", "t");
        co_alloc_fail_at(0);
        if (co_alloc_count() - before < (uint64_t)n) {
            CHECK(!err, "%s", co_errmsg());
            co_folder_close(f);
            break;
        }
        CHECK(err, "allocation %lld failed and nobody noticed", (long long)n);
        CHECK(!co_fs_exists("x"), "allocation %lld: the folder was left behind", (long long)n);
    }
}

TEST(a_link_or_a_fifo_in_place_of_a_log_is_refused_and_nobody_waits)
{
    co_folder *f;
    int fd;
    CHECK_OK(co_fs_mkdirs("run"));
    CHECK_OK(co_fs_write_atomic("victim", "mine", 4));
    CHECK(symlink("../victim", "run/events.jsonl") == 0 && mkfifo("run/train.log", 0600) == 0, "%m");
    CHECK_OK(co_folder_open(&f, "run", "t"));
    CHECK_FAILS(co_events_open(f), CO_EINPUT, "run/events.jsonl is a link");
    CHECK_FAILS(co_folder_append(f, "train.log", &fd), CO_EINPUT, "run/train.log is not a regular file");
    co_event_scalar(f, 1, "loss", 1);
    CHECK_FAILS(co_events_flush(f), CO_EINPUT, "run/events.jsonl is a link");
    co_folder_close(f);
    char *text = slurp("victim");
    CHECK(strcmp(text, "mine") == 0, "written through the link: %s", text);
    co_free(text);
}

TEST(temporary_files_of_killed_runs_are_swept_and_those_of_live_starters_stay)
{
    co_folder *f;
    json_t *v;
    leave_dead_lease("run"); /* its text names a dead process */
    CHECK_OK(co_json_read(&v, "run/lease.json", 1 << 16));
    json_object_set_new(v, "run_id", json_string("dead"));
    CHECK_OK(co_json_write(v, "run/.lease-dead"));
    json_decref(v);
    CHECK_OK(co_folder_open(&f, "other", "t"));
    CHECK_OK(co_json_read(&v, "other/lease.json", 1 << 16));
    CHECK_OK(co_json_write(v, "run/.lease-alive"));
    json_decref(v);
    co_folder_close(f);
    test_run r = test_sh(
        "cd run && mkdir csv && touch config.yaml.tmp-99-0 csv/metrics.csv.tmp-12345-7 notes.tmp-mine");
    CHECK(r.status == 0, "%s", r.out);
    CHECK_OK(co_folder_open(&f, "run", "t"));
    r = test_sh("cd run && find . -type f | sort | tr '\\n' ' '");
    CHECK(strcmp(r.out, "./.lease-alive ./lease.json ./notes.tmp-mine ") == 0, "%s", r.out);
    co_folder_close(f);
}

TEST(a_run_folder_that_is_removed_or_replaced_is_noticed_and_not_made_again)
{
    co_folder *f;
    CHECK_OK(co_folder_open(&f, "run", "t"));
    co_event_scalar(f, 1, "loss", 1);
    CHECK_OK(co_events_flush(f));
    CHECK_OK(co_folder_settle(f));
    CHECK(rename("run", "moved") == 0, "%m");
    co_event_scalar(f, 2, "loss", 1);
    CHECK_FAILS(co_events_flush(f), CO_EFAIL, "run folder run is gone");
    CHECK_FAILS(co_folder_write(f, "csv/x", "x", 1), CO_EFAIL, "run folder run is gone");
    CHECK_FAILS(co_folder_settle(f), CO_EFAIL, "folder run is gone");
    CHECK(!co_fs_exists("run"), "it was made again");
    CHECK(mkdir("run", 0777) == 0, "%m");
    CHECK_FAILS(co_events_flush(f), CO_EFAIL, "run folder run is gone");
    co_folder_close(f);
    test_run r = test_sh("ls -A run");
    CHECK(!*r.out, "%s", r.out);
}

TEST(a_second_folder_is_leased_with_the_first_and_given_back_with_it)
{
    co_folder *a, *b;
    CHECK_OK(co_fs_mkdirs("shared"));
    CHECK_OK(co_folder_open(&a, "a", "t"));
    CHECK_OK(co_folder_open(&b, "b", "t"));
    CHECK_OK(co_folder_lease_too(a, "shared", "k"));
    CHECK_FAILS(co_folder_lease_too(b, "shared", "k"), CO_EINPUT, "shared is in use by pid");
    CHECK_OK(co_folder_settle(a));
    CHECK_OK(co_folder_settle(b));
    json_t *v;
    CHECK_OK(co_json_read(&v, "b/lease.json", 1 << 16)); /* while a was stopped, b took it over */
    CHECK_OK(co_json_write(v, "shared/lease.json"));
    json_decref(v);
    CHECK_FAILS(co_folder_settle(a), CO_EFAIL, "shared was taken over by pid");
    CHECK(unlink("shared/lease.json") == 0, "%m");
    co_folder_close(a);
    CHECK_OK(co_folder_lease_too(b, "shared", "k"));
    co_folder_close(b);
    CHECK(!co_fs_exists("shared/lease.json") && !co_fs_exists("a/lease.json"), "leases stay");
}
