/* movielens_read.c -- the files of MovieLens, in each of the layouts in which it is given away.
 *
 *     archive                   ratings                                  titles
 *     ml-latest-small, ml-25m   ratings.csv  userId,movieId,rating,...   movies.csv  movieId,title,...
 *     ml-1m, ml-10M100K         ratings.dat  user::movie::rating::time   movies.dat  movie::title::...
 *     ml-100k                   u.data       user TAB movie TAB ...      u.item      movie|title|...
 *
 * The two older layouts have no header and are latin-1 or UTF-8. Every field that is used is checked, every line must
 * have as many fields as the first, and a last line that was cut in its timestamp is refused. A message names the
 * file, the line and what to do.
 */
#include "data/movielens_int.h"

#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "data/csv_int.h"
#include "data/file_int.h"

enum { USER, ITEM, STARS, TIME, COLUMNS };
static const char *const column_names[COLUMNS] = {"userId", "movieId", "rating", "timestamp"};
static const double LEAST_STARS = 0.5, MOST_STARS = 5;

struct ml_layout {
    const char *ratings, *titles, *sep, *title_sep;
    bool header; /* the first line names the columns, and fields may be in quotes */
};

static const struct ml_layout layouts[] = {
    {"ratings.csv", "movies.csv", ",", ",", true},
    {"ratings.dat", "movies.dat", "::", "::", false},
    {"u.data", "u.item", "\t", "|", false},
};

static const char *const folders[] = {"",       "ml-latest-small", "ml-100k",   "ml-1m", "ml-10M100K",
                                      "ml-20m", "ml-25m",          "ml-latest", "ml-32m"};

const struct ml_layout *ml_layout_at(int i)
{
    return i < (int)CO_COUNT(layouts) ? &layouts[i] : NULL;
}

/* --- finding -------------------------------------------------------------------------------------------- */
static bool is_file(char out[4096], const char *dir, const char *folder, const char *name)
{
    int n = snprintf(out, 4096, "%s%s%s/%s", dir, *folder ? "/" : "", folder, name);

    if (n < 4096 && co_fs_exists(out))
        return true;
    out[0] = 0;
    return false;
}

co_err ml_find(ml_files *out, const char *dir)
{
    for (size_t f = 0; f < CO_COUNT(folders); f++)
        for (size_t i = 0; i < CO_COUNT(layouts); i++) {
            if (!is_file(out->ratings, dir, folders[f], layouts[i].ratings))
                continue;
            out->layout = &layouts[i];
            is_file(out->titles, dir, folders[f], layouts[i].titles);
            return CO_OK;
        }
    return co_fail(
        CO_EINPUT,
        "data.dir: %s has none of ratings.csv, ratings.dat (ml-1m) and u.data (ml-100k): unpack an archive"
        " of https://grouplens.org/datasets/movielens/ there, such as ml-latest-small.zip (cohort data get "
        "movielens)",
        dir);
}

static co_err open_file(packed **out, const char *path)
{
    CO_TRY(file_check_regular(path));
    return packed_open(out, path);
}

/* --- the header ----------------------------------------------------------------------------------------- */
/* Is the line in one piece because something else parts its fields? Then it says what. */
static co_err check_separator(const csv *table)
{
    static const char *const others[] = {"::", ",", ";", "\t", "|"};
    static const char *const names[] = {"'::'", "','", "';'", "tabs", "'|'"};
    bool tabs = table->sep[0] == '\t';

    for (size_t i = 0; i < CO_COUNT(others) && table->n == 1; i++)
        if (strstr(table->field[0], others[i]))
            return csv_fail(table, "its fields are parted by %s; %s%s%s needed (write the file anew with %s)",
                            names[i], tabs ? "tabs are" : "'", tabs ? "" : table->sep, tabs ? "" : "' is",
                            tabs ? "tabs" : "that");
    return CO_OK;
}

static co_err no_column(const csv *table, const char *name)
{
    char has[256] = "";

    for (int i = 0; i < table->n; i++)
        snprintf(has + strlen(has), sizeof has - strlen(has), "%s%.40s", i ? "," : "", table->field[i]);
    return csv_fail(table,
                    "there is no column %s; it has %s. The first line must name userId, movieId and rating",
                    name, has);
}

/* Where the columns stand: by the names in the first line. TIME may be missing (-1). */
static co_err read_header(csv *table, int at[COLUMNS])
{
    bool more;

    CO_TRY(csv_next(table, &more));
    if (!more)
        return co_fail(CO_EINPUT, "%s is empty: was the download complete?", packed_path(table->in));
    CO_TRY(check_separator(table));
    for (int c = 0; c < COLUMNS; c++) {
        at[c] = -1;
        for (int i = 0; i < table->n; i++)
            if (strcmp(table->field[i], column_names[c]) == 0)
                at[c] = i;
        if (at[c] < 0 && c != TIME)
            return no_column(table, column_names[c]);
    }
    return CO_OK;
}

/* --- ratings -------------------------------------------------------------------------------------------- */
/* A decimal number below 2^32 without sign. */
static bool to_u32(const char *text, uint32_t *out)
{
    uint64_t value = 0;
    const char *at = text;

    for (; *at >= '0' && *at <= '9' && value <= UINT32_MAX; at++)
        value = 10 * value + (uint64_t)(*at - '0');
    *out = (uint32_t)value;
    return at > text && *at == 0 && value <= UINT32_MAX;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "4" and "4.5" at once, everything else by the general rule. */
static bool to_stars(const char *text, double *out)
{
    if (is_digit(text[0]) && text[1] == 0) {
        *out = text[0] - '0';
        return true;
    }
    if (is_digit(text[0]) && text[1] == '.' && is_digit(text[2]) && text[3] == 0) {
        *out = (text[0] - '0') + (text[2] - '0') / 10.0;
        return true;
    }
    return co_str_to_f64(text, out);
}

/* A rating written "4,5" gives a line one field too many, and the fields behind it shift. */
static co_err check_fields(const csv *table, int fields)
{
    const char *what = table->sep[0] == '\t' ? "tab" : table->sep;

    if (table->all == fields)
        return CO_OK;
    if (table->all < fields)
        return csv_fail(table, "it has %d field%s, the first line has %d: is the line cut short?", table->all,
                        table->all == 1 ? "" : "s", fields);
    return csv_fail(
        table, "it has %d fields, the first line has %d: %s", table->all, fields,
        strcmp(what, ",") == 0
            ? "write ratings with a point (4.5, not 4,5) and put a field that has a comma in quotes"
            : "correct or remove the line");
}

/* A timestamp that lost digits at the end of the file is at most a tenth of the latest, and far before all others. Only
 * real times can be judged so: of small numbers that stand for times, any may come last. */
static co_err check_last(const csv *table, const int at[COLUMNS], const ml_rating *rows, uint32_t n)
{
    const uint32_t in_1973 = 100000000;
    uint32_t least = UINT32_MAX, most = 0, last = rows[n - 1].time;

    if (!table->unended || at[TIME] != table->all - 1)
        return CO_OK;
    for (uint32_t i = 0; i + 1 < n; i++) {
        least = rows[i].time < least ? rows[i].time : least;
        most = rows[i].time > most ? rows[i].time : most;
    }
    if (n < 2 || least < in_1973 || last > most / 10 || last >= least / 2)
        return CO_OK;
    return csv_fail(
        table,
        "the file ends within this line: it has no line end, and its timestamp %u is far before all others"
        " (the earliest is %u). Get the file anew, or remove the line",
        last, least);
}

static co_err read_row(const csv *table, const int at[COLUMNS], int fields, ml_rating *out)
{
    double stars;

    for (int c = 0; c < COLUMNS; c++)
        if (at[c] >= table->n)
            return csv_fail(table, "it has %d field%s and no %s: is the line cut short?", table->n,
                            table->n == 1 ? "" : "s", column_names[c]);
    CO_TRY(check_fields(table, fields));
    if (!to_u32(table->field[at[USER]], &out->user))
        return csv_fail(table, "the user is \"%.40s\"; a whole number is needed", table->field[at[USER]]);
    if (!to_u32(table->field[at[ITEM]], &out->item))
        return csv_fail(table, "the movie is \"%.40s\"; a whole number is needed", table->field[at[ITEM]]);
    if (!to_stars(table->field[at[STARS]], &stars))
        return csv_fail(table, "the rating is \"%.40s\"; a number is needed", table->field[at[STARS]]);
    if (!(stars >= LEAST_STARS && stars <= MOST_STARS))
        return csv_fail(table, "the rating is %.40s; ratings go from %g to %g: correct or remove the line",
                        table->field[at[STARS]], LEAST_STARS, MOST_STARS);
    out->stars = (float)stars;
    out->time = 0;
    if (at[TIME] >= 0 && !to_u32(table->field[at[TIME]], &out->time))
        return csv_fail(table, "the timestamp is \"%.40s\"; seconds since 1970 are needed",
                        table->field[at[TIME]]);
    return CO_OK;
}

static co_err grow(ml_rating **rows, uint32_t n, uint32_t *room)
{
    if (n < *room)
        return CO_OK;
    if (n >= ML_MOST)
        return co_fail(CO_EINPUT, "there are more than %d ratings", (int)ML_MOST);
    uint32_t wanted = *room ? 2 * *room : 1 << 16;
    ml_rating *more = co_realloc(*rows, wanted * sizeof *more);
    if (!more)
        return CO_ENOMEM;
    *rows = more;
    *room = wanted;
    return CO_OK;
}

static co_err read_rows(csv *table, const int at[COLUMNS], bool header, ml_rating **rows, uint32_t *n)
{
    uint32_t room = 0;
    int fields = header ? table->all : 0;
    bool more;

    for (;;) {
        CO_TRY(csv_next(table, &more));
        if (!more)
            break;
        if (*n == 0 && !header) {
            CO_TRY(check_separator(table));
            fields = table->all;
        }
        CO_TRY(grow(rows, *n, &room));
        CO_TRY(read_row(table, at, fields, *rows + *n));
        ++*n;
    }
    if (*n == 0)
        return co_fail(CO_EINPUT, "%s %s: was the download complete?", packed_path(table->in),
                       header ? "has a header and no ratings" : "is empty");
    return check_last(table, at, *rows, *n);
}

co_err ml_parse_ratings(ml_rating **out, uint32_t *n, bool *has_times, const struct ml_layout *layout,
                        packed *in, co_sha256 *hash)
{
    int at[COLUMNS] = {USER, ITEM, STARS, TIME};
    ml_rating *rows = NULL;
    uint32_t count = 0;
    csv table;
    co_err err = csv_open(&table, in, layout->sep, layout->header, hash);

    if (!err && layout->header)
        err = read_header(&table, at);
    if (!err)
        err = read_rows(&table, at, layout->header, &rows, &count);
    csv_close(&table);
    if (err) {
        co_free(rows);
        return err;
    }
    *out = rows;
    *n = count;
    *has_times = at[TIME] >= 0;
    return CO_OK;
}

co_err ml_read_ratings(ml_rating **out, uint32_t *n, bool *has_times, const ml_files *files, co_sha256 *hash)
{
    packed *in;

    CO_TRY(open_file(&in, files->ratings));
    return ml_parse_ratings(out, n, has_times, files->layout, in, hash);
}

/* --- titles --------------------------------------------------------------------------------------------- */
/* Bytes that are no UTF-8 are taken for latin-1, all of the title's. */
static const char *title_text(co_pool *pool, const char *from)
{
    char text[1024];
    size_t n = 0;

    if (co_utf8_valid(from))
        return co_pool_str(pool, from);
    for (const uint8_t *at = (const uint8_t *)from; *at && n + 4 < sizeof text; at++)
        n += (size_t)co_utf8_put(text + n, *at);
    return co_pool_strn(pool, text, n);
}

static co_err read_title_rows(csv *table, const char **out, const ml_ids *items, bool header, co_pool *pool)
{
    bool more, first = header;

    for (;; first = false) {
        uint32_t id, row;
        CO_TRY(csv_next(table, &more));
        if (!more)
            return CO_OK;
        if (first || (!header && table->line == 1))
            CO_TRY(check_separator(table));
        if (first)
            continue;
        if (table->n < 2)
            return csv_fail(table, "it has no title: is the line cut short?");
        if (!to_u32(table->field[0], &id))
            return csv_fail(table, "the movie is \"%.40s\"; a whole number is needed", table->field[0]);
        if (!ml_row_of(items, id, &row) || out[row])
            continue;
        if (!(out[row] = title_text(pool, table->field[1])))
            return CO_ENOMEM;
    }
}

co_err ml_parse_titles(const char **out, const ml_ids *items, const struct ml_layout *layout, packed *in,
                       co_pool *pool)
{
    csv table;
    co_err err = csv_open(&table, in, layout->title_sep, layout->header, NULL);

    if (!err)
        err = read_title_rows(&table, out, items, layout->header, pool);
    csv_close(&table);
    return err;
}

co_err ml_read_titles(const char **out, const ml_ids *items, const ml_files *files, co_pool *pool)
{
    packed *in;

    if (!files->titles[0])
        return CO_OK;
    CO_TRY(open_file(&in, files->titles));
    return ml_parse_titles(out, items, files->layout, in, pool);
}
