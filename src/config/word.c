/* word.c -- parses one word of the command line: a.b=value, group=choice, +a.b=value, ++a.b=value, ~a.b.
 *
 * All keys exist from the start, in the option tables. So `+` and `++` mean the same as plain `=`, and `~`
 * resets a key to its default. A dict gives one pair per leaf. The option tables say what a value means.
 */
#include "config/config_int.h"

#include <string.h>

#include "base/program.h"

static const char word_chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

bool conf_key_is_plain(const char *key)
{
    for (;;) {
        size_t n = strspn(key, word_chars);
        if (n == 0)
            return false;
        if (key[n] == '\0')
            return true;
        if (key[n] != '.')
            return false;
        key += n + 1;
    }
}

/* "trainer/sub": a group below a group. */
static bool is_group_path(const char *key)
{
    for (;; key++) {
        size_t n = strcspn(key, "/");
        if (n == 0 || strspn(key, word_chars) < n)
            return false;
        key += n;
        if (!*key)
            return true;
    }
}

/* Several values, or one that has commas: then it must be in quotes for cohort, and these in quotes for the shell. */
static co_err several_values(const char *word, const conf_value *v)
{
    const char *value = strchr(word, '=');
    bool shown =
        v->kind == CONF_SWEEP && value && !strpbrk(word, "'\"") && memchr(word, '.', (size_t)(value - word));

    if (!shown)
        return co_fail(CO_EINPUT,
                       "%s: several values for one run; `%s train -m` runs them all; or quote the value",
                       word, co_program());
    return co_fail(
        CO_EINPUT,
        "%s: several values for one run; `%s train -m` runs them all; one value with commas is typed"
        " '%.*s=\"%s\"'",
        word, co_program(), (int)(value - word), word, value + 1);
}

/* A value as pairs: a dict gives one per key below, a list its text. */
static co_err flatten(conf_source *s, co_pool *pool, const char *word, conf_pair pair, const conf_value *v)
{
    if (v->kind == CONF_SWEEP || v->kind == CONF_CALL)
        return several_values(word, v);
    pair.kind = v->kind;
    if (v->kind == CONF_PLAIN || v->kind == CONF_STRING)
        pair.value = v->text;
    if (v->kind == CONF_LIST) {
        co_str text = {0};
        conf_value_write(&text, v);
        co_err err = co_str_err(&text);
        if (!err && !(pair.value = co_pool_str(pool, co_str_text(&text))))
            err = CO_ENOMEM;
        co_str_fini(&text);
        if (err)
            return err;
    }
    if (v->kind != CONF_DICT)
        return conf_source_add(s, pool, pair);
    if (v->n == 0)
        return conf_source_add(s, pool, (conf_pair){.key = pair.key, .kind = CONF_DICT});
    for (int i = 0; i < v->n; i++) {
        conf_pair below = pair;
        if (!conf_key_is_plain(v->keys[i]))
            return co_fail(CO_EINPUT, "%s: \"%s\" is not a key", word, v->keys[i]);
        below.key = co_pool_printf(pool, "%s.%s", pair.key, v->keys[i]);
        if (!below.key)
            return CO_ENOMEM;
        CO_TRY(flatten(s, pool, word, below, &v->items[i]));
    }
    return CO_OK;
}

co_err conf_word_split(co_pool *pool, const char *word, const char **key, const char **value, conf_op *op)
{
    const char *eq = strchr(word, '='), *from = word;
    if (!co_utf8_valid(word))
        return co_fail(CO_EINPUT, "the word \"%s\" is not UTF-8", word);
    if (strlen(word) > CONF_MAX_BYTES)
        return co_fail(CO_EINPUT, "a word of %zu bytes; the limit is %d", strlen(word), CONF_MAX_BYTES);
    *op = *word == '~' ? CONF_DELETE : CONF_SET;
    if (!eq && *op == CONF_SET)
        return co_fail(CO_EINPUT,
                       "\"%s\" is not key=value; write for example trainer.max_epochs=5 or model=mlp "
                       "(cohort train --help all lists all keys)",
                       word);
    from += *op == CONF_DELETE;
    for (int plus = 0; *op == CONF_SET && plus < 2 && *from == '+'; plus++)
        from++;
    char *name = co_pool_strn(pool, from, eq ? (size_t)(eq - from) : strlen(from));
    if (!name)
        return CO_ENOMEM;
    if (strchr(name, '@'))
        return co_fail(
            CO_EINPUT,
            "%s: group@package is not known here: a group's keys stand under its own name; write %.*s", word,
            (int)strcspn(name, "@"), name);
    if (!conf_key_is_plain(name) && !is_group_path(name))
        return co_fail(CO_EINPUT, "%s: \"%s\" is not a key; keys are words joined by dots, as optim.lr", word,
                       name);
    *key = name;
    *value = eq ? eq + 1 : NULL;
    return CO_OK;
}

co_err conf_word_parse(conf_source *s, co_pool *pool, const char *word)
{
    const char *text;
    conf_pair pair = {0};
    conf_value v;
    CO_TRY(conf_word_split(pool, word, &pair.key, &text, &pair.op));
    if (!text)
        return conf_source_add(s, pool, pair);
    CO_TRY(conf_value_parse(&v, pool, word, text));
    CO_TRY(conf_value_eval(&v, pool, word));
    if (pair.op == CONF_DELETE && v.kind == CONF_DICT)
        return co_fail(CO_EINPUT, "%s: ~key=value takes one value, not a dict", word);
    return flatten(s, pool, word, pair, &v);
}

co_err conf_source_add(conf_source *s, co_pool *pool, conf_pair pair)
{
    if (s->n == s->room) {
        int room = s->room ? 2 * s->room : 16;
        conf_pair *more = co_pool_alloc(pool, (size_t)room * sizeof *more);
        if (!more)
            return CO_ENOMEM;
        if (s->n)
            memcpy(more, s->pairs, (size_t)s->n * sizeof *more);
        s->pairs = more;
        s->room = room;
    }
    s->pairs[s->n++] = pair;
    return CO_OK;
}

const conf_pair *conf_source_last(const conf_source *s, const char *key)
{
    for (int i = s->n - 1; i >= 0; i--)
        if (s->pairs[i].value && s->pairs[i].op == CONF_SET && strcmp(s->pairs[i].key, key) == 0)
            return &s->pairs[i];
    return NULL;
}

co_err conf_fail_at(co_err err, const conf_source *s, const conf_pair *pair)
{
    if (!s || !s->name)
        return err;
    if (pair && pair->line)
        return co_fail_in(err, "%s:%d", s->name, pair->line);
    return co_fail_in(err, "%s", s->name);
}

co_err co_conf_parse_word(const char *word, co_conf_pair each, void *ctx)
{
    co_pool pool = {0};
    conf_source s = {0};
    co_err err = conf_word_parse(&s, &pool, word);
    for (int i = 0; !err && i < s.n; i++)
        if (s.pairs[i].value && s.pairs[i].op == CONF_SET)
            each(ctx, s.pairs[i].key, s.pairs[i].value);
    co_pool_fini(&pool);
    return err;
}
