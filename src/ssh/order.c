/* order.c -- a host's order, the first line on its standard input: one line of JSON.
 *
 *     {"format":1,"host":"b","rank":1,"hosts":2,"token":"...","also":"10.0.0.1",
 *      "cwd":"/home/me","words":[...],"env":[...]}
 *
 * The reader checks every value, and an error names the field. JSON cannot carry bytes that are not UTF-8:
 * the writer refuses them.
 */
#include "ssh/ssh_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "net/net.h"

enum { FORMAT = 1, MOST_STRINGS = 1 << 16 };

static json_t *pack_list(const char *const *list, const char *what)
{
    json_t *v = json_array();

    for (int i = 0; list && list[i]; i++) {
        json_t *s = json_string(list[i]);
        if (!s) {
            json_decref(v);
            co_fail(CO_EINPUT, "%s %d (%.40s) is not UTF-8: it cannot be passed on to other hosts", what,
                    i + 1, list[i]);
            return NULL;
        }
        json_array_append_new(v, s);
    }
    return v;
}

co_err co_ssh_order_text(char **out, const co_ssh_order *o)
{
    json_t *words = pack_list(o->words, "word"), *env = words ? pack_list(o->env, "variable") : NULL;
    json_t *v = NULL;
    char *text = NULL, *line = NULL;
    co_err err = words && env ? CO_OK : CO_EINPUT;

    if (!err && !co_utf8_valid(o->cwd))
        err =
            co_fail(CO_EINPUT, "the name of this folder is not UTF-8: it cannot be passed on to other hosts");
    if (!err) {
        v = json_pack("{si ss si si ss ss ss sO sO}", "format", FORMAT, "host", o->host, "rank", o->rank,
                      "hosts", o->hosts, "token", o->token, "also", o->also, "cwd", o->cwd, "words", words,
                      "env", env);
        text = v ? co_json_text(v) : NULL;
        line = text ? co_sprintf("%s\n", text) : NULL;
        err = line ? CO_OK : co_fail(CO_ENOMEM, "out of memory for a host's order");
    }
    if (!err && strlen(line) > CO_SSH_ORDER_MOST)
        err = co_fail(CO_EINPUT, "the program's arguments are too long to be passed on: %zu bytes, at most %d",
                      strlen(line), CO_SSH_ORDER_MOST);
    json_decref(words);
    json_decref(env);
    json_decref(v);
    co_free(text);
    if (err)
        co_free(line);
    else
        *out = line;
    return err;
}

static co_err take_text(char *out, size_t size, const json_t *v, const char *key)
{
    const char *text = co_json_str(v, key);

    if (!text || strlen(text) >= size)
        return co_fail(CO_EFORMAT, "%s is %s", key, text ? "too long" : "missing");
    snprintf(out, size, "%s", text);
    return CO_OK;
}

static co_err take_number(int *out, const json_t *v, const char *key, int min, int max)
{
    long long x;

    if (!co_json_i64(v, key, &x) || x < min || x > max)
        return co_fail(CO_EFORMAT, "%s is not a number from %d to %d", key, min, max);
    *out = (int)x;
    return CO_OK;
}

static co_err take_list(const char ***out, co_pool *pool, const json_t *v, const char *key)
{
    const json_t *list = json_object_get(v, key);
    size_t n = json_array_size(list);
    const char **made;

    if (!json_is_array(list) || n > MOST_STRINGS)
        return co_fail(CO_EFORMAT, "%s is not a list", key);
    made = co_pool_alloc(pool, (n + 1) * sizeof *made);
    if (!made)
        return CO_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const char *s = json_string_value(json_array_get(list, i));
        if (!s)
            return co_fail(CO_EFORMAT, "%s has an entry that is not text", key);
        if (!(made[i] = co_pool_str(pool, s)))
            return CO_ENOMEM;
    }
    *out = made;
    return CO_OK;
}

/* Is it NAME=VALUE, with a name that a shell accepts? */
static bool is_variable(const char *s)
{
    size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");

    return n && s[n] == '=' && !(*s >= '0' && *s <= '9');
}

static co_err take_all(co_ssh_order *o, const json_t *v)
{
    co_token token;
    int format;

    CO_TRY(take_number(&format, v, "format", FORMAT, FORMAT));
    CO_TRY(take_text(o->host, sizeof o->host, v, "host"));
    CO_TRY(take_number(&o->hosts, v, "hosts", 1, CO_MAX_HOSTS));
    CO_TRY(take_number(&o->rank, v, "rank", 0, o->hosts - 1));
    CO_TRY(take_text(o->token, sizeof o->token, v, "token"));
    CO_TRY(take_text(o->also, sizeof o->also, v, "also"));
    CO_TRY(take_text(o->cwd, sizeof o->cwd, v, "cwd"));
    CO_TRY(take_list(&o->words, &o->pool, v, "words"));
    CO_TRY(take_list(&o->env, &o->pool, v, "env"));
    if (*o->token && co_token_parse(&token, o->token))
        return co_fail(CO_EFORMAT, "token is malformed");
    if (o->cwd[0] != '/')
        return co_fail(CO_EFORMAT, "cwd does not begin with /");
    for (int i = 0; o->env[i]; i++)
        if (!is_variable(o->env[i]))
            return co_fail(CO_EFORMAT, "env has an entry that is not NAME=VALUE");
    return CO_OK;
}

co_err co_ssh_order_parse(co_ssh_order *out, const char *line, size_t len)
{
    co_ssh_order *o;
    json_t *v = NULL;

    if (len > CO_SSH_ORDER_MOST)
        return co_fail(CO_EFORMAT, "the order is longer than %d bytes", CO_SSH_ORDER_MOST);
    if (!(o = co_zalloc(sizeof *o)))
        return CO_ENOMEM;
    co_err err = co_json_parse(&v, line, len, "the order");
    if (!err)
        err = take_all(o, v);
    if (!err)
        *out = *o;
    else
        co_pool_fini(&o->pool);
    json_decref(v);
    co_free(o);
    return err == CO_EINPUT ? CO_EFORMAT : err;
}

void co_ssh_order_fini(co_ssh_order *o)
{
    co_pool_fini(&o->pool);
    explicit_bzero(o->token, sizeof o->token);
}

/* Reads a byte at a time, because the bytes after the line are for the job. */
static co_err read_line(co_str *line, int fd)
{
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        char c;
        int ready = poll(&p, 1, CO_CONTROL_SILENT_MS);
        if (ready < 0 && errno == EINTR)
            continue;
        ssize_t n = ready > 0 ? read(fd, &c, 1) : 0;
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0)
            return co_fail(CO_EPEER, "no order came: the command that started this one is gone");
        if (c == '\n' && line->len)
            return co_str_err(line);
        if (c != '\n')
            co_str_addn(line, &c, 1);
        if (line->len > CO_SSH_ORDER_MOST)
            return co_fail(CO_EFORMAT, "the order is longer than %d bytes", CO_SSH_ORDER_MOST);
    }
}

co_err co_ssh_order_take(co_ssh_order *out, int fd)
{
    co_str line = {0};
    co_err err = read_line(&line, fd);

    if (!err)
        err = co_ssh_order_parse(out, line.p, line.len);
    if (line.p)
        explicit_bzero(line.p, line.len);
    co_str_fini(&line);
    return err;
}
