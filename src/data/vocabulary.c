/* vocabulary.c -- the JSON object around a vocabulary of text_vocabulary.c or pairs_vocabulary.c. */
#include "data/vocabulary_int.h"

#include <string.h>

#include "base/alloc.h"
#include "base/json.h"

void vocabulary_add(co_str *out, json_t *all)
{
    char *text = all ? co_json_text(all) : NULL;

    if (text)
        co_str_add(out, text);
    else
        out->failed = true;
    co_free(text);
    json_decref(all);
}

co_err vocabulary_open(co_dataset **out, const char *json, size_t len, const char *format,
                       vocabulary_reader read)
{
    co_dataset *set = NULL;
    json_t *all;
    co_err err = co_json_parse(&all, json, len, "vocabulary");

    if (err)
        return err == CO_ENOMEM ? err : CO_EINPUT;
    const char *its = co_json_str(all, "format");
    if (its && strcmp(its, format) == 0)
        err = read(&set, all);
    else
        err = co_fail(CO_EINPUT, "vocabulary: its format is %s, not %s", its ? its : "not given", format);
    json_decref(all);
    if (!err)
        *out = set;
    else if (set)
        set->close(set);
    return err;
}
