/* Unpacked files are kept, checked, shared; and nothing depends on there being a place to keep them. */
#include "data/pictures.h"

#include <sys/wait.h>
#include <time.h>

#include "base/hash.h"
#include "data/cache_int.h"

enum { LEN = 3 << 20 };

static uint8_t *content(void)
{
    uint8_t *bytes = malloc(LEN);
    uint64_t state = 3;

    for (int i = 0; i < LEN; i++)
        bytes[i] = (uint8_t)(test_u32(&state) >> 29);
    return bytes;
}

static void put_packed(const char *path, const uint8_t *bytes)
{
    size_t len;
    uint8_t *small = pack_gz(bytes, LEN, &len);

    put_file(path, small, len);
    free(small);
}

static bool has_content(const char *path, const uint8_t *want)
{
    char *bytes;
    size_t len;

    CHECK_OK(co_fs_read(&bytes, &len, path, 1 << 24));
    bool same = len == LEN && memcmp(bytes, want, LEN) == 0;
    free(bytes);
    return same;
}

/* Files below c/unpacked-1. */
static int entries(void)
{
    char **names;
    size_t n;

    CHECK_OK(co_fs_list(&names, &n, "c/unpacked-1"));
    co_fs_list_free(names, n);
    return (int)n;
}

TEST(a_packed_file_is_unpacked_once_and_found_again_under_another_name)
{
    char first[4096], again[4096];
    uint8_t *bytes = content();
    struct stat a, b;

    setenv("COHORT_CACHE", "c", 1);
    put_packed("x.gz", bytes);
    CHECK_OK(cache_plain(first, "x.gz", 0));
    CHECK(test_contains(first, "c/unpacked-1/") && has_content(first, bytes) && stat(first, &a) == 0, "%s",
          first);
    CHECK(entries() == 2, "%d", entries());
    sh("mkdir y && mv x.gz y/z.gz");
    CHECK_OK(cache_plain(again, "y/z.gz", 0));
    CHECK(strcmp(first, again) == 0 && stat(again, &b) == 0, "%s", again);
    CHECK(a.st_ino == b.st_ino && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec, "it was unpacked again");
    bytes[LEN / 2] ^= 1;
    put_packed("y/z.gz", bytes);
    CHECK_OK(cache_plain(again, "y/z.gz", 0));
    CHECK(strcmp(first, again) != 0 && has_content(again, bytes), "a changed file");
    CHECK_OK(cache_plain(again, "plain.bin", 0));
    CHECK(!*again, "a plain file has no entry");
    free(bytes);
}

TEST(a_damaged_entry_is_made_anew)
{
    char path[4096], ok[4200];
    uint8_t *bytes = content();

    setenv("COHORT_CACHE", "c", 1);
    put_packed("x.gz", bytes);
    CHECK_OK(cache_plain(path, "x.gz", 0));
    FILE *f = fopen(path, "r+e");
    CHECK(f && fseek(f, LEN / 3, SEEK_SET) == 0 && fputc(200, f) == 200 && fclose(f) == 0, "%m");
    CHECK_OK(cache_plain(path, "x.gz", 0));
    CHECK(*path && has_content(path, bytes), "a flipped byte");
    CHECK(truncate(path, 100) == 0, "%m");
    CHECK_OK(cache_plain(path, "x.gz", 0));
    CHECK(*path && has_content(path, bytes), "cut short");
    snprintf(ok, sizeof ok, "%s.ok", path);
    put_file(ok, "nonsense", 8);
    CHECK_OK(cache_plain(path, "x.gz", 0));
    CHECK(*path && has_content(path, bytes), "a damaged note");
    CHECK(entries() == 2, "%d", entries());
    free(bytes);
}

TEST(without_a_place_to_keep_it_or_with_a_damaged_file_there_is_no_entry_and_no_error)
{
    char path[4096];
    uint8_t *bytes = content();

    put_packed("x.gz", bytes);
    setenv("COHORT_CACHE", "/dev/null/c", 1);
    CHECK_OK(cache_plain(path, "x.gz", 0));
    CHECK(!*path, "%s", path);
    setenv("COHORT_CACHE", "c", 1);
    CHECK(truncate("x.gz", 1000) == 0, "%m");
    CHECK_OK(cache_plain(path, "x.gz", 0));
    CHECK(!*path && entries() == 0, "%s, %d left behind", path, entries());
    CHECK_OK(cache_plain(path, "nowhere.gz", 0));
    CHECK(!*path, "%s", path);
    free(bytes);
}

TEST(the_cache_is_where_the_environment_says)
{
    char path[4096], want[4096];
    uint8_t *bytes = content();

    put_packed("x.gz", bytes);
    free(bytes);
    CHECK(getcwd(want, 2000), "%m");
    unsetenv("COHORT_CACHE");
    setenv("HOME", want, 1);
    unsetenv("XDG_CACHE_HOME");
    strcat(want, "/.cache/cohort/unpacked-1/");
    CHECK_OK(cache_plain(path, "x.gz", 0));
    CHECK(strncmp(path, want, strlen(want)) == 0, "%s", path);
    CHECK(getcwd(want, 2000), "%m");
    setenv("XDG_CACHE_HOME", want, 1);
    strcat(want, "/cohort/unpacked-1/");
    CHECK_OK(cache_plain(path, "x.gz", 0));
    CHECK(strncmp(path, want, strlen(want)) == 0, "%s", path);
}

TEST(what_a_killed_writer_left_is_swept_away_after_a_day)
{
    char path[4096];
    uint8_t *bytes = content();

    setenv("COHORT_CACHE", "c", 1);
    put_packed("x.gz", bytes);
    free(bytes);
    sh("mkdir -p c/unpacked-1 && : >c/unpacked-1/new.tmp-1-1 && touch -d '2 days ago' "
       "c/unpacked-1/old.tmp-1-1");
    CHECK_OK(cache_plain(path, "x.gz", 0));
    CHECK(co_fs_exists("c/unpacked-1/new.tmp-1-1") && !co_fs_exists("c/unpacked-1/old.tmp-1-1"), "not swept");
}

/* Six processes begin together, on an empty cache or on a damaged entry: each gets the whole content. */
TEST(processes_that_race_for_an_entry_all_get_it_whole)
{
    uint8_t *bytes = content();
    char path[4096];

    setenv("COHORT_CACHE", "c", 1);
    put_packed("x.gz", bytes);
    for (int round = 0; round < 2; round++) {
        int gate[2], status;
        CHECK(pipe(gate) == 0, "%m");
        for (int i = 0; i < 6; i++)
            if (fork() == 0) {
                char byte;
                close(gate[1]);
                (void)!read(gate[0], &byte, 1); /* ends when the parent closes it */
                for (int k = 0; k < 3; k++)
                    if (cache_plain(path, "x.gz", 0) != CO_OK || !*path || !has_content(path, bytes))
                        _exit(1);
                _exit(0);
            }
        close(gate[0]);
        close(gate[1]);
        for (int i = 0; i < 6; i++)
            CHECK(wait(&status) > 0 && status == 0, "a process got something else: %x", status);
        CHECK(entries() == 2, "%d", entries());
        CHECK_OK(cache_plain(path, "x.gz", 0));
        CHECK(truncate(path, 5) == 0, "%m");
    }
    free(bytes);
}

/* A stamp is not trusted when the file has changed, however little. */
TEST(a_file_that_changed_is_hashed_again)
{
    char path[4096], hash[65], again[4096];
    struct stat st;

    setenv("COHORT_CACHE", "c", 1);
    CHECK(stat(test_repo("src/data/digits.csv.gz"), &st) == 0, "%m");
    if (time(NULL) - st.st_ctim.tv_sec <= 3)
        test_skip("the repository was made this second");
    for (int i = 0; i < 2; i++) {
        CHECK_OK(cache_plain(path, test_repo("src/data/digits.csv.gz"), 0));
        CHECK_OK(co_sha256_of_file(test_repo("src/data/digits.csv.gz"), hash, NULL));
        CHECK(test_contains(path, hash), "%s", path);
    }
    test_run r = test_sh("cat c/stamps-1/*");
    CHECK(strncmp(r.out, hash, 64) == 0, "no stamp: %s", r.out);
    free(r.out);
    sh("cp $REPO/src/data/digits.csv.gz d.gz && printf x >>d.gz");
    CHECK_OK(cache_plain(again, "d.gz", 0));
    CHECK(strcmp(path, again) != 0, "%s", again);
}
