/* resolve.c -- resolves ${...} in values, after all sources have been applied.
 *
 *     ${a.b}                  the value of another key          ${.b} ${..b}   relative to the key's own
 *     section
 *     ${oc.env:NAME,default}  the environment                   ${now:%Y-%m-%d}  the time, one for all keys
 *     ${oc.select:a.b,x}      a key, x if there is none         ${oc.decode:text}  the text, read as a value
 *     ${co.find:a,b}          the first path that exists, else the first
 *     \${                     the characters themselves; backslashes before it are doubled
 *
 * Each slot is resolved once. A slot that needs its own value is a cycle, and is refused with the names of
 * the keys on it. A value that needed the environment, directly or through other keys, is marked and never
 * written to disk. A value may not grow over 1 MiB.
 */
#include "config/config_int.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/fs.h"

typedef struct job {
    co_conf *c;
    conf_slot *slot;
    struct job *outer; /* who needed this slot */
    bool null;         /* the last ${...} was null */
    int depth;
} job;

/* What an interpolation gives is added to out. */
static co_err expand(job *j, co_str *out, const char *text, size_t len);
static co_err resolve_slot(co_conf *c, conf_slot *slot, job *outer);

static co_err cycle(const job *j, const conf_slot *slot)
{
    co_str way = {0};
    for (const job *k = j; k; k = k->outer) {
        co_str_addf(&way, "%s <- ", k->slot->key);
        if (k->slot == slot)
            break;
    }
    co_err err = co_str_err(&way);
    if (!err)
        err = co_fail(CO_EINPUT, "%s needs its own value: %s%s", slot->key, co_str_text(&way), j->slot->key);
    co_str_fini(&way);
    return err;
}

static co_err add_slot_value(job *j, co_str *out, conf_slot *slot)
{
    CO_TRY(resolve_slot(j->c, slot, j));
    if (slot->missing)
        return co_fail(CO_EINPUT, "%s is needed and not given; write %s=...", slot->key, slot->key);
    j->slot->from_env |= slot->from_env;
    if (!slot->option)
        co_str_add(out, slot->row_name);
    else if (slot->option->type == CO_OPT_STR &&
             !*(char *const *)(const void *)((const char *)slot->fields + slot->option->offset))
        j->null = true;
    else
        co_option_print(out, slot->option, slot->fields);
    return CO_OK;
}

/* "a.b", ".b", "..b" as a full key. */
static co_err full_key(co_str *out, const conf_slot *from, const char *key)
{
    size_t dots = strspn(key, "."), len = strlen(from->key);
    for (size_t i = 0; i < dots; i++) {
        if (len == 0)
            return co_fail(CO_EINPUT, "${%s}: more dots than %s has sections", key, from->key);
        while (len && from->key[len - 1] != '.')
            len--;
        len -= len > 0; /* the dot */
    }
    if (dots)
        co_str_addn(out, from->key, len);
    co_str_addf(out, "%s%s", dots && len ? "." : "", key + dots);
    return co_str_err(out);
}

/* Adds the value of a key. With `found`, a missing key sets it to false and is no error. */
static co_err add_key(job *j, co_str *out, const char *key, bool *found)
{
    co_str full = {0};
    co_err err = full_key(&full, j->slot, key);
    conf_slot *slot = err ? NULL : conf_slot_find(j->c, co_str_text(&full));
    if (found)
        *found = slot && !slot->missing;
    if (slot && (!found || *found))
        err = add_slot_value(j, out, slot);
    else if (!err && !found && conf_is_section(j->c, co_str_text(&full)))
        err = co_fail(CO_EINPUT, "${%s} is a section, not a value", key);
    else if (!err && !found)
        err = co_fail_in(conf_fail_unknown(j->c, co_str_text(&full)), "${%s}", key);
    co_str_fini(&full);
    return err;
}

/* The resolver's arguments: at most two, expanded, without quotes. */
typedef struct args {
    co_str text[2];
    bool null[2];
    int n;
} args;

static size_t arg_len(const char *s, size_t len)
{
    int open = 0;
    char quote = 0;
    for (size_t i = 0; i < len; i++) {
        if (s[i] == '\\' && i + 1 < len)
            i++;
        else if (quote)
            quote = s[i] == quote ? 0 : quote;
        else if (s[i] == '\'' || s[i] == '"')
            quote = s[i];
        else if (s[i] == '{')
            open++;
        else if (s[i] == '}')
            open--;
        else if (s[i] == ',' && open == 0)
            return i;
    }
    return len;
}

static co_err read_args(job *j, args *a, const char *s, size_t len)
{
    for (;;) {
        size_t n = arg_len(s, len), k = n;
        const char *from = s;
        if (a->n == 2)
            return co_fail(CO_EINPUT, "more than two arguments");
        while (k && strchr(" \t", *from)) {
            from++;
            k--;
        }
        while (k && strchr(" \t", from[k - 1]))
            k--;
        bool quoted = k > 1 && (*from == '\'' || *from == '"') && from[k - 1] == *from;
        j->null = false;
        CO_TRY(expand(j, &a->text[a->n], from + quoted, k - 2 * quoted));
        CO_TRY(co_str_err(&a->text[a->n]));
        a->null[a->n] = j->null || (!quoted && strcmp(co_str_text(&a->text[a->n]), "null") == 0);
        a->n++;
        if (n == len)
            return CO_OK;
        s += n + 1;
        len -= n + 1;
    }
}

static co_err give_second(job *j, co_str *out, const args *a)
{
    j->null = a->null[1];
    if (!j->null)
        co_str_add(out, co_str_text(&a->text[1]));
    return CO_OK;
}

static co_err from_env(job *j, co_str *out, const args *a)
{
    const char *name = co_str_text(&a->text[0]), *value = getenv(name);
    j->slot->from_env = true;
    j->null = false;
    if (!value && a->n == 2)
        return give_second(j, out, a);
    if (!value)
        return co_fail(CO_EINPUT, "the environment has no %s; set it, or write ${oc.env:%s,default}", name,
                       name);
    if (!co_utf8_valid(value))
        return co_fail(CO_EINPUT, "%s in the environment is not UTF-8", name);
    co_str_add(out, value);
    return CO_OK;
}

static co_err from_clock(job *j, co_str *out, const args *a)
{
    char text[256];
    struct tm tm;
    if (!j->c->now)
        j->c->now = (long long)time(NULL);
    time_t now = (time_t)j->c->now;
    if (a->n != 1 || !localtime_r(&now, &tm) || !strftime(text, sizeof text, co_str_text(&a->text[0]), &tm) ||
        !co_utf8_valid(text))
        return co_fail(CO_EINPUT, "${now:FORMAT} takes one strftime format, as %%Y-%%m-%%d");
    j->null = false;
    co_str_add(out, text);
    return CO_OK;
}

static co_err select_key(job *j, co_str *out, const args *a)
{
    bool found;
    j->null = false;
    CO_TRY(add_key(j, out, co_str_text(&a->text[0]), &found));
    if (found)
        return CO_OK;
    j->null = true;
    return a->n == 2 ? give_second(j, out, a) : CO_OK;
}

static co_err decode(job *j, co_str *out, const args *a)
{
    j->null = a->null[0];
    if (!j->null)
        co_str_add(out, co_str_text(&a->text[0]));
    return CO_OK;
}

/* If neither path exists, the first is used, so that the error which follows names it. */
static co_err find_path(job *j, co_str *out, const args *a)
{
    int i = a->n == 2 && !co_fs_exists(co_str_text(&a->text[0])) && co_fs_exists(co_str_text(&a->text[1]));
    j->null = false;
    co_str_add(out, co_str_text(&a->text[i]));
    return CO_OK;
}

static const struct {
    const char *name;
    co_err (*give)(job *, co_str *, const args *);
} resolvers[] = {{"oc.env", from_env},
                 {"now", from_clock},
                 {"oc.select", select_key},
                 {"oc.decode", decode},
                 {"co.find", find_path}};

static co_err call(job *j, co_str *out, const char *name, const char *text, size_t len)
{
    const char *names[CO_COUNT(resolvers)];
    for (size_t i = 0; i < CO_COUNT(resolvers); i++) {
        names[i] = resolvers[i].name;
        if (strcmp(name, names[i]) != 0)
            continue;
        args a = {0};
        co_err err = read_args(j, &a, text, len);
        err = err ? co_fail_in(err, "${%s:...}", name) : resolvers[i].give(j, out, &a);
        co_str_fini(&a.text[0]);
        co_str_fini(&a.text[1]);
        return err;
    }
    if (strcmp(name, "hydra") == 0)
        return co_fail(CO_EINPUT,
                       "${hydra:...}: Hydra's own settings do not exist here; run.dir is the run's "
                       "folder, task_name the name it is made of");
    const char *near = co_str_nearest(name, names, CO_COUNT(names));
    return co_fail(CO_EINPUT, "no resolver \"%s\"%s%s; there are oc.env, now, oc.select, oc.decode and co.find",
                   name, near ? ": did you mean " : "", near ? near : "");
}

/* What stands between ${ and }. */
static co_err interpolate(job *j, co_str *out, const char *text, size_t len)
{
    static const char name_chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.";
    co_str key = {0};
    size_t n = strspn(text, name_chars);
    co_err err;
    if (n > 0 && n < len && text[n] == ':') {
        co_str_addn(&key, text, n);
        err = co_str_err(&key);
        if (!err)
            err = call(j, out, co_str_text(&key), text + n + 1, len - n - 1);
    } else {
        err = expand(j, &key, text, len);
        if (!err)
            err = co_str_err(&key);
        const char *name = co_str_text(&key);
        j->null = false;
        if (!err && (!*name || strspn(name, ".") == strlen(name) || strpbrk(name, "${}: \t")))
            err = co_fail(CO_EINPUT, "${%s} is not the name of a key", name);
        if (!err)
            err = add_key(j, out, name, NULL);
    }
    co_str_fini(&key);
    return err;
}

static co_err expand(job *j, co_str *out, const char *text, size_t len)
{
    bool any_null = false, only = false;
    if (++j->depth > CONF_MAX_DEPTH)
        return co_fail(CO_EINPUT, "${...} nested more than %d deep", CONF_MAX_DEPTH);
    for (size_t i = 0; i < len;) {
        size_t slashes = 0;
        while (i + slashes < len && text[i + slashes] == '\\')
            slashes++;
        const char *at = text + i + slashes;
        if (i + slashes + 1 >= len || at[0] != '$' || at[1] != '{') {
            slashes += slashes == 0;
            co_str_addn(out, text + i, slashes);
            i += slashes;
            continue;
        }
        for (size_t k = 0; k < slashes / 2; k++)
            co_str_add(out, "\\");
        i += slashes + 2;
        if (slashes % 2) {
            co_str_add(out, "${");
            continue;
        }
        size_t end = conf_expr_end(text + i, len - i);
        if (end == len - i)
            return co_fail(CO_EINPUT, "${ is not closed by }");
        only = i == 2 && i + end + 1 == len;
        j->null = false;
        CO_TRY(interpolate(j, out, text + i, end));
        if (j->null && !only)
            co_str_add(out, "null");
        any_null = j->null;
        if (out->len > CONF_MAX_BYTES)
            return co_fail(CO_EINPUT, "the value grows over %d bytes", CONF_MAX_BYTES);
        i += end + 1;
    }
    j->null = any_null && only;
    j->depth--;
    return CO_OK;
}

static co_err resolve_slot(co_conf *c, conf_slot *slot, job *outer)
{
    job j = {c, slot, outer, .depth = outer ? outer->depth : 0};
    co_str text = {0};
    if (!slot->expr || slot->state == CONF_DONE)
        return CO_OK;
    if (slot->state == CONF_BUSY)
        return cycle(outer, slot);
    slot->state = CONF_BUSY;
    co_err err = expand(&j, &text, slot->expr, strlen(slot->expr));
    if (!err)
        err = co_str_err(&text);
    if (!err)
        err = conf_slot_set(slot, slot->key, j.null ? "null" : co_str_text(&text),
                            j.null ? CONF_PLAIN : CONF_STRING);
    co_str_fini(&text);
    slot->state = CONF_DONE;
    return err;
}

co_err conf_resolve(co_conf *c)
{
    for (int i = 0; i < c->n_slots; i++) {
        conf_slot *s = &c->slots[i];
        co_err err = resolve_slot(c, s, NULL);
        if (!err && s->missing)
            err = co_fail(CO_EINPUT, "%s must be given (it is ??? here); write %s=...", s->key, s->key);
        if (err && s->by && s->by->line)
            conf_fail_at(err, s->source, s->by);
        else if (err)
            co_fail_in(err, "%s", s->key);
        if (err)
            conf_doubt(c, s->key);
        CO_TRY(conf_mistake(c, err));
    }
    return CO_OK;
}
