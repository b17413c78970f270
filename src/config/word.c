/* word.c -- one word of the command line to a pair: a.b=value, group=choice, +a.b=value, ++a.b=value.
 *
 * A value may be quoted, '...' or "..."; inside, the same quote is written with a backslash before it, and
 * backslashes that stand before a quote are doubled. Blanks around an unquoted value are dropped. `a.b=` is the
 * empty string, `a.b=null` is null. What else the value means is the option table's matter.
 */
#include "config/config_int.h"

#include <string.h>

bool conf_key_is_plain(const char *key)
{
    static const char word[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    for (;;) {
        size_t n = strspn(key, word);
        if (n == 0)
            return false;
        if (key[n] == '\0')
            return true;
        if (key[n] != '.')
            return false;
        key += n + 1;
    }
}

/* The text between quotes; NULL with *why set if the quote is not closed or something follows it. */
static char *unquote(co_pool *pool, const char *value, const char **why)
{
    char quote = value[0];
    char *text = co_pool_alloc(pool, strlen(value) + 1), *to = text;
    if (!text)
        return NULL;
    for (const char *s = value + 1; *s; s++) {
        size_t slashes = strspn(s, "\\");
        bool at_quote = s[slashes] == quote;
        size_t keep = at_quote ? slashes / 2 : slashes;
        memset(to, '\\', keep);
        to += keep;
        s += slashes;
        if (*s == '\0')
            break;
        if (at_quote && slashes % 2) {
            *to++ = quote;
            continue;
        }
        if (*s == quote) {
            if (s[1 + strspn(s + 1, " \t")] == '\0')
                return text;
            *why = "something follows the closing quote";
            return NULL;
        }
        *to++ = *s;
    }
    *why = "the quote is not closed";
    return NULL;
}

static co_err parse_value(const char **out, co_pool *pool, const char *word, const char *value)
{
    const char *why = NULL;
    value += strspn(value, " \t");
    if (*value == '\'' || *value == '"') {
        *out = unquote(pool, value, &why);
    } else {
        size_t len = strlen(value);
        while (len && strchr(" \t", value[len - 1]))
            len--;
        *out = co_pool_strn(pool, value, len);
    }
    if (*out && strstr(*out, "${"))
        why = "${...} is not resolved here; give the value itself";
    if (why)
        return co_fail(CO_EINPUT, "%s: %s", word, why);
    return *out ? CO_OK : CO_ENOMEM;
}

co_err conf_word_parse(conf_source *s, co_pool *pool, const char *word)
{
    const char *eq = strchr(word, '=');
    conf_pair pair = {0};

    if (!conf_utf8_valid(word))
        return co_fail(CO_EINPUT, "the word \"%s\" is not UTF-8", word);
    if (strlen(word) > CONF_MAX_BYTES)
        return co_fail(CO_EINPUT, "a word of %zu bytes; the limit is %d", strlen(word), CONF_MAX_BYTES);
    if (!eq)
        return co_fail(CO_EINPUT,
                       "\"%s\" is not key=value; write for example trainer.max_epochs=5 or model=mlp "
                       "(cohort train --help lists all keys)",
                       word);
    const char *key = word;
    for (int plus = 0; plus < 2 && *key == '+'; plus++)
        key++;
    char *name = co_pool_strn(pool, key, (size_t)(eq - key));
    if (!name)
        return CO_ENOMEM;
    if (!conf_key_is_plain(name))
        return co_fail(CO_EINPUT, "%s: \"%s\" is not a key; keys are words joined by dots, as optim.lr", word,
                       name);
    pair.key = name;
    CO_TRY(parse_value(&pair.value, pool, word, eq + 1));
    return conf_source_add(s, pool, pair);
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
        if (s->pairs[i].value && strcmp(s->pairs[i].key, key) == 0)
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
    if (!err)
        each(ctx, s.pairs[0].key, s.pairs[0].value);
    co_pool_fini(&pool);
    return err;
}
