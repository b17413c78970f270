/* test_movielens.c -- the layouts of MovieLens, their rows, their splits, and what is refused. The folder
 * movielens has the same twelve made-up ratings in each layout. */
#include "data/sets.h"

#include <unistd.h>

#include "base/fs.h"
#include "data/movielens.h"

static co_dataset *open_sample(const char *layout)
{
    char path[256];
    co_dataset *d = NULL;

    snprintf(path, sizeof path, "tests/data/movielens/%s", layout);
    CHECK_OK(set_try(&d, "movielens", "dir", test_repo(path), "val_fraction", "0.25", (char *)NULL));
    return d;
}

/* Rows are the sorted ids: users 1 3 9 12 15, movies 7 10 20 41 300. Movie 55, which nobody rates, has none.
 * */
static void check_names(const co_dataset *d)
{
    static const int64_t users[] = {1, 3, 9, 12, 15}, items[] = {7, 10, 20, 41, 300};
    static const char *const titles[] = {"Plain", "Comma, The (1995)", "Quote \"This\" (1999)",
                                         "Caf\xc3\xa9 (2001)", "Last (2010)"};
    uint32_t row;

    CHECK(d->io.task == CO_TASK_REGRESS && d->io.users == 5 && d->io.items == 5, "%lld users, %lld items",
          (long long)d->io.users, (long long)d->io.items);
    for (uint32_t i = 0; i < 5; i++) {
        CHECK(d->names->user_row(d, users[i], &row) && row == i, "user %lld has row %u", (long long)users[i],
              row);
        CHECK(d->names->item_id(d, i) == items[i], "item %u is %lld", i, (long long)d->names->item_id(d, i));
        CHECK(strcmp(d->names->title(d, i), titles[i]) == 0, "title %u is %s", i, d->names->title(d, i));
    }
    CHECK(!d->names->user_row(d, 2, &row) && !d->names->user_row(d, -1, &row), "user 2 or -1 was found");
}

TEST(every_layout_of_movielens_gives_the_same_ratings_rows_and_titles)
{
    static const char *const layouts[] = {"csv", "dat", "u"};
    struct rated first[12], other[12];

    for (size_t i = 0; i < CO_COUNT(layouts); i++) {
        co_dataset *d = open_sample(layouts[i]);
        CHECK(d->count[0] == 9 && d->count[1] == 3 && d->count[2] == 0, "%u %u %u", d->count[0], d->count[1],
              d->count[2]);
        check_names(d);
        rated_all(d, i ? other : first);
        CHECK(i == 0 || memcmp(first, other, sizeof first) == 0, "%s has other samples", layouts[i]);
        co_dataset_close(d);
    }
}

TEST(the_map_of_movielens_lists_every_row_with_its_id_and_title)
{
    co_dataset *d = open_sample("csv");
    co_str text = {0};

    d->names->list(d, &text);
    CHECK(strcmp(co_str_text(&text),
                 "kind,row,id,title\nuser,0,1,\nuser,1,3,\nuser,2,9,\nuser,3,12,\nuser,4,15,\n"
                 "item,0,7,Plain\nitem,1,10,\"Comma, The (1995)\"\nitem,2,20,\"Quote \"\"This\"\" (1999)\"\n"
                 "item,3,41,Caf\xc3\xa9 (2001)\nitem,4,300,Last (2010)\n") == 0,
          "%s", co_str_text(&text));
    co_str_fini(&text);
    co_dataset_close(d);
}

TEST(the_mean_that_models_start_from_is_that_of_the_ratings_to_train_on)
{
    co_dataset *d = open_sample("u");
    struct rated all[12];
    double sum = 0;

    rated_all(d, all);
    for (int i = 0; i < 9; i++)
        sum += (double)all[i].stars;
    CHECK(d->io.y_mean == sum / 9, "%.17g, not %.17g", d->io.y_mean, sum / 9);
    co_dataset_close(d);
}

/* --- splits --------------------------------------------------------------------------------------------- */
/* 200 ratings: user i % 20 gives movie i / 20 one star more than i % 5, at time 1000 - 7 i modulo 1000. */
enum { N = 200 };

static void put_many(void)
{
    co_str text = {0};

    co_str_add(&text, "timestamp,movieId,rating,userId\n"); /* columns are found by their names */
    for (int i = 0; i < N; i++)
        co_str_addf(&text, "%d,%d,%d,%d\n", (1000 + 777 * i) % 1000, i / 20, 1 + i % 5, i % 20);
    put_text("d/ratings.csv", co_str_text(&text));
    co_str_fini(&text);
}

static uint32_t time_of(const struct rated *r)
{
    int i = r->item * 20 + r->user;

    return (uint32_t)((1000 + 777 * i) % 1000);
}

static void rate_many(struct rated all[N], const char *split, const char *seed, const char *test_fraction)
{
    co_dataset *d;
    bool there[N] = {0};

    CHECK_OK(set_try(&d, "movielens", "dir", "d", "split", split, "split_seed", seed, "test_fraction",
                     test_fraction, (char *)NULL));
    CHECK(d->count[0] + d->count[1] + d->count[2] == N, "%u %u %u", d->count[0], d->count[1], d->count[2]);
    CHECK(d->count[2] == (strcmp(test_fraction, "0") == 0 ? 0 : 40), "%u to test on", d->count[2]);
    rated_all(d, all);
    for (int i = 0; i < N; i++) {
        int which = all[i].item * 20 + all[i].user;
        CHECK(!there[which], "rating %d is in two splits", which);
        there[which] = true;
        CHECK(all[i].stars == 1 + which % 5, "rating %d is %g", which, (double)all[i].stars);
    }
    co_dataset_close(d);
}

TEST(a_random_split_is_drawn_by_its_seed)
{
    struct rated a[N], again[N], other[N];

    put_many();
    rate_many(a, "random", "0", "0");
    rate_many(again, "random", "0", "0");
    rate_many(other, "random", "1", "0");
    CHECK(memcmp(a, again, sizeof a) == 0, "one seed, two splits");
    CHECK(memcmp(a + 180, other + 180, 20 * sizeof *a) != 0, "two seeds, one split");
    rate_many(a, "random", "0", "0.2");
}

TEST(a_split_by_time_holds_out_the_newest_ratings)
{
    struct rated all[N];

    put_many();
    rate_many(all, "time", "0", "0.2");
    for (int i = 1; i < N; i++)
        CHECK(time_of(&all[i - 1]) <= time_of(&all[i]), "%u comes before %u", time_of(&all[i - 1]),
              time_of(&all[i]));
}

TEST(a_split_by_last_holds_out_the_newest_rating_of_each_user)
{
    struct rated all[N];

    put_many();
    rate_many(all, "last", "0", "0");
    for (int u = 0; u < 20; u++) {
        CHECK(all[180 + u].user == u, "place %d has user %d", 180 + u, all[180 + u].user);
        for (int i = 0; i < 180; i++)
            CHECK(all[i].user != u || time_of(&all[i]) <= time_of(&all[180 + u]), "user %d has a newer one", u);
    }
}

TEST(a_user_with_one_rating_keeps_it_to_train_on)
{
    co_dataset *d;

    CHECK_OK(set_try(&d, "movielens", "dir", test_repo("tests/data/movielens/csv"), "split", "last",
                     (char *)NULL));
    /* users 12 and 15 have one */
    CHECK(d->count[0] == 9 && d->count[1] == 3, "%u %u", d->count[0], d->count[1]);
    co_dataset_close(d);
}

/* --- what is refused ------------------------------------------------------------------------------------ */
#define HEAD "userId,movieId,rating,timestamp\n"

static const struct {
    const char *file, *text, *words;
} bad[] = {
    {"ratings.csv", "", "d/ratings.csv is empty: was the download complete?"},
    {"ratings.csv", HEAD, "d/ratings.csv has a header and no ratings"},
    {"ratings.csv", "userId;movieId;rating;timestamp\n1;1;4;5\n",
     "d/ratings.csv, line 1: its fields are parted by ';'; ',' is needed"},
    {"ratings.csv", "userId\tmovieId\trating\n", "line 1: its fields are parted by tabs"},
    {"ratings.csv", "userId,movieId,timestamp\n1,1,5\n",
     "line 1: there is no column rating; it has userId,movieId,timestamp"},
    {"ratings.csv", "1,1,4.0,5\n", "line 1: there is no column userId; it has 1,1,4.0,5"},
    {"ratings.csv", HEAD "1,1,4.0,5\n1,2,7.5,6\n", "line 3: the rating is 7.5; ratings go from 0.5 to 5"},
    {"ratings.csv", HEAD "1,1,0,5\n", "line 2: the rating is 0; ratings go from 0.5 to 5: correct or remove"},
    {"ratings.csv", HEAD "1,1,nan,5\n", "line 2: the rating is nan"},
    {"ratings.csv", HEAD "1,1,good,5\n", "line 2: the rating is \"good\"; a number is needed"},
    {"ratings.csv", HEAD "Ann,1,3,5\n", "line 2: the user is \"Ann\"; a whole number is needed"},
    {"ratings.csv", HEAD "1,-4,3,5\n", "line 2: the movie is \"-4\"; a whole number is needed"},
    {"ratings.csv", HEAD "1,4294967296,3,5\n", "line 2: the movie is \"4294967296\""},
    {"ratings.csv", HEAD "1,1,3,yesterday\n", "line 2: the timestamp is \"yesterday\"; seconds since 1970"},
    {"ratings.csv", HEAD "\n\n1,1\n", "line 4: it has 2 fields and no rating: is the line cut short?"},
    {"ratings.csv", HEAD "1,3,4,964982703\n1,1,4,5,964982703\n",
     "line 3: it has 5 fields, the first line has 4: write ratings with a point (4.5, not 4,5)"},
    {"ratings.csv", "userId,movieId,rating,who\n1,1,4,me\n1,2,3\n",
     "line 3: it has 3 fields, the first line has 4: is the line cut short?"},
    {"ratings.csv", HEAD "1,1,4,964982703\n1,3793,5.0,9",
     "line 3: the file ends within this line: it has no line end, and its timestamp 9 is far before all "
     "others"},
    {"ratings.csv", HEAD "1,1,4,1537109082\n1,2,4,964982703\n1,3793,5.0,153710908",
     "line 4: the file ends within"},
    {"ratings.dat", "1::1::3::5\n1::2::3::5::6\n",
     "line 2: it has 5 fields, the first line has 4: correct or remove"},
    {"ratings.csv", HEAD "1,1,3,5\n1,1,4,6\n", "user 1 rates movie 1 twice: remove one of the two lines"},
    {"ratings.csv", HEAD "1,\"1,3,5\n", "line 2: a field begins with a quote that is not closed"},
    {"ratings.csv", HEAD "1,\"1\"x,3,5\n", "line 2: after the closing quote of field 2 comes no ','"},
    {"ratings.dat", "", "d/ratings.dat is empty"},
    {"ratings.dat", "1,1,3,5\n", "line 1: its fields are parted by ','; '::' is needed"},
    {"ratings.dat", "1::1::6::5\n", "line 1: the rating is 6"},
    {"u.data", "1::1::3::5\n", "line 1: its fields are parted by '::'; tabs are needed"},
    {"u.data", "1\t1\t3\n", "line 1: it has 3 fields and no timestamp"},
};

TEST(bad_ratings_are_refused_with_file_line_and_what_to_do)
{
    co_dataset *d = NULL;

    for (size_t i = 0; i < CO_COUNT(bad); i++) {
        char path[64];
        snprintf(path, sizeof path, "d/%s", bad[i].file);
        put_text(path, bad[i].text);
        CHECK_FAILS(set_try(&d, "movielens", "dir", "d", (char *)NULL), CO_EINPUT, bad[i].words);
        CHECK(!d && test_contains(co_errmsg(), "data=movielens: "), "%s", co_errmsg());
        unlink(path);
    }
}

TEST(a_last_line_without_a_line_end_is_read_when_it_is_whole)
{
    co_dataset *d;

    put_text("d/ratings.csv", HEAD "1,1,4,10\n1,2,4,9\n1,3,4,8\n2,1,4,1");
    CHECK_OK(set_try(&d, "movielens", "dir", "d", (char *)NULL));
    co_dataset_close(d);
    put_text("d/ratings.csv", HEAD "1,1,4,1537109082\n1,2,4,964982703\n2,1,4,828124615");
    CHECK_OK(set_try(&d, "movielens", "dir", "d", (char *)NULL));
    co_dataset_close(d);
}

TEST(lines_that_are_no_text_are_refused)
{
    static char longest[70000];
    co_dataset *d = NULL;

    put_text("d/ratings.csv", HEAD);
    memset(longest, '1', sizeof longest - 1);
    put_text("d/ratings.csv", longest);
    CHECK_FAILS(set_try(&d, "movielens", "dir", "d", (char *)NULL), CO_EINPUT,
                "line 1: it has more than 65536 bytes");
    CHECK_OK(co_fs_write_atomic("d/ratings.csv", HEAD "1,1\0,3,5\n", sizeof HEAD "1,1\0,3,5\n" - 1));
    CHECK_FAILS(set_try(&d, "movielens", "dir", "d", (char *)NULL), CO_EINPUT, "line 2: it has a NUL byte");
}

TEST(a_bad_file_of_titles_is_refused_and_a_missing_one_is_told)
{
    co_dataset *d = NULL;

    put_text("d/ratings.csv", HEAD "1,1,3,5\n1,2,3,5\n");
    put_text("d/movies.csv", "movieId;title;genres\n1;A;B\n");
    CHECK_FAILS(set_try(&d, "movielens", "dir", "d", (char *)NULL), CO_EINPUT,
                "d/movies.csv, line 1: its fields are parted by ';'");
    put_text("d/movies.csv", "movieId,title,genres\n1,A,B\nx,A,B\n");
    CHECK_FAILS(set_try(&d, "movielens", "dir", "d", (char *)NULL), CO_EINPUT,
                "d/movies.csv, line 3: the movie is \"x\"");
    put_text("d/movies.csv", "movieId,title,genres\n1,A,B\n");
    CHECK_OK(set_try(&d, "movielens", "dir", "d", (char *)NULL));
    CHECK(test_contains(d->note, "1 movies have no title") && !d->names->title(d, 1), "%s", d->note);
    co_dataset_close(d);
    unlink("d/movies.csv");
    CHECK_OK(set_try(&d, "movielens", "dir", "d", (char *)NULL));
    CHECK(test_contains(d->note, "there is no file of titles"), "%s", d->note);
    co_dataset_close(d);
}

TEST(keys_of_movielens_that_cannot_be_met_are_refused)
{
    co_dataset *d = NULL;

    CHECK_FAILS(set_try(&d, "movielens", (char *)NULL), CO_EINPUT, "data=movielens needs data.dir=FOLDER");
    CHECK_FAILS(set_try(&d, "movielens", "dir", "gone", (char *)NULL), CO_EINPUT,
                "data.dir: gone is not there");
    CHECK_OK(co_fs_mkdirs("empty"));
    CHECK_FAILS(set_try(&d, "movielens", "dir", "empty", (char *)NULL), CO_EINPUT,
                "empty has none of ratings.csv, ratings.dat (ml-1m) and u.data (ml-100k)");
    put_text("d/ratings.csv", "userId,movieId,rating\n1,1,3\n1,2,4\n");
    CHECK_FAILS(set_try(&d, "movielens", "dir", "d", "split", "time", (char *)NULL), CO_EINPUT,
                "data.split=time needs times; d/ratings.csv has no column timestamp: use data.split=random");
    CHECK_FAILS(
        set_try(&d, "movielens", "dir", "d", "val_fraction", "0.5", "test_fraction", "0.5", (char *)NULL),
        CO_EINPUT, "leave none of 2 ratings to train on");
    CHECK_OK(set_try(&d, "movielens", "dir", "d", (char *)NULL));
    co_dataset_close(d);
}

static co_err try_sample(void *ctx)
{
    co_dataset *d = NULL;
    co_err err = set_try(&d, "movielens", "dir", (const char *)ctx, "split", "last", (char *)NULL);
    co_dataset_close(d);
    return err;
}

TEST(movielens_says_so_when_memory_is_out)
{
    char path[4096];

    snprintf(path, sizeof path, "%s", test_repo("tests/data/movielens/dat"));
    test_each_alloc_fails(try_sample, path);
}

TEST(the_real_movielens_has_the_counts_of_its_readme)
{
    co_dataset *d;
    uint32_t row;

    CHECK_OK(set_try(&d, "movielens", "dir", real_movielens(), (char *)NULL));
    CHECK(d->count[0] == 90753 && d->count[1] == 10083, "%u %u", d->count[0], d->count[1]);
    CHECK(d->io.users == 610 && d->io.items == 9724, "%lld %lld", (long long)d->io.users,
          (long long)d->io.items);
    CHECK(d->names->user_row(d, 610, &row) && row == 609, "user 610 has row %u", row);
    CHECK(strcmp(d->names->title(d, 0), "Toy Story (1995)") == 0, "%s", d->names->title(d, 0));
    co_dataset_close(d);
}
