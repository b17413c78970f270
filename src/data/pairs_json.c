/* pairs_json.c -- pairs of sentences as JSON lines, an object a line:
 *
 *     {"id": "0", "translation": {"en": "Hello.", "it": "Ciao."}}      as Hugging Face's data sets have them
 *     {"en": "Hello.", "it": "Ciao."}                                  flat
 *
 * Other members are passed over.
 */
#include "data/pairs_int.h"

#include <string.h>

#include "base/json.h"

static co_err no_side(const csv *table, json_t *sides, const char *lang)
{
    char names[256] = "";
    const char *key;
    json_t *value;
    size_t at = 0;

    json_object_foreach(sides, key, value)
    {
        int n = snprintf(names + at, sizeof names - at, "%s%.40s", at ? ", " : "", key);
        at += n > 0 ? (size_t)n : 0;
        if (at + 48 >= sizeof names)
            break;
    }
    return csv_fail(table, "it has no text named \"%s\" (it has %s): see data.lang_src and data.lang_tgt",
                    lang, at ? names : "nothing");
}

static co_err take_object(pair_list *out, const csv *table, json_t *object, const pair_ask *ask)
{
    json_t *inner = json_object_get(object, "translation"), *sides = json_is_object(inner) ? inner : object;
    const char *side[2];

    for (int s = 0; s < 2; s++)
        if (!(side[s] = co_json_str(sides, ask->lang[s])))
            return no_side(table, sides, ask->lang[s]);
    return pairs_add(out, table, side, ask);
}

static co_err take_line(pair_list *out, const csv *table, const pair_ask *ask)
{
    const char *line = table->field[0];
    json_t *object;

    if (table->n > 1)
        return csv_fail(table, "it has the control character 0x01; is this JSON?");
    if (*line == '[')
        return csv_fail(
            table, "it begins a list; JSON lines are needed, one object a line (jq -c '.[]' makes them)");
    co_err err = co_json_parse(&object, line, strlen(line), "the line");
    if (err == CO_ENOMEM)
        return err;
    if (err || !json_is_object(object)) {
        char why[256];
        snprintf(why, sizeof why, "%s", err ? co_errmsg() : "it is no object");
        if (!err)
            json_decref(object);
        return csv_fail(table, "%s; JSON lines are needed, one object a line", why);
    }
    err = take_object(out, table, object, ask);
    json_decref(object);
    return err;
}

/* --- is it one? ----------------------------------------------------------------------------------------- */
/* "en", "ita", "pt_BR", "zh-Hans"; and what files of pairs are named whose languages have no names. */
static bool names_side(const char *key)
{
    static const char *const plain[] = {"source", "target", "src", "tgt"};
    size_t n = strspn(key, "abcdefghijklmnopqrstuvwxyz");

    for (size_t i = 0; i < CO_COUNT(plain); i++)
        if (strcmp(key, plain[i]) == 0)
            return true;
    return (n == 2 || n == 3) && (!key[n] || ((key[n] == '-' || key[n] == '_') && key[n + 1])) &&
           strcmp(key, "id") != 0;
}

/* Two texts named as sides; inside "translation" any two texts will do. */
static bool is_pair(json_t *object)
{
    json_t *inner = json_object_get(object, "translation"), *value;
    json_t *sides = json_is_object(inner) ? inner : object;
    const char *key;
    int n = 0;

    json_object_foreach(sides, key, value) n += json_is_string(value) && (sides == inner || names_side(key));
    return n >= 2;
}

static void tell_members(co_str *found, const char *path, json_t *object)
{
    const char *key;
    json_t *value;
    int n = 0;

    co_str_addf(found, "%s has JSON lines of ", path);
    json_object_foreach(object, key, value) if (n++ < 8) co_str_addf(found, "%s%.40s", n > 1 ? ", " : "", key);
    co_str_addf(found, "%s, which are no pairs of sentences", n > 8 ? " and others" : n ? "" : "nothing");
}

static bool is_about_the_file(co_err err)
{
    return err && err != CO_ENOMEM && err != CO_EIO;
}

/* The verdict on the line in hand. */
static co_err judge_line(bool *fits, co_str *found, const csv *table, const char *path)
{
    const char *line = table->field[0];
    json_t *object;
    co_err err = co_json_parse(&object, line, strlen(line), "the line");

    if (is_about_the_file(err))
        co_str_addf(found, "line %llu of %s is no JSON", (unsigned long long)table->line, path);
    if (err)
        return err;
    *fits = is_pair(object);
    if (!*fits && !found->len)
        tell_members(found, path, object);
    json_decref(object);
    return CO_OK;
}

bool pairs_json_fits(const char *path, co_str *found)
{
    enum { LINES = 4 }; /* one of the first lines may lack a side */
    packed *in;
    csv table;
    bool fits = false, more = true;
    co_err err = packed_open(&in, path);

    if (!err) {
        err = csv_open(&table, in, "\x01", false, NULL);
        for (int i = 0; i < LINES && !err && more && !fits; i++) {
            err = csv_next(&table, &more);
            if (!err && more)
                err = judge_line(&fits, found, &table, path);
        }
        csv_close(&table);
    }
    co_errclear();
    if (!fits && !found->len)
        co_str_addf(found, "%s holds no line that can be read", path);
    return fits || (err && !is_about_the_file(err));
}

co_err pairs_read_json(pair_list *out, csv *table, const pair_ask *ask)
{
    bool more;

    for (;;) {
        CO_TRY(csv_next(table, &more));
        if (!more)
            return CO_OK;
        CO_TRY(take_line(out, table, ask));
    }
}
