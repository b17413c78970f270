#include "harness.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fs.h"

static void put(const char *path, const char *text)
{
    CHECK_OK(co_fs_write_atomic(path, text, strlen(text)));
}

static void holds(const char *path, const char *want)
{
    char *got;
    size_t len;
    CHECK_OK(co_fs_read(&got, &len, path, 1 << 20));
    CHECK(len == strlen(want) && memcmp(got, want, len + 1) == 0, "%s holds \"%s\"", path, got);
    co_free(got);
}

TEST_WITHIN(a_fifo_that_nobody_writes_into_is_an_error_and_no_hang, 10)
{
    char *got;

    CHECK(mkfifo("fifo", 0600) == 0, "%m");
    CHECK_FAILS(co_fs_read(&got, NULL, "fifo", 100), CO_EIO, "fifo is a pipe and nobody writes into it");
}

/* `--hostfile=<(command)` gives such a path. The bytes come in two parts, the second after the first was
 * read. */
TEST(a_pipe_is_read_to_its_end)
{
    int ends[2], left = 1;
    char path[64], *got;
    size_t len;

    CHECK(pipe(ends) == 0 && write(ends[1], "one ", 4) == 4, "pipe: %m");
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    pid_t pid = fork();
    if (pid == 0) {
        while (ioctl(ends[0], FIONREAD, &left) == 0 && left > 0)
            poll(NULL, 0, 1);
        _exit(write(ends[1], "two", 3) != 3);
    }
    close(ends[1]);
    CHECK_OK(co_fs_read(&got, &len, path, 100));
    CHECK(len == 7 && strcmp(got, "one two") == 0, "\"%s\"", got);
    CHECK(test_wait(pid, 10) == 0, "the writer");
    co_free(got);
}

TEST(a_file_reads_back_whole_with_a_nul_after_it)
{
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 100000};
    static char bytes[100000];
    for (size_t i = 0; i < CO_COUNT(sizes); i++) {
        char *got;
        size_t len;
        memset(bytes, 'a' + (int)i, sizeof bytes);
        CHECK_OK(co_fs_write_atomic("f", bytes, sizes[i]));
        CHECK_OK(co_fs_read(&got, &len, "f", sizes[i])); /* the limit itself is allowed */
        CHECK(len == sizes[i] && memcmp(got, bytes, len) == 0 && got[len] == '\0', "size %zu", sizes[i]);
        co_free(got);
    }
}

TEST(a_file_without_a_size_is_read_to_its_end)
{
    char *got;
    size_t len;
    CHECK_OK(co_fs_read(&got, &len, "/proc/self/status", 1 << 20));
    CHECK(len > 100 && strlen(got) == len && test_contains(got, "Name:"), "%zu bytes", len);
    co_free(got);
    CHECK_FAILS(co_fs_read(&got, &len, "/dev/zero", 10000), CO_EFORMAT,
                "/dev/zero is longer than the 10000 bytes");
}

TEST(reading_refuses_by_name)
{
    char *got = (char *)"untouched";
    size_t len = 77;
    put("f", "12345");
    CHECK_FAILS(co_fs_read(&got, &len, "f", 4), CO_EFORMAT, "f is longer than the 4 bytes");
    CHECK_FAILS(co_fs_read(&got, &len, "absent", 4), CO_EIO, "absent: No such file");
    CHECK_FAILS(co_fs_read(&got, &len, ".", 4), CO_EIO, "Is a directory");
    CHECK(strcmp(got, "untouched") == 0 && len == 77, "outputs written on failure");
}

TEST(an_atomic_write_replaces_and_leaves_nothing_behind)
{
    char **names;
    size_t n;
    put("f", "old and long");
    put("f", "new");
    holds("f", "new");
    CHECK_OK(co_fs_mkdirs("sub"));
    put("sub/g", "there");
    holds("sub/g", "there");
    CHECK_FAILS(co_fs_write_atomic("absent/f", "x", 1), CO_EIO, "absent/f");
    CHECK_FAILS(co_fs_write_atomic("sub", "x", 1), CO_EIO, "sub: Is a directory");
    CHECK_OK(co_fs_list(&names, &n, "."));
    CHECK(n == 2 && strcmp(names[0], "f") == 0 && strcmp(names[1], "sub") == 0, "%zu entries, first %s", n,
          names[0]);
    co_fs_list_free(names, n);
}

/* A file size limit stands in for a full disk: write(2) stops in the middle, then fails. */
TEST(a_full_disk_leaves_the_old_file)
{
    static char bytes[100000];
    char **names;
    size_t n;
    put("f", "old");
    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &(struct rlimit){1000, 1000}) == 0, "setrlimit");
    CHECK_FAILS(co_fs_write_atomic("f", bytes, sizeof bytes), CO_EIO, "File too large");
    holds("f", "old");
    CHECK_OK(co_fs_list(&names, &n, "."));
    CHECK(n == 1, "%zu files: the temporary one is left", n);
    co_fs_list_free(names, n);
    int fd = open("/dev/full", O_WRONLY);
    CHECK_FAILS(co_fs_write_all(fd, "x", 1, "weights"), CO_EIO, "write weights: No space left");
    close(fd);
}

TEST(folders_are_made_all_the_way)
{
    CHECK_OK(co_fs_mkdirs("a/b/c"));
    CHECK_OK(co_fs_mkdirs("a/b/c"));
    CHECK_OK(co_fs_mkdirs("a//b/d/"));
    CHECK(co_fs_is_dir("a/b/c") && co_fs_is_dir("a/b/d"), "not made");
    put("f", "");
    CHECK(co_fs_exists("f") && !co_fs_is_dir("f") && !co_fs_exists("absent"), "tests of existence");
    CHECK_FAILS(co_fs_mkdirs("f/x"), CO_EIO, "mkdir f: ");
    CHECK_FAILS(co_fs_mkdirs("f"), CO_EIO, "mkdir f: ");
    CHECK_FAILS(co_fs_mkdirs(""), CO_EIO, "mkdir");
    char here[4096], inside[4200];
    CHECK(getcwd(here, sizeof here), "getcwd");
    snprintf(inside, sizeof inside, "%s/x/y", here);
    CHECK_OK(co_fs_mkdirs(inside));
    CHECK_OK(co_fs_sync_dir("x/y"));
    CHECK_FAILS(co_fs_sync_dir("x/z"), CO_EIO, "x/z");
}

TEST(a_list_is_sorted_by_bytes)
{
    char **names, text[400] = "";
    size_t n;
    CHECK_OK(co_fs_mkdirs("d"));
    CHECK_OK(co_fs_list(&names, &n, "d"));
    CHECK(n == 0, "%zu entries in an empty folder", n);
    co_fs_list_free(names, n);
    static const char *const made[] = {"d/b", "d/a", "d/B", "d/.hidden", "d/10", "d/9"};
    for (size_t i = 0; i < CO_COUNT(made); i++)
        put(made[i], "");
    CHECK_OK(co_fs_list(&names, &n, "d"));
    for (size_t i = 0; i < n; i++) {
        strcat(text, names[i]);
        strcat(text, " ");
    }
    co_fs_list_free(names, n);
    CHECK(strcmp(text, ".hidden 10 9 B a b ") == 0, "%s", text);
    CHECK_FAILS(co_fs_list(&names, &n, "absent"), CO_EIO, "absent");
}

TEST(removing_a_tree_does_not_follow_links)
{
    CHECK_OK(co_fs_mkdirs("t/a/b/c"));
    CHECK_OK(co_fs_mkdirs("keep/inner"));
    put("t/a/f", "1");
    put("t/a/b/g", "2");
    put("keep/inner/h", "3");
    CHECK(symlink("../../keep", "t/a/link") == 0 && symlink("nowhere", "t/dangling") == 0, "symlink");
    CHECK_OK(co_fs_remove_tree("t"));
    CHECK(!co_fs_exists("t"), "still there");
    holds("keep/inner/h", "3");
    CHECK_OK(co_fs_remove_tree("t")); /* a missing folder is fine */
    CHECK(symlink("keep", "door") == 0, "symlink");
    CHECK_OK(co_fs_remove_tree("door")); /* removes the link itself */
    holds("keep/inner/h", "3");
    put("f", "");
    CHECK_OK(co_fs_remove_tree("f"));
    CHECK(!co_fs_exists("f") && !co_fs_exists("door"), "still there");
}

TEST(removing_refuses_names_that_are_no_folder_of_ours)
{
    static const char *const bad[] = {"", "/", ".", "..", "a/", "a/.", "a/.."};
    CHECK_OK(co_fs_mkdirs("a/b"));
    for (size_t i = 0; i < CO_COUNT(bad); i++)
        CHECK_FAILS(co_fs_remove_tree(bad[i]), CO_EINPUT, "refused");
    CHECK(co_fs_is_dir("a/b"), "removed");
}

TEST(removing_says_what_it_could_not_remove)
{
    char deep[600] = "d";
    for (int i = 0; i < 80; i++)
        strcat(deep, "/d");
    CHECK_OK(co_fs_mkdirs(deep));
    CHECK_FAILS(co_fs_remove_tree("d"), CO_EINPUT, "folders deep");
    CHECK_FAILS(co_fs_remove_tree("/proc/self/status"), CO_EIO, "/proc/self/status");
}

static co_err use_everything(void *ctx)
{
    char *bytes, **names;
    size_t len, n;
    CO_TRY(co_fs_mkdirs("p/q"));
    CO_TRY(co_fs_write_atomic("p/q/f", "text", 4));
    CO_TRY(co_fs_write_atomic("loose", "text", 4));
    CO_TRY(co_fs_read(&bytes, &len, "p/q/f", 10));
    co_free(bytes);
    /* reports size 0, so the buffer must grow */
    CO_TRY(co_fs_read(&bytes, &len, "/proc/self/maps", 1 << 24));
    co_free(bytes);
    CO_TRY(co_fs_list(&names, &n, "p"));
    co_fs_list_free(names, n);
    return co_fs_remove_tree("p");
}

TEST(every_allocation_of_the_file_functions_may_fail)
{
    test_each_alloc_fails(use_everything, NULL);
}
