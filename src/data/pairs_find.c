/* pairs_find.c -- which files of a folder hold the pairs, by their names.
 *
 *     .tsv .tab           tab-separated          .jsonl .ndjson    JSON lines
 *     NAME.en + NAME.it   two files, a line of one goes with the same line of the other (Moses, OPUS)
 *     .txt, .json         tab-separated, JSON lines; only where there is none of the above, or by their own
 *                         names
 *
 * Each may be packed (.xz, .gz). A folder en-it or it-en inside the folder is looked into (opus_books). If
 * several fit, none is chosen: data.file must say which.
 */
#include "data/pairs_int.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/fs.h"

enum { NAMES = 4 };

static const struct {
    const char *end;
    pairs_format format;
    bool weak;
} known[] = {
    {".tsv", PAIRS_TABS, false},    {".tab", PAIRS_TABS, false}, {".jsonl", PAIRS_JSON, false},
    {".ndjson", PAIRS_JSON, false}, {".txt", PAIRS_TABS, true},  {".json", PAIRS_JSON, true},
};

/* Length of a name without .xz or .gz. */
static size_t bare_len(const char *name)
{
    size_t len = strlen(name);

    return len > 3 && (strcasecmp(name + len - 3, ".xz") == 0 || strcasecmp(name + len - 3, ".gz") == 0)
               ? len - 3
               : len;
}

static bool ends_in(const char *name, size_t len, const char *end)
{
    size_t n = strlen(end);

    return len > n && strncasecmp(name + len - n, end, n) == 0;
}

/* The row of `known` for a name; -1: none. */
static int row_of(const char *name)
{
    size_t len = bare_len(name);

    for (size_t i = 0; i < CO_COUNT(known); i++)
        if (ends_in(name, len, known[i].end))
            return (int)i;
    return -1;
}

/* NAME.en -> NAME.it, if that is there; false: it is not. */
static bool find_twin(char out[4096], const char *dir, const char *name, const pair_ask *ask)
{
    static const char *const packs[] = {"", ".gz", ".xz"};
    char end[32];
    size_t len = bare_len(name);

    snprintf(end, sizeof end, ".%s", ask->lang[0]);
    if (!ends_in(name, len, end))
        return false;
    for (size_t i = 0; i < CO_COUNT(packs); i++) {
        int n =
            snprintf(out, 4096, "%s/%.*s.%s%s", dir, (int)(len - strlen(end)), name, ask->lang[1], packs[i]);
        if (n < 4096 && co_fs_exists(out))
            return true;
    }
    return false;
}

/* Sets out to the file `name` in dir, if it is one of ours. */
static bool take_name(pair_files *out, const char *dir, const char *name, bool weak, const pair_ask *ask)
{
    pair_files f = {0};
    int row = row_of(name);

    if (snprintf(f.path[0], sizeof f.path[0], "%s/%s", dir, name) >= (int)sizeof f.path[0] ||
        co_fs_is_dir(f.path[0]))
        return false;
    if (!weak && find_twin(f.path[1], dir, name, ask))
        f.format = PAIRS_TWO_FILES;
    else if (row >= 0 && known[row].weak == weak)
        f.format = known[row].format;
    else
        return false;
    *out = f;
    return true;
}

typedef struct found {
    pair_files files;
    int n;
    char names[512]; /* of the first few */
} found;

static void try_names(found *f, const char *dir, char **names, size_t n, const char *pattern, bool weak,
                      const pair_ask *ask)
{
    for (size_t i = 0; i < n; i++) {
        pair_files one;
        if (names[i][0] == '.' || fnmatch(pattern, names[i], 0) != 0 ||
            !take_name(&one, dir, names[i], weak, ask))
            continue;
        size_t at = strlen(f->names);
        if (f->n < NAMES)
            snprintf(f->names + at, sizeof f->names - at, "%s%.100s", f->n ? ", " : "", names[i]);
        if (f->n++ == 0)
            f->files = one;
    }
}

/* The first pattern that fits any name counts; names that only might be pairs come after the others. */
static co_err search(found *f, const char *dir, const char *patterns, const pair_ask *ask)
{
    char **names, pattern[256];
    size_t n;

    CO_TRY(co_fs_list(&names, &n, dir));
    for (const char *at = patterns; *at && !f->n;) {
        size_t len = strcspn(at, "|");
        snprintf(pattern, sizeof pattern, "%.*s", (int)len, at);
        try_names(f, dir, names, n, pattern, false, ask);
        if (!f->n)
            try_names(f, dir, names, n, pattern, true, ask);
        at += len + (at[len] == '|');
    }
    co_fs_list_free(names, n);
    return CO_OK;
}

static co_err none_found(const char *dir, const char *patterns, const pair_ask *ask)
{
    char **names;
    size_t n, parquet = 0;

    CO_TRY(co_fs_list(&names, &n, dir));
    for (size_t i = 0; i < n; i++)
        parquet += ends_in(names[i], strlen(names[i]), ".parquet");
    co_fs_list_free(names, n);
    if (parquet)
        return co_fail(
            CO_EINPUT,
            "%s: Parquet files are not read. Write JSON lines of them once: python -c 'import datasets; "
            "datasets.load_dataset(\"%s\")[\"train\"].to_json(\"%s-%s.jsonl\")'",
            dir, dir, ask->lang[0], ask->lang[1]);
    return co_fail(
        CO_EINPUT,
        "%s: no file of pairs (data.file=%s): one that ends in .tsv, .jsonl or .txt is looked for, or two "
        "that end in .%s and .%s",
        dir, patterns, ask->lang[0], ask->lang[1]);
}

/* dir/en-it or dir/it-en, if there is one. */
static const char *inner_folder(char out[4096], const char *dir, const pair_ask *ask)
{
    for (int turn = 0; turn < 2; turn++) {
        int n = snprintf(out, 4096, "%s/%s-%s", dir, ask->lang[turn], ask->lang[!turn]);
        if (n < 4096 && co_fs_is_dir(out))
            return out;
    }
    return dir;
}

static co_err find_file(pair_files *out, const char *path, const pair_ask *ask)
{
    const char *slash = strrchr(path, '/');
    char dir[4096];

    snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    if (!take_name(out, *dir ? dir : "/", slash ? slash + 1 : path, false, ask) &&
        !take_name(out, *dir ? dir : "/", slash ? slash + 1 : path, true, ask))
        return co_fail(CO_EINPUT,
                       "%s: its name does not say how its pairs are written: .tsv, .txt, .jsonl or .json"
                       " (packed: .xz, .gz), or one file each that ends in .%s and .%s",
                       path, ask->lang[0], ask->lang[1]);
    return CO_OK;
}

co_err pairs_find(pair_files *out, const char *dir, const char *patterns, const pair_ask *ask)
{
    char inner[4096];
    found f = {0};

    if (!co_fs_is_dir(dir))
        return co_fs_exists(dir)
                   ? find_file(out, dir, ask)
                   : co_fail(
                         CO_EINPUT,
                         "%s: no such file or folder; data.dir=FOLDER names the one with the pairs (cohort"
                         " data get en-it downloads some)",
                         dir);
    CO_TRY(search(&f, dir, patterns, ask));
    if (!f.n) {
        dir = inner_folder(inner, dir, ask);
        CO_TRY(search(&f, dir, patterns, ask));
    }
    if (!f.n)
        return none_found(dir, patterns, ask);
    if (f.n > 1)
        return co_fail(CO_EINPUT,
                       "%s has %d files that may hold the pairs: %s%s. Name one: data.file=NAME or"
                       " data.dir=%s/NAME to train, cohort data check %s/NAME to check",
                       dir, f.n, f.names, f.n > NAMES ? " and others" : "", dir, dir);
    *out = f.files;
    return CO_OK;
}

/* Goes through the files that may hold pairs by their names, until `fits`. JSON lines are looked into; `other`
 * becomes what those are that hold no pairs. */
static bool look_into(const char *dir, co_str *other)
{
    static const pair_ask ask = {.lang = {"en", "it"}};
    DIR *folder = opendir(dir); /* co_fs_list would need memory, and there is no way to say that it is out */
    pair_files files;
    bool fits = false;

    for (struct dirent *e; !fits && folder && (e = readdir(folder));) {
        fits = e->d_name[0] != '.' && take_name(&files, dir, e->d_name, false, &ask);
        if (fits && files.format == PAIRS_JSON) {
            co_str_clear(other);
            fits = pairs_json_fits(files.path[0], other);
        }
    }
    if (folder) {
        closedir(folder);
        return fits;
    }
    int row = row_of(dir);
    if (!co_fs_exists(dir) || row < 0 || known[row].weak)
        return false;
    return known[row].format != PAIRS_JSON || pairs_json_fits(dir, other);
}

bool pairs_fit(const char *dir)
{
    co_str other = {0};
    bool fits = look_into(dir, &other);

    co_str_fini(&other);
    return fits;
}

void pairs_tell_other_json(const char *dir, co_str *other)
{
    if (look_into(dir, other))
        co_str_clear(other);
}
