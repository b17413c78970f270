/* items.c -- lists of keys with their values as JSON text, in the order in which the keys came. */
#include "wandb/wandb_int.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"

static item *find(item_list *list, const char *key)
{
    for (size_t i = 0; i < list->n; i++) {
        size_t k = (list->guess + i) % list->n;
        if (strcmp(list->at[k].key, key) == 0) {
            list->guess = k + 1;
            return &list->at[k];
        }
    }
    return NULL;
}

bool items_have(item_list *list, const char *key)
{
    return find(list, key) != NULL;
}

static co_err add(item_list *list, const char *key, char *json)
{
    if (list->n == list->room) {
        size_t room = list->room ? 2 * list->room : 16;
        item *more = co_realloc(list->at, room * sizeof *more);
        if (!more)
            return CO_ENOMEM;
        list->at = more;
        list->room = room;
    }
    char *copy = co_strdup(key);
    if (!copy)
        return CO_ENOMEM;
    list->at[list->n++] = (item){copy, json};
    return CO_OK;
}

co_err items_set(item_list *list, const char *key, const char *json)
{
    item *old = find(list, key);
    char *copy = co_strdup(json);

    if (!copy)
        return CO_ENOMEM;
    if (old) {
        co_free(old->json);
        old->json = copy;
        return CO_OK;
    }
    co_err err = add(list, key, copy);
    if (err)
        co_free(copy);
    return err;
}

co_err items_set_num(item_list *list, const char *key, double value)
{
    co_str text = {0};

    json_num(&text, value);
    co_err err = co_str_err(&text);
    if (!err)
        err = items_set(list, key, co_str_text(&text));
    co_str_fini(&text);
    return err;
}

void items_clear(item_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        co_free(list->at[i].key);
        co_free(list->at[i].json);
    }
    list->n = list->guess = 0;
}

void items_fini(item_list *list)
{
    items_clear(list);
    co_free(list->at);
    *list = (item_list){0};
}

void items_json(co_str *out, const item_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        co_str_add(out, i ? "," : "");
        json_quote(out, list->at[i].key, strlen(list->at[i].key));
        co_str_add(out, ":");
        co_str_add(out, list->at[i].json);
    }
}

void json_num(co_str *out, double x)
{
    if (isnan(x))
        co_str_add(out, "NaN");
    else if (isinf(x))
        co_str_add(out, x > 0 ? "Infinity" : "-Infinity");
    else
        co_str_addf64(out, x);
}

void json_quote(co_str *out, const char *text, size_t len)
{
    co_str_add(out, "\"");
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            co_str_addf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            co_str_addf(out, "\\u%04x", c);
        else
            co_str_addn(out, text + i, 1);
    }
    co_str_add(out, "\"");
}

static void write_members(co_str *out, const json_t *v, int depth)
{
    const char *key;
    json_t *value;
    size_t n = 0;

    json_object_foreach((json_t *)v, key, value)
    {
        co_str_add(out, n++ ? "," : "");
        json_quote(out, key, strlen(key));
        co_str_add(out, ":");
        json_write(out, value, depth - 1);
    }
}

void json_write(co_str *out, const json_t *v, int depth)
{
    char *other;
    size_t i;
    json_t *value;

    if (depth == 0) {
        co_str_add(out, "null");
    } else if (json_is_object(v)) {
        co_str_add(out, "{");
        write_members(out, v, depth);
        co_str_add(out, "}");
    } else if (json_is_array(v)) {
        co_str_add(out, "[");
        json_array_foreach(v, i, value)
        {
            co_str_add(out, i ? "," : "");
            json_write(out, value, depth - 1);
        }
        co_str_add(out, "]");
    } else if (json_is_real(v)) {
        json_num(out, json_real_value(v));
    } else {
        other = co_json_text(v);
        co_str_add(out, other ? other : "");
        out->failed = out->failed || !other;
        co_free(other);
    }
}
