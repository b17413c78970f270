/* habits.c -- translates keys and values of other programs, by the spec's table of habits, before anything
 * else is done with them.
 *
 * A row without values applies only to keys that do not exist here. A row with values applies to these
 * values of any key. The result is looked up again, so that `model.net.model_name=vit` ends where
 * `model=vit` does. A table that goes in circles is a bug.
 */
#include "config/config_int.h"

#include <fnmatch.h>
#include <string.h>

enum { MOST_TURNS = 8 };

/* One of the patterns in `list`, separated by `sep`, matches all of `text`. */
static bool matches(const char *list, char sep, const char *text)
{
    char pattern[128];
    const char stop[2] = {sep, '\0'};
    for (;;) {
        size_t n = strcspn(list, stop);
        CO_ASSERT(n < sizeof pattern, "a pattern of a habit is short");
        memcpy(pattern, list, n);
        pattern[n] = '\0';
        if (fnmatch(pattern, text, FNM_NOESCAPE) == 0)
            return true;
        if (!list[n])
            return false;
        list += n + 1;
    }
}

bool co_conf_habit_is(const co_conf_habit *row, const char *key, const char *value)
{
    return matches(row->keys, ' ', key) && (!row->values || matches(row->values, '|', value));
}

void co_conf_habit_word(co_str *out, const co_conf_habit *row, const char *key, const char *value)
{
    const char *to = row->becomes, *star = strstr(to, ".*");
    if (strchr(to, '=')) {
        co_str_add(out, to);
        return;
    }
    if (star) { /* "datamodule.*" to "data.*" */
        size_t head = (size_t)(strstr(row->keys, ".*") - row->keys);
        co_str_addn(out, to, (size_t)(star - to));
        co_str_add(out, key + head);
    } else {
        co_str_add(out, to);
    }
    co_str_addf(out, "=%s", value);
}

static const co_conf_habit *find(const co_conf_spec *spec, const conf_pair *p)
{
    bool asked = false, known = false;
    for (const co_conf_habit *row = spec->habits; row && row->keys; row++) {
        if (!co_conf_habit_is(row, p->key, p->value))
            continue;
        if (!asked)
            known = co_conf_knows(spec, p->key);
        asked = true;
        if (row->values || !known)
            return row;
    }
    return NULL;
}

static co_err hold(co_conf *c, conf_note note)
{
    if (c->n_notes == c->notes_room) {
        int room = c->notes_room ? 2 * c->notes_room : 16;
        conf_note *more = co_pool_alloc(&c->pool, (size_t)room * sizeof *more);
        if (!more)
            return CO_ENOMEM;
        if (c->n_notes)
            memcpy(more, c->notes, (size_t)c->n_notes * sizeof *more);
        c->notes = more;
        c->notes_room = room;
    }
    c->notes[c->n_notes++] = note;
    return note.text ? CO_OK : CO_ENOMEM;
}

/* Is the file one of those that filled the slots, and is the value of the note's key the file's own? */
static bool counts(const co_conf *c, const conf_note *note)
{
    const conf_slot *slot = note->key ? conf_slot_find(c, note->key) : NULL;
    bool used = false;
    for (int i = 0; i < c->n_layers; i++)
        used |= c->layers[i].file == note->file;
    return used && (!slot || slot->source == note->file);
}

void conf_habits_say(const co_conf *c)
{
    for (int i = 0; i < c->n_notes; i++)
        if (counts(c, &c->notes[i]))
            c->spec->note(c->notes[i].text);
}

static void add_note(co_str *text, const conf_source *s, const conf_pair *p, const char *word,
                     const co_conf_habit *row, const conf_pair *other)
{
    if (s->foreign)
        co_str_addf(text, "%s:%d: ", s->name, p->line);
    co_str_addf(text, "%s=%s", p->key, p->value);
    if (word)
        co_str_addf(text, " -> %s", word);
    if (row->says)
        co_str_addf(text, word ? " (%s)" : ": %s", row->says);
    if (other && other->value)
        co_str_addf(text, ", %s=%s", other->key, other->value);
}

/* For a file of another program's folder, only rows that are `spared` or `loud` print something, and only if
 * no later file or word overrides the value. */
static co_err tell(co_conf *c, const conf_source *s, const conf_pair *p, const char *word,
                   const co_conf_habit *row)
{
    const conf_pair *other = row->unless ? conf_source_last(s, row->unless) : NULL;
    co_str text = {0};
    if (!c->spec->note || (!word && !row->says) || (s->foreign && !row->spared && !row->loud))
        return CO_OK;
    if (other && other->value && strcmp(other->value, p->value) == 0)
        return CO_OK;
    add_note(&text, s, p, word, row, other);
    co_err err = co_str_err(&text);
    const char *key = row->unless;
    if (!err && word && !key)
        key = co_pool_strn(&c->pool, word, strcspn(word, "="));
    if (!err && s->foreign)
        err = hold(c, (conf_note){s, key, co_pool_str(&c->pool, co_str_text(&text))});
    else if (!err)
        c->spec->note(co_str_text(&text));
    co_str_fini(&text);
    return err;
}

/* Replaces the pair by what the row makes of it. A key of a file that becomes a group's choice overrides
 * it. */
static co_err become(co_conf *c, const conf_source *s, conf_pair *p, const co_conf_habit *row)
{
    co_str word = {0};
    co_conf_habit_word(&word, row, p->key, p->value);
    char *text = co_str_err(&word) ? NULL : co_pool_str(&c->pool, co_str_text(&word));
    co_str_fini(&word);
    if (!text)
        return CO_ENOMEM;
    CO_TRY(tell(c, s, p, text, row));
    char *eq = strchr(text, '=');
    *eq = '\0';
    p->key = text;
    p->value = eq + 1;
    if (strchr(row->becomes, '='))
        p->kind = CONF_PLAIN;
    if (s->name && !p->defaults && conf_group_index(c->spec, text, strlen(text)) >= 0)
        p->defaults = CONF_DEFAULT | CONF_OVERRIDE;
    return CO_OK;
}

/* Adds the second word of a row. */
static co_err add_also(co_conf *c, conf_source *s, const conf_pair *p, const char *also)
{
    char *key = also ? co_pool_str(&c->pool, also) : NULL;
    if (!also)
        return CO_OK;
    if (!key)
        return CO_ENOMEM;
    char *eq = strchr(key, '=');
    *eq = '\0';
    return conf_source_add(s, &c->pool, (conf_pair){.key = key, .value = eq + 1, .line = p->line});
}

static co_err add_one(co_conf *c, conf_source *s, conf_pair p)
{
    const co_conf_habit *row = NULL;
    if (!p.value || p.op == CONF_DELETE || (p.defaults & (CONF_SELF | CONF_FILE)))
        return conf_source_add(s, &c->pool, p);
    for (int turn = 0; (row = find(c->spec, &p)) != NULL; turn++) {
        CO_ASSERT(turn < MOST_TURNS, "the table of habits goes round");
        bool spared = s->foreign && row->spared;
        if (row->act == CO_HABIT_REFUSED && !spared) {
            conf_mistake_group(c, p.key);
            conf_doubt(c, p.key);
            return conf_fail_at(co_fail(CO_EINPUT, "%s=%s: %s", p.key, p.value, row->says), s, &p);
        }
        if (row->act == CO_HABIT_DROPPED || spared)
            return tell(c, s, &p, NULL, row);
        if (row->act == CO_HABIT_UNSETS) {
            CO_TRY(tell(c, s, &p, NULL, row));
            CO_TRY(conf_source_add(s, &c->pool,
                                   (conf_pair){.key = row->becomes, .line = p.line, .op = CONF_DELETE}));
            break;
        }
        CO_TRY(add_also(c, s, &p, row->also));
        CO_TRY(become(c, s, &p, row));
    }
    return conf_source_add(s, &c->pool, p);
}

co_err conf_habits_apply(co_conf *c, conf_source *s, int from)
{
    int n = s->n - from;
    conf_pair *old;
    if (!c->spec->habits || n <= 0)
        return CO_OK;
    old = co_pool_alloc(&c->pool, (size_t)n * sizeof *old);
    if (!old)
        return CO_ENOMEM;
    memcpy(old, s->pairs + from, (size_t)n * sizeof *old);
    s->n = from;
    for (int i = 0; i < n; i++)
        CO_TRY(conf_mistake(c, add_one(c, s, old[i])));
    return CO_OK;
}
