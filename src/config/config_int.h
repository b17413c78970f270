/* config_int.h -- what the files of this room share.
 *
 * A source (the command line, or one YAML file) is a flat list of pairs in order; a slot is one key of the
 * composed configuration, bound to its field. Everything but the fields lives in the configuration's pool.
 */
#ifndef CO_CONFIG_CONFIG_INT_H
#define CO_CONFIG_CONFIG_INT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "config/config.h"

enum { CONF_MAX_DEPTH = 32, CONF_MAX_BYTES = 1 << 20, CONF_MAX_PAIRS = 4096 };

/* What a value is before an option table says what it means. */
typedef enum {
    CONF_PLAIN,  /* unquoted: a number, a bool, null or a string, as it looks */
    CONF_STRING, /* quoted or escaped: a string whatever it looks like */
    CONF_LIST,
    CONF_DICT,
    CONF_CALL, /* name(arguments) */
    CONF_SWEEP /* alternatives: a,b */
} conf_kind;

typedef struct conf_value {
    conf_kind kind;
    const char *text;         /* of a scalar; the name of a call */
    struct conf_value *items; /* of a list, dict, call or sweep */
    const char **keys;        /* of a dict's items, or a call's named arguments (NULL: not named) */
    int n, room;
} conf_value;

/* value.c: parses the text after `=`. `word` is used in messages. */
co_err conf_value_parse(conf_value *out, co_pool *pool, const char *word, const char *text);
/* As a word writes it, so that it reads back to the same value. */
void conf_value_write(co_str *out, const conf_value *v);
co_err conf_value_add(conf_value *to, co_pool *pool, const char *key, conf_value item);
/* Where the } is that closes the ${ before s; len: nowhere. */
size_t conf_expr_end(const char *s, size_t len);
bool conf_is_typed(const char *text); /* would it be read as a number, a bool or null? */
/* call.c: replaces each call by its result. Only a sweep or a call of glob may remain, at the top. */
co_err conf_value_eval(conf_value *v, co_pool *pool, const char *word);

typedef enum { CONF_SET, CONF_DELETE } conf_op;
enum { /* an entry of a defaults list */
       CONF_DEFAULT = 1,
       CONF_OVERRIDE = 2,
       CONF_OPTIONAL = 4,
       CONF_ABSOLUTE = 8, /* began with a slash */
       CONF_SELF = 16,
       CONF_FILE = 32 /* no group: the key is a file's path */
};

typedef struct conf_pair {
    const char *key;
    const char *value; /* NULL: `~key` without a value, or a mapping (kept to refuse a second one) */
    int line;          /* in its file; 0 for a word */
    int defaults;      /* 0, or CONF_DEFAULT and more: the key is a group */
    conf_kind kind;    /* PLAIN, STRING or LIST */
    conf_op op;
    bool used; /* a group below a group that a defaults list asked for */
} conf_pair;

typedef struct conf_source {
    const char *name; /* "configs/model/big.yaml"; NULL: the command line */
    conf_pair *pairs;
    int n, room;
    bool foreign; /* from another program's folder: unknown keys are ignored */
} conf_source;

co_err conf_source_add(conf_source *s, co_pool *pool, conf_pair pair);
/* The last pair with this key, or NULL. */
const conf_pair *conf_source_last(const conf_source *s, const char *key);
/* Puts "file:line: " before the stored message; for a word, nothing. */
co_err conf_fail_at(co_err err, const conf_source *s, const conf_pair *pair);

/* word.c, yaml.c: text to pairs. */
co_err conf_word_parse(conf_source *s, co_pool *pool, const char *word);
/* The key, and the text after `=` (NULL for `~key`), both checked. */
co_err conf_word_split(co_pool *pool, const char *word, const char **key, const char **value, conf_op *op);
co_err conf_yaml_parse(conf_source *s, co_pool *pool, const char *bytes, size_t len);
bool conf_key_is_plain(const char *key); /* words of letters, digits, _ and - joined by dots */

/* text.c */
void conf_yaml_quote(co_str *out, const char *text); /* plain where YAML reads it back as this string */

/* files.c */
/* Reads the YAML file of a choice into *file, with its keys below its package. *found: is there such a
 * file? The group is a path: "trainer", "trainer/sub", or "" for the folder itself. */
co_err conf_file_load(conf_source *file, bool *found, co_pool *pool, const co_conf_spec *spec,
                      const char *group, const char *choice);
const char *conf_folder(const co_conf_spec *spec); /* the folder of YAML files; NULL: none */
/* The file at this path, read as one of the group. */
co_err conf_path_load(conf_source *file, co_pool *pool, const char *group, const char *path);
bool conf_builtin_exists(const char *group, const char *choice);
/* The first line of comment in a built-in file; "" if there is none. */
const char *conf_builtin_help(const char *group, const char *choice, size_t *len);
/* The choices of a group: names of rows and files, sorted, each once. */
co_err conf_choices(const char ***names, int *n, co_pool *pool, const co_conf_spec *spec,
                    const co_conf_group *group);

typedef struct conf_slot {
    const char *key;         /* full: "optim.lr" */
    const co_option *option; /* NULL: a registry group's "model.name", whose value is `row_name` */
    void *fields;
    const char *row_name;
    bool set;         /* by anything but the default */
    bool missing;     /* ???: must be given */
    const char *expr; /* holds ${...}, as written; NULL: does not */
    bool from_env;    /* expr needed the environment: written as expr, never as its value */
    enum { CONF_OPEN, CONF_BUSY, CONF_DONE } state; /* of expr */
    bool twin;                 /* an earlier slot has the same key: both are set, one is printed */
    const conf_source *source; /* who set it last; with `by`, used to find aliases that disagree */
    const conf_pair *by;
} conf_slot;

/* print.c */
/* The slot's string; a relative path is made absolute in `room`. */
const char *conf_string_of(const conf_slot *s, char room[PATH_MAX]);
/* The slot after `last` in the order of the keys, whatever the order of the tables, of those that count;
 * NULL: there is none. */
const conf_slot *conf_next_slot(const co_conf *c, const char *last, bool (*counts)(const co_option *));

/* What is known of one group, in the order of spec->groups. */
typedef struct conf_pick {
    const char *choice;      /* "" if none */
    bool set, by_word, many; /* many: a list of files */
    bool wrong;              /* the choice was refused: unknown keys below it are not reported */
    bool doubtful;           /* there was a mistake in a key of this group */
    int rank; /* of the source that chose: 0 a word, 1 the experiment, 2.. files of groups; the lowest wins */
    const conf_source *source; /* who chose; NULL: the fallback */
    const conf_pair *by;
    int row; /* -1: none */
    void *fields;
} conf_pick;

/* A file that fills slots, and the group (index) whose choice brought it in. */
typedef struct conf_layer {
    conf_source *file;
    int group;
} conf_layer;

/* What is to be said about a value of another program's file, if the value counts in the end. */
typedef struct conf_note {
    const conf_source *file;
    const char *key; /* the key that must have its value from this file; NULL: none must */
    const char *text;
} conf_note;

struct co_conf {
    const co_conf_spec *spec;
    co_pool pool;
    void *core;
    conf_pick *picks;
    conf_slot *slots; /* rows of the registry groups first, then the core tables */
    int n_slots;
    conf_layer *layers; /* files in the order they are put into slots */
    int n_layers, layers_room;
    conf_pair *nested; /* `override /group/below: x` seen in files */
    int n_nested, nested_room;
    conf_note *notes;
    int n_notes, notes_room;
    conf_source words;
    const char *foreign;    /* the folder, if it is another program's; NULL: it is ours, or there is none */
    conf_source root;       /* that program's main file */
    co_mistakes *mistakes;  /* the caller's */
    long long now;          /* seconds, the same for all ${now:...}; 0: not read yet */
    const char *const *raw; /* the words as given, copied */
    int n_raw;
};

/* find.c */
int conf_group_index(const co_conf_spec *spec, const char *name, size_t len); /* -1: none */
int conf_row_index(const co_conf_group *g, const char *name);                 /* -1: none */
bool conf_has_alias(const co_option *option, const char *name);
conf_slot *conf_slot_find(const co_conf *c, const char *key); /* by name or alias; NULL: none */
bool conf_is_section(const co_conf *c, const char *key);
bool conf_is_below(const char *key, const char *section); /* "a.b.c" is below "a.b" */
bool conf_has_expr(const char *text);
bool conf_is_null(const conf_pair *p); /* no value, or an unquoted null */

/* defaults.c: fills c->layers with the files of all choices. */
co_err conf_layers_build(co_conf *c);
co_err conf_choose(co_conf *c, int group, const conf_source *s, const conf_pair *p, int rank);
/* Without ".yaml", unless it is the path of an experiment's file. NULL: memory is out. */
const char *conf_bare_choice(co_pool *pool, const char *group, const char *choice);
/* "no model "resnt"; there are: cnn linear lm mlp" */
co_err conf_no_such_choice(co_conf *c, const co_conf_group *g, const char *choice, const conf_source *s,
                           const conf_pair *by);

/* foreign.c: a folder of YAML files that another program reads. */
co_err conf_foreign_open(co_conf *c); /* recognises the folder, says so, and reads its main file */
/* Drops what means nothing here: groups, expressions, nulls. */
co_err conf_foreign_sift(co_conf *c, conf_source *file, bool from_root);

/* mistakes.c */
/* Records the message of a CO_EINPUT and returns CO_OK, so that composing goes on. Returns other errors. */
co_err conf_mistake(co_conf *c, co_err err);
void conf_doubt(co_conf *c,
                const char *key); /* a mistake has to do with this key, or with this word of the line */
void conf_mistake_group(co_conf *c, const char *group); /* this group's choice was wrong */
bool conf_follows_mistake(const co_conf *c,
                          const char *key); /* is the key unknown because of an earlier mistake? */

/* slots.c: values into fields. */
co_err conf_apply(co_conf *c, const conf_source *s);
co_err conf_slot_set(conf_slot *slot, const char *key, const char *value, conf_kind kind);

/* habits.c: replaces the source's pairs, from index `from` on, by what the table of habits makes of them. */
co_err conf_habits_apply(co_conf *c, conf_source *s, int from);
void conf_habits_say(const co_conf *c); /* the notes about files, once all slots are filled */

/* resolve.c: ${...} in slots. */
co_err conf_resolve(co_conf *c);

/* print.c */
void conf_print_value(co_str *out, const conf_slot *s); /* as YAML; from the environment: its expression */
void conf_hash_value(co_sha256 *h, const conf_slot *s);

/* unknown.c: the sentence for a key that no slot has. */
co_err conf_fail_unknown(co_conf *c, const char *key);

#endif
