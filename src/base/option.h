/* option.h -- option tables: one row per key feeds parsing, --help, docs/keys.md and the run record.
 *
 *     struct mlp_cfg { int64_t hidden; double dropout; };
 *     static const co_option options[] = {
 *         { "hidden", CO_OPT_INT, offsetof(struct mlp_cfg, hidden), "128", "width of the hidden layers",
 *           .min = 1, .max = 65536 },
 *         { "dropout", CO_OPT_FLOAT, offsetof(struct mlp_cfg, dropout), "0.1", "share of units to drop",
 *           .min = 0, .max = 0.99 },
 *         { 0 } // a table ends with an empty row
 *     };
 */
#ifndef CO_BASE_OPTION_H
#define CO_BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

typedef enum {
    CO_OPT_INT,   /* int64_t */
    CO_OPT_FLOAT, /* double */
    CO_OPT_BOOL,  /* bool */
    CO_OPT_STR,   /* char *, owned by the struct; NULL for null */
    CO_OPT_ENUM   /* int, index into .choices ("a|b|c") */
} co_opt_type;

typedef struct co_option {
    const char *key; /* without the table's prefix: "lr" of optim.lr */
    co_opt_type type;
    size_t offset;        /* of the field in the owner's struct */
    const char *fallback; /* default as text; "null" for an absent string */
    const char *help;     /* one line */
    double min, max;      /* for INT and FLOAT; both 0: no limits */
    const char *choices;  /* ENUM: "stop|skip" */
    const char *alias;    /* other full names that people use, separated by blanks: "datamodule.batch_size" */
    bool may_change;      /* a resume may change it freely */
    bool of_host;         /* each host of a run may have its own, as with a path */
    bool needed;          /* STR: must not be NULL, so null means the default */
    bool path;            /* STR: a file or folder; the run record stores the absolute path */
    /* Checks a value that its type and limits allow; NULL: no more checks. "null" is passed as text if the
     * string may be absent. CO_EINPUT: the message begins with `full`, the key as the user typed it. */
    co_err (*check)(const char *full, const char *value);
    /* STR: the text that the configuration's hash uses, for texts that mean the same. NULL: the value
     * itself. */
    const char *(*hashed)(const char *value);
} co_option;

/* Sets every field of the table to its default. Strings are allocated: free with co_options_fini. */
co_err co_options_default(const co_option *table, void *fields);
void co_options_fini(const co_option *table, void *fields);

const co_option *co_option_find(const co_option *table, const char *key);

/* Parses and checks one value. "null" means the row's default, unless the row is a string that may be absent.
 * `full` is the key as the user typed it. CO_EINPUT: the message names the key, the value, what was expected,
 * and the limits or choices. */
co_err co_option_set(const co_option *row, void *fields, const char *full, const char *value);

/* The field's current value as text. co_option_set turns that text back into the same value. */
void co_option_print(co_str *out, const co_option *row, const void *fields);

#endif
