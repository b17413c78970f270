/* help.c -- every key with its default, meaning and limits, from the tables alone.
 *
 * As text: aligned columns. As markdown: one table per section. A group's section holds its choices, the keys
 * of each row, and the core keys of the same prefix.
 */
#include "config/config_int.h"

#include <math.h>
#include <string.h>

/* What follows the meaning: "(1 to 65536)", "(stop|skip)", "(also datamodule.batch_size)". */
void co_conf_limits(co_str *out, const co_option *o)
{
    co_str s = {0};
    if (o->type == CO_OPT_ENUM)
        co_str_add(&s, o->choices);
    else if ((o->min != 0 || o->max != 0) && isinf(o->max))
        co_str_addf(&s, "at least %.15g", o->min);
    else if ((o->min != 0 || o->max != 0) && isinf(o->min))
        co_str_addf(&s, "at most %.15g", o->max);
    else if (o->type == CO_OPT_INT && (o->min != 0 || o->max != 0))
        co_str_addf(&s, "%.0f to %.0f", o->min, o->max);
    else if (o->min != 0 || o->max != 0)
        co_str_addf(&s, "%.15g to %.15g", o->min, o->max);
    if (o->alias && *o->alias)
        co_str_addf(&s, "%salso %s", s.len ? "; " : "", o->alias);
    if (s.len)
        co_str_addf(out, " (%s)", co_str_text(&s));
    out->failed |= s.failed;
    co_str_fini(&s);
}

/* Markdown cells: the bar ends a cell. */
static void add_cell(co_str *out, const char *text)
{
    for (; *text; text++)
        co_str_addf(out, *text == '|' ? "\\%c" : "%c", *text);
}

static void widths(const char *prefix, const co_option *table, int *key, int *value)
{
    for (const co_option *o = table; o->key; o++) {
        int k = (int)(strlen(prefix) + strlen(o->key)), v = (int)strlen(*o->fallback ? o->fallback : "''");
        *key = k > *key ? k : *key;
        *value = v > *value ? v : *value;
    }
}

static void add_table(co_str *out, const char *prefix, const co_option *table, bool markdown)
{
    int key = 0, value = 0;
    widths(prefix, table, &key, &value);
    if (markdown && table->key)
        co_str_add(out, "| key | default | meaning |\n|---|---|---|\n");
    for (const co_option *o = table; o->key; o++) {
        const char *fallback = *o->fallback ? o->fallback : "''";
        co_str more = {0};
        co_str_add(&more, o->help ? o->help : "");
        co_conf_limits(&more, o);
        if (markdown) {
            co_str_addf(out, "| `%s%s` | `%s` | ", prefix, o->key, fallback);
            add_cell(out, co_str_text(&more));
            co_str_add(out, " |\n");
        } else {
            int pad = key - (int)strlen(prefix);
            co_str_addf(out, "  %s%-*s  %-*s  %s\n", prefix, pad, o->key, value, fallback, co_str_text(&more));
        }
        out->failed |= more.failed;
        co_str_fini(&more);
    }
    if (table->key)
        co_str_add(out, "\n");
}

/* A row's own help, or the first comment of a built-in file; a file of the user's has none. */
static const char *choice_help(const co_conf_group *g, const char *name, size_t *len)
{
    for (int i = 0; i < g->n_rows; i++) {
        if (strcmp(g->rows[i].name, name) == 0) {
            *len = g->rows[i].help ? strlen(g->rows[i].help) : 0;
            return g->rows[i].help;
        }
    }
    return conf_builtin_help(g->name, name, len);
}

static void add_choices(co_str *out, const co_conf_spec *spec, const co_conf_group *g, bool markdown)
{
    co_pool pool = {0};
    const char **names;
    int n = 0, width = 0;
    if (conf_choices(&names, &n, &pool, spec, g)) {
        out->failed = true;
        n = 0;
    }
    for (int i = 0; i < n; i++)
        width = (int)strlen(names[i]) > width ? (int)strlen(names[i]) : width;
    for (int i = 0; i < n; i++) {
        size_t len;
        const char *help = choice_help(g, names[i], &len);
        if (markdown)
            co_str_addf(out, "- `%s=%s`", g->name, names[i]);
        else
            co_str_addf(out, "  %s=%-*s", g->name, len ? width : 0, names[i]);
        if (len)
            co_str_addf(out, "%s%.*s", markdown ? ": " : "  ", (int)len, help);
        co_str_add(out, "\n");
    }
    if (n)
        co_str_add(out, "\n");
    co_pool_fini(&pool);
}

static void add_group(co_str *out, const co_conf_spec *spec, const co_conf_group *g, bool markdown)
{
    size_t head = strlen(g->name);
    bool chosen = g->fallback && *g->fallback;
    co_str_addf(out, markdown ? "## `%s=`\n\n%s%s%s%s\n\n" : "%s=  %s%s%s%s\n", g->name,
                g->help ? g->help : "", chosen ? (markdown ? " (default `" : " (default ") : "",
                chosen ? g->fallback : "", chosen ? (markdown ? "`)" : ")") : "");
    add_choices(out, spec, g, markdown);
    co_str prefix = {0};
    co_str_addf(&prefix, "%s.", g->name);
    for (int i = 0; i < g->n_rows; i++) {
        if (!g->rows[i].options->key)
            continue;
        co_str_addf(out, markdown ? "With `%s=%s`:\n\n" : " with %s=%s:\n", g->name, g->rows[i].name);
        add_table(out, co_str_text(&prefix), g->rows[i].options, markdown);
    }
    out->failed |= prefix.failed;
    co_str_fini(&prefix);
    for (int i = 0; i < spec->n_tables; i++)
        if (strncmp(spec->tables[i].prefix, g->name, head) == 0 && spec->tables[i].prefix[head] == '.')
            add_table(out, spec->tables[i].prefix, spec->tables[i].options, markdown);
}

/* Core keys whose prefix is no group's. */
static bool is_free(const co_conf_spec *spec, const char *prefix)
{
    return conf_group_index(spec, prefix, strcspn(prefix, ".")) < 0;
}

void co_conf_help(const co_conf_spec *spec, const char *group_or_null, bool markdown, co_str *out)
{
    if (group_or_null) {
        int g = conf_group_index(spec, group_or_null, strlen(group_or_null));
        if (g >= 0) {
            add_group(out, spec, &spec->groups[g], markdown);
            return;
        }
        co_str_addf(out, "no group \"%s\"; there are:", group_or_null);
        for (int i = 0; i < spec->n_groups; i++)
            co_str_addf(out, " %s", spec->groups[i].name);
        co_str_add(out, "\n");
        return;
    }
    co_str_add(
        out,
        markdown
            ? "# Keys\n\nMade from the option tables; `group=choice` and `key=value` words, later wins.\n\n"
            : "Keys (key=value; later wins), their defaults and meaning:\n\n");
    for (int i = 0; i < spec->n_tables; i++)
        if (is_free(spec, spec->tables[i].prefix))
            add_table(out, spec->tables[i].prefix, spec->tables[i].options, markdown);
    for (int g = 0; g < spec->n_groups; g++)
        add_group(out, spec, &spec->groups[g], markdown);
}

co_err co_conf_each_choice(const co_conf_spec *spec, const char *group, co_conf_choice_fn each, void *ctx)
{
    int g = conf_group_index(spec, group, strlen(group));
    co_pool pool = {0};
    const char **names;
    int n = 0;
    co_err err = g < 0 ? co_fail(CO_EINPUT, "no group \"%s\"", group)
                       : conf_choices(&names, &n, &pool, spec, &spec->groups[g]);

    for (int i = 0; i < n && !err; i++) {
        size_t len;
        const char *help = choice_help(&spec->groups[g], names[i], &len);
        each(ctx, names[i], help, len);
    }
    co_pool_fini(&pool);
    return err;
}
