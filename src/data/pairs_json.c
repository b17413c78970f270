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
