/* print.c -- writes the composed configuration: as YAML that reads back to the same, as a tree, as a hash.
 *
 * The YAML needs no other file: it names rows, which every program has, and a group's file only if it is
 * built in. So a run's config.yaml can be read on another machine. It has all keys, so the chosen files
 * change nothing when it is read back.
 */
#include "config/config_int.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"

/* A string that holds ${ as such: with the backslashes that keep it from being resolved. */
static void add_text(co_str *out, const char *text)
{
    co_str s = {0};
    if (!strstr(text, "${")) {
        conf_yaml_quote(out, text);
        return;
    }
    while (*text) {
        size_t slashes = strspn(text, "\\");
        bool before = text[slashes] == '$' && text[slashes + 1] == '{';
        for (size_t i = 0; i < slashes * (before ? 2 : 1) + before; i++)
            co_str_add(&s, "\\");
        text += slashes;
        co_str_addn(&s, text, *text != '\0');
        text += *text != '\0';
    }
    out->failed |= s.failed;
    conf_yaml_quote(out, co_str_text(&s));
    co_str_fini(&s);
}

const char *conf_string_of(const conf_slot *s, char room[PATH_MAX])
{
    const char *text = *(char *const *)((const char *)s->fields + s->option->offset);
    char here[PATH_MAX];
    if (!s->option->path || !text || !*text || *text == '/' || strstr(text, "://") ||
        !getcwd(here, sizeof here))
        return text;
    text += 2 * (strncmp(text, "./", 2) == 0);
    int n = snprintf(room, PATH_MAX, "%s/%s", strcmp(here, "/") == 0 ? "" : here, text);
    return n < PATH_MAX ? room : text;
}

void conf_print_value(co_str *out, const conf_slot *s)
{
    char room[PATH_MAX];
    if (s->expr && s->from_env)
        conf_yaml_quote(out, s->expr);
    else if (!s->option)
        conf_yaml_quote(out, s->row_name);
    else if (s->option->type == CO_OPT_STR) {
        const char *text = conf_string_of(s, room);
        if (text)
            add_text(out, text);
        else
            co_str_add(out, "null");
    } else
        co_option_print(out, s->option, s->fields);
}

/* One line below a prefix: a key with its value, or a section of further keys. */
struct child {
    const char *name;
    size_t len;
    const conf_slot *leaf; /* NULL: a section */
};

/* The children of a prefix ("" or "model."), keys before sections or the other way. Caller's, co_free. */
static struct child *children(const co_conf *c, const char *prefix, bool keys_first, size_t *n)
{
    size_t head = strlen(prefix), k = 0;
    struct child *list = co_array((size_t)c->n_slots + 1, sizeof *list);
    if (!list)
        return NULL;
    for (int turn = 0; turn < 2; turn++) {
        bool want_key = (turn == 0) == keys_first;
        for (int i = 0; i < c->n_slots; i++) {
            const conf_slot *s = &c->slots[i];
            if (s->twin || strncmp(s->key, prefix, head) != 0)
                continue;
            struct child new = {s->key + head, strcspn(s->key + head, "."), NULL};
            if (new.name[new.len] == '\0')
                new.leaf = s;
            bool seen = false;
            for (size_t j = 0; j < k && !seen; j++)
                seen = list[j].len == new.len &&memcmp(list[j].name, new.name, new.len) == 0;
            if (!seen && want_key == (new.leaf != NULL))
                list[k++] = new;
        }
    }
    *n = k;
    return list;
}

/* Calls `section` for each child that is one, with its prefix. */
static void below(const co_conf *c, co_str *out, const char *prefix, const struct child *ch, const char *lead,
                  void (*section)(const co_conf *, co_str *, const char *, const char *))
{
    char *deeper = co_sprintf("%s%.*s.", prefix, (int)ch->len, ch->name);
    if (deeper)
        section(c, out, deeper, lead);
    else
        out->failed = true;
    co_free(deeper);
}

static void yaml_section(const co_conf *c, co_str *out, const char *prefix, const char *lead)
{
    size_t n = 0;
    struct child *list = children(c, prefix, true, &n);
    char *deeper = co_sprintf("%s  ", lead);
    if (!list || !deeper)
        out->failed = true;
    for (size_t i = 0; i < n && !out->failed; i++) {
        co_str_addf(out, "%s%.*s:", lead, (int)list[i].len, list[i].name);
        if (list[i].leaf) {
            co_str_add(out, " ");
            conf_print_value(out, list[i].leaf);
        }
        co_str_add(out, "\n");
        if (!list[i].leaf)
            below(c, out, prefix, &list[i], deeper, yaml_section);
    }
    co_free(deeper);
    co_free(list);
}

void co_conf_yaml(const co_conf *c, co_str *out)
{
    bool any = false;
    co_str_add(out, "# @package _global_\n");
    for (int g = 0; g < c->spec->n_groups; g++) {
        const co_conf_group *group = &c->spec->groups[g];
        const conf_pick *pick = &c->picks[g];
        const char *choice = pick->row >= 0 ? group->rows[pick->row].name : pick->choice;
        if (strcmp(group->name, "experiment") == 0)
            continue;
        if (pick->row < 0 && !conf_builtin_exists(group->name, choice))
            choice = ""; /* its keys are all below */
        if (!*choice && !group->fallback)
            continue;
        co_str_addf(out, "%s  - override /%s: ", any ? "" : "defaults:\n", group->name);
        if (*choice)
            conf_yaml_quote(out, choice);
        else
            co_str_add(out, "null");
        co_str_add(out, "\n");
        any = true;
    }
    yaml_section(c, out, "", "");
}

void co_conf_yaml_all(const co_conf *c, co_str *out)
{
    co_conf open = *c;
    open.slots = co_array((size_t)c->n_slots + 1, sizeof *open.slots);
    if (!open.slots) {
        out->failed = true;
        return;
    }
    for (int i = 0; i < c->n_slots; i++) {
        open.slots[i] = c->slots[i];
        open.slots[i].from_env = false;
    }
    co_conf_yaml(&open, out);
    co_free(open.slots);
}

static void tree_section(const co_conf *c, co_str *out, const char *prefix, const char *lead)
{
    size_t n = 0;
    struct child *list = children(c, prefix, false, &n);
    if (!list)
        out->failed = true;
    for (size_t i = 0; i < n && !out->failed; i++) {
        bool last = i + 1 == n;
        co_str_addf(out, "%s%s %.*s", lead, last ? "└──" : "├──", (int)list[i].len, list[i].name);
        if (list[i].leaf) {
            co_str_add(out, ": ");
            conf_print_value(out, list[i].leaf);
        }
        co_str_add(out, "\n");
        char *deeper = co_sprintf("%s%s", lead, last ? "    " : "│   ");
        if (!deeper)
            out->failed = true;
        else if (!list[i].leaf)
            below(c, out, prefix, &list[i], deeper, tree_section);
        co_free(deeper);
    }
    co_free(list);
}

void co_conf_tree(const co_conf *c, co_str *out)
{
    co_str_add(out, "CONFIG\n");
    tree_section(c, out, "", "");
}

void co_conf_list_words(const char *const *words, int n, co_str *out)
{
    for (int i = 0; i < n; i++) {
        co_str_add(out, "- ");
        conf_yaml_quote(out, words[i]);
        co_str_add(out, "\n");
    }
    if (n == 0)
        co_str_add(out, "[]\n");
}

void co_conf_overrides(const co_conf *c, co_str *out)
{
    co_conf_list_words(c->raw, c->n_raw, out);
}

char *co_conf_word(const char *key, const char *text)
{
    co_pool pool = {0};
    conf_value v = {0}, string = {CONF_STRING, text};
    co_str s = {0};
    /* unquoted where that reads back the same; a path with blanks needs only the shell's quotes */
    bool bare = conf_value_parse(&v, &pool, key, text) == CO_OK && v.kind == CONF_PLAIN &&
                strcmp(v.text, text) == 0 && !conf_is_typed(text) && !conf_has_expr(text);
    co_errclear();
    co_pool_fini(&pool);
    co_str_addf(&s, "%s=", key);
    if (bare)
        co_str_add(&s, text);
    else
        conf_value_write(&s, &string);
    return co_str_take(&s);
}

/* Adds the value's exact bits to the hash. Nothing is allocated, so hashing cannot fail half way. */
void conf_hash_value(co_sha256 *h, const conf_slot *s)
{
    char buf[32] = "", room[PATH_MAX];
    const char *text = s->row_name;
    size_t len = text ? strlen(text) : 0;
    const char *at = s->option ? (const char *)s->fields + s->option->offset : NULL;
    if (at && s->option->type == CO_OPT_STR) {
        text = conf_string_of(s, room);
        if (text && s->option->hashed)
            text = s->option->hashed(text);
        len = text ? strlen(text) : 0;
    } else if (at && s->option->type == CO_OPT_ENUM) {
        text = s->option->choices;
        for (int i = *(const int *)at; i > 0; i--)
            text += strcspn(text, "|") + 1;
        len = strcspn(text, "|");
    } else if (at) {
        uint64_t bits = 0;
        size_t size = s->option->type == CO_OPT_BOOL ? sizeof(bool) : sizeof bits;
        memcpy(&bits, at, size);
        len = (size_t)snprintf(buf, sizeof buf, "%016llx", (unsigned long long)bits);
        text = buf;
    }
    co_sha256_add(h, text ? "=" : "~", 1); /* a string or none */
    if (text)
        co_sha256_add(h, text, len);
    co_sha256_add(h, "", 1);
}

const conf_slot *conf_next_slot(const co_conf *c, const char *last, bool (*counts)(const co_option *))
{
    const conf_slot *next = NULL;

    for (int i = 0; i < c->n_slots; i++) {
        const conf_slot *s = &c->slots[i];
        if (!s->twin && (!s->option || counts(s->option)) && strcmp(s->key, last) > 0 &&
            (!next || strcmp(s->key, next->key) < 0))
            next = s;
    }
    return next;
}

static bool may_not_change(const co_option *option)
{
    return !option->may_change;
}

static bool of_all_hosts(const co_option *option)
{
    return !option->of_host && !option->path;
}

void co_conf_sha256(const co_conf *c, char hex[65])
{
    co_sha256 h;

    co_sha256_init(&h);
    for (const conf_slot *s = conf_next_slot(c, "", may_not_change); s;
         s = conf_next_slot(c, s->key, may_not_change)) {
        co_sha256_add(&h, s->key, strlen(s->key));
        conf_hash_value(&h, s);
    }
    co_sha256_hex(&h, hex);
}

co_err co_conf_facts(const co_conf *c, co_conf_fact each, void *ctx)
{
    co_str value = {0};
    co_err err = CO_OK;

    for (const conf_slot *s = conf_next_slot(c, "", of_all_hosts); s && !err;
         s = conf_next_slot(c, s->key, of_all_hosts)) {
        co_str_clear(&value);
        conf_print_value(&value, s);
        err = co_str_err(&value);
        if (!err)
            each(ctx, s->key, co_str_text(&value));
    }
    co_str_fini(&value);
    return err;
}
