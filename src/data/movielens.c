/* movielens.c -- ratings of movies by people, from the files of MovieLens (movielens_read.c says which
 * layouts).
 *
 * A sample is a user, a movie and the stars given, 0.5 to 5. Users and movies are rows: the ids that occur,
 * sorted (movielens_rows.c). data.split says which ratings are held out:
 *
 *     random   a share of all ratings, drawn by data.split_seed
 *     time     the newest ratings of all users together; of two with one time, the later in the file is newer
 *     last     the newest rating of each user who has at least two ("leave one out")
 *
 * With random and time, data.test_fraction holds out a second share (time: the very newest). In memory stand
 * 12 bytes per rating, in the order of the splits, the list of what each user has rated, and the titles.
 * Every rating is read and checked when the set is opened; the files are not read again.
 *
 * Source: F. M. Harper and J. A. Konstan, The MovieLens Datasets: History and Context, 2015.
 */
#include "data/movielens_int.h"

#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/rng.h"
#include "base/sort.h"

typedef enum { BY_CHANCE, BY_TIME, BY_LAST } split_kind;

struct movielens_cfg {
    char *dir;
    int split; /* split_kind */
    double val_fraction, test_fraction;
    int64_t split_seed;
};

static const co_option options[] = {
    {"dir", CO_OPT_STR, offsetof(struct movielens_cfg, dir), "null",
     "folder with ratings.csv, ratings.dat or u.data (ml-latest-small, ml-25m, ml-1m, ml-100k)",
     .alias = "data.data_dir", .path = true},
    {"split", CO_OPT_ENUM, offsetof(struct movielens_cfg, split), "random",
     "which ratings are held out: a random share, the newest share, or the last rating of each user",
     .choices = "random|time|last"},
    {"val_fraction", CO_OPT_FLOAT, offsetof(struct movielens_cfg, val_fraction), "0.1",
     "part of the ratings to validate on (data.split=last: not used)", .min = 0, .max = 0.9},
    {"test_fraction", CO_OPT_FLOAT, offsetof(struct movielens_cfg, test_fraction), "0",
     "part of the ratings to test on (data.split=last: not used)", .min = 0, .max = 0.9},
    {"split_seed", CO_OPT_INT, offsetof(struct movielens_cfg, split_seed), "0",
     "draws the ratings of data.split=random", .min = 0, .max = 0x1p53},
    {0},
};

/* What a sample is made of: together, because an epoch reads them in random order. */
struct rated {
    int32_t user, item; /* rows */
    float stars;
};

struct movielens {
    co_dataset base;
    struct rated *rated; /* [n], in the order of the splits */
    ml_ids users, items;
    ml_seen seen;
    const char **title; /* [items.n] */
    co_pool pool;
    bool has_times;
    uint32_t first_s, last_s; /* the times of the oldest and the newest rating */
};

/* --- giving out samples --------------------------------------------------------------------------------- */
static int fill(const co_dataset *d, co_split s, const uint32_t *id, co_slice_shape shape,
                const co_draw *draw, const co_slice_dst *dst)
{
    const struct movielens *set = (const struct movielens *)d;
    uint32_t start = split_start(d, s);
    int32_t *users = dst->x; /* [n] */
    float *y = dst->y;       /* [n,1] */

    for (int i = 0; i < shape.n; i++) {
        const struct rated *r = &set->rated[start + id[i]];
        if (users)
            users[i] = r->user;
        if (dst->items)
            dst->items[i] = r->item;
        if (y)
            y[i] = r->stars;
        if (dst->ids)
            dst->ids[i] = id[i];
    }
    return 0;
}

static bool user_row(const co_dataset *d, int64_t id, uint32_t *row)
{
    const struct movielens *set = (const struct movielens *)d;

    return id >= 0 && id <= UINT32_MAX && ml_row_of(&set->users, (uint32_t)id, row);
}

static int64_t user_id(const co_dataset *d, uint32_t row)
{
    return ((const struct movielens *)d)->users.id[row];
}

static int64_t item_id(const co_dataset *d, uint32_t row)
{
    return ((const struct movielens *)d)->items.id[row];
}

static const char *title(const co_dataset *d, uint32_t row)
{
    return ((const struct movielens *)d)->title[row];
}

/* RFC 4180: in quotes if there is a comma, a quote or nothing at all. */
static void add_quoted(co_str *out, const char *text)
{
    bool plain = !strpbrk(text, ",\"");

    co_str_add(out, plain ? "" : "\"");
    for (; *text; text++)
        co_str_addn(out, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    co_str_add(out, plain ? "\n" : "\"\n");
}

static void list_names(const co_dataset *d, co_str *out)
{
    const struct movielens *set = (const struct movielens *)d;

    co_str_add(out, "kind,row,id,title\n");
    for (uint32_t r = 0; r < set->users.n; r++)
        co_str_addf(out, "user,%u,%u,\n", r, set->users.id[r]);
    for (uint32_t r = 0; r < set->items.n; r++) {
        co_str_addf(out, "item,%u,%u,", r, set->items.id[r]);
        add_quoted(out, set->title[r] ? set->title[r] : "");
    }
}

static bool times(const co_dataset *d, uint32_t *first_s, uint32_t *last_s)
{
    const struct movielens *set = (const struct movielens *)d;

    *first_s = set->first_s;
    *last_s = set->last_s;
    return set->has_times;
}

static const co_rating_names names = {user_row, user_id, item_id, title, list_names, times};

/* --- splits --------------------------------------------------------------------------------------------- */
/* place[n]: the ratings from the oldest to the newest. */
static co_err order_by_time(uint32_t *place, const ml_rating *ratings, uint32_t n)
{
    uint64_t *key = co_array(2 * (size_t)n, sizeof *key);

    if (!key)
        return CO_ENOMEM;
    for (uint32_t i = 0; i < n; i++)
        key[i] = (uint64_t)ratings[i].time << 32 | i;
    co_sort_keys(key, key + n, n);
    for (uint32_t i = 0; i < n; i++)
        place[i] = (uint32_t)key[i];
    co_free(key);
    return CO_OK;
}

/* place[n]: all but each user's newest in the file's order, then those by user. Returns how many are last. */
static uint32_t put_newest_last(uint32_t *place, const ml_rating *ratings, uint32_t n, const ml_seen *seen,
                                uint32_t users, uint32_t *newest)
{
    uint32_t at = 0, last = 0;

    memset(newest, 0xFF, users * sizeof *newest);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t *now = &newest[ratings[i].user];
        if (*now == UINT32_MAX || ratings[i].time >= ratings[*now].time)
            *now = i;
    }
    for (uint32_t u = 0; u < users; u++)
        if (seen->start[u + 1] - seen->start[u] < 2)
            newest[u] = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++)
        if (newest[ratings[i].user] != i)
            place[at++] = i;
    for (uint32_t u = 0; u < users; u++)
        if (newest[u] != UINT32_MAX) {
            place[at++] = newest[u];
            last++;
        }
    return last;
}

static co_err split_last(struct movielens *set, uint32_t *place, const ml_rating *ratings, uint32_t n)
{
    uint32_t *newest = co_array(set->users.n, sizeof *newest);

    if (!newest)
        return CO_ENOMEM;
    uint32_t last = put_newest_last(place, ratings, n, &set->seen, set->users.n, newest);
    set->base.count[CO_SPLIT_TRAIN] = n - last;
    set->base.count[CO_SPLIT_VAL] = last;
    co_free(newest);
    return CO_OK;
}

static uint32_t share(double fraction, uint32_t n)
{
    uint32_t part = (uint32_t)((double)n * fraction);

    return fraction > 0 && part == 0 ? 1 : part;
}

static co_err split_shares(struct movielens *set, uint32_t n, const struct movielens_cfg *c)
{
    uint32_t val = share(c->val_fraction, n), test = share(c->test_fraction, n);

    if ((uint64_t)val + test >= n)
        return co_fail(CO_EINPUT,
                       "data.val_fraction=%g and data.test_fraction=%g leave none of %u ratings to train on",
                       c->val_fraction, c->test_fraction, n);
    set->base.count[CO_SPLIT_TRAIN] = n - val - test;
    set->base.count[CO_SPLIT_VAL] = val;
    set->base.count[CO_SPLIT_TEST] = test;
    return CO_OK;
}

/* place[n] says which rating stands where, the counts how many places each split has. */
static co_err split(struct movielens *set, uint32_t *place, const ml_rating *ratings, uint32_t n,
                    const struct movielens_cfg *c)
{
    if (c->split == BY_LAST)
        return split_last(set, place, ratings, n);
    if (c->split == BY_TIME)
        CO_TRY(order_by_time(place, ratings, n));
    else
        co_rng_permute(place, n, co_rng_key_make((uint64_t)c->split_seed, CO_RNG_SPLIT), 0);
    return split_shares(set, n, c);
}

static co_err arrange(struct movielens *set, const ml_rating *ratings, uint32_t n,
                      const struct movielens_cfg *c)
{
    uint32_t *place = co_array(n, sizeof *place);
    co_err err = place ? split(set, place, ratings, n, c) : CO_ENOMEM;
    size_t bytes = n * sizeof *set->rated;
    double sum = 0;

    if (!err && !(set->rated = co_alloc_shared(bytes)))
        err = CO_ENOMEM;
    for (uint32_t i = 0; i < n && !err; i++) {
        const ml_rating *r = &ratings[place[i]];
        set->rated[i] = (struct rated){(int32_t)r->user, (int32_t)r->item, r->stars};
        sum += i < set->base.count[CO_SPLIT_TRAIN] ? (double)r->stars : 0;
    }
    set->base.shared_bytes = bytes;
    if (!err)
        set->base.io.y_mean = sum / set->base.count[CO_SPLIT_TRAIN];
    co_free(place);
    return err;
}

/* --- opening -------------------------------------------------------------------------------------------- */
static co_err check_dir(const struct movielens_cfg *c)
{
    if (!c->dir || !*c->dir)
        return co_fail(CO_EINPUT, "data=movielens needs data.dir=FOLDER, the folder of an unpacked archive of"
                                  " https://grouplens.org/datasets/movielens/, such as ml-latest-small");
    if (!co_fs_is_dir(c->dir))
        return co_fail(CO_EINPUT,
                       "data.dir: %s is %s; give the folder of an unpacked MovieLens archive, or fetch one: "
                       "cohort data get movielens",
                       c->dir, co_fs_exists(c->dir) ? "not a folder" : "not there");
    return CO_OK;
}

static void tell_note(struct movielens *set, const ml_files *files, const struct movielens_cfg *c)
{
    static const char *const held_out[] = {"a random part", "the newest part", "each user's last rating"};
    uint32_t untitled = 0;
    size_t room = sizeof set->base.note;

    for (uint32_t i = 0; i < set->items.n; i++)
        untitled += !set->title[i];
    int n = snprintf(set->base.note, room, "%s is held out", held_out[c->split]);
    if (!files->titles[0])
        snprintf(set->base.note + n, room - (size_t)n, "; there is no file of titles");
    else if (untitled)
        snprintf(set->base.note + n, room - (size_t)n, "; %u movies have no title", untitled);
}

static void note_times(struct movielens *set, const ml_rating *ratings, uint32_t n)
{
    set->has_times = true;
    set->first_s = set->last_s = ratings[0].time;
    for (uint32_t i = 1; i < n; i++) {
        set->first_s = ratings[i].time < set->first_s ? ratings[i].time : set->first_s;
        set->last_s = ratings[i].time > set->last_s ? ratings[i].time : set->last_s;
    }
}

static void add_keys(co_sha256 *hash, const struct movielens_cfg *c)
{
    char says[160];
    bool shares = c->split != BY_LAST;

    snprintf(says, sizeof says, "movielens 1 split=%d val_fraction=%.17g test_fraction=%.17g seed=%lld\n",
             c->split, shares ? c->val_fraction : 0, shares ? c->test_fraction : 0,
             c->split == BY_CHANCE ? (long long)c->split_seed : 0);
    co_sha256_add(hash, says, strlen(says));
}

static co_err use_ratings(struct movielens *set, ml_rating *ratings, uint32_t n, const ml_files *files,
                          const struct movielens_cfg *c)
{
    CO_TRY(ml_number(&set->users, &set->items, ratings, n));
    co_err err = ml_list_seen(&set->seen, ratings, n, &set->users, &set->items);
    if (err)
        return err == CO_EINPUT ? co_fail_in(err, "%s", files->ratings) : err;
    CO_TRY(arrange(set, ratings, n, c));
    set->base.io.users = set->users.n;
    set->base.io.items = set->items.n;
    if (!(set->title = co_array(set->items.n, sizeof *set->title)))
        return CO_ENOMEM;
    return ml_read_titles(set->title, &set->items, files, &set->pool);
}

static co_err read_set(struct movielens *set, const struct movielens_cfg *c)
{
    ml_files files;
    ml_rating *ratings;
    uint32_t n;
    bool has_times;
    co_sha256 hash;

    CO_TRY(check_dir(c));
    CO_TRY(ml_find(&files, c->dir));
    co_sha256_init(&hash);
    add_keys(&hash, c);
    CO_TRY(ml_read_ratings(&ratings, &n, &has_times, &files, &hash));
    co_err err = CO_OK;
    if (c->split != BY_CHANCE && !has_times)
        err = co_fail(CO_EINPUT, "data.split=%s needs times; %s has no column timestamp: use data.split=random",
                      c->split == BY_TIME ? "time" : "last", files.ratings);
    if (!err)
        err = use_ratings(set, ratings, n, &files, c);
    if (!err && has_times)
        note_times(set, ratings, n);
    co_free(ratings);
    if (err)
        return err;
    co_sha256_hex(&hash, set->base.fingerprint);
    tell_note(set, &files, c);
    return CO_OK;
}

static void shut(co_dataset *d)
{
    struct movielens *set = (struct movielens *)d;

    co_free_shared(set->rated);
    co_free(set->users.id);
    co_free(set->items.id);
    co_free(set->seen.start);
    co_free(set->seen.item);
    co_free(set->title);
    co_pool_fini(&set->pool);
    co_free(set);
}

static co_err open_movielens(co_dataset **out, const void *cfg)
{
    struct movielens *set = co_zalloc(sizeof *set);

    if (!set)
        return CO_ENOMEM;
    set->base = (co_dataset){
        .io = {.task = CO_TASK_REGRESS, .x = CO_SCALAR, .y_width = 1},
        .names = &names,
        .fill = fill,
        .close = shut,
    };
    co_err err = read_set(set, cfg);
    if (err) {
        shut(&set->base);
        return err == CO_EINPUT ? co_fail_in(err, "data=movielens") : err;
    }
    *out = &set->base;
    return CO_OK;
}

const co_dataset_def movielens_def = {
    .name = "movielens",
    .help = "ratings of movies by people, from the files of MovieLens",
    .options = options,
    .cfg_size = sizeof(struct movielens_cfg),
    .open = open_movielens,
};
