/* flat.c -- the configuration as one flat JSON object, for the record and its readers. */
#include "config/config_int.h"

static bool every(const co_option *option)
{
    (void)option;
    return true;
}

static json_t *value_of(const conf_slot *s)
{
    const char *at = s->option ? (const char *)s->fields + s->option->offset : NULL;
    char room[PATH_MAX];
    co_str text = {0};

    if (s->expr && s->from_env)
        return co_json_string(s->expr);
    if (!at)
        return co_json_string(s->row_name);
    switch (s->option->type) {
    case CO_OPT_INT:
        return json_integer(*(const int64_t *)(const void *)at);
    case CO_OPT_FLOAT:
        return co_json_num(*(const double *)(const void *)at);
    case CO_OPT_BOOL:
        return json_boolean(*(const bool *)at);
    case CO_OPT_STR: {
        const char *string = conf_string_of(s, room);
        return string ? co_json_string(string) : json_null();
    }
    case CO_OPT_ENUM:
        break;
    }
    co_option_print(&text, s->option, s->fields);
    json_t *v = text.failed ? NULL : co_json_string(co_str_text(&text));
    co_str_fini(&text);
    return v;
}

json_t *co_conf_json(const co_conf *c)
{
    json_t *all = json_object();

    for (const conf_slot *s = conf_next_slot(c, "", every); s && all; s = conf_next_slot(c, s->key, every))
        if (json_object_set_new(all, s->key, value_of(s)) != 0) {
            json_decref(all);
            all = NULL;
        }
    return all;
}
