/* config.h -- from words on the command line to one checked configuration.
 *
 * Sources, later wins: defaults of the option tables; YAML of the chosen groups; experiment=; `a.b=c` words
 * in order. A group choice is a YAML file (folder `configs/` here or --config-dir first, then those inside
 * the program) or, where there is no file of that name, a row of that group's registry. A YAML file of a
 * registry group may say `name: mlp` to pick the row and then set its keys; without `name` the file's own
 * name is the row. experiment= also takes the path of any .yaml file, a run's config.yaml for one.
 *
 *     model=mlp optim=adamw optim.lr=0.01 trainer.max_epochs=5
 *
 * Words and files follow Hydra's grammar (docs/config.md): quoted strings, lists, dicts, ~key, ${...}, defaults
 * lists.
 *
 * Unknown group choice, key or value: CO_EINPUT, naming it, where it stood, and the nearest names.
 */
#ifndef CO_CONFIG_CONFIG_H
#define CO_CONFIG_CONFIG_H

#include "base/err.h"
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

/* A habit brought from another program: a key (or, in a command's own table, a flag) that is not one of ours, or a value
 * that means something elsewhere. One row each, the first that fits. */
typedef enum {
    CO_HABIT_BECOMES, /* another key or word, looked up again; said */
    CO_HABIT_DROPPED, /* accepted, means nothing here; `says` is said if there is one */
    CO_HABIT_REFUSED, /* CO_EINPUT with `says` */
    CO_HABIT_UNSETS   /* stays; the key `becomes`, set before, goes back to its default */
} co_habit_act;

typedef struct co_conf_habit {
    const char *keys; /* names separated by blanks: "-b --batch-size", "model.net.model_name", "datamodule.*" */
    const char *values; /* patterns separated by |: "16*|bf16*"; NULL: any, and a key that exists goes first */
    co_habit_act act;
    const char *becomes; /* "optim.lr": this key; "optim=sgd": this word; "data.*": the tail is kept */
    const char *says;    /* why, or what to do */
    const char *takes;   /* of a flag: what its value is called; NULL: it has none */
    const char *with;    /* of a flag: the row holds only beside this flag */
    const char *base;    /* of a flag: the experiment to stand on when the line names none */
} co_conf_habit;

bool co_conf_habit_is(const co_conf_habit *row, const char *key, const char *value);
/* The word that a row makes of key and value. */
void co_conf_habit_word(co_str *out, const co_conf_habit *row, const char *key, const char *value);

typedef struct co_conf_spec {
    const co_conf_table *tables;
    int n_tables;
    size_t core_size; /* struct that the tables fill */
    const co_conf_group *groups;
    int n_groups;
    const char *config_dir;         /* NULL: "configs" if it exists */
    const co_conf_habit *habits;    /* ends with {0}; NULL: none */
    void (*note)(const char *text); /* what became of a habit; NULL: nobody asks */
} co_conf_spec;

/* Is there such a key, alias or group, whatever rows are chosen? */
bool co_conf_knows(const co_conf_spec *spec, const char *key);

/* Is it a core key that a continued run may change freely? False for keys that do not exist. */
bool co_conf_may_change(const co_conf_spec *spec, const char *key);

typedef struct co_conf co_conf;

/* The spec and what it points to must outlive *out. */
co_err co_conf_compose(co_conf **out, const co_conf_spec *spec, const char *const *words, int n);
void co_conf_free(co_conf *c); /* NULL is fine */

void *co_conf_core(co_conf *c);                                  /* the core struct, owned by c */
const char *co_conf_choice(const co_conf *c, const char *group); /* as chosen: "mlp"; "" if none */
int co_conf_row_of(const co_conf *c, const char *group); /* index into the group's rows; -1 if it has none */
void *co_conf_fields(co_conf *c, const char *group);     /* the row's struct, owned by c */

/* Was this key set by anything but its default? */
bool co_conf_is_set(const co_conf *c, const char *key);

/* Was `key` set by a later source than `other`? Sources, in order: defaults, files, words; words are one source. */
bool co_conf_set_after(const co_conf *c, const char *key, const char *other);

/* Resolved, readable back as an experiment file. Values that came from the environment, ${oc.env:...}, stay as
 * they were written: secrets do not go to disk. The tree does the same. */
void co_conf_yaml(const co_conf *c, co_str *out);
void co_conf_yaml_all(const co_conf *c, co_str *out);  /* these resolved too: for the eye, not for a file */
void co_conf_tree(const co_conf *c, co_str *out);      /* drawn as a tree titled CONFIG */
void co_conf_overrides(const co_conf *c, co_str *out); /* YAML list of the words */
void co_conf_list_words(const char *const *words, int n, co_str *out); /* the same of any words */
char *co_conf_word(const char *key, const char *text); /* key=text, quoted where needed; the caller's, co_free */
/* SHA-256 over the resolved keys that may not change on resume (option.may_change = false). */
void co_conf_sha256(const co_conf *c, char hex[65]);

/* Words with alternatives (`a=1,2`, choice(), range(), glob()) to the words of each job: the cartesian product, the
 * last word fastest. Without alternatives there is one job, with the words as they are. */
typedef struct co_conf_jobs co_conf_jobs;
co_err co_conf_sweep(co_conf_jobs **out, const co_conf_spec *spec, const char *const *words, int n);
void co_conf_jobs_free(co_conf_jobs *j); /* NULL is fine */
int co_conf_jobs_count(const co_conf_jobs *j);
const char *const *co_conf_jobs_words(const co_conf_jobs *j, int job); /* n of them, owned by j */
bool co_conf_jobs_swept(const co_conf_jobs *j, int word);              /* has this word alternatives? */

/* --help: all keys with defaults and help, or of one group. docs/keys.md is this with markdown = true. */
void co_conf_help(const co_conf_spec *spec, const char *group_or_null, bool markdown, co_str *out);

/* What --help says after a key's meaning: " (1 to 65536; also datamodule.batch_size)"; nothing if there is nothing. */
void co_conf_limits(co_str *out, const co_option *o);
/* A group's choices, rows and files, sorted; `help` has `len` bytes and no NUL, and may be NULL. */
typedef void (*co_conf_choice_fn)(void *ctx, const char *name, const char *help, size_t len);
co_err co_conf_each_choice(const co_conf_spec *spec, const char *group, co_conf_choice_fn each, void *ctx);

/* The parsers alone, for fuzzing: one word; one YAML text. Flat list of key = value pairs handed to `each`: a dict
 * gives several, `~key` none. */
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
