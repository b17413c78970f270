/* option.c -- reads, checks and prints the values of option tables.
 *
 * There is one reading function per type, in the order of co_opt_type. A refused value leaves the field
 * unchanged.
 */
#include "base/option.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

static void *field(const co_option *row, void *fields)
{
    return (char *)fields + row->offset;
}

static const void *field_const(const co_option *row, const void *fields)
{
    return (const char *)fields + row->offset;
}

/* "optim.lr: 7 is out of range (allowed: 0 to 1)" */
static co_err out_of_range(const co_option *row, const char *full, const char *value)
{
    co_str s = {0};

    if (isinf(row->max)) {
        co_str_add(&s, "at least ");
        co_str_addf64(&s, row->min);
    } else if (isinf(row->min)) {
        co_str_add(&s, "at most ");
        co_str_addf64(&s, row->max);
    } else {
        co_str_addf64(&s, row->min);
        co_str_add(&s, " to ");
        co_str_addf64(&s, row->max);
    }
    co_err err = co_str_err(&s);
    if (!err)
        err = co_fail(CO_EINPUT, "%s: %s is out of range (allowed: %s)", full, value, co_str_text(&s));
    co_str_fini(&s);
    return err;
}

static bool has_limits(const co_option *row)
{
    return row->min != 0 || row->max != 0;
}

static co_err read_int(const co_option *row, void *to, const char *full, const char *value)
{
    long long v;

    if (!co_str_to_i64(value, &v))
        return co_fail(CO_EINPUT, "%s: \"%s\" is not a whole number (for example %s)", full, value,
                       row->fallback);
    if (has_limits(row) && ((double)v < row->min || (double)v > row->max))
        return out_of_range(row, full, value);
    *(int64_t *)to = v;
    return CO_OK;
}

static co_err read_float(const co_option *row, void *to, const char *full, const char *value)
{
    double v;

    /* no option accepts nan: it comes from a mistake in an earlier computation */
    if (!co_str_to_f64(value, &v) || isnan(v))
        return co_fail(CO_EINPUT, "%s: \"%s\" is not a number (for example %s)", full, value, row->fallback);
    if (has_limits(row) && (v < row->min || v > row->max))
        return out_of_range(row, full, value);
    *(double *)to = v;
    return CO_OK;
}

static co_err read_bool(const co_option *row, void *to, const char *full, const char *value)
{
    if (!co_str_to_bool(value, to))
        return co_fail(CO_EINPUT, "%s: \"%s\" is not true or false", full, value);
    return CO_OK;
}

static co_err read_str(const co_option *row, void *to, const char *full, const char *value)
{
    char *copy = NULL;

    if (strcmp(value, "null") != 0) {
        copy = co_strdup(value);
        if (!copy)
            return CO_ENOMEM;
    }
    co_free(*(char **)to);
    *(char **)to = copy;
    return CO_OK;
}

/* The i-th of "a|b|c" and its length; NULL past the end. */
static const char *choice(const char *choices, int i, size_t *len)
{
    while (i-- > 0) {
        choices += strcspn(choices, "|");
        if (!*choices)
            return NULL;
        choices++;
    }
    *len = strcspn(choices, "|");
    return choices;
}

static co_err read_enum(const co_option *row, void *to, const char *full, const char *value)
{
    const char *c;
    size_t len;

    for (int i = 0; (c = choice(row->choices, i, &len)) != NULL; i++) {
        if (strlen(value) == len && memcmp(value, c, len) == 0) {
            *(int *)to = i;
            return CO_OK;
        }
    }
    return co_fail(CO_EINPUT, "%s: \"%s\" is not one of %s", full, value, row->choices);
}

static co_err (*const readers[])(const co_option *, void *, const char *, const char *) = {
    read_int, read_float, read_bool, read_str, read_enum,
};

co_err co_option_set(const co_option *row, void *fields, const char *full, const char *value)
{
    if (strcmp(value, "null") == 0 && (row->type != CO_OPT_STR || row->needed))
        value = row->fallback;
    if (row->check && strcmp(value, row->fallback) != 0)
        CO_TRY(row->check(full, value));
    return readers[row->type](row, field(row, fields), full, value);
}

co_err co_options_default(const co_option *table, void *fields)
{
    for (const co_option *row = table; row->key; row++)
        if (row->type == CO_OPT_STR)
            *(char **)field(row, fields) = NULL; /* the struct may be uninitialised here */
    for (const co_option *row = table; row->key; row++) {
        co_err err = co_option_set(row, fields, row->key, row->fallback);
        if (err) {
            co_options_fini(table, fields);
            return co_fail_in(err, "default");
        }
    }
    return CO_OK;
}

void co_options_fini(const co_option *table, void *fields)
{
    for (const co_option *row = table; row->key; row++) {
        if (row->type == CO_OPT_STR) {
            char **s = field(row, fields);
            co_free(*s);
            *s = NULL;
        }
    }
}

const co_option *co_option_find(const co_option *table, const char *key)
{
    for (const co_option *row = table; row->key; row++)
        if (strcmp(row->key, key) == 0)
            return row;
    return NULL;
}

void co_option_print(co_str *out, const co_option *row, const void *fields)
{
    const void *at = field_const(row, fields);
    const char *text;
    size_t len;

    switch (row->type) {
    case CO_OPT_INT:
        co_str_addf(out, "%lld", (long long)*(const int64_t *)at);
        break;
    case CO_OPT_FLOAT:
        co_str_addf64(out, *(const double *)at);
        break;
    case CO_OPT_BOOL:
        co_str_add(out, *(const bool *)at ? "true" : "false");
        break;
    case CO_OPT_STR:
        text = *(char *const *)at;
        co_str_add(out, text ? text : "null");
        break;
    case CO_OPT_ENUM:
        text = choice(row->choices, *(const int *)at, &len);
        CO_ASSERT(text, "an enum field holds no choice of its row");
        co_str_addn(out, text, len);
        break;
    }
}
