/* compose.c -- builds one checked configuration from the command line and the YAML files.
 *
 *     1. words are parsed; here and in files, habits of other programs become our keys (habits.c)
 *     2. each group's choice: fallback < files < experiment < word; their files are read (defaults.c)
 *     3. each registry group's row: the choice < `name` of its file < `name` of the experiment < word
 *     4. slots are laid out (every key that exists now) and filled with defaults
 *     5. pairs are put into slots: files of groups, of the experiment, words (slots.c)
 *     6. ${...} is resolved (resolve.c)
 *
 * A mistake does not end composing: mistakes are collected and reported together (mistakes.c). Nothing
 * outside the co_conf changes. After an error, all of it is freed.
 */
#include "config/config_int.h"

#include <limits.h>
#include <string.h>

static int group_index(const co_conf_spec *spec, const char *name)
{
    return conf_group_index(spec, name, strlen(name));
}

/* The choices that words make. */
static co_err choose(co_conf *c)
{
    for (int i = 0; i < c->words.n; i++) {
        const conf_pair *p = &c->words.pairs[i];
        int g = p->value || p->op == CONF_DELETE ? group_index(c->spec, p->key) : -1;
        if (g < 0)
            continue;
        co_err err = conf_choose(c, g, &c->words, p, 0);
        if (err)
            conf_mistake_group(c, p->key);
        CO_TRY(conf_mistake(c, err));
    }
    return CO_OK;
}

/* The choices of another program's main file: below all others. */
static co_err choose_foreign(co_conf *c)
{
    for (int i = 0; i < c->root.n; i++) {
        const conf_pair *p = &c->root.pairs[i];
        int g = conf_group_index(c->spec, p->key, strlen(p->key));
        bool choice = p->defaults && !(p->defaults & (CONF_SELF | CONF_FILE)) && g >= 0;
        if (choice && c->picks[g].rank == INT_MAX && !(conf_is_null(p) && c->spec->groups[g].n_rows))
            CO_TRY(conf_choose(c, g, &c->root, p, INT_MAX - 1));
    }
    return CO_OK;
}

/* The source that fills slots in turn i: the files, then the words; NULL at the end. */
static const conf_source *source_at(const co_conf *c, int i)
{
    return i < c->n_layers ? c->layers[i].file : i == c->n_layers ? &c->words : NULL;
}

/* The choice is not a row of the registry. If it is a file, the file lacks a `name:` line. */
static co_err no_such_row(co_conf *c, int g, const char *name, const conf_source *from, const conf_pair *by)
{
    const co_conf_group *group = &c->spec->groups[g];
    const char *file = NULL;
    co_str rows = {0};
    for (int i = 0; i < c->n_layers; i++)
        if (c->layers[i].group == g)
            file = c->layers[i].file->name;
    if (!file || strcmp(name, c->picks[g].choice) != 0)
        return conf_no_such_choice(c, group, name, from, by);
    if (c->foreign && strncmp(file, c->foreign, strlen(c->foreign)) == 0)
        return co_fail(CO_EINPUT,
                       "%s=%s: %s is made of Python classes, which are not run here; %s=NAME chooses one of "
                       "the program's "
                       "own (cohort train --help %s), `cohort launch src/train.py` runs yours",
                       group->name, name, file, group->name, group->name);
    for (int r = 0; r < group->n_rows; r++)
        co_str_addf(&rows, " %s", group->rows[r].name);
    co_err err = co_str_err(&rows);
    if (!err)
        err = co_fail(CO_EINPUT, "%s does not say which %s it sets; add a line \"name: ...\" with one of:%s",
                      file, group->name, co_str_text(&rows));
    co_str_fini(&rows);
    return err;
}

/* Finds group g's row. If a word chose the group, only the chosen file's own `name:` counts, not other
 * files'. */
static co_err pick_row(co_conf *c, int g)
{
    const co_conf_group *group = &c->spec->groups[g];
    conf_pick *pick = &c->picks[g];
    const char *name = pick->choice;
    const conf_source *s, *from = pick->source;
    const conf_pair *by = pick->by;
    char *key = co_pool_printf(&c->pool, "%s.name", group->name);
    if (!key)
        return CO_ENOMEM;
    for (int i = 0; (s = source_at(c, i)); i++) {
        const conf_pair *p = conf_source_last(s, key);
        if (!p || (pick->by_word && i < c->n_layers && c->layers[i].group != g))
            continue;
        name = p->value;
        from = s;
        by = p;
    }
    pick->row = conf_row_index(group, name);
    pick->wrong |= pick->row < 0;
    if (pick->row < 0)
        return no_such_row(c, g, name, from, by);
    pick->fields = co_zalloc(group->rows[pick->row].size);
    if (!pick->fields)
        return CO_ENOMEM;
    return co_options_default(group->rows[pick->row].options, pick->fields);
}

static int count_options(const co_option *table)
{
    int n = 0;
    while (table[n].key)
        n++;
    return n;
}

static co_err add_slot(co_conf *c, const char *prefix, const co_option *option, void *fields,
                       const char *row_name)
{
    conf_slot *slot = &c->slots[c->n_slots];
    *slot = (conf_slot){.option = option, .fields = fields, .row_name = row_name};
    slot->key = co_pool_printf(&c->pool, "%s%s", prefix, option ? option->key : "name");
    if (!slot->key)
        return CO_ENOMEM;
    for (int i = 0; i < c->n_slots && !slot->twin; i++)
        slot->twin = strcmp(c->slots[i].key, slot->key) == 0;
    c->n_slots++;
    return CO_OK;
}

static co_err lay_out(co_conf *c)
{
    const co_conf_spec *spec = c->spec;
    int room = 1;
    for (int i = 0; i < spec->n_tables; i++)
        room += count_options(spec->tables[i].options);
    for (int g = 0; g < spec->n_groups; g++)
        if (c->picks[g].row >= 0)
            room += 1 + count_options(spec->groups[g].rows[c->picks[g].row].options);
    c->slots = co_pool_alloc(&c->pool, (size_t)room * sizeof *c->slots);
    if (!c->slots)
        return CO_ENOMEM;
    for (int g = 0; g < spec->n_groups; g++) {
        const conf_pick *pick = &c->picks[g];
        if (pick->row < 0)
            continue;
        const co_conf_row *row = &spec->groups[g].rows[pick->row];
        char *prefix = co_pool_printf(&c->pool, "%s.", spec->groups[g].name);
        if (!prefix)
            return CO_ENOMEM;
        CO_TRY(add_slot(c, prefix, NULL, NULL, row->name));
        c->slots[c->n_slots - 1].set = pick->set;
        for (const co_option *o = row->options; o->key; o++)
            CO_TRY(add_slot(c, prefix, o, pick->fields, NULL));
    }
    for (int i = 0; i < spec->n_tables; i++)
        for (const co_option *o = spec->tables[i].options; o->key; o++)
            CO_TRY(add_slot(c, spec->tables[i].prefix, o, c->core, NULL));
    return CO_OK;
}

static co_err keep_words(co_conf *c, const char *const *words, int n)
{
    const char **raw = co_pool_alloc(&c->pool, ((size_t)n + 1) * sizeof *raw);
    if (!raw)
        return CO_ENOMEM;
    for (int i = 0; i < n; i++) {
        int from = c->words.n;
        co_err err = conf_word_parse(&c->words, &c->pool, words[i]);
        if (err)
            conf_doubt(c, words[i]);
        CO_TRY(conf_mistake(c, err));
        CO_TRY(conf_habits_apply(c, &c->words, from));
        raw[i] = co_pool_str(&c->pool, words[i]);
        if (!raw[i])
            return CO_ENOMEM;
    }
    c->raw = raw;
    c->n_raw = n;
    return CO_OK;
}

static co_err compose(co_conf *c, const char *const *words, int n)
{
    const co_conf_spec *spec = c->spec;
    const conf_source *s;
    c->picks = co_pool_alloc(&c->pool, ((size_t)spec->n_groups + 1) * sizeof *c->picks);
    c->core = co_zalloc(spec->core_size);
    if (!c->picks || !c->core)
        return CO_ENOMEM;
    for (int g = 0; g < spec->n_groups; g++) {
        c->picks[g].row = -1;
        c->picks[g].rank = INT_MAX;
        c->picks[g].choice = spec->groups[g].fallback ? spec->groups[g].fallback : "";
    }
    CO_TRY(keep_words(c, words, n));
    CO_TRY(choose(c));
    CO_TRY(conf_foreign_open(c));
    CO_TRY(conf_habits_apply(c, &c->root, 0));
    CO_TRY(choose_foreign(c));
    CO_TRY(conf_layers_build(c));
    for (int g = 0; g < spec->n_groups; g++)
        if (spec->groups[g].n_rows)
            CO_TRY(conf_mistake(c, pick_row(c, g)));
    for (int i = 0; i < spec->n_tables; i++)
        CO_TRY(co_options_default(spec->tables[i].options, c->core));
    CO_TRY(lay_out(c));
    for (int i = 0; (s = source_at(c, i)); i++)
        CO_TRY(conf_apply(c, s));
    conf_habits_say(c);
    CO_TRY(conf_resolve(c));
    if (spec->settle)
        spec->settle(c);
    return CO_OK;
}

co_err co_conf_compose_all(co_conf **out, co_mistakes *mistakes, const co_conf_spec *spec,
                           const char *const *words, int n)
{
    co_conf *c = co_zalloc(sizeof *c);
    if (!c)
        return CO_ENOMEM;
    c->spec = spec;
    c->mistakes = mistakes;
    co_err err = compose(c, words, n);
    c->mistakes = NULL;
    if (err)
        co_conf_free(c);
    else
        *out = c;
    return err;
}

co_err co_conf_compose(co_conf **out, const co_conf_spec *spec, const char *const *words, int n)
{
    co_mistakes mistakes = {0};
    co_conf *c;
    co_err err = co_conf_compose_all(&c, &mistakes, spec, words, n);
    if (!err && mistakes.n)
        co_conf_free(c);
    else if (!err)
        *out = c;
    if (!err)
        err = co_mistakes_tell(&mistakes);
    co_mistakes_fini(&mistakes);
    return err;
}

void co_conf_free(co_conf *c)
{
    if (!c)
        return;
    for (int i = 0; c->core && i < c->spec->n_tables; i++)
        co_options_fini(c->spec->tables[i].options, c->core);
    for (int g = 0; c->picks && g < c->spec->n_groups; g++) {
        conf_pick *pick = &c->picks[g];
        if (pick->fields)
            co_options_fini(c->spec->groups[g].rows[pick->row].options, pick->fields);
        co_free(pick->fields);
    }
    co_free(c->core);
    co_pool_fini(&c->pool);
    co_free(c);
}

void *co_conf_core(co_conf *c)
{
    return c->core;
}

const char *co_conf_choice(const co_conf *c, const char *group)
{
    int g = group_index(c->spec, group);
    return g < 0 ? "" : c->picks[g].choice;
}

int co_conf_row_of(const co_conf *c, const char *group)
{
    int g = group_index(c->spec, group);
    return g < 0 ? -1 : c->picks[g].row;
}

void *co_conf_fields(co_conf *c, const char *group)
{
    int g = group_index(c->spec, group);
    return g < 0 ? NULL : c->picks[g].fields;
}

/* The turn in which a key was set: -1 by its default, then the layers, then the words. */
static int turn_of(const co_conf *c, const char *key)
{
    const conf_slot *slot = conf_slot_find(c, key);
    if (!slot || !slot->set)
        return -1;
    for (int i = 0; i < c->n_layers; i++)
        if (c->layers[i].file == slot->source)
            return i;
    return c->n_layers;
}

bool co_conf_set_after(const co_conf *c, const char *key, const char *other)
{
    return turn_of(c, key) > turn_of(c, other);
}

bool co_conf_is_set(const co_conf *c, const char *key)
{
    int g = group_index(c->spec, key);
    if (g >= 0)
        return c->picks[g].set;
    for (int i = 0; i < c->n_slots; i++)
        if (strcmp(c->slots[i].key, key) == 0)
            return c->slots[i].set;
    return false;
}
