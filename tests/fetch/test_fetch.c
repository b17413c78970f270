/* Downloads against a server on loopback that cuts, lies, redirects and falls silent. */
#include "fetch/server.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/fs.h"
#include "base/hash.h"
#include "fetch/fetch.h"
#include "fetch/fetch_int.h"
#include "net/http.h"

enum { LEN = 50000 };
static char body[LEN];
static char md5[33], sha256[65];

/* Bytes that differ everywhere, so that a piece in the wrong place is noticed; and their sums. */
static void make_body(void)
{
    uint64_t state = 7;
    co_http *h;

    if (co_http_open(&h) != CO_OK)
        test_skip("%s", co_errmsg());
    co_http_close(h);
    for (int i = 0; i < LEN; i++)
        body[i] = (char)test_u32(&state);
    CHECK_OK(co_fs_write_lightly("body", body, LEN));
    CHECK_OK(co_md5_of_file("body", md5));
    CHECK_OK(co_sha256_of_file("body", sha256, NULL));
}

static co_fetch_job job_of(const char *const *urls)
{
    return (co_fetch_job){
        .urls = urls, .path = "f", .size = LEN, .md5 = md5, .retries = 2, .retry_ms = 1, .idle_ms = 20000};
}

static void is_whole(void)
{
    char have[65];

    CHECK_OK(co_sha256_of_file("f", have, NULL));
    CHECK(strcmp(have, sha256) == 0, "other bytes came");
    CHECK(!co_fs_exists("f.part") && !co_fs_exists("f.part.from"), "a part is left");
}

static void nothing_is_there(void)
{
    CHECK(!co_fs_exists("f") && !co_fs_exists("f.part") && !co_fs_exists("f.part.from"), "something is left");
}

/* A server with these routes, and a job for the first of them. */
typedef struct trial {
    server s;
    const char *urls[2];
    co_fetch_job job;
    co_fetch_facts facts;
} trial;

static void start(trial *t, route *routes)
{
    make_body();
    *t = (trial){.s.routes = routes};
    server_start(&t->s);
    t->urls[0] = url_on(&t->s, routes[0].path);
    t->job = job_of(t->urls);
}

static void comes_whole(trial *t)
{
    CHECK_OK(co_fetch(&t->facts, &t->job));
    is_whole();
}

TEST(a_file_is_downloaded_checked_and_not_downloaded_again)
{
    route routes[] = {{.path = "/a", .body = body, .len = LEN}, {0}};
    trial t;

    start(&t, routes);
    comes_whole(&t);
    CHECK(t.facts.bytes == LEN && t.facts.sum == CO_SUM_MD5 && !t.facts.was_there && t.facts.kept == 0,
          "%llu", (unsigned long long)t.facts.kept);
    CHECK_OK(co_fetch(&t.facts, &t.job));
    CHECK(t.facts.was_there && routes[0].asked == 1, "asked %d times", routes[0].asked);
    t.job.anew = true;
    CHECK_OK(co_fetch(&t.facts, &t.job));
    CHECK(routes[0].asked == 2, "asked %d times", routes[0].asked);
    CHECK_OK(co_fs_write_lightly("f", body, LEN - 1)); /* damaged: it is fetched again */
    t.job.anew = false;
    comes_whole(&t);
    server_stop(&t.s);
}

TEST(a_download_that_is_cut_goes_on_where_it_ended)
{
    route routes[] = {{.path = "/a", .body = body, .len = LEN, .etag = "\"v1\"", .cuts = 7, .cut_after = 6000},
                      {0}};
    trial t;

    start(&t, routes);
    comes_whole(&t); /* two retries: attempts that bring something are not counted */
    CHECK(routes[0].asked == 8 && strcmp(routes[0].range, "bytes=42000-") == 0, "%d: %s", routes[0].asked,
          routes[0].range);
    CHECK(strcmp(routes[0].if_range, "\"v1\"") == 0, "%s", routes[0].if_range);
    server_stop(&t.s);
}

TEST(a_download_that_was_killed_goes_on_in_the_next_process)
{
    route routes[] = {
        {.path = "/a", .body = body, .len = LEN, .etag = "\"v1\"", .cuts = 1, .cut_after = 20000, .hangs = true},
        {0}};
    trial t;
    struct stat st = {0};

    start(&t, routes);
    pid_t pid = fork();
    if (pid == 0) {
        co_fetch(&t.facts, &t.job);
        _exit(0);
    }
    for (int i = 0; i < 20000 && st.st_size < 20000; i++) {
        poll(NULL, 0, 1);
        if (stat("f.part", &st) != 0)
            st.st_size = 0;
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    CHECK(st.st_size == 20000, "the part has %lld bytes", (long long)st.st_size);
    comes_whole(&t);
    CHECK(t.facts.kept == 20000 && strcmp(routes[0].range, "bytes=20000-") == 0, "%llu %s",
          (unsigned long long)t.facts.kept, routes[0].range);
    server_stop(&t.s);
}

/* How a server may fail, and what is said then. */
TEST(bad_servers_are_named_and_leave_nothing_that_looks_whole)
{
    make_body();
    static char other[LEN];
    route routes[] = {{.path = "/gone", .status = 404},
                      {.path = "/down", .status = 500},
                      {.path = "/wrong", .body = other, .len = LEN},
                      {.path = "/short", .body = body, .len = LEN - 1},
                      {.path = "/long", .body = body, .len = LEN, .claim = LEN + 1},
                      {.path = "/loop", .location = "/loop"},
                      {.path = "/huge", .body = body, .len = LEN, .claim = 2000000000000},
                      {0}};
    static const struct {
        const char *path;
        co_err err;
        const char *says;
        bool any_size;
    } rows[] = {
        {"/gone", CO_EIO, "/gone answers with status 404", false},
        {"/nowhere", CO_EIO, "/nowhere answers with status 404", false},
        {"/down", CO_EIO, "/down answers with status 500", false},
        {"/wrong", CO_EFORMAT, "what came is not the file: its MD5 is", false},
        {"/short", CO_EFORMAT, "it has 49999 bytes there, it should have 50000", false},
        {"/long", CO_EFORMAT, "it has 50001 bytes there, it should have 50000", false},
        {"/loop", CO_EFORMAT, "redirects in a circle", false},
        {"/huge", CO_EFORMAT, "at most 1099511627776 are taken", true},
    };
    server s = {.routes = routes};
    co_fetch_facts facts;

    server_start(&s);
    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        const char *urls[] = {url_on(&s, rows[i].path), NULL};
        co_fetch_job job = job_of(urls);
        if (rows[i].any_size)
            job.size = 0;
        CHECK_FAILS(co_fetch(&facts, &job), rows[i].err, rows[i].says);
        CHECK(test_contains(co_errmsg(), rows[i].path), "the address is not named: %s", co_errmsg());
        nothing_is_there();
    }
    CHECK(routes[1].asked == 3, "500 was asked %d times", routes[1].asked); /* two retries */
    CHECK(routes[0].asked == 1, "404 was asked %d times", routes[0].asked);
    server_stop(&s);
}

TEST(the_next_address_is_tried_and_all_failures_are_named)
{
    make_body();
    static char other[LEN];
    route routes[] = {{.path = "/gone", .status = 404},
                      {.path = "/wrong", .body = other, .len = LEN},
                      {.path = "/a", .body = body, .len = LEN},
                      {0}};
    server s = {.routes = routes};
    co_fetch_facts facts;

    server_start(&s);
    const char *urls[] = {url_on(&s, "/gone"), url_on(&s, "/wrong"), url_on(&s, "/a"), NULL};
    co_fetch_job job = job_of(urls);
    CHECK_OK(co_fetch(&facts, &job));
    is_whole();
    CHECK(facts.url == urls[2], "%s", facts.url);
    unlink("f");
    urls[2] = NULL;
    CHECK_FAILS(co_fetch(&facts, &job), CO_EFORMAT, "/gone answers with status 404: sad ; http");
    CHECK(test_contains(co_errmsg(), "/wrong: what came is not the file"), "%s", co_errmsg());
    nothing_is_there();
    server_stop(&s);
}

TEST(a_busy_server_and_a_slow_one_are_waited_for)
{
    make_body();
    route routes[] = {{.path = "/busy", .body = body, .len = LEN, .busy = 2},
                      {.path = "/slow", .body = body, .len = LEN, .trickle_ms = 4},
                      {0}};
    server s = {.routes = routes};
    co_fetch_facts facts;

    server_start(&s);
    const char *busy[] = {url_on(&s, "/busy"), NULL}, *slow[] = {url_on(&s, "/slow"), NULL};
    co_fetch_job job = job_of(busy);
    CHECK_OK(co_fetch(&facts, &job));
    is_whole();
    unlink("f");
    job = job_of(slow);
    job.idle_ms = 5000; /* for each pause, not for the whole */
    CHECK_OK(co_fetch(&facts, &job));
    is_whole();
    server_stop(&s);
}

TEST(a_server_that_falls_silent_is_given_up_and_the_part_stays)
{
    route routes[] = {
        {.path = "/a", .body = body, .len = LEN, .etag = "\"v1\"", .cuts = 1, .cut_after = 9000, .hangs = true},
        {0}};
    trial t;
    struct stat st;

    start(&t, routes);
    t.job.retries = 0;
    t.job.idle_ms = 150;
    CHECK_FAILS(co_fetch(&t.facts, &t.job), CO_ETIMEOUT, "nothing has come for too long");
    CHECK(stat("f.part", &st) == 0 && st.st_size == 9000 && !co_fs_exists("f"), "the part is not there");
    t.job.idle_ms = 20000;
    comes_whole(&t);
    CHECK(t.facts.kept == 9000, "%llu", (unsigned long long)t.facts.kept);
    server_stop(&t.s);
}

/* A part is continued only where its bytes are known to belong to the file. */
TEST(bytes_of_two_versions_of_a_file_do_not_mix)
{
    make_body();
    route routes[] = {{.path = "/v2", .body = body, .len = LEN, .etag = "\"v2\""},
                      {.path = "/plain", .body = body, .len = LEN, .no_ranges = true},
                      {.path = "/tail", .body = body, .len = LEN},
                      {0}};
    server s = {.routes = routes};
    char note[400];
    co_fetch_facts facts;
    static char old[20000];

    server_start(&s);
    for (int i = 0; i < 6; i++) {
        const char *urls[] = {url_on(&s, routes[i % 3].path), NULL};
        co_fetch_job job = job_of(urls);
        if (i >= 3)
            job.md5 = NULL;                                       /* nothing but the ETag tells */
        CHECK_OK(co_fs_write_lightly("f.part", old, sizeof old)); /* zeros: an older version */
        snprintf(note, sizeof note, "%s\n\"v1\"\n", urls[0]);
        CHECK_OK(co_fs_write_lightly("f.part.from", note, strlen(note)));
        if (i % 3 == 2)
            unlink("f.part.from"); /* with a checksum they are continued, found wrong, and all is fetched again */
        CHECK_OK(co_fetch(&facts, &job));
        is_whole();
        unlink("f");
    }
    server_stop(&s);
}

TEST(a_part_that_was_whole_already_is_only_checked)
{
    route routes[] = {{.path = "/a", .body = body, .len = LEN}, {0}};
    trial t;

    start(&t, routes);
    CHECK_OK(co_fs_write_lightly("f.part", body, LEN));
    comes_whole(&t);
    CHECK(routes[0].asked == 1 && strcmp(routes[0].range, "bytes=50000-") == 0, "%d %s", routes[0].asked,
          routes[0].range);
    unlink("f");
    char longer[LEN + 10] = {0};
    CHECK_OK(co_fs_write_lightly("f.part", longer, sizeof longer)); /* longer than the file: thrown away */
    comes_whole(&t);
    server_stop(&t.s);
}

TEST(redirects_are_followed_and_sums_of_the_server_are_used)
{
    make_body();
    char linked[200], sum[100];
    snprintf(linked, sizeof linked, "X-Linked-ETag: \"%s\"\r\nX-Linked-Size: 50000\r\n", sha256);
    snprintf(sum, sizeof sum, "MD5 (a) = %s\n", md5);
    route routes[] = {{.path = "/hub", .location = "/store?key=1", .extra = linked},
                      {.path = "/store?key=1", .body = body, .len = LEN},
                      {.path = "/a", .body = body, .len = LEN},
                      {.path = "/a.md5", .body = sum, .len = strlen(sum)},
                      {0}};
    server s = {.routes = routes};
    co_fetch_facts facts;

    server_start(&s);
    const char *hub[] = {url_on(&s, "/hub"), NULL}, *beside[] = {url_on(&s, "/a"), NULL};
    co_fetch_job job = {.urls = hub, .path = "f", .linked_sum = true, .retry_ms = 1};
    CHECK_OK(co_fetch(&facts, &job));
    is_whole();
    CHECK(facts.sum == CO_SUM_SHA256 && strcmp(facts.hex, sha256) == 0, "%s", facts.hex);
    unlink("f");
    linked[16] = linked[16] == '0' ? '1' : '0';
    CHECK_FAILS(co_fetch(&facts, &job), CO_EFORMAT, "its SHA-256 is");
    job = (co_fetch_job){.urls = beside, .path = "f", .sum_end = ".md5", .retry_ms = 1};
    CHECK_OK(co_fetch(&facts, &job));
    CHECK(facts.sum == CO_SUM_MD5, "no sum");
    unlink("f");
    sum[10] = sum[10] == '0' ? '1' : '0';
    CHECK_FAILS(co_fetch(&facts, &job), CO_EFORMAT, "its MD5 is");
    nothing_is_there();
    routes[3].status = 404; /* no sum is published: the file is taken */
    CHECK_OK(co_fetch(&facts, &job));
    CHECK(facts.sum == CO_SUM_NONE, "a sum");
    server_stop(&s);
}

TEST(a_download_needs_room_on_the_disk_and_the_only_writer)
{
    route routes[] = {{.path = "/a", .body = body, .len = LEN}, {0}};
    trial t;

    start(&t, routes);
    t.job.room = (uint64_t)1 << 60;
    CHECK_FAILS(co_fetch(&t.facts, &t.job), CO_EIO, "f.part needs 1152921504606896976 bytes more");
    nothing_is_there();
    t.job.room = 0;
    int fd = open("f.part", O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
    CHECK(flock(fd, LOCK_EX) == 0, "lock");
    CHECK_FAILS(co_fetch(&t.facts, &t.job), CO_EINPUT, "another process is downloading f.part");
    close(fd);
    comes_whole(&t);
    CHECK(mkdir("g", 0777) == 0, "mkdir");
    t.job.path = "g/none/f";
    CHECK_FAILS(co_fetch(&t.facts, &t.job), CO_EIO, "create g/none/f.part: No such file");
    server_stop(&t.s);
}

TEST(sums_are_found_in_the_files_that_publishers_put_beside)
{
    static const struct {
        const char *text, *md5;
    } rows[] = {{"MD5 (ml-25m.zip) = 6b51fb2759a8657d3bfcbfc42b592ada\n", "6b51fb2759a8657d3bfcbfc42b592ada"},
                {"0E33842E24A9C977BE4E0107933C0723  ml-100k.zip", "0e33842e24a9c977be4e0107933c0723"},
                {"<html>no such file</html>", ""},
                {"", ""},
                {"6b51fb2759a8657d3bfcbfc42b592ada0", ""},
                {"696d65a3dfceac7c45750ad32df2c259311949efec81f0f144fdfb91ebc9e436", ""}};

    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        sums got = {0};
        bool found = sums_parse_md5(&got, rows[i].text, strlen(rows[i].text));
        CHECK(found == (*rows[i].md5 != 0) && strcmp(got.md5, rows[i].md5) == 0, "row %zu: %s", i, got.md5);
    }
}

TEST(every_row_of_the_table_of_sets_is_complete)
{
    for (const co_set *set = co_sets; set->name; set++) {
        CHECK(set->title && set->terms, "%s", set->name);
        CHECK(co_set_find(set->name) == set && (!set->alias || co_set_find(set->alias) == set), "%s",
              set->name);
        if (set->by_hand)
            continue;
        CHECK(set->folder && set->needs[0] && (!set->unpack || set->unpacked), "%s", set->name);
        CHECK(set->files[0].name && (!set->unpack || !set->files[1].name), "%s: one archive", set->name);
        for (int i = 0; set->files[i].name; i++) {
            const co_set_file *f = &set->files[i];
            CHECK(f->urls[0] && strncmp(f->urls[0], "http", 4) == 0, "%s", f->name);
            CHECK(!f->md5 || strspn(f->md5, "0123456789abcdef") == 32, "%s: %s", f->name, f->md5);
        }
    }
    CHECK(!co_set_find("imagenett"), "found");
}
