/* Archives are unpacked into their folder and nowhere else, and what is damaged or too large is refused. */
#include "data/zips.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/zip.h"
#include "data/archive.h"
#include "data/archive_int.h"

static const co_archive_limits usual = {.most_bytes = 1 << 20, .most_files = 100};
static zipper z;

static co_err unpack(const char *archive, const co_archive_limits *limits, co_archive_facts *facts)
{
    CHECK_OK(co_fs_remove_tree("in"));
    CHECK_OK(co_fs_mkdirs("in"));
    return co_archive_unpack(facts, archive, "in", limits);
}

static void has(const char *path, const char *text)
{
    char *got = NULL;
    size_t len;

    CHECK_OK(co_fs_read(&got, &len, path, 1 << 20));
    CHECK(len == strlen(text) && memcmp(got, text, len) == 0, "%s: %s", path, got);
    co_free(got);
}

static void sh_ok(const char *line)
{
    test_run r = test_sh("%s", line);

    CHECK(r.status == 0, "%s: %s", line, r.out);
    free(r.out);
}

TEST(a_zip_is_unpacked_with_folders_and_both_methods)
{
    co_archive_facts facts;
    static char big[300000];

    memset(big, 'x', sizeof big - 1);
    z = (zipper){0};
    zip_add(&z, "top/", "", 0, (zip_lie){.stored = true});
    zip_text(&z, "top/a.txt", "one, deflated");
    zip_add(&z, "top/sub/b.txt", "two, stored", 11, (zip_lie){.stored = true});
    zip_text(&z, "top/big", big);
    zip_text(&z, "top/empty", "");
    zip_write(&z, "a.zip");
    CHECK_OK(unpack("a.zip", &usual, &facts));
    CHECK(facts.files == 4 && facts.bytes == 13 + 11 + 299999, "%llu", (unsigned long long)facts.bytes);
    has("in/top/a.txt", "one, deflated");
    has("in/top/sub/b.txt", "two, stored");
    has("in/top/big", big);
    has("in/top/empty", "");
}

TEST(archives_that_reach_out_of_their_folder_are_refused)
{
    static const char *const names[] = {"../up", "a/../../up", "/abs", "a//b", ".",   "a/./b",
                                        "..",    "a\\..\\b",   "a\nb", "a/..", "./a", "\x7f"};
    co_archive_facts facts;

    for (size_t i = 0; i < CO_COUNT(names); i++) {
        z = (zipper){0};
        zip_text(&z, names[i], "x");
        zip_write(&z, "a.zip");
        CHECK_FAILS(unpack("a.zip", &usual, &facts), CO_EFORMAT, "may lead out of the folder: refused");
        CHECK(!archive_name_is_safe(names[i]), "%s", names[i]);
    }
    CHECK(!co_fs_exists("up") && !co_fs_exists("/abs") && !co_fs_exists("../up"),
          "a file was written outside");
    z = (zipper){0};
    zip_add(&z, "link", "/etc/passwd", 11, (zip_lie){.mode = 0120777});
    zip_text(&z, "link/x", "x");
    zip_write(&z, "a.zip");
    CHECK_FAILS(unpack("a.zip", &usual, &facts), CO_EFORMAT, "link is a symbolic link: refused");
    CHECK(access("in/link", F_OK) != 0, "a link was made");
}

TEST(zips_that_are_too_large_or_lie_are_refused)
{
    static char zeros[900000];
    co_archive_facts facts;
    co_archive_limits small = {.most_bytes = 1000, .most_files = 2};

    z = (zipper){0};
    zip_add(&z, "bomb", zeros, sizeof zeros, (zip_lie){0});
    zip_write(&z, "a.zip");
    CHECK_FAILS(unpack("a.zip", &small, &facts), CO_EFORMAT, "it unpacks to more than 1000 bytes: refused");
    z = (zipper){0};
    zip_add(&z, "bomb", zeros, sizeof zeros, (zip_lie){.len = 10}); /* says that it is small */
    zip_write(&z, "a.zip");
    CHECK_FAILS(unpack("a.zip", &small, &facts), CO_EFORMAT,
                "entry bomb unpacks to more than the 10 bytes that the directory says");
    z = (zipper){0};
    zip_add(&z, "less", "abc", 3, (zip_lie){.len = 10});
    zip_write(&z, "a.zip");
    CHECK_FAILS(unpack("a.zip", &small, &facts), CO_EFORMAT, "entry less is damaged: 3 bytes with the CRC");
    z = (zipper){0};
    for (int i = 0; i < 3; i++)
        zip_text(&z, (const char *[]){"1", "2", "3"}[i], "x");
    zip_write(&z, "a.zip");
    CHECK_FAILS(unpack("a.zip", &small, &facts), CO_EFORMAT, "more than 2 files in it: refused");
    z = (zipper){0};
    zip_add(&z, "a", "x", 1, (zip_lie){.stored = true, .method = 12});
    zip_write(&z, "a.zip");
    CHECK_FAILS(unpack("a.zip", &small, &facts), CO_EFORMAT, "compressed by method 12");
    z = (zipper){0};
    zip_text(&z, "a", "x");
    zip_text(&z, "a/b", "x"); /* a is a file and a folder */
    zip_write(&z, "a.zip");
    CHECK(unpack("a.zip", &small, &facts) != CO_OK, "accepted");
    CHECK_FAILS(unpack("a.rar", &small, &facts), CO_EINPUT,
                "only .zip, .tar, .tar.gz and .tar.xz are unpacked");
}

static co_err count(void *ctx, const void *bytes, size_t len)
{
    *(size_t *)ctx += len;
    return CO_OK;
}

/* What co_archive_unpack does, without files. */
static co_err read_all(const void *bytes, size_t len, size_t *got)
{
    co_zip_file zip;
    co_err err = co_zip_parse(&zip, bytes, len, "a.zip");

    *got = 0;
    for (int i = 0; !err && i < zip.n; i++)
        err = co_zip_unpack(&zip, &zip.entry[i], count, got);
    co_zip_close(&zip);
    return err;
}

TEST(a_zip_cut_anywhere_or_with_a_flipped_bit_is_refused_or_gives_the_same_bytes)
{
    static const char text[] = "userId,movieId,rating,timestamp\r\n1,2,3.0,4\r\n1,3,4.0,4\r\n";
    size_t got, refused = 0, same = 0;

    z = (zipper){0};
    zip_text(&z, "m/ratings.csv", text);
    zip_write(&z, "whole.zip");
    for (size_t n = 0; n < z.n; n++)
        CHECK(read_all(z.bytes, n, &got) == CO_EFORMAT, "%zu bytes of %zu are accepted", n, z.n);
    for (size_t bit = 0; bit < z.n * 8; bit++) {
        z.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (read_all(z.bytes, z.n, &got) != CO_OK)
            refused++;
        else
            same += got == sizeof text - 1;
        z.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    test_note("%zu of %zu flipped bits refused, %zu in facts that are not used", refused, z.n * 8, same);
    CHECK(refused + same == z.n * 8, "%zu + %zu", refused, same);
}

TEST(tars_are_unpacked_without_links_and_within_limits)
{
    co_archive_facts facts;
    co_archive_limits small = {.most_bytes = 10, .most_files = 100};

    sh_ok("mkdir -p t/sub && printf one > t/a && printf two > t/sub/b && ln -s /etc/passwd t/link && "
          "tar czf t.tar.gz t && tar cf dot.tar -C t . && tar cf up.tar -P t/../t/a && "
          "tar cJf t.tar.xz t");
    CHECK_OK(unpack("t.tar.gz", &usual, &facts));
    has("in/t/a", "one");
    has("in/t/sub/b", "two");
    CHECK(facts.files == 2 && access("in/t/link", F_OK) != 0, "%llu files", (unsigned long long)facts.files);
    CHECK_OK(unpack("t.tar.xz", &usual, &facts));
    CHECK_OK(unpack("dot.tar", &usual, &facts));
    has("in/sub/b", "two");
    CHECK_FAILS(unpack("up.tar", &usual, &facts), CO_EFORMAT, "may lead out of the folder: refused");
    sh_ok("printf 'twelve bytes' > t/a && tar cf t.tar t");
    CHECK_FAILS(unpack("t.tar", &small, &facts), CO_EFORMAT, "it unpacks to more than 10 bytes: refused");
    sh_ok("head -c 200 t.tar.gz > cut.tar.gz; head -c 700 t.tar > cut.tar");
    CHECK_FAILS(unpack("cut.tar.gz", &usual, &facts), CO_EFORMAT, "cut.tar.gz");
    CHECK_FAILS(unpack("cut.tar", &usual, &facts), CO_EFORMAT, "it ends in the middle");
}

static co_err unpack_once(void *ctx)
{
    co_archive_facts facts;

    CO_TRY(co_fs_remove_tree("in"));
    CO_TRY(co_fs_mkdirs("in"));
    return co_archive_unpack(&facts, ctx, "in", &usual);
}

TEST(unpacking_survives_each_failed_allocation)
{
    z = (zipper){0};
    zip_text(&z, "a", "some text");
    zip_write(&z, "a.zip");
    test_each_alloc_fails(unpack_once, "a.zip");
}
