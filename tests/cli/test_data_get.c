/* `cohort data get` from the command line, against a mirror on loopback. */
#include "cli/runs.h"
#include "data/zips.h"
#include "fetch/server.h"

#include <fcntl.h>
#include <sys/file.h>

#include "base/hash.h"
#include "net/http.h"

static zipper z;
static char sum[64];

/* A MovieLens archive of a few ratings, as GroupLens packs it, and its MD5 beside it. */
static void make_movielens(route *archive, route *md5)
{
    char ratings[4000], hex[33];
    int n = snprintf(ratings, sizeof ratings, "userId,movieId,rating,timestamp\r\n");
    co_http *h;

    if (co_http_open(&h) != CO_OK)
        test_skip("%s", co_errmsg());
    co_http_close(h);
    for (int i = 0; i < 35; i++)
        n += snprintf(ratings + n, sizeof ratings - (size_t)n, "%d,%d,%d.0,%d\r\n", 1 + i % 7, 1 + i % 5,
                      1 + i % 5, 900 + i);
    z = (zipper){0};
    zip_text(&z, "ml-latest-small/ratings.csv", ratings);
    zip_text(&z, "ml-latest-small/movies.csv",
             "movieId,title,genres\r\n1,One,x\r\n2,Two,x\r\n3,Three,x\r\n4,Four,x\r\n5,Five,x\r\n");
    zip_write(&z, "made.zip");
    CHECK_OK(co_md5_of_file("made.zip", hex));
    snprintf(sum, sizeof sum, "%s  ml-latest-small.zip\n", hex);
    archive->path = "/ml-latest-small.zip";
    archive->body = z.bytes;
    archive->len = z.n;
    md5->path = "/ml-latest-small.zip.md5";
    md5->body = sum;
    md5->len = strlen(sum);
}

static char *get(int status, const server *s, const char *words)
{
    test_run r = test_sh("$COHORT data get --mirror http://127.0.0.1:%d/ --retries 0 %s", s->port, words);

    CHECK(r.status == status, "data get %s: status %d, wanted %d: %s", words, r.status, status, r.out);
    return r.out;
}

static void says(int status, const server *s, const char *words, const char *what)
{
    char *out = get(status, s, words);

    CHECK(test_contains(out, what), "data get %s: %s, wanted %s", words, out, what);
    free(out);
}

TEST(data_get_downloads_checks_and_unpacks_and_the_result_is_recognised)
{
    route routes[4] = {0};
    server s = {.routes = routes};

    make_movielens(&routes[0], &routes[1]);
    server_start(&s);
    char *out = get(0, &s, "movielens d");
    CHECK(test_contains(out, "bytes, MD5 ") && test_contains(out, "d/ml-latest-small: 2 files") &&
              test_contains(out, "terms: research use") &&
              test_contains(out, "train with: cohort train experiment=movielens data.dir=d/ml-latest-small"),
          "%s", out);
    free(out);
    CHECK(!co_fs_exists("d/ml-latest-small.zip") && !co_fs_exists("d/.ml-latest-small.unpacking"),
          "leftovers");
    says(0, &s, "ml-latest-small d", "is there and complete; --force downloads it again");
    CHECK(routes[0].asked == 1, "asked %d times", routes[0].asked);
    says(0, &s, "movielens d --force --keep --json", "\"checksum\":\"md5\"");
    CHECK(routes[0].asked == 2 && co_fs_exists("d/ml-latest-small.zip"), "asked %d times", routes[0].asked);
    test_run r = test_sh("$COHORT data check d/ml-latest-small");
    CHECK(test_contains(r.out, "MovieLens, data=movielens"), "%s", r.out);
    free(r.out);
    says(0, &s, "movielens", "data/ml-latest-small: 2 files"); /* where the experiment looks for it */
    r = test_sh("$COHORT plan experiment=movielens");
    CHECK(r.status == 0 && test_contains(r.out, "data      movielens: "), "%s", r.out);
    free(r.out);
    r = test_sh("mkdir data/cifar-10-batches-bin; $COHORT plan experiment=cifar");
    CHECK(test_contains(r.out, "data/cifar-10-batches-bin has neither data_batch_1.bin"), "%s", r.out);
    free(r.out);
    server_stop(&s);
}

TEST(data_get_of_sentence_pairs_gives_a_folder_that_is_recognised)
{
    route routes[2] = {{.path = "/tatoeba-en-it.txt.zip"}};
    server s = {.routes = routes};
    co_http *h;

    if (co_http_open(&h) != CO_OK)
        test_skip("%s", co_errmsg());
    co_http_close(h);
    z = (zipper){0};
    zip_text(&z, "README", "Corpus Name: Tatoeba\n");
    zip_text(&z, "LICENSE", "CC BY 2.0 FR\n");
    zip_text(&z, "Tatoeba.en-it.en", "The cat.\nThe dog.\nThe eel.\n");
    zip_text(&z, "Tatoeba.en-it.it", "Il gatto.\nIl cane.\nL'anguilla.\n");
    zip_text(&z, "Tatoeba.en-it.xml", "<?xml version=\"1.0\"?>\n");
    zip_write(&z, "made.zip");
    routes[0].body = z.bytes;
    routes[0].len = z.n;
    server_start(&s);
    says(0, &s, "tatoeba", "checksum not published");
    says(0, &s, "tatoeba", "train with: cohort train data=pairs data.dir=data/tatoeba-en-it");
    test_run r = test_sh("$COHORT data check data/tatoeba-en-it");
    CHECK(test_contains(r.out, "data=pairs"), "%s", r.out);
    free(r.out);
    server_stop(&s);
}

TEST(data_get_goes_on_after_a_cut_when_the_line_is_typed_again)
{
    route routes[4] = {0};
    server s = {.routes = routes};

    make_movielens(&routes[0], &routes[1]);
    routes[0].cuts = 1;
    routes[0].cut_after = 300;
    server_start(&s);
    says(1, &s, "movielens d", "/ml-latest-small.zip: ");
    says(0, &s, "movielens d", "300 of them from an earlier download");
    CHECK(strcmp(routes[0].range, "bytes=300-") == 0, "%s", routes[0].range);
    server_stop(&s);
}

TEST(data_get_leaves_a_good_folder_alone_when_the_new_archive_is_bad)
{
    route routes[4] = {0};
    server s = {.routes = routes};

    make_movielens(&routes[0], &routes[1]);
    server_start(&s);
    says(0, &s, "movielens d", "2 files");
    sum[3] = sum[3] == '0' ? '1' : '0';
    says(1, &s, "movielens d --force", "what came is not the file: its MD5 is");
    routes[1].status = 404;
    z = (zipper){0};
    zip_text(&z, "ml-latest-small/tags.csv", "nothing of use");
    zip_write(&z, "made.zip");
    routes[0].len = z.n;
    says(1, &s, "movielens d --force", "was unpacked, but: ");
    z = (zipper){0};
    zip_text(&z, "../ratings.csv", "x");
    zip_write(&z, "made.zip");
    routes[0].len = z.n;
    says(1, &s, "movielens d --force", "may lead out of the folder: refused");
    CHECK(!co_fs_exists("ratings.csv") && !co_fs_exists("d/.ml-latest-small.unpacking"), "leftovers");
    succeeds("mkdir -p d/.ml-latest-small.unpacking/old/part"); /* of a call that was killed */
    says(0, &s, "movielens d", "is there and complete");
    int fd = open("d/.ml-latest-small.unpacking", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(fd >= 0 && flock(fd, LOCK_EX) == 0, "%m");
    says(2, &s, "movielens d --force", "another process is unpacking into d/.ml-latest-small.unpacking");
    CHECK(co_fs_exists("d/.ml-latest-small.unpacking/old/part"), "the other's files were removed");
    close(fd);
    make_movielens(&routes[0], &routes[1]);
    says(0, &s, "movielens d --force", "2 files");
    CHECK(!co_fs_exists("d/.ml-latest-small.unpacking") && !co_fs_exists("d/ml-latest-small/old"),
          "leftovers");
    server_stop(&s);
}

TEST(data_get_refuses_wrong_lengths_and_sums_of_sets_with_published_ones)
{
    static char junk[4542];
    route routes[] = {{.path = "/opus_books-en-it.txt.zip", .body = junk, .len = 100},
                      {.path = "/train-images-idx3-ubyte.gz", .body = junk, .len = 100},
                      {.path = "/cifar-10-binary.tar.gz", .status = 403},
                      {0}};
    server s = {.routes = routes};
    co_http *h;

    if (co_http_open(&h) != CO_OK)
        test_skip("%s", co_errmsg());
    co_http_close(h);
    server_start(&s);
    says(1, &s, "en-it", "it has 100 bytes there, it should have 3295251");
    says(1, &s, "mnist", "it has 100 bytes there, it should have 9912422");
    says(1, &s, "cifar10", "/cifar-10-binary.tar.gz answers with status 403");
    says(1, &s, "ml-25m", "/ml-25m.zip answers with status 404");
    server_stop(&s);
}

TEST(data_get_refuses_lines_that_make_no_sense)
{
    static const struct {
        int status;
        const char *words, *says;
    } rows[] = {
        {2, "get cifra10", "did you mean cifar10?"},
        {2, "get nothing", "there are cifar10, mnist, ml-latest-small"},
        {2, "get imagenet", "ImageNet needs an account"},
        {2, "get mnist a b", "data get takes a name and perhaps a folder"},
        {2, "get mnist --retries -1", "--retries=-1: a whole number from 0 to 1000"},
        {2, "get mnist --retries x", "--retries=x"},
        {2, "get mnist --out x", "data get has no --out"},
        {2, "check . --force", "data check has no --force"},
        {2, "get mnist --mirror ftp://127.0.0.1", "127.0.0.1"},
        {0, "get", "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"},
        {0, "get --json", "\"md5\":\"c32a1d4ab5d03f1284b67883e8d87530\""},
        {0, "--help", "get downloads from the publisher's address"},
    };

    for (size_t i = 0; i < CO_COUNT(rows); i++) {
        test_run r = test_sh("$COHORT data %s", rows[i].words);
        CHECK(r.status == rows[i].status && test_contains(r.out, rows[i].says), "data %s: status %d: %s",
              rows[i].words, r.status, r.out);
        free(r.out);
    }
}
