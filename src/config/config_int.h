/* config_int.h -- what the files of this room share.
 *
 * A source (the command line, or one YAML file) is a flat list of pairs in order; a slot is one key of the
 * composed configuration, bound to its field. Everything but the fields lives in the configuration's pool.
 */
#ifndef CO_CONFIG_CONFIG_INT_H
#define CO_CONFIG_CONFIG_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "config/config.h"

enum { CONF_MAX_DEPTH = 32, CONF_MAX_BYTES = 1 << 20, CONF_MAX_PAIRS = 4096 };

typedef struct conf_pair {
    const char *key;
    const char *value; /* NULL: a mapping, kept so that its name is not used twice */
    int line;          /* in its file; 0 for a word */
    bool in_defaults;  /* an entry of a defaults list: the key is a group */
} conf_pair;

typedef struct conf_source {
    const char *name; /* "configs/model/big.yaml"; NULL: the command line */
    conf_pair *pairs;
    int n, room;
} conf_source;

co_err conf_source_add(conf_source *s, co_pool *pool, conf_pair pair);
/* The last pair with this key, or NULL. */
const conf_pair *conf_source_last(const conf_source *s, const char *key);
/* Puts "file:line: " before the stored message; a word's message stands alone. */
co_err conf_fail_at(co_err err, const conf_source *s, const conf_pair *pair);

/* word.c, yaml.c: text to pairs. */
co_err conf_word_parse(conf_source *s, co_pool *pool, const char *word);
co_err conf_yaml_parse(conf_source *s, co_pool *pool, const char *bytes, size_t len);
bool conf_key_is_plain(const char *key); /* words of letters, digits, _ and - joined by dots */

/* text.c */
/* Decodes one code point of valid UTF-8: its length in bytes, 0 if it is not valid. */
int conf_utf8(const char *s, uint32_t *code);
bool conf_utf8_valid(const char *s);
void conf_yaml_quote(co_str *out, const char *text); /* plain where YAML reads it back as this string */

/* files.c */
/* Reads the YAML file of a choice into *file, keys under the group's prefix; *found tells if there is one. */
co_err conf_file_load(conf_source *file, bool *found, co_pool *pool, const co_conf_spec *spec,
                      const char *group, const char *choice);
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
    bool set;                  /* by anything but the default */
    bool twin;                 /* an earlier slot has the same key: both are set, one is printed */
    const conf_source *source; /* who set it last, in which spelling, to what: for aliases that disagree */
    const conf_pair *by;
} conf_slot;

/* What is known of one group, in the order of spec->groups. */
typedef struct conf_pick {
    const char *choice; /* "" if none */
    bool set, by_word;
    const conf_source *source; /* who chose; NULL: the fallback */
    const conf_pair *by;
    conf_source file;
    int row; /* -1: none */
    void *fields;
} conf_pick;

struct co_conf {
    const co_conf_spec *spec;
    co_pool pool;
    void *core;
    conf_pick *picks;
    conf_slot *slots; /* rows of the registry groups first, then the core tables */
    int n_slots;
    conf_source experiment, words;
    const char *const *raw; /* the words as given, copied */
    int n_raw;
};

int conf_group_index(const co_conf_spec *spec, const char *name, size_t len); /* -1: none */
bool conf_has_alias(const co_option *option, const char *name);

/* unknown.c: the sentence for a key that no slot has. */
co_err conf_fail_unknown(const co_conf *c, const char *key);

#endif
