/* json.c -- jansson with our allocator, our limits and our messages.
 *
 * jansson refuses more than 2048 levels of nesting, raw control characters, \u0000 and bytes that are not
 * UTF-8. We also refuse duplicate keys and texts above a size limit. Objects keep the order of insertion.
 */
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"

static const size_t MOST = 100000000;

/* jansson reports some failed allocations as syntax errors; this flag tells the two apart. */
static _Thread_local int memory_ran_out;

static void *allocate(size_t size)
{
    void *p = co_alloc(size);

    memory_ran_out |= !p;
    return p;
}

/* Runs before main, when no JSON value exists yet: a value must be freed by the allocator that made it. */
__attribute__((constructor)) static void use_our_memory(void)
{
    json_set_alloc_funcs(allocate, co_free);
}

/* The message quotes the file, so it must not contain bytes that move a terminal's cursor. */
static void make_printable(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

co_err co_json_parse(json_t **out, const char *bytes, size_t len, const char *what)
{
    json_error_t e;

    if (len > MOST)
        return co_fail(CO_EFORMAT, "%s: %zu bytes of JSON, more than the %zu allowed", what, len, MOST);
    memory_ran_out = 0;
    json_t *v = json_loadb(bytes, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
    if (v && !memory_ran_out) { /* jansson cuts a token short, without an error, when memory runs out */
        *out = v;
        return CO_OK;
    }
    json_decref(v);
    if (memory_ran_out)
        return co_fail(CO_ENOMEM, "%s: out of memory for %zu bytes of JSON", what, len);
    make_printable(e.text);
    return co_fail(CO_EFORMAT, "%s: not valid JSON at line %d, column %d: %s", what, e.line, e.column, e.text);
}

co_err co_json_parse_at(json_t **out, size_t *at, const char *bytes, size_t len, const char *what)
{
    size_t from = *at;
    json_error_t e;

    if (from >= len || len > MOST)
        return co_fail(CO_EFORMAT, "%s: not valid JSON: its %zu bytes end too early, or are too many", what,
                       len);
    memory_ran_out = 0;
    json_t *v = json_loadb(bytes + from, len - from,
                           JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, &e);
    if (v && !memory_ran_out) {
        *out = v;
        *at = from + (size_t)e.position;
        return CO_OK;
    }
    json_decref(v);
    if (memory_ran_out)
        return co_fail(CO_ENOMEM, "%s: out of memory for %zu bytes of JSON", what, len);
    make_printable(e.text);
    return co_fail(CO_EFORMAT, "%s: not valid JSON at byte %zu: %s", what, from + (size_t)e.position, e.text);
}

co_err co_json_read(json_t **out, const char *path, size_t limit)
{
    char *bytes;
    size_t len;

    CO_TRY(co_fs_read(&bytes, &len, path, limit < MOST ? limit : MOST));
    co_err err = co_json_parse(out, bytes, len, path);
    co_free(bytes);
    return err;
}

/* 17 digits are enough for any double. */
static char *print(const json_t *v, size_t flags)
{
    memory_ran_out = 0;
    char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17) | flags);
    if (text && memory_ran_out) { /* jansson silently leaves out a key when memory runs out */
        co_free(text);
        text = NULL;
    }
    return text;
}

char *co_json_text(const json_t *v)
{
    return print(v, JSON_COMPACT);
}

void co_json_print(json_t *take)
{
    char *text = take ? co_json_text(take) : NULL;

    if (text)
        puts(text);
    co_free(text);
    json_decref(take);
}

char *co_json_file(const json_t *v, size_t *len)
{
    char *text = print(v, JSON_INDENT(2));

    if (!text)
        return NULL;
    *len = strlen(text);
    text[(*len)++] = '\n'; /* replaces the NUL: every line of the file ends with a newline */
    return text;
}

static co_err write_by(const json_t *v, const char *path,
                       co_err (*write)(const char *path, const void *bytes, size_t len))
{
    size_t len;
    char *text = co_json_file(v, &len);
    co_err err = text ? write(path, text, len) : co_fail(CO_ENOMEM, "%s: out of memory for its JSON", path);

    co_free(text);
    return err;
}

co_err co_json_write(const json_t *v, const char *path)
{
    return write_by(v, path, co_fs_write_atomic);
}

co_err co_json_write_private(const json_t *v, const char *path)
{
    return write_by(v, path, co_fs_write_private);
}

int co_json_i64(const json_t *obj, const char *key, long long *out)
{
    json_t *v = json_object_get(obj, key);

    if (!json_is_integer(v))
        return 0;
    *out = json_integer_value(v);
    return 1;
}

static const struct {
    const char *name;
    double value;
} unwritable[] = {{"nan", NAN}, {"inf", INFINITY}, {"-inf", -INFINITY}};

int co_json_f64(const json_t *obj, const char *key, double *out)
{
    json_t *v = json_object_get(obj, key);

    if (json_is_number(v)) {
        *out = json_number_value(v);
        return 1;
    }
    for (size_t i = 0; json_is_string(v) && i < CO_COUNT(unwritable); i++) {
        if (strcmp(json_string_value(v), unwritable[i].name) == 0) {
            *out = unwritable[i].value;
            return 1;
        }
    }
    return 0;
}

const char *co_json_str(const json_t *obj, const char *key)
{
    return json_string_value(json_object_get(obj, key));
}

json_t *co_json_num(double x)
{
    if (isfinite(x))
        return json_real(x);
    return json_string(unwritable[isnan(x) ? 0 : x > 0 ? 1 : 2].name);
}

json_t *co_json_string(const char *s)
{
    json_t *v = json_string(s);

    if (v)
        return v;
    char *copy = co_strdup(s);
    for (char *at = copy; at && *at; at++)
        if ((unsigned char)*at >= 0x80)
            *at = '?';
    v = copy ? json_string(copy) : NULL;
    co_free(copy);
    return v;
}
