/* test_live.c -- which runs live on this machine. */
#include "track_test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

static void check_live(int want)
{
    co_live_run *runs;
    int n;
    CHECK_OK(co_live_list(&runs, &n));
    CHECK(n == want, "%d live runs, want %d", n, want);
    co_free(runs);
}

TEST(a_registered_run_is_listed_until_it_leaves)
{
    co_folder *f;
    co_live_run *runs;
    int n;
    struct stat st;
    test_own_runs();
    check_live(0);
    CHECK_OK(co_folder_open(&f, "run", "t"));
    CHECK_OK(co_live_register(f, "demo"));
    CHECK(stat("runtime/cohort", &st) == 0 && (st.st_mode & 0777) == 0700, "mode %o", st.st_mode & 0777);
    CHECK_OK(co_live_list(&runs, &n));
    CHECK(n == 1 && runs[0].pid == getpid() && !strcmp(runs[0].task, "demo"), "entry");
    CHECK(!strcmp(runs[0].run_id, co_folder_run_id(f)) && runs[0].dir[0] == '/' && runs[0].started > 1e9,
          "entry");
    CHECK(!strcmp(strrchr(runs[0].dir, '/'), "/run"), "%s", runs[0].dir);
    co_free(runs);
    co_live_unregister();
    check_live(0);
    co_folder_close(f);
}

TEST(dead_runs_and_reused_pids_are_dropped_and_the_oldest_comes_first)
{
    co_folder *f;
    co_live_run *runs;
    int n, st, ready[2], done[2];
    char c;
    test_own_runs();
    CHECK(pipe(ready) == 0 && pipe(done) == 0, "pipe");
    pid_t child = fork();
    if (child == 0) { /* lives until we are done */
        close(done[1]);
        c = co_folder_open(&f, "first", "t") || co_live_register(f, "first") ? '?' : 'k';
        (void)!write(ready[1], &c, 1);
        (void)!read(done[0], &c, 1);
        _exit(0); /* without a word */
    }
    CHECK(read(ready[0], &c, 1) == 1 && c == 'k', "child");
    CHECK_OK(co_folder_open(&f, "second", "t"));
    CHECK_OK(co_live_register(f, "second"));
    CHECK_OK(co_live_list(&runs, &n));
    CHECK(n == 2 && !strcmp(runs[0].task, "first") && !strcmp(runs[1].task, "second"), "%d runs", n);
    co_free(runs);
    close(done[1]);
    CHECK(waitpid(child, &st, 0) == child, "waitpid");
    check_live(1);
    char path[64];
    snprintf(path, sizeof path, "runtime/cohort/%d.json", (int)child);
    CHECK(!co_fs_exists(path), "its file is gone too");

    json_t *v; /* our pid, but an earlier process */
    snprintf(path, sizeof path, "runtime/cohort/%d.json", (int)getpid());
    CHECK_OK(co_json_read(&v, path, 1 << 16));
    json_object_set_new(v, "start", json_integer(1));
    CHECK_OK(co_json_write(v, path));
    json_decref(v);
    check_live(0);
    CHECK_OK(co_fs_write_atomic("runtime/cohort/99.json", "junk", 4));
    CHECK_OK(co_fs_write_atomic("runtime/cohort/notes", "junk", 4));
    check_live(0);
    CHECK(!co_fs_exists("runtime/cohort/99.json") && co_fs_exists("runtime/cohort/notes"), "junk");
    co_folder_close(f);
}

TEST(a_registry_open_to_others_is_not_believed)
{
    co_live_run *runs;
    int n;
    test_own_runs();
    CHECK(mkdir("runtime/cohort", 0777) == 0 && chmod("runtime/cohort", 0777) == 0, "mkdir");
    CHECK_FAILS(co_live_list(&runs, &n), CO_EIO, "closed to others");
    CHECK(rmdir("runtime/cohort") == 0 && mkdir("elsewhere", 0700) == 0, "rmdir");
    CHECK(symlink("../elsewhere", "runtime/cohort") == 0, "symlink");
    CHECK_FAILS(co_live_list(&runs, &n), CO_EIO, "closed to others");
}

TEST(the_next_start_sweeps_what_killed_runs_left_in_the_runtime_folder)
{
    co_folder *f;
    test_own_runs();
    check_live(0);
    pid_t dead = fork();
    if (dead == 0)
        _exit(0);
    CHECK(waitpid(dead, NULL, 0) == dead, "waitpid");
    test_run r =
        test_sh("cd runtime/cohort && touch notes 1.progress %d.progress %d.json.tmp-%d-0 %d.new.progress && "
                "touch -d '1 hour ago' *",
                (int)dead, (int)dead, (int)dead, (int)dead);
    CHECK(r.status == 0, "%s", r.out);
    CHECK_OK(co_folder_open(&f, "run", "t"));
    CHECK_OK(co_live_register(f, "demo"));
    r = test_sh("ls runtime/cohort | grep -v '^%d.json$' | tr '\\n' ' '", (int)getpid());
    CHECK(strcmp(r.out, "1.progress notes ") == 0, "%s", r.out);
    co_live_unregister();
    co_folder_close(f);
}
