/* yaml.c -- parses a YAML text into a flat list of pairs, from libyaml's events.
 *
 *     model:            model.hidden = "64"
 *       hidden: 64      model.tags   = "[a,b]"
 *       tags: [a, b]
 *     defaults:         optim = "adamw"          (a choice, as the word optim=adamw)
 *       - override /optim: adamw
 *
 * Entries of a defaults list become pairs that are marked as such. Scalars stay text; a plain ~ or nothing
 * is "null". Refused, with the line: anchors, aliases and tags (a small file must not become a big
 * configuration), a key used twice, mappings inside lists, and more than 32 levels, 1 MiB or 4096 keys. The
 * check for keys used twice is quadratic in the number of keys, which is small.
 */
#include "config/config_int.h"

#include <string.h>
#include <yaml.h>

typedef struct reader {
    yaml_parser_t parser;
    yaml_event_t event; /* the one looked at; deleted by next() */
    conf_source *source;
    co_pool *pool;
    const char *bytes;
    size_t len;
} reader;

static int line_of(const reader *r)
{
    return (int)r->event.start_mark.line + 1;
}

static co_err refuse(const reader *r, const char *what)
{
    return co_fail(CO_EINPUT, "%s:%d: %s", r->source->name, line_of(r), what);
}

/* Some failures of libyaml know a byte, not a line. */
static co_err syntax_error(const reader *r)
{
    const yaml_parser_t *p = &r->parser;
    size_t line = p->problem_mark.line + 1;
    if (p->error == YAML_MEMORY_ERROR)
        return co_fail(CO_ENOMEM, "%s: out of memory", r->source->name);
    if (p->error == YAML_READER_ERROR) {
        line = 1;
        for (size_t i = 0; i < p->problem_offset && i < r->len; i++)
            line += r->bytes[i] == '\n';
    }
    return co_fail(CO_EINPUT, "%s:%zu: %s%s%s", r->source->name, line, p->problem ? p->problem : "not YAML",
                   p->context ? " " : "", p->context ? p->context : "");
}

static co_err next(reader *r)
{
    yaml_event_delete(&r->event);
    if (!yaml_parser_parse(&r->parser, &r->event)) {
        memset(&r->event, 0, sizeof r->event);
        return syntax_error(r);
    }
    const yaml_event_t *e = &r->event;
    if (e->type == YAML_ALIAS_EVENT || (e->type == YAML_SCALAR_EVENT && e->data.scalar.anchor) ||
        (e->type == YAML_MAPPING_START_EVENT && e->data.mapping_start.anchor) ||
        (e->type == YAML_SEQUENCE_START_EVENT && e->data.sequence_start.anchor))
        return refuse(r, "anchors and aliases (& and *) are not read; write the value out");
    if ((e->type == YAML_SCALAR_EVENT && e->data.scalar.tag) ||
        (e->type == YAML_MAPPING_START_EVENT && e->data.mapping_start.tag) ||
        (e->type == YAML_SEQUENCE_START_EVENT && e->data.sequence_start.tag))
        return refuse(r, "tags (!name) are not read; write the plain value");
    return CO_OK;
}

/* The scalar looked at, as text. */
static co_err scalar(const char **out, const reader *r)
{
    const char *text = (const char *)r->event.data.scalar.value;
    size_t len = r->event.data.scalar.length;
    bool plain = r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (memchr(text, '\0', len))
        return refuse(r, "a NUL character in a value");
    if (plain && (len == 0 || strcmp(text, "~") == 0 || strcmp(text, "Null") == 0 || strcmp(text, "NULL") == 0))
        text = "null";
    *out = co_pool_str(r->pool, text);
    return *out ? CO_OK : CO_ENOMEM;
}

/* Refuses a key that is already there. Mappings count too, so that no part of one is lost. */
static co_err add(reader *r, conf_pair pair)
{
    const conf_source *s = r->source;
    if (s->n == CONF_MAX_PAIRS)
        return co_fail(CO_EINPUT, "%s:%d: more than %d keys", s->name, pair.line, CONF_MAX_PAIRS);
    for (int i = 0; i < s->n; i++)
        if (!s->pairs[i].defaults == !pair.defaults && strcmp(s->pairs[i].key, pair.key) == 0)
            return co_fail(CO_EINPUT, "%s:%d: the key \"%s\" stands here and in line %d; keep one", s->name,
                           pair.line, pair.key, s->pairs[i].line);
    return conf_source_add(r->source, r->pool, pair);
}

/* An item of a list as a word would write it: quoted where a comma or bracket would cut it. */
static void add_item(co_str *out, const char *text, bool quoted)
{
    conf_value v = {quoted || !conf_is_typed(text) ? CONF_STRING : CONF_PLAIN, text};
    conf_value_write(out, &v);
}

static bool is_quoted(const reader *r)
{
    return r->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
}

/* From after the list's start to its end, as "[a,b]". */
static co_err list(reader *r, co_str *out, int depth)
{
    if (depth > CONF_MAX_DEPTH)
        return refuse(r, "more than 32 levels");
    co_str_add(out, "[");
    for (bool first = true;; first = false) {
        const char *text;
        CO_TRY(next(r));
        if (r->event.type == YAML_SEQUENCE_END_EVENT)
            break;
        if (!first)
            co_str_add(out, ",");
        if (r->event.type == YAML_SEQUENCE_START_EVENT) {
            CO_TRY(list(r, out, depth + 1));
        } else if (r->event.type == YAML_SCALAR_EVENT) {
            CO_TRY(scalar(&text, r));
            add_item(out, text, is_quoted(r));
        } else {
            return refuse(r, "a mapping inside a list is not known here");
        }
    }
    co_str_add(out, "]");
    return co_str_err(out);
}

static co_err mapping(reader *r, const char *prefix, int depth);

/* The value of `key`, whose first event is looked at. */
static co_err value(reader *r, const char *key, int line, int depth)
{
    conf_pair pair = {.key = key, .line = line};
    if (r->event.type == YAML_SCALAR_EVENT) {
        pair.kind = is_quoted(r) ? CONF_STRING : CONF_PLAIN;
        CO_TRY(scalar(&pair.value, r));
    } else if (r->event.type == YAML_SEQUENCE_START_EVENT) {
        co_str text = {0};
        pair.kind = CONF_LIST;
        co_err err = list(r, &text, depth + 1);
        if (!err && !(pair.value = co_pool_str(r->pool, co_str_text(&text))))
            err = CO_ENOMEM;
        co_str_fini(&text);
        if (err)
            return err;
    }
    CO_TRY(add(r, pair));
    return pair.value ? CO_OK : mapping(r, key, depth + 1);
}

/* "override /model" -> "model", with the flags that say so. */
static const char *group_of(const char *name, int *flags)
{
    static const char *const lead[] = {"override ", "optional "};
    static const int flag[] = {CONF_OVERRIDE, CONF_OPTIONAL};
    *flags = CONF_DEFAULT;
    for (size_t i = 0; i < CO_COUNT(lead); i++) {
        if (strncmp(name, lead[i], strlen(lead[i])) == 0) {
            name += strlen(lead[i]);
            *flags |= flag[i];
        }
        name += strspn(name, " ");
    }
    *flags |= *name == '/' ? CONF_ABSOLUTE : 0;
    return *name == '/' ? name + 1 : name;
}

/* Paths of words joined by slashes; a package after @ is refused with what to do. */
static co_err check_path(const reader *r, const char *path, const char *as_written, int line)
{
    static const char chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-/";
    if (strchr(path, '@'))
        return co_fail(
            CO_EINPUT,
            "%s:%d: \"%s\": group@package is not known here; the file itself may say # @package name",
            r->source->name, line, as_written);
    size_t n = strlen(path);
    if (n == 0 || strspn(path, chars) != n || path[0] == '/' || path[n - 1] == '/' || strstr(path, "//"))
        return co_fail(CO_EINPUT,
                       "%s:%d: \"%s\" is not a group; write \"- model: mlp\" or \"- override /model: mlp\"",
                       r->source->name, line, as_written);
    return CO_OK;
}

/* One entry of a defaults list that is a mapping: {group: choice}. */
static co_err choice(reader *r)
{
    const char *name;
    conf_pair pair = {.line = line_of(r)};
    CO_TRY(next(r));
    if (r->event.type != YAML_SCALAR_EVENT)
        return refuse(r, "an entry of defaults is \"group: choice\"");
    CO_TRY(scalar(&name, r));
    pair.key = group_of(name, &pair.defaults);
    CO_TRY(check_path(r, pair.key, name, pair.line));
    CO_TRY(next(r));
    if (r->event.type == YAML_SEQUENCE_START_EVENT) {
        co_str text = {0};
        pair.kind = CONF_LIST;
        co_err err = list(r, &text, 1);
        if (!err && !(pair.value = co_pool_str(r->pool, co_str_text(&text))))
            err = CO_ENOMEM;
        co_str_fini(&text);
        if (err)
            return err;
    } else if (r->event.type == YAML_SCALAR_EVENT) {
        CO_TRY(scalar(&pair.value, r));
    } else {
        return refuse(r, "a choice is a name, or a list of names");
    }
    CO_TRY(add(r, pair));
    CO_TRY(next(r));
    return r->event.type == YAML_MAPPING_END_EVENT ? CO_OK : refuse(r, "one group per entry of defaults");
}

/* An entry that is a word: _self_, or the path of a file. */
static co_err plain_entry(reader *r)
{
    const char *name;
    conf_pair pair = {.line = line_of(r), .value = ""};
    CO_TRY(scalar(&name, r));
    pair.key = group_of(name, &pair.defaults);
    if (pair.defaults & CONF_OVERRIDE)
        return co_fail(CO_EINPUT, "%s:%d: \"%s\" lacks the choice; write \"- override /model: mlp\"",
                       r->source->name, pair.line, name);
    pair.defaults |= strcmp(name, "_self_") == 0 ? CONF_SELF : CONF_FILE;
    CO_TRY(check_path(r, pair.key, name, pair.line));
    return add(r, pair);
}

static co_err defaults(reader *r)
{
    CO_TRY(next(r));
    if (r->event.type != YAML_SEQUENCE_START_EVENT)
        return refuse(r, "defaults is a list of \"- group: choice\"");
    for (;;) {
        CO_TRY(next(r));
        if (r->event.type == YAML_SEQUENCE_END_EVENT)
            return CO_OK;
        if (r->event.type == YAML_MAPPING_START_EVENT)
            CO_TRY(choice(r));
        else if (r->event.type == YAML_SCALAR_EVENT)
            CO_TRY(plain_entry(r));
        else
            return refuse(r, "an entry of defaults is \"group: choice\"");
    }
}

/* From after the mapping's start to its end. */
static co_err mapping(reader *r, const char *prefix, int depth)
{
    if (depth > CONF_MAX_DEPTH)
        return refuse(r, "more than 32 levels");
    bool had_defaults = false;
    for (;;) {
        const char *name;
        CO_TRY(next(r));
        int line = line_of(r);
        if (r->event.type == YAML_MAPPING_END_EVENT)
            return CO_OK;
        if (r->event.type != YAML_SCALAR_EVENT)
            return refuse(r, "a key must be a plain word");
        CO_TRY(scalar(&name, r));
        if (!*prefix && strcmp(name, "defaults") == 0) {
            if (had_defaults)
                return refuse(r, "a second defaults list; keep one");
            had_defaults = true;
            CO_TRY(defaults(r));
            continue;
        }
        if (!conf_key_is_plain(name))
            return co_fail(CO_EINPUT, "%s:%d: \"%s\" is not a key; keys are words of letters, digits, _ and -",
                           r->source->name, line, name);
        const char *key = *prefix ? co_pool_printf(r->pool, "%s.%s", prefix, name) : name;
        if (!key)
            return CO_ENOMEM;
        CO_TRY(next(r));
        CO_TRY(value(r, key, line, depth));
    }
}

static co_err document(reader *r)
{
    CO_TRY(next(r)); /* stream start */
    CO_TRY(next(r));
    if (r->event.type == YAML_STREAM_END_EVENT)
        return CO_OK;
    CO_TRY(next(r));
    bool empty = r->event.type == YAML_SCALAR_EVENT && r->event.data.scalar.length == 0;
    if (r->event.type == YAML_MAPPING_START_EVENT)
        CO_TRY(mapping(r, "", 1));
    else if (!empty)
        return refuse(r, "the file must be \"key: value\" lines");
    CO_TRY(next(r)); /* document end */
    CO_TRY(next(r));
    return r->event.type == YAML_STREAM_END_EVENT ? CO_OK : refuse(r, "a second document; a file holds one");
}

co_err conf_yaml_parse(conf_source *s, co_pool *pool, const char *bytes, size_t len)
{
    reader r = {.source = s, .pool = pool, .bytes = bytes, .len = len};
    if (len > CONF_MAX_BYTES)
        return co_fail(CO_EINPUT, "%s: %zu bytes; the limit is %d", s->name, len, CONF_MAX_BYTES);
    if (!yaml_parser_initialize(&r.parser))
        return co_fail(CO_ENOMEM, "%s: out of memory", s->name);
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)bytes, len);
    co_err err = document(&r);
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    return err;
}

co_err co_conf_parse_yaml(const char *bytes, size_t len, const char *what, co_conf_pair each, void *ctx)
{
    co_pool pool = {0};
    conf_source s = {.name = what};
    co_err err = conf_yaml_parse(&s, &pool, bytes, len);
    for (int i = 0; !err && i < s.n; i++)
        if (s.pairs[i].value && !(s.pairs[i].defaults & (CONF_SELF | CONF_FILE)))
            each(ctx, s.pairs[i].key, s.pairs[i].value);
    co_pool_fini(&pool);
    return err;
}
