/* ids.c -- which row of the tables is which user or item: the run's file ids.csv.
 *
 * A model of ratings knows rows only. The data set gives each id its row, by a rule that looks at all ids, so
 * another file of ratings may number them differently. A run writes its map; whoever uses the run's weights
 * again (a continued run, test, predict) compares it with the map of the data at hand, and refuses to mix
 * them up. Titles may differ.
 */
#include "cli/cli_int.h"

#include <stdio.h>
#include <string.h>

#include "base/fs.h"

enum { MOST_BYTES = 1 << 30 };

co_err ids_text(const co_dataset *data, co_str *out)
{
    data->names->list(data, out);
    return co_str_err(out);
}

/* ids.csv of the run that the checkpoint lies in; NULL: it has none. */
static char *find_map(const char *checkpoint)
{
    char *path = run_config_of(checkpoint), *slash = path ? strrchr(path, '/') : NULL;
    char *map = slash ? co_sprintf("%.*s/ids.csv", (int)(slash - path), path) : NULL;

    co_free(path);
    if (map && co_fs_exists(map))
        return map;
    co_free(map);
    return NULL;
}

/* Length of "kind,row,id" at the head of a line. */
static int head_of(const char *text)
{
    int commas = 0, n = 0;

    for (; text[n] && text[n] != '\n' && (text[n] != ',' || ++commas < 3); n++)
        ;
    return n;
}

static const char *after_line(const char *text)
{
    const char *newline = strchr(text, '\n');

    return newline ? newline + 1 : text + strlen(text);
}

/* Both are texts of ids.csv. */
static co_err compare(const char *path, const char *runs, const char *datas)
{
    for (int number = 1; *runs || *datas; number++, runs = after_line(runs), datas = after_line(datas)) {
        int a = head_of(runs), b = head_of(datas);
        if (a != b || strncmp(runs, datas, (size_t)a) != 0)
            return co_fail(
                CO_EINPUT,
                "%s, line %d: the run has %.*s there, the data at hand %.*s: users and items would be mixed"
                " up; name the folder of the ratings that the run was trained on (data.dir=FOLDER)",
                path, number, a ? a : 7, a ? runs : "nothing", b ? b : 7, b ? datas : "nothing");
    }
    return CO_OK;
}

static co_err check_map(const char *path, const co_dataset *data)
{
    char *runs;
    size_t len;
    co_str text = {0};

    CO_TRY(co_fs_read(&runs, &len, path, MOST_BYTES));
    co_err err = ids_text(data, &text);
    if (!err)
        err = compare(path, runs, co_str_text(&text));
    co_str_fini(&text);
    co_free(runs);
    return err;
}

co_err ids_check(const char *checkpoint, const co_dataset *data)
{
    char *path = checkpoint && data->names ? find_map(checkpoint) : NULL;
    co_err err = path ? check_map(path, data) : CO_OK;

    co_free(path);
    return err;
}
