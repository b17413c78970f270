/* config.h -- from words on the command line to one checked configuration.
 *
 * Later sources win: the defaults of the option tables, the YAML files of the chosen groups, the
 * experiment, then `a.b=c` words in order. A group's choice is a YAML file (in --config-dir or ./configs,
 * otherwise built into the program) or, if there is no such file, a row of the group's registry. A YAML
 * file of a registry group picks the row with `name: mlp` and then sets its keys; without `name`, the
 * file's own name is the row. experiment= also takes the path of any .yaml file, for example a run's
 * config.yaml.
 *
 *     model=mlp optim=adamw optim.lr=0.01 trainer.max_epochs=5
 *
 * Words and files follow Hydra's grammar (docs/config.md): quoted strings, lists, dicts, ~key, ${...}, and
 * defaults lists.
 *
 * An unknown choice, key or value is CO_EINPUT. The message names it, where it was found, and the nearest
 * names. All mistakes are reported together, one per line.
 */
#ifndef CO_CONFIG_CONFIG_H
#define CO_CONFIG_CONFIG_H

#include "base/err.h"
#include "base/json.h"
#include "base/mistakes.h"
#include "base/option.h"
#include "base/str.h"

/* A row of a registry group, seen from here: models, data sets and optimisers have the same head. */
typedef struct co_conf_row {
    const char *name, *help;
    const co_option *options;
    size_t size; /* of the struct that options fill */
} co_conf_row;

typedef struct co_conf_group {
    const char *name;     /* "model" -> keys model.* */
    const char *fallback; /* choice when none is given */
    const co_conf_row *rows;
    int n_rows; /* 0: a group of YAML files only (trainer, experiment, logger, callbacks, debug) */
    const char *help;
} co_conf_group;

/* Core keys: prefix "" holds seed, ckpt_path...; "trainer." etc. All fill one struct. */
typedef struct co_conf_table {
    const char *prefix;
    const co_option *options;
} co_conf_table;

/* A habit from another program: a key, flag or value that has a meaning there, and what we do with it here.
 * The first row that matches is used. */
typedef enum {
    CO_HABIT_BECOMES, /* replaced by another key or word, which is looked up again; the user is told */
    CO_HABIT_DROPPED, /* accepted without effect; the user is told `says`, if there is one */
    CO_HABIT_REFUSED, /* CO_EINPUT with `says` */
    CO_HABIT_UNSETS   /* kept; the key `becomes`, if set earlier, goes back to its default */
} co_habit_act;

typedef struct co_conf_habit {
    /* names separated by blanks: "-b --batch-size", "model.net.model_name", "datamodule.*" */
    const char *keys;
    /* patterns separated by |: "16*|bf16*"; NULL: any value, for keys that do not exist here */
    const char *values;
    co_habit_act act;
    const char *becomes; /* "optim.lr": this key; "optim=sgd": this word; "data.*": the tail is kept */
    const char *says;    /* why, or what to do */
    const char *takes;   /* of a flag: what its value is called; NULL: it has none */
    const char *with;    /* of a flag: the row applies only if this flag is also given */
    /* of a flag that says which hosts train and where they meet: its name in `cohort launch` */
    const char *host;
    const char *base;   /* of a flag: the experiment to use when the line names none */
    bool spared;        /* of a refused key: in another program's folder, warn and ignore it instead */
    bool loud;          /* it changes the result: `says` is printed for another program's folder too */
    const char *unless; /* of a loud row: silent if the same file gives this key the same value */
    const char *also;   /* of a key or flag that becomes another: a second word, "model.dropout=0" */
} co_conf_habit;

bool co_conf_habit_is(const co_conf_habit *row, const char *key, const char *value);
/* The word that a row makes of key and value. */
void co_conf_habit_word(co_str *out, const co_conf_habit *row, const char *key, const char *value);

struct co_conf;

typedef struct co_conf_spec {
    const co_conf_table *tables;
    int n_tables;
    size_t core_size; /* struct that the tables fill */
    const co_conf_group *groups;
    int n_groups;
    const char *config_dir;         /* NULL: "configs" if it exists */
    const co_conf_habit *habits;    /* ends with {0}; NULL: none */
    void (*note)(const char *text); /* is told what became of a habit; NULL: nobody is */
    /* Is this key left out of the experiment file at `path`? NULL: none is. */
    bool (*skips)(const char *path, const char *key);
    /* makes keys agree that depend on each other, at the end; NULL: none do */
    void (*settle)(struct co_conf *c);
} co_conf_spec;

/* Is there such a key, alias or group, whatever rows are chosen? */
bool co_conf_knows(const co_conf_spec *spec, const char *key);

/* Is it a core key that a continued run may change freely? False for keys that do not exist. */
bool co_conf_may_change(const co_conf_spec *spec, const char *key);

typedef struct co_conf co_conf;

/* The spec and what it points to must outlive *out. */
co_err co_conf_compose(co_conf **out, const co_conf_spec *spec, const char *const *words, int n);
/* The same; mistakes are added to those that the caller has, and *out is what could be composed: a group
 * whose choice was wrong has no row, a key whose value was wrong has its default. */
co_err co_conf_compose_all(co_conf **out, co_mistakes *mistakes, const co_conf_spec *spec,
                           const char *const *words, int n);
/* Are the group's choice and all keys below it as the user meant them? False if there was a mistake in
 * them. */
bool co_conf_is_sure(const co_conf *c, const char *group);
void co_conf_free(co_conf *c); /* NULL is fine */

void *co_conf_core(co_conf *c);                                  /* the core struct, owned by c */
const char *co_conf_choice(const co_conf *c, const char *group); /* as chosen: "mlp"; "" if none */
int co_conf_row_of(const co_conf *c, const char *group); /* index into the group's rows; -1 if it has none */
void *co_conf_fields(co_conf *c, const char *group);     /* the row's struct, owned by c */

/* Was this key set by anything but its default? */
bool co_conf_is_set(const co_conf *c, const char *key);

/* Was `key` set by a later source than `other`? The order is defaults, files, words; all words are one
 * source. */
bool co_conf_set_after(const co_conf *c, const char *key, const char *other);

/* The resolved configuration, readable as an experiment file. Values from the environment, ${oc.env:...}, are
 * written as expressions, so that secrets do not go to disk. This is true of the tree as well. */
void co_conf_yaml(const co_conf *c, co_str *out);
void co_conf_yaml_all(const co_conf *c,
                      co_str *out); /* with values from the environment: for the screen, not for a file */
void co_conf_tree(const co_conf *c, co_str *out); /* drawn as a tree titled CONFIG */
/* All keys with their values, flat and in the order of the keys: {"data.batch_size": 64, ...}. As in the
 * YAML, a value from the environment is its expression. The caller's; NULL: no memory. */
json_t *co_conf_json(const co_conf *c);
void co_conf_overrides(const co_conf *c, co_str *out);                 /* YAML list of the words */
void co_conf_list_words(const char *const *words, int n, co_str *out); /* the same list, of any words */
/* key=text, quoted where needed; the caller's, co_free */
char *co_conf_word(const char *key, const char *text);
/* SHA-256 over the resolved keys that may not change on resume (option.may_change = false). */
void co_conf_sha256(const co_conf *c, char hex[65]);

/* Calls `each` for every key whose value differs, of those that the hash above covers and both have. */
typedef void (*co_conf_difference)(void *ctx, const char *key, const char *in_a, const char *in_b);
co_err co_conf_differences(const co_conf *a, const co_conf *b, co_conf_difference each, void *ctx);

/* Calls `each` for every key whose value is not its default, with the value and the default. */
co_err co_conf_changes(const co_conf *c, co_conf_difference each, void *ctx);

/* Calls `each` for every key that all hosts of a run must agree on (not option.of_host, not a path), in the
 * order of the keys. */
typedef void (*co_conf_fact)(void *ctx, const char *key, const char *value);
co_err co_conf_facts(const co_conf *c, co_conf_fact each, void *ctx);

/* Turns words with alternatives (`a=1,2`, choice(), range(), glob()) into the words of each job: the
 * cartesian product, with the last word varying fastest. Without alternatives there is one job. */
typedef struct co_conf_jobs co_conf_jobs;
co_err co_conf_sweep(co_conf_jobs **out, const co_conf_spec *spec, const char *const *words, int n);
void co_conf_jobs_free(co_conf_jobs *j); /* NULL is fine */
int co_conf_jobs_count(const co_conf_jobs *j);
const char *const *co_conf_jobs_words(const co_conf_jobs *j, int job); /* n of them, owned by j */
bool co_conf_jobs_swept(const co_conf_jobs *j, int word);              /* does this word have alternatives? */

/* --help: all keys with defaults and help, or of one group. docs/keys.md is this with markdown = true. */
void co_conf_help(const co_conf_spec *spec, const char *group_or_null, bool markdown, co_str *out);
/* --help WORD: a group (as above), a key by its name or alias, or all keys below a name. Anything after '='
 * is ignored. False if there is no such thing; *out then says so, with the nearest name. */
bool co_conf_help_on(const co_conf_spec *spec, const char *word, co_str *out);

/* What --help adds after a key's meaning: " (1 to 65536; also datamodule.batch_size)", or nothing. */
void co_conf_limits(co_str *out, const co_option *o);
/* A group's choices, rows and files, sorted; `help` has `len` bytes and no NUL, and may be NULL. */
typedef void (*co_conf_choice_fn)(void *ctx, const char *name, const char *help, size_t len);
co_err co_conf_each_choice(const co_conf_spec *spec, const char *group, co_conf_choice_fn each, void *ctx);

/* The parsers alone, for fuzzing: one word, or one YAML text. Each key = value pair is passed to `each`; a
 * dict gives several pairs, `~key` gives none. */
typedef void (*co_conf_pair)(void *ctx, const char *key, const char *value);
co_err co_conf_parse_word(const char *word, co_conf_pair each, void *ctx);
co_err co_conf_parse_yaml(const char *bytes, size_t len, const char *what, co_conf_pair each, void *ctx);

/* A YAML file built into the program: "experiment/demo" -> text, NULL if there is none. Made by the Makefile
 * from configs/. */
typedef struct co_conf_builtin {
    const char *path; /* without .yaml */
    const char *text;
} co_conf_builtin;
extern const co_conf_builtin co_conf_builtins[]; /* ends with {0} */

#endif
