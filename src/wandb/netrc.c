/* netrc.c -- keys in ~/.netrc, where wandb, curl and git look for them.
 *
 *     machine api.wandb.ai
 *       login user
 *       password KEY
 *
 * Words are separated by blanks; one may stand in double quotes; `#` at the beginning of a word hides the
 * rest of the line; a `macdef` goes to the next empty line. Whatever the bytes are, nothing outside them is
 * read.
 */
#include "wandb/wandb_int.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"

struct words {
    const char *at, *end;
};
struct word {
    const char *p;
    size_t len;
};

static void skip_line(struct words *w)
{
    while (w->at < w->end && *w->at != '\n')
        w->at++;
}

static bool next(struct words *w, struct word *out)
{
    for (;; skip_line(w)) {
        while (w->at < w->end && isspace((unsigned char)*w->at))
            w->at++;
        if (w->at == w->end)
            return false;
        if (*w->at != '#')
            break;
    }
    if (*w->at == '"') {
        out->p = ++w->at;
        while (w->at < w->end && *w->at != '"' && *w->at != '\n')
            w->at++;
        out->len = (size_t)(w->at - out->p);
        w->at += w->at < w->end && *w->at == '"';
        return true;
    }
    out->p = w->at;
    while (w->at < w->end && !isspace((unsigned char)*w->at))
        w->at++;
    out->len = (size_t)(w->at - out->p);
    return true;
}

static bool is(struct word w, const char *text)
{
    return w.len == strlen(text) && memcmp(w.p, text, w.len) == 0;
}

static void skip_macro(struct words *w)
{
    for (skip_line(w); w->at < w->end; skip_line(w)) {
        w->at++; /* the newline */
        if (w->at < w->end && *w->at == '\n')
            return;
    }
}

/* The entry of the machine: from its word `machine` to the next entry. False: there is none. */
static bool find_entry(const char *text, size_t len, const char *machine, size_t *from, size_t *to)
{
    struct words w = {text, text + len};
    struct word word, name;
    bool inside = false;

    while (next(&w, &word)) {
        bool starts = is(word, "machine") || is(word, "default") || is(word, "macdef");
        size_t at = (size_t)(word.p - text);
        if (starts && inside) {
            *to = at;
            return true;
        }
        if (is(word, "macdef"))
            skip_macro(&w);
        if (is(word, "machine") && next(&w, &name) && is(name, machine)) {
            inside = true;
            *from = at;
        }
    }
    *to = len;
    return inside;
}

char *netrc_find(const char *text, size_t len, const char *machine)
{
    size_t from, to;
    struct word word, value;

    if (!find_entry(text, len, machine, &from, &to))
        return NULL;
    struct words w = {text + from, text + to};
    while (next(&w, &word))
        if (is(word, "password") && next(&w, &value) && value.len)
            return co_sprintf("%.*s", (int)value.len, value.p);
    return NULL;
}

void netrc_put(co_str *out, const char *text, size_t len, const char *machine, const char *login,
               const char *password)
{
    size_t from = len, to = len;

    if (find_entry(text, len, machine, &from, &to)) {
        co_str_addn(out, text, from);
    } else {
        from = to = len;
        co_str_addn(out, text, len);
    }
    if (out->len && out->p[out->len - 1] != '\n')
        co_str_add(out, "\n");
    co_str_addf(out, "machine %s\n  login %s\n  password %s\n", machine, login, password);
    co_str_addn(out, text + to, len - to);
}

char *netrc_path(void)
{
    const char *named = getenv("NETRC"), *home = getenv("HOME");

    if (named && *named)
        return co_strdup(named);
    char *dotted = co_sprintf("%s/.netrc", home ? home : "");
    char *other = co_sprintf("%s/_netrc", home ? home : "");
    bool use_other = dotted && other && !co_fs_exists(dotted) && co_fs_exists(other);
    char *chosen = dotted && other ? co_strdup(use_other ? other : dotted) : NULL;
    co_free(dotted);
    co_free(other);
    return chosen;
}
