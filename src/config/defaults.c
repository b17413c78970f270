/* defaults.c -- finds the files that the choices of groups bring in, in the order in which they are
 * applied.
 *
 * Each group's choice is a file. Its defaults list may bring in others, which come before it, or after it
 * if they stand after `_self_`. The experiment's files come last. `override /group: x` in a file changes a
 * choice: a word wins over the experiment, the experiment over the files of groups, an earlier group over a
 * later one. A changed choice may bring in further overrides, so everything is read again until nothing
 * changes. Each change lowers a rank, so this ends. A file that brings in itself is refused by name.
 */
#include "config/config_int.h"

#include <limits.h>
#include <ctype.h>
#include <string.h>

#include "base/fs.h"

/* The file being read and those that brought it in. */
typedef struct frame {
    const struct frame *outer;
    const char *file;
    int depth;
} frame;

typedef struct builder {
    co_conf *c;
    int group; /* whose choice is followed */
    int rank;
    bool changed;
} builder;

/* Adds the names that a habit's list of patterns has for this group: "tensorboard" of
 * "*tensorboard*|*wandb*". Patterns with a wildcard inside are left out. */
static co_err add_habit_names(const char **names, int *n, co_pool *pool, const char *list)
{
    enum { MOST_NAMES = 64 };
    for (; *list && *n < MOST_NAMES; list += strspn(list, "|")) {
        size_t len = strcspn(list, "|"), from = strspn(list, "*"), to = len;
        while (to > from && list[to - 1] == '*')
            to--;
        char *name = co_pool_strn(pool, list + from, to > from ? to - from : 0);
        if (!name)
            return CO_ENOMEM;
        if (*name && !strpbrk(name, "*?[]"))
            names[(*n)++] = name;
        list += len;
    }
    return CO_OK;
}

/* The nearest choice that other programs have and that is answered here with a sentence. NULL: there is none.
 */
static co_err near_habit(const char **near, const co_conf_habit **by, co_conf *c, const char *group,
                         const char *choice)
{
    *near = NULL;
    for (const co_conf_habit *row = c->spec->habits; row && row->keys && !*near; row++) {
        const char *names[64];
        int n = 0;
        if (strcmp(row->keys, group) != 0 || !row->values || !row->says)
            continue;
        CO_TRY(add_habit_names(names, &n, &c->pool, row->values));
        *near = co_str_nearest(choice, names, (size_t)n);
        *by = row;
    }
    return CO_OK;
}

co_err conf_no_such_choice(co_conf *c, const co_conf_group *g, const char *choice, const conf_source *s,
                           const conf_pair *by)
{
    const char **names;
    int n;
    co_str list = {0};
    CO_TRY(conf_choices(&names, &n, &c->pool, c->spec, g));
    for (int i = 0; i < n; i++)
        co_str_addf(&list, " %s", names[i]);
    const char *near = co_str_nearest(choice, names, (size_t)n), *planned = NULL;
    const co_conf_habit *row = NULL;
    co_err err = co_str_err(&list);
    if (!err && !near)
        err = near_habit(&planned, &row, c, g->name, choice);
    if (!err && planned)
        err = co_fail(CO_EINPUT, "no %s \"%s\"; did you mean %s=%s? %c%s", g->name, choice, g->name, planned,
                      toupper((unsigned char)row->says[0]), row->says + 1);
    else if (!err)
        err = near ? co_fail(CO_EINPUT, "no %s \"%s\"; did you mean %s? There are:%s", g->name, choice, near,
                             co_str_text(&list))
                   : co_fail(CO_EINPUT, "no %s \"%s\"; there are:%s", g->name, choice,
                             n ? co_str_text(&list) : " none");
    co_str_fini(&list);
    return conf_fail_at(err, s, by);
}

static bool is_experiment(const char *group)
{
    return strcmp(group, "experiment") == 0;
}

/* "mnist.yaml" in a defaults list is the choice mnist; an experiment may be a file given by its path. */
const char *conf_bare_choice(co_pool *pool, const char *group, const char *choice)
{
    size_t n = strlen(choice);
    bool path = is_experiment(group) && (strchr(choice, '/') || co_fs_exists(choice));
    if (n <= 5 || strcmp(choice + n - 5, ".yaml") != 0 || path)
        return choice;
    return co_pool_strn(pool, choice, n - 5);
}

co_err conf_choose(co_conf *c, int group, const conf_source *s, const conf_pair *p, int rank)
{
    const co_conf_group *g = &c->spec->groups[group];
    conf_pick *pick = &c->picks[group];
    bool away = p->op == CONF_DELETE;
    if (rank && is_experiment(g->name) && s != &c->root)
        return conf_fail_at(co_fail(CO_EINPUT, "an experiment cannot choose an experiment"), s, p);
    if (away && g->n_rows)
        return co_fail(CO_EINPUT, "~%s: there is always one %s; choose another with %s=NAME", p->key, g->name,
                       g->name);
    if (away && p->value && strcmp(p->value, pick->choice) != 0)
        return co_fail(CO_EINPUT, "~%s=%s: the choice is \"%s\", so it stays", p->key, p->value, pick->choice);
    bool none = away || conf_is_null(p);
    if ((none || p->kind == CONF_LIST) && g->n_rows)
        return conf_no_such_choice(c, g, p->value ? p->value : "", s, p);
    pick->choice = none ? "" : conf_bare_choice(&c->pool, g->name, p->value);
    if (!pick->choice)
        return CO_ENOMEM;
    pick->many = p->kind == CONF_LIST;
    pick->set = true;
    pick->by_word = rank == 0;
    pick->rank = rank;
    pick->source = s;
    pick->by = p;
    return CO_OK;
}

static co_err add_layer(builder *b, conf_source *file)
{
    co_conf *c = b->c;
    if (c->n_layers == c->layers_room) {
        int room = c->layers_room ? 2 * c->layers_room : 16;
        conf_layer *more = co_pool_alloc(&c->pool, (size_t)room * sizeof *more);
        if (!more)
            return CO_ENOMEM;
        if (c->n_layers)
            memcpy(more, c->layers, (size_t)c->n_layers * sizeof *more);
        c->layers = more;
        c->layers_room = room;
    }
    c->layers[c->n_layers++] = (conf_layer){file, b->group};
    return CO_OK;
}

static co_err follow(builder *b, const frame *outer, const char *group, const char *choice, bool optional,
                     const conf_source *s, const conf_pair *by);

/* One name, or each of a list. */
static co_err follow_choice(builder *b, const frame *outer, const char *group, const char *choice, bool many,
                            bool optional, const conf_source *s, const conf_pair *by)
{
    conf_value v;
    if (!many)
        return follow(b, outer, group, choice, optional, s, by);
    CO_TRY(conf_value_parse(&v, &b->c->pool, group, choice));
    for (int i = 0; i < v.n; i++) {
        if (v.items[i].kind != CONF_PLAIN && v.items[i].kind != CONF_STRING)
            return conf_fail_at(co_fail(CO_EINPUT, "%s=%s: a list of names is wanted", group, choice), s, by);
        CO_TRY(follow(b, outer, group, v.items[i].text, optional, s, by));
    }
    return CO_OK;
}

/* The choice for a group below a group: a word's, else an override's in a file, else the entry's own. */
static const conf_pair *nested_choice(co_conf *c, const char *path, const conf_pair *own)
{
    for (int i = c->words.n - 1; i >= 0; i--)
        if (strcmp(c->words.pairs[i].key, path) == 0) {
            c->words.pairs[i].used = true;
            return &c->words.pairs[i];
        }
    for (int i = 0; i < c->n_nested; i++)
        if (strcmp(c->nested[i].key, path) == 0)
            return &c->nested[i];
    return own;
}

static co_err override_nested(builder *b, const char *path, const conf_pair *p)
{
    co_conf *c = b->c;
    for (int i = 0; i < c->n_nested; i++)
        if (strcmp(c->nested[i].key, path) == 0)
            return CO_OK; /* the first wins */
    conf_source list = {.pairs = c->nested, .n = c->n_nested, .room = c->nested_room};
    conf_pair own = *p;
    own.key = path;
    CO_TRY(conf_source_add(&list, &c->pool, own));
    c->nested = list.pairs;
    c->n_nested = list.n;
    c->nested_room = list.room;
    b->changed = true;
    return CO_OK;
}

static co_err main_choice(builder *b, int g, const conf_source *file, const conf_pair *p)
{
    conf_pick *pick = &b->c->picks[g];
    if (b->rank >= pick->rank && !is_experiment(b->c->spec->groups[g].name))
        return CO_OK;
    b->changed = true;
    return conf_choose(b->c, g, file, p, b->rank);
}

/* An entry "group: choice" of a file in the folder `group`. */
static co_err entry(builder *b, const frame *f, const char *group, const conf_source *file, const conf_pair *p)
{
    co_conf *c = b->c;
    int g = conf_group_index(c->spec, p->key, strlen(p->key));
    bool experiment = strncmp(group, "experiment", 10) == 0;
    if (g >= 0 && (experiment || (p->defaults & CONF_OVERRIDE)))
        return main_choice(b, g, file, p);
    if (g >= 0 && (p->defaults & CONF_ABSOLUTE))
        return conf_fail_at(co_fail(CO_EINPUT, "%s has its choice already; write \"- override /%s: %s\"",
                                    p->key, p->key, p->value),
                            file, p);
    if (g < 0 && !strchr(p->key, '/') && (experiment || (p->defaults & CONF_ABSOLUTE)))
        return conf_fail_at(conf_fail_unknown(c, p->key), file, p);
    const char *path = p->key;
    if (!(p->defaults & CONF_ABSOLUTE) && !experiment)
        path = co_pool_printf(&c->pool, "%s/%s", group, p->key);
    if (!path)
        return CO_ENOMEM;
    if (p->defaults & CONF_OVERRIDE)
        return override_nested(b, path, p);
    const conf_pair *chosen = nested_choice(c, path, p);
    if (conf_is_null(chosen))
        return CO_OK;
    return follow_choice(b, f, path, chosen->value, chosen->kind == CONF_LIST,
                         (p->defaults & CONF_OPTIONAL) != 0, chosen == p ? file : NULL, chosen);
}

/* An entry that is a file's path. */
static co_err file_entry(builder *b, const frame *f, const char *group, const conf_source *file,
                         const conf_pair *p)
{
    const char *path = p->key, *slash;
    if (!(p->defaults & CONF_ABSOLUTE) && *group)
        path = co_pool_printf(&b->c->pool, "%s/%s", group, p->key);
    if (!path)
        return CO_ENOMEM;
    slash = strrchr(path, '/');
    const char *folder = slash ? co_pool_strn(&b->c->pool, path, (size_t)(slash - path)) : "";
    if (!folder)
        return CO_ENOMEM;
    return follow(b, f, folder, slash ? slash + 1 : path, (p->defaults & CONF_OPTIONAL) != 0, file, p);
}

static co_err follow_entries(builder *b, const frame *f, const char *group, conf_source *file)
{
    bool self = false;
    for (int i = 0; i < file->n; i++) {
        const conf_pair *p = &file->pairs[i];
        if (p->defaults & CONF_SELF) {
            self = true;
            CO_TRY(add_layer(b, file));
        } else if (p->defaults & CONF_FILE) {
            CO_TRY(file_entry(b, f, group, file, p));
        } else if (p->defaults) {
            CO_TRY(entry(b, f, group, file, p));
        }
    }
    return self ? CO_OK : add_layer(b, file);
}

static co_err follow(builder *b, const frame *outer, const char *group, const char *choice, bool optional,
                     const conf_source *s, const conf_pair *by)
{
    co_conf *c = b->c;
    bool found;
    conf_source *file = co_pool_alloc(&c->pool, sizeof *file);
    choice = file ? conf_bare_choice(&c->pool, group, choice) : NULL;
    if (!choice)
        return CO_ENOMEM;
    file->foreign = c->foreign != NULL;
    CO_TRY(conf_file_load(file, &found, &c->pool, c->spec, group, choice));
    if (file->foreign)
        CO_TRY(conf_foreign_sift(c, file, is_experiment(group)));
    CO_TRY(conf_habits_apply(c, file, 0));
    int g = conf_group_index(c->spec, group, strlen(group));
    if (!found && !outer && g >= 0 && conf_row_index(&c->spec->groups[g], choice) >= 0)
        return CO_OK;
    if (!found && optional)
        return CO_OK;
    if (!found) {
        co_conf_group folder = {.name = *group ? group : "file"};
        return conf_no_such_choice(c, g >= 0 ? &c->spec->groups[g] : &folder, choice, s, by);
    }
    frame f = {outer, file->name, outer ? outer->depth + 1 : 1};
    for (const frame *k = outer; k; k = k->outer)
        if (strcmp(k->file, file->name) == 0)
            return conf_fail_at(co_fail(CO_EINPUT, "the defaults lists come back to %s", file->name), s, by);
    if (f.depth > CONF_MAX_DEPTH || c->n_layers > CONF_MAX_PAIRS)
        return conf_fail_at(co_fail(CO_EINPUT, "the defaults lists bring too many files"), s, by);
    return follow_entries(b, &f, group, file);
}

/* The files of one group's choice. */
static co_err build_group(co_conf *c, int g, int rank, bool *changed)
{
    const conf_pick *pick = &c->picks[g];
    builder b = {c, g, rank, false};
    if (!*pick->choice)
        return CO_OK;
    CO_TRY(follow_choice(&b, NULL, c->spec->groups[g].name, pick->choice, pick->many, false, pick->source,
                         pick->by));
    *changed |= b.changed;
    return CO_OK;
}

/* The same; a mistake is noted, and the other groups are still read. */
static co_err try_group(co_conf *c, int g, int rank, bool *changed)
{
    co_err err = build_group(c, g, rank, changed);
    if (err == CO_EINPUT)
        c->picks[g].wrong = true;
    return conf_mistake(c, err);
}

/* Reads everything once. The experiment is read first, because it chooses groups; its files are then moved
 * behind those of the groups. Another program's main file comes before all. */
static co_err build_once(co_conf *c, bool *changed)
{
    int experiment = conf_group_index(c->spec, "experiment", 10), first, before;
    c->n_layers = 0;
    if (c->foreign)
        CO_TRY(add_layer(&(builder){.c = c, .group = -1}, &c->root));
    before = c->n_layers;
    if (experiment >= 0)
        CO_TRY(try_group(c, experiment, 1, changed));
    first = c->n_layers;
    for (int g = 0; g < c->spec->n_groups; g++)
        if (g != experiment)
            CO_TRY(try_group(c, g, 2 + g, changed));
    if (first == before)
        return CO_OK;
    conf_layer *turned = co_pool_alloc(&c->pool, (size_t)c->layers_room * sizeof *turned);
    if (!turned)
        return CO_ENOMEM;
    int groups = c->n_layers - first;
    memcpy(turned, c->layers, (size_t)before * sizeof *turned);
    memcpy(turned + before, c->layers + first, (size_t)groups * sizeof *turned);
    memcpy(turned + before + groups, c->layers + before, (size_t)(first - before) * sizeof *turned);
    c->layers = turned;
    return CO_OK;
}

co_err conf_layers_build(co_conf *c)
{
    bool changed = true;
    while (changed) {
        changed = false;
        CO_TRY(build_once(c, &changed));
    }
    return CO_OK;
}
