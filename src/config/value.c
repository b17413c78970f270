/* value.c -- parses what follows `=` into a tree, by Hydra's grammar.
 *
 *     value    = element {"," element}          two or more: a sweep
 *     element  = quoted | list | dict | call | plain
 *     list     = "[" [element {"," element}] "]"
 *     dict     = "{" [plain ":" element {"," ...}] "}"
 *     call     = name "(" [[name "="] element {"," ...}] ")"
 *     plain    = letters, digits, _ / - \ + . $ % * @ ? | : and inner blanks; others after a backslash
 *
 * An unquoted text may be a number, a bool or null; quoted or escaped text is a string. ${...} is kept as
 * it is. Bytes over 127 are taken as letters. Cost: linear in the text, nesting at most 32.
 */
#include "config/config_int.h"

#include <string.h>
#include <strings.h>

typedef struct parser {
    const char *s; /* not yet read */
    const char *word;
    co_pool *pool;
    int depth;
} parser;

static const char escapable[] = "\\()[]{}:=, \t";
static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
static const char name_rest[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

static co_err refuse(const parser *p, const char *why)
{
    return co_fail(CO_EINPUT, "%s: %s", p->word, why);
}

static void skip_blanks(parser *p)
{
    p->s += strspn(p->s, " \t");
}

static size_t digits(const char *s)
{
    size_t n = strspn(s, "0123456789");
    while (n && s[n] == '_' && strspn(s + n + 1, "0123456789"))
        n += 1 + strspn(s + n + 1, "0123456789");
    return n;
}

static bool is_number(const char *s)
{
    s += *s == '+' || *s == '-';
    if (strcasecmp(s, "inf") == 0 || strcasecmp(s, "nan") == 0)
        return true;
    size_t n = digits(s), m = 0;
    if (n && s[n] == '\0')
        return n == 1 || s[0] != '0';
    const char *t = s + n;
    if (*t == '.')
        t += 1 + (m = digits(t + 1));
    if (n + m == 0)
        return false;
    if (*t == 'e' || *t == 'E') {
        t += 1 + (t[1] == '+' || t[1] == '-');
        if (!(n = digits(t)))
            return false;
        t += n;
    }
    return *t == '\0';
}

bool conf_is_typed(const char *text)
{
    return strcasecmp(text, "null") == 0 || strcasecmp(text, "true") == 0 || strcasecmp(text, "false") == 0 ||
           is_number(text);
}

co_err conf_value_add(conf_value *to, co_pool *pool, const char *key, conf_value item)
{
    if (to->n == CONF_MAX_PAIRS)
        return co_fail(CO_EINPUT, "more than %d items in one value", CONF_MAX_PAIRS);
    if (to->n == to->room) {
        int room = to->room ? 2 * to->room : 4;
        conf_value *items = co_pool_alloc(pool, (size_t)room * sizeof *items);
        const char **keys = co_pool_alloc(pool, (size_t)room * sizeof *keys);
        if (!items || !keys)
            return CO_ENOMEM;
        if (to->n) {
            memcpy(items, to->items, (size_t)to->n * sizeof *items);
            memcpy(keys, to->keys, (size_t)to->n * sizeof *keys);
        }
        to->items = items;
        to->keys = keys;
        to->room = room;
    }
    to->keys[to->n] = key;
    to->items[to->n++] = item;
    return CO_OK;
}

/* '...' or "...": the same quote inside has a backslash before it; backslashes before a quote are doubled. */
static co_err quoted(parser *p, conf_value *out)
{
    char quote = *p->s++;
    char *text = co_pool_alloc(p->pool, strlen(p->s) + 1), *to = text;
    if (!text)
        return CO_ENOMEM;
    *out = (conf_value){CONF_STRING, text};
    for (; *p->s; p->s++) {
        size_t slashes = strspn(p->s, "\\");
        bool at_quote = p->s[slashes] == quote;
        size_t keep = at_quote ? slashes / 2 : slashes;
        memset(to, '\\', keep);
        to += keep;
        p->s += slashes;
        if (*p->s == '\0')
            break;
        if (*p->s == quote && slashes % 2 == 0) {
            p->s++;
            skip_blanks(p);
            return *p->s == '\0' || strchr(",)]}", *p->s) ? CO_OK
                                                          : refuse(p, "something follows the closing quote");
        }
        *to++ = *p->s;
    }
    return refuse(p, "the quote is not closed");
}

size_t conf_expr_end(const char *s, size_t len)
{
    int open = 1;
    char quote = 0;

    for (size_t i = 0; i < len; i++) {
        if (quote) {
            if (s[i] == '\\' && i + 1 < len)
                i++;
            else if (s[i] == quote)
                quote = 0;
        } else if (s[i] == '\'' || s[i] == '"') {
            quote = s[i];
        } else if (s[i] == '{') {
            open++;
        } else if (s[i] == '}' && --open == 0) {
            return i;
        }
    }
    return len;
}

/* The length of "${...}" with what is nested in it; 0: not closed. */
static size_t expr_len(const char *s)
{
    size_t len = strlen(s + 2), end = conf_expr_end(s + 2, len);

    return end < len ? end + 3 : 0;
}

static co_err stray(const parser *p)
{
    if (*p->s == '\'' || *p->s == '"')
        return refuse(p, "a quote inside an unquoted value; quote the whole value");
    return co_fail(CO_EINPUT, "%s: \"%c\" may not stand there; quote the value%s%s", p->word, *p->s,
                   strchr("()[]{}=", *p->s) ? " or put a backslash before it" : "",
                   *p->s == '=' ? ", as a='b=c'" : "");
}

/* An unquoted text, up to what ends it; in a dict's key a colon does. */
static co_err plain(parser *p, conf_value *out, bool is_key)
{
    static const char also[] = "/-\\+.$%*@?|: \t0123456789";
    char *text = co_pool_alloc(p->pool, strlen(p->s) + 1), *to = text, *end = text;
    bool escaped = false;
    if (!text)
        return CO_ENOMEM;
    while (*p->s && !strchr(",)]}", *p->s) && !(is_key && *p->s == ':')) {
        if (*p->s == '\\' && p->s[1] && strchr(escapable, p->s[1])) {
            *to++ = p->s[1];
            p->s += 2;
            end = to;
            escaped = true;
        } else if (p->s[0] == '$' && p->s[1] == '{') {
            size_t len = expr_len(p->s);
            if (!len)
                return refuse(p, "${ is not closed by }");
            memcpy(to, p->s, len);
            end = to += len;
            p->s += len;
        } else {
            if (!(*p->s & 0x80) && !strchr(letters, *p->s) && !strchr(also, *p->s))
                return stray(p);
            *to++ = *p->s;
            if (*p->s != ' ' && *p->s != '\t')
                end = to;
            p->s++;
        }
    }
    *end = '\0';
    if (!*text)
        return refuse(p, "a value is missing (an empty string is '')");
    *out = (conf_value){escaped ? CONF_STRING : CONF_PLAIN, text};
    if (!escaped && strcasecmp(text, "null") == 0)
        out->text = "null";
    return CO_OK;
}

static co_err element(parser *p, conf_value *out);

/* The items after an opening bracket, to the closing one. */
static co_err items(parser *p, conf_value *out, char close)
{
    skip_blanks(p);
    if (*p->s == close) {
        p->s++;
        return CO_OK;
    }
    for (;;) {
        conf_value item, key = {0};
        skip_blanks(p);
        if (out->kind == CONF_DICT) {
            CO_TRY(plain(p, &key, true));
            if (*p->s != ':')
                return refuse(p, "a dict is {key:value,...}");
            p->s++;
        } else if (out->kind == CONF_CALL && strchr(letters, *p->s) && *p->s) {
            size_t len = strspn(p->s, name_rest);
            if (p->s[len] == '=') {
                if (!(key.text = co_pool_strn(p->pool, p->s, len)))
                    return CO_ENOMEM;
                p->s += len + 1;
            }
        }
        CO_TRY(element(p, &item));
        CO_TRY(conf_value_add(out, p->pool, key.text, item));
        skip_blanks(p);
        if (*p->s == close) {
            p->s++;
            skip_blanks(p);
            return CO_OK;
        }
        if (*p->s != ',')
            return co_fail(CO_EINPUT, "%s: \"%c\" is missing", p->word, close);
        p->s++;
    }
}

static co_err element(parser *p, conf_value *out)
{
    co_err err;
    skip_blanks(p);
    if (++p->depth > CONF_MAX_DEPTH)
        return refuse(p, "more than 32 levels");
    size_t name = *p->s && strchr(letters, *p->s) ? strspn(p->s, name_rest) : 0;
    if (*p->s == '\'' || *p->s == '"') {
        err = quoted(p, out);
    } else if (*p->s == '[' || *p->s == '{') {
        *out = (conf_value){*p->s == '[' ? CONF_LIST : CONF_DICT};
        p->s++;
        err = items(p, out, out->kind == CONF_LIST ? ']' : '}');
    } else if (name && p->s[name] == '(') {
        *out = (conf_value){CONF_CALL, co_pool_strn(p->pool, p->s, name)};
        p->s += name + 1;
        err = out->text ? items(p, out, ')') : CO_ENOMEM;
    } else {
        err = plain(p, out, false);
    }
    p->depth--;
    return err;
}

co_err conf_value_parse(conf_value *out, co_pool *pool, const char *word, const char *text)
{
    parser p = {text, word, pool, 0};
    skip_blanks(&p);
    if (!*p.s) {
        *out = (conf_value){CONF_STRING, ""};
        return CO_OK;
    }
    CO_TRY(element(&p, out));
    skip_blanks(&p);
    if (*p.s == ',') {
        conf_value sweep = {CONF_SWEEP}, item = *out;
        CO_TRY(conf_value_add(&sweep, pool, NULL, item));
        while (*p.s == ',') {
            p.s++;
            CO_TRY(element(&p, &item));
            CO_TRY(conf_value_add(&sweep, pool, NULL, item));
            skip_blanks(&p);
        }
        *out = sweep;
    }
    return *p.s ? stray(&p) : CO_OK;
}

/* A string: bare where it reads back as one, else in single quotes. */
static void write_string(co_str *out, const char *text)
{
    static const char bare[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_/-+.%@?|*";
    if (*text && strspn(text, bare) == strlen(text) && !conf_is_typed(text)) {
        co_str_add(out, text);
        return;
    }
    co_str_add(out, "'");
    while (*text) {
        size_t slashes = strspn(text, "\\");
        bool doubled = text[slashes] == '\'' || text[slashes] == '\0';
        for (size_t i = 0; i < slashes; i++)
            co_str_add(out, doubled ? "\\\\" : "\\");
        text += slashes;
        if (*text == '\'')
            co_str_add(out, "\\");
        co_str_addn(out, text, *text != '\0');
        text += *text != '\0';
    }
    co_str_add(out, "'");
}

void conf_value_write(co_str *out, const conf_value *v)
{
    static const char *const brackets[] = {[CONF_LIST] = "[]", [CONF_DICT] = "{}", [CONF_CALL] = "()"};
    if (v->kind == CONF_STRING)
        write_string(out, v->text);
    else if (v->kind == CONF_PLAIN)
        co_str_add(out, v->text);
    if (v->kind == CONF_STRING || v->kind == CONF_PLAIN)
        return;
    if (v->kind == CONF_CALL)
        co_str_add(out, v->text);
    if (v->kind != CONF_SWEEP)
        co_str_addn(out, brackets[v->kind], 1);
    for (int i = 0; i < v->n; i++) {
        co_str_add(out, i ? "," : "");
        if (v->keys[i])
            co_str_addf(out, "%s%s", v->keys[i], v->kind == CONF_DICT ? ":" : "=");
        conf_value_write(out, &v->items[i]);
    }
    if (v->kind != CONF_SWEEP)
        co_str_addn(out, brackets[v->kind] + 1, 1);
}
