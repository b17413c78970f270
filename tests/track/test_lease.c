/* test_lease.c -- of any number of starters one holds the folder. */
#include "track_test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <utime.h>

TEST(a_folder_held_by_a_live_process_is_refused_with_pid_and_host)
{
    co_folder *f, *g;
    char want[512], host[256];
    gethostname(host, sizeof host);
    CHECK_OK(co_folder_open(&f, "run", "t"));
    snprintf(want, sizeof want, "run folder run is in use by pid %d on host %s (run %s)", (int)getpid(), host,
             co_folder_run_id(f));
    CHECK_FAILS(co_folder_open(&g, "run", "t"), CO_EINPUT, want);
    co_folder_close(f);
    CHECK(!co_fs_exists("run/lease.json"), "given back");
    CHECK_OK(co_folder_open(&f, "run", "t"));
    co_folder_close(f);
}

static void check_only_lease(const char *dir)
{
    char **names;
    size_t n;
    CHECK_OK(co_fs_list(&names, &n, dir));
    CHECK(n == 1 && !strcmp(names[0], "lease.json"), "%zu files, first %s", n, n ? names[0] : "");
    co_fs_list_free(names, n);
}

TEST(a_dead_holder_is_taken_over)
{
    co_folder *f;
    leave_dead_lease("run");
    CHECK(co_fs_exists("run/lease.json"), "the dead one's lease");
    CHECK_OK(co_folder_open(&f, "run", "t"));
    check_only_lease("run");
    char *text = slurp("run/lease.json");
    CHECK(test_contains(text, co_folder_run_id(f)), "%s", text);
    co_free(text);
    co_folder_close(f);
}

TEST(a_zombie_is_dead_and_a_reused_pid_is_another)
{
    co_folder *f;
    int pipe_fd[2];
    char c;
    CHECK(pipe2(pipe_fd, O_CLOEXEC) == 0, "pipe");
    pid_t pid = fork();
    if (pid == 0) {
        co_err err = co_folder_open(&f, "run", "t");
        _exit(err ? 1 : 0);
    }
    close(pipe_fd[1]);
    CHECK(read(pipe_fd[0], &c, 1) == 0, "the child has ended"); /* and is not waited for: a zombie */
    siginfo_t info;
    CHECK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0, "waitid");
    CHECK_OK(co_folder_open(&f, "run", "t"));
    co_folder_close(f);
    CHECK(waitpid(pid, NULL, 0) == pid, "waitpid");

    /* the same with our own pid and another start time */
    CHECK_OK(co_folder_open(&f, "run", "t"));
    json_t *v;
    CHECK_OK(co_json_read(&v, "run/lease.json", 1 << 16));
    json_object_set_new(v, "start", json_integer(1));
    json_object_set_new(v, "run_id", json_string("earlier"));
    co_folder_close(f);
    CHECK_OK(co_json_write(v, "run/lease.json"));
    json_decref(v);
    CHECK_OK(co_folder_open(&f, "run", "t"));
    co_folder_close(f);
}

/* lease.json of a process on another host, last renewed `age` seconds ago. */
static void foreign_lease(const char *path, const char *run_id, int age)
{
    char text[512];
    int n =
        snprintf(text, sizeof text,
                 "{\"host\":\"far\",\"pid\":7,\"start\":9,\"boot\":\"b\",\"machine\":\"m\",\"pid_ns\":\"p\","
                 "\"run_id\":\"%s\"}",
                 run_id);
    CHECK_OK(co_fs_write_atomic(path, text, (size_t)n));
    struct stat st;
    CHECK(stat(path, &st) == 0, "stat");
    struct utimbuf t = {st.st_mtime - age, st.st_mtime - age};
    CHECK(utime(path, &t) == 0, "utime");
}

TEST(a_holder_on_another_host_is_believed_for_two_minutes)
{
    co_folder *f;
    CHECK_OK(co_fs_mkdirs("run"));
    foreign_lease("run/lease.json", "r1", 60);
    CHECK_FAILS(co_folder_open(&f, "run", "t"), CO_EINPUT,
                "in use by pid 7 on host far (run r1, last sign of life 6");
    foreign_lease("run/lease.json", "r1", 200);
    CHECK_OK(co_folder_open(&f, "run", "t"));
    co_folder_close(f);
}

TEST(a_taker_that_died_half_way_is_itself_taken_over)
{
    co_folder *f;
    CHECK_OK(co_fs_mkdirs("run"));
    foreign_lease("run/lease.json", "r1", 300);
    foreign_lease("run/.lease-after-r1", "r2", 300);
    foreign_lease("run/.lease-after-r2", "r3", 10);
    CHECK_FAILS(co_folder_open(&f, "run", "t"), CO_EINPUT, "run r3");
    foreign_lease("run/.lease-after-r2", "r3", 300);
    CHECK_OK(co_folder_open(&f, "run", "t"));
    check_only_lease("run");
    co_folder_close(f);
}

TEST(a_lease_that_cannot_be_read_is_somebodys_until_it_is_old)
{
    co_folder *f;
    static const char *const bad[] = {"", "{", "[]", "{\"run_id\":\"../x\"}", "{\"host\":3}"};
    CHECK_OK(co_fs_mkdirs("run"));
    for (size_t i = 0; i < CO_COUNT(bad); i++) {
        CHECK_OK(co_fs_write_atomic("run/lease.json", bad[i], strlen(bad[i])));
        CHECK_FAILS(co_folder_open(&f, "run", "t"), CO_EINPUT, "lease.json is not readable");
        struct utimbuf t = {1000, 1000};
        CHECK(utime("run/lease.json", &t) == 0, "utime");
        CHECK_OK(co_folder_open(&f, "run", "t"));
        check_only_lease("run");
        co_folder_close(f);
    }
}

enum { STARTERS = 8 };

/* Starts STARTERS processes at one moment; how many hold the folder while all others have been refused. */
static int race(const char *dir)
{
    int go[2], told[2], done[2], winners = 0;
    char c;
    pid_t pid[STARTERS];
    CHECK(pipe(go) == 0 && pipe(told) == 0 && pipe(done) == 0, "pipe");
    for (int i = 0; i < STARTERS; i++) {
        pid[i] = fork();
        if (pid[i] == 0) {
            co_folder *f;
            close(go[1]);
            close(done[1]);
            (void)!read(go[0], &c, 1); /* end of file: go */
            co_err err = co_folder_open(&f, dir, "t");
            c = err == CO_OK                                                      ? 'w'
                : err == CO_EINPUT && test_contains(co_errmsg(), "in use by pid") ? 'l'
                                                                                  : '?';
            if (c == '?')
                printf("%s\n", co_errmsg());
            (void)!write(told[1], &c, 1);
            (void)!read(done[0], &c, 1); /* hold it until all have tried */
            if (!err)
                co_folder_close(f);
            fflush(NULL);
            _exit(0);
        }
    }
    close(go[0]);
    close(go[1]);
    for (int i = 0; i < STARTERS; i++) {
        CHECK(read(told[0], &c, 1) == 1 && c != '?', "a starter failed otherwise");
        winners += c == 'w';
    }
    close(done[1]);
    close(done[0]);
    close(told[0]);
    close(told[1]);
    for (int i = 0; i < STARTERS; i++)
        CHECK(waitpid(pid[i], NULL, 0) == pid[i], "waitpid");
    return winners;
}

TEST(of_eight_starters_in_a_new_folder_one_wins)
{
    for (int i = 0; i < 25; i++) {
        char dir[32];
        snprintf(dir, sizeof dir, "new/%d", i);
        int n = race(dir);
        CHECK(n == 1, "%d winners", n);
    }
}

TEST(of_eight_starters_after_a_dead_holder_one_wins)
{
    for (int i = 0; i < 25; i++) {
        leave_dead_lease("run");
        int n = race("run");
        CHECK(n == 1, "round %d: %d winners", i, n);
        char **names;
        size_t files;
        CHECK_OK(co_fs_list(&names, &files, "run"));
        CHECK(files == 0, "%zu files left, first %s", files, files ? names[0] : "");
        co_fs_list_free(names, files);
    }
}

TEST_LONG(of_eight_starters_one_wins_a_thousand_times)
{
    for (int i = 0; i < 1000; i++) {
        if (i % 2)
            leave_dead_lease("run");
        int n = race("run");
        CHECK(n == 1, "round %d: %d winners", i, n);
    }
}
