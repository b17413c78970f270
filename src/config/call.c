/* call.c -- the functions that a value may call, and what each returns.
 *
 *     choice(a,b)  range(start,stop,step)  glob(pattern,exclude=pattern)      alternatives, for a sweep
 *     int(x) float(x) str(x) bool(x)       casts, through lists, dicts and alternatives
 *     sort(...)                            a list, or alternatives, in order; reverse=true
 *     tag(name,...,sweep)                  the sweep itself; the names are ignored
 *
 * A range counts in decimal (15 digits), so range(0,1,0.1) has ten values and the fourth is 0.3.
 */
#include "config/config_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const conf_value *named(const conf_value *call, const char *name)
{
    for (int i = 0; i < call->n; i++)
        if (call->keys[i] && strcmp(call->keys[i], name) == 0)
            return &call->items[i];
    return NULL;
}

static bool is_number(const conf_value *v, double *x)
{
    return v->kind == CONF_PLAIN && conf_is_typed(v->text) && co_str_to_f64(v->text, x);
}

static bool is_bool(const conf_value *v, bool *b)
{
    *b = strcasecmp(v->text, "true") == 0;
    return *b || strcasecmp(v->text, "false") == 0;
}

static co_err give_number(conf_value *v, co_pool *pool, double x, bool whole)
{
    co_str s = {0};
    co_str_addf64(&s, x);
    if (!whole && isfinite(x) && !strpbrk(co_str_text(&s), ".e"))
        co_str_add(&s, ".0");
    co_err err = co_str_err(&s);
    *v = (conf_value){CONF_PLAIN, err ? NULL : co_pool_str(pool, co_str_text(&s))};
    co_str_fini(&s);
    return v->text ? CO_OK : CO_ENOMEM;
}

static co_err cast_one(conf_value *v, co_pool *pool, const char *word, const char *to)
{
    double x = 0;
    long long i;
    bool b = false, number = is_number(v, &x);
    bool logical = v->kind == CONF_PLAIN && is_bool(v, &b);
    if (strcmp(to, "str") == 0) {
        const char *text = logical ? (b ? "true" : "false") : v->text;
        if (number && !co_str_to_i64(v->text, &i))
            CO_TRY(give_number(v, pool, x, false));
        else
            v->text = text;
        v->kind = CONF_STRING;
        return CO_OK;
    }
    if (strcmp(to, "bool") == 0) {
        if (number || is_bool(v, &b)) {
            *v = (conf_value){CONF_PLAIN, number ? (x != 0 ? "true" : "false") : b ? "true" : "false"};
            return CO_OK;
        }
    } else if (strcmp(to, "int") == 0) {
        if (co_str_to_i64(v->text, &i)) {
            v->kind = CONF_PLAIN;
            return CO_OK;
        }
        if (logical || (number && fabs(x) < 1e15))
            return give_number(v, pool, logical ? b : trunc(x), true);
    } else if (logical || number || co_str_to_f64(v->text, &x)) {
        return give_number(v, pool, logical ? b : x, false);
    }
    return co_fail(CO_EINPUT, "%s: %s(%s): that cannot be made of it", word, to, v->text);
}

static co_err cast(conf_value *v, co_pool *pool, const char *word, const char *to)
{
    if (v->kind == CONF_PLAIN || v->kind == CONF_STRING)
        return cast_one(v, pool, word, to);
    if (v->kind == CONF_CALL)
        return co_fail(CO_EINPUT, "%s: %s() of %s() is not known", word, to, v->text);
    for (int i = 0; i < v->n; i++)
        CO_TRY(cast(&v->items[i], pool, word, to));
    return CO_OK;
}

static int compare(const conf_value *a, const conf_value *b)
{
    double x, y;
    if (is_number(a, &x) && is_number(b, &y))
        return (x > y) - (x < y);
    return strcmp(a->text, b->text);
}

/* Stable, by insertion: the items are few. */
static co_err sort(conf_value *v, co_pool *pool, const char *word, bool reverse)
{
    (void)pool;
    for (int i = 0; i < v->n; i++)
        if (v->items[i].kind > CONF_STRING)
            return co_fail(CO_EINPUT, "%s: sort() takes numbers or strings", word);
    for (int i = 1; i < v->n; i++)
        for (int k = i; k > 0; k--) {
            int c = compare(&v->items[k - 1], &v->items[k]);
            if (reverse ? c >= 0 : c <= 0)
                break;
            conf_value swap = v->items[k];
            v->items[k] = v->items[k - 1];
            v->items[k - 1] = swap;
        }
    return CO_OK;
}

static co_err range(conf_value *v, co_pool *pool, const char *word)
{
    static const char *const names[] = {"start", "stop", "step"};
    double x[3] = {0, NAN, 1};
    bool whole = true;
    conf_value out = {CONF_SWEEP};
    int positional = 0;
    for (int i = 0; i < v->n; i++)
        positional += !v->keys[i];
    for (int i = 0, at = positional == 1 && !named(v, "stop"); i < v->n; i++) {
        int k = at;
        long long n;
        if (v->keys[i])
            for (k = 0; k < 3 && strcmp(names[k], v->keys[i]) != 0; k++)
                ;
        else
            at++;
        if (k >= 3 || !is_number(&v->items[i], &x[k]))
            return co_fail(CO_EINPUT, "%s: range(start,stop,step) takes up to three numbers", word);
        whole = whole && co_str_to_i64(v->items[i].text, &n);
    }
    if (!(isfinite(x[0]) && isfinite(x[1]) && isfinite(x[2]) && x[2] != 0))
        return co_fail(CO_EINPUT, "%s: range(start,stop,step) needs a stop, and a step that is not 0", word);
    for (int i = 0;; i++) {
        char text[40];
        conf_value item;
        snprintf(text, sizeof text, "%.15g", x[0] + i * x[2]);
        double at = strtod(text, NULL);
        if (x[2] > 0 ? at >= x[1] : at <= x[1])
            break;
        CO_TRY(give_number(&item, pool, at, whole));
        co_err err = conf_value_add(&out, pool, NULL, item);
        if (err)
            return co_fail_in(err, "%s", word);
    }
    if (out.n == 0)
        return co_fail(CO_EINPUT, "%s: the range is empty", word);
    *v = out;
    return CO_OK;
}

/* The arguments without names; a sweep among them stands for its own items. */
static co_err arguments(conf_value *out, const conf_value *call, co_pool *pool)
{
    for (int i = 0; i < call->n; i++) {
        const conf_value *a = &call->items[i];
        for (int k = 0; a->kind == CONF_SWEEP && k < a->n; k++)
            CO_TRY(conf_value_add(out, pool, NULL, a->items[k]));
        if (a->kind != CONF_SWEEP && !call->keys[i])
            CO_TRY(conf_value_add(out, pool, NULL, *a));
    }
    return CO_OK;
}

static co_err call_sort(conf_value *v, co_pool *pool, const char *word)
{
    const conf_value *r = named(v, "reverse");
    bool reverse = r && r->kind == CONF_PLAIN && strcasecmp(r->text, "true") == 0;
    conf_value out = {CONF_SWEEP};
    CO_TRY(arguments(&out, v, pool));
    if (out.n == 1 && out.items[0].kind == CONF_LIST)
        out = out.items[0];
    *v = out;
    return sort(v, pool, word, reverse);
}

static co_err call(conf_value *v, co_pool *pool, const char *word)
{
    static const char *const known[] = {"choice", "range", "glob", "int", "float",
                                        "str",    "bool",  "sort", "tag"};
    static const char *const casts[] = {"int", "float", "str", "bool"};
    const char *name = v->text;
    if (strcmp(name, "glob") == 0)
        return CO_OK;
    if (strcmp(name, "range") == 0)
        return range(v, pool, word);
    if (strcmp(name, "sort") == 0)
        return call_sort(v, pool, word);
    if (strcmp(name, "interval") == 0 || strcmp(name, "shuffle") == 0)
        return co_fail(CO_EINPUT,
                       "%s: %s() leaves the values to chance; a sweep here is the same each time: give "
                       "choice(...) or range(...)",
                       word, name);
    conf_value out = {CONF_SWEEP};
    CO_TRY(arguments(&out, v, pool));
    if (out.n == 0)
        return co_fail(CO_EINPUT, "%s: %s() has no argument", word, name);
    if (strcmp(name, "choice") == 0) {
        *v = out;
        return CO_OK;
    }
    if (strcmp(name, "tag") == 0) {
        *v = v->items[v->n - 1];
        return CO_OK;
    }
    for (size_t i = 0; i < CO_COUNT(casts); i++)
        if (strcmp(name, casts[i]) == 0) {
            *v = out.n == 1 && v->items[0].kind != CONF_SWEEP ? out.items[0] : out;
            return cast(v, pool, word, casts[i]);
        }
    const char *near = co_str_nearest(name, known, CO_COUNT(known));
    return co_fail(CO_EINPUT, "%s: no function %s(); %s%s (quote a value with brackets)", word, name,
                   near ? "did you mean " : "there are choice range glob int float str bool sort tag",
                   near ? near : "");
}

co_err conf_value_eval(conf_value *v, co_pool *pool, const char *word)
{
    for (int i = 0; i < v->n; i++) {
        CO_TRY(conf_value_eval(&v->items[i], pool, word));
        conf_kind k = v->items[i].kind;
        if ((k == CONF_SWEEP || k == CONF_CALL) && v->kind != CONF_CALL)
            return co_fail(CO_EINPUT, "%s: alternatives cannot stand inside a value", word);
    }
    return v->kind == CONF_CALL ? call(v, pool, word) : CO_OK;
}
