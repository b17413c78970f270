/* compose.c -- the sources, in order, to one checked configuration.
 *
 *     1. words are parsed; experiment= is read
 *     2. each group's choice: fallback < experiment < word; then its file is read
 *     3. each registry group's row: the choice < `name` of its file < `name` of the experiment < word
 *     4. slots are laid out (every key that exists now) and filled with defaults
 *     5. pairs are put into slots: group files, experiment, words
 *
 * Nothing outside the co_conf changes; on any error all of it is freed.
 */
#include "config/config_int.h"

#include <string.h>

int conf_group_index(const co_conf_spec *spec, const char *name, size_t len)
{
    for (int g = 0; g < spec->n_groups; g++)
        if (strlen(spec->groups[g].name) == len && memcmp(spec->groups[g].name, name, len) == 0)
            return g;
    return -1;
}

static int group_index(const co_conf_spec *spec, const char *name)
{
    return conf_group_index(spec, name, strlen(name));
}

bool conf_has_alias(const co_option *option, const char *name)
{
    size_t len = strlen(name);
    const char *s = option->alias;
    while (s && *s) {
        size_t n = strcspn(s, " ");
        if (n == len && memcmp(s, name, n) == 0)
            return true;
        s += n + (s[n] == ' ');
    }
    return false;
}

/* "no model "resnt"; there are: cnn linear lm mlp" */
static co_err no_such_choice(co_conf *c, const co_conf_group *g, const char *choice, const conf_source *s,
                             const conf_pair *by)
{
    const char **names;
    int n;
    co_str list = {0};
    CO_TRY(conf_choices(&names, &n, &c->pool, c->spec, g));
    for (int i = 0; i < n; i++)
        co_str_addf(&list, " %s", names[i]);
    co_err err = co_str_err(&list);
    if (!err)
        err = co_fail(CO_EINPUT, "no %s \"%s\"; there are:%s", g->name, choice,
                      n ? co_str_text(&list) : " none");
    co_str_fini(&list);
    return conf_fail_at(err, s, by);
}

/* Takes the choices that stand in one source. */
static co_err choose(co_conf *c, const conf_source *s, bool by_word)
{
    for (int i = 0; i < s->n; i++) {
        const conf_pair *p = &s->pairs[i];
        int g = p->value ? group_index(c->spec, p->key) : -1;
        if (g < 0 && p->in_defaults)
            return conf_fail_at(conf_fail_unknown(c, p->key), s, p);
        if (g < 0)
            continue;
        if (!by_word && strcmp(p->key, "experiment") == 0)
            return conf_fail_at(co_fail(CO_EINPUT, "an experiment cannot choose an experiment"), s, p);
        bool none = strcmp(p->value, "null") == 0;
        if (none && c->spec->groups[g].n_rows)
            return no_such_choice(c, &c->spec->groups[g], p->value, s, p);
        c->picks[g].choice = none ? "" : p->value;
        c->picks[g].set = true;
        c->picks[g].by_word = by_word;
        c->picks[g].source = s;
        c->picks[g].by = p;
    }
    return CO_OK;
}

static int row_index(const co_conf_group *g, const char *name)
{
    for (int i = 0; i < g->n_rows; i++)
        if (strcmp(g->rows[i].name, name) == 0)
            return i;
    return -1;
}

static co_err load_experiment(co_conf *c)
{
    bool found;
    int g = group_index(c->spec, "experiment");
    if (g < 0)
        return CO_OK;
    conf_pick *pick = &c->picks[g];
    const conf_pair *p = conf_source_last(&c->words, "experiment");
    if (p)
        pick->choice = strcmp(p->value, "null") == 0 ? "" : p->value;
    if (!*pick->choice)
        return CO_OK;
    CO_TRY(conf_file_load(&c->experiment, &found, &c->pool, c->spec, "experiment", pick->choice));
    return found ? CO_OK : no_such_choice(c, &c->spec->groups[g], pick->choice, NULL, NULL);
}

static co_err load_files(co_conf *c)
{
    for (int i = 0; i < c->spec->n_groups; i++) {
        const co_conf_group *g = &c->spec->groups[i];
        conf_pick *pick = &c->picks[i];
        bool found;
        if (!*pick->choice || strcmp(g->name, "experiment") == 0)
            continue;
        CO_TRY(conf_file_load(&pick->file, &found, &c->pool, c->spec, g->name, pick->choice));
        if (!found && row_index(g, pick->choice) < 0)
            return no_such_choice(c, g, pick->choice, pick->source, pick->by);
    }
    return CO_OK;
}

/* The source that fills slots in turn i: the groups' files, the experiment, the words; NULL at the end. */
static const conf_source *source_at(const co_conf *c, int i)
{
    int n = c->spec->n_groups;
    return i < n ? &c->picks[i].file : i == n ? &c->experiment : i == n + 1 ? &c->words : NULL;
}

/* Finds group g's row; a word that chose the group beats a name from any file but the group's own. */
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
        if (!p || (pick->by_word && s != &pick->file && s != &c->words))
            continue;
        name = p->value;
        from = s;
        by = p;
    }
    pick->row = row_index(group, name);
    if (pick->row < 0)
        return no_such_choice(c, group, name, from, by);
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

static co_err put(conf_slot *slot, const conf_source *s, const conf_pair *p)
{
    const conf_pair *old = slot->by;
    if (slot->source == s && strcmp(old->key, p->key) != 0 && strcmp(old->value, p->value) != 0)
        return co_fail(CO_EINPUT, "%s=%s and %s=%s are the same key with two values; give one", old->key,
                       old->value, p->key, p->value);
    slot->set = true;
    slot->source = s;
    slot->by = p;
    return slot->option ? co_option_set(slot->option, slot->fields, p->key, p->value) : CO_OK;
}

/* Puts one source's pairs where they belong. A key may be in a row's table and in a core table: both. */
static co_err apply(co_conf *c, const conf_source *s)
{
    for (int i = 0; i < s->n; i++) {
        const conf_pair *p = &s->pairs[i];
        bool known = !p->value || group_index(c->spec, p->key) >= 0;
        for (int k = 0; k < c->n_slots && p->value; k++) {
            conf_slot *slot = &c->slots[k];
            if (strcmp(slot->key, p->key) != 0 && !(slot->option && conf_has_alias(slot->option, p->key)))
                continue;
            known = true;
            co_err err = put(slot, s, p);
            if (err)
                return conf_fail_at(err, s, p);
        }
        if (!known)
            return conf_fail_at(conf_fail_unknown(c, p->key), s, p);
    }
    return CO_OK;
}

static co_err keep_words(co_conf *c, const char *const *words, int n)
{
    const char **raw = co_pool_alloc(&c->pool, ((size_t)n + 1) * sizeof *raw);
    if (!raw)
        return CO_ENOMEM;
    for (int i = 0; i < n; i++) {
        CO_TRY(conf_word_parse(&c->words, &c->pool, words[i]));
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
        c->picks[g].choice = spec->groups[g].fallback ? spec->groups[g].fallback : "";
    }
    CO_TRY(keep_words(c, words, n));
    CO_TRY(load_experiment(c));
    CO_TRY(choose(c, &c->experiment, false));
    CO_TRY(choose(c, &c->words, true));
    CO_TRY(load_files(c));
    for (int g = 0; g < spec->n_groups; g++)
        if (spec->groups[g].n_rows)
            CO_TRY(pick_row(c, g));
    for (int i = 0; i < spec->n_tables; i++)
        CO_TRY(co_options_default(spec->tables[i].options, c->core));
    CO_TRY(lay_out(c));
    for (int i = 0; (s = source_at(c, i)); i++)
        CO_TRY(apply(c, s));
    return CO_OK;
}

co_err co_conf_compose(co_conf **out, const co_conf_spec *spec, const char *const *words, int n)
{
    co_conf *c = co_zalloc(sizeof *c);
    if (!c)
        return CO_ENOMEM;
    c->spec = spec;
    co_err err = compose(c, words, n);
    if (err)
        co_conf_free(c);
    else
        *out = c;
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
