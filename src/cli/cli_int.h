/* cli_int.h -- what the commands share: the configuration put together from all rooms' tables, and how runs are found. */
#ifndef CO_CLI_CLI_INT_H
#define CO_CLI_CLI_INT_H

#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "config/config.h"
#include "track/track.h"
#include "train/train.h"

#define COHORT_VERSION "0.1.0"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_STOPPED = 75 };

typedef struct command {
    const char *name, *help;
    int (*run)(int argc, char **argv); /* argv[0] is the command's name */
    const char *usage;                 /* lines of examples */
} command;
extern const command commands[]; /* ends with {0} */

int cmd_train(int argc, char **argv);
int cmd_test(int argc, char **argv);
int cmd_predict(int argc, char **argv);
int cmd_ckpt(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_ps(int argc, char **argv);
int cmd_stop(int argc, char **argv);

/* --- command lines ------------------------------------------------------------------------------------------------ */
/* A flag of a command: a switch (`on`), or one with a value. Tables end with {0}. */
typedef struct flag {
    const char *name; /* "--limit" */
    const char *what; /* its value, in messages: "N" */
    bool *on;
    const char **value;
} flag;

/* The words of a line, and the flags that every command has. */
typedef struct line {
    const char *command;
    bool settings; /* its words are key=value, and it knows --config-dir */
    const char *config_dir;
    bool json, help;
    const char **words; /* everything that is no flag, in order */
    int n;
    const char **held; /* what `words` points into: there is room for one more in front */
    char *base;        /* the word put there */
} line;
/* CO_EINPUT for a flag that the command does not have, with the nearest; nothing is held then. */
co_err line_parse(line *l, int argc, char **argv, bool settings, const flag *more);
void line_free(line *l);
/* base.c */
char *line_value(const line *l,
                 const char *key); /* what the last word with this key says, the caller's; or NULL */
bool line_has(const line *l, const char *key);
/* Puts the configuration of the run that `path` is, or lies in, before all words; nothing if it is in none. */
co_err line_use_run(line *l, const char *path);
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* standard error, one line */
int fail_usage(void);                                                 /* prints co_errmsg(); EXIT_USAGE */
int exit_of(co_err err);       /* EXIT_USAGE for bad input, EXIT_FAILED otherwise */
int fail_with(co_err err);     /* prints co_errmsg(); exit_of(err) */
void print_json(json_t *take); /* one line on standard output */
int show_usage(const char *command_name);

/* --- the configuration ---------------------------------------------------------------------------------------------- */
typedef struct app {
    co_conf *conf;
    co_train_cfg *cfg;  /* the conf's */
    co_train_spec spec; /* bound to the conf's structs */
    char *resume;       /* checkpoint to continue from, or NULL */
    char *run_dir;      /* folder to write to, or NULL for a new one */
} app;

co_err app_open(app *a, const line *l);
void app_close(app *a);
const co_conf_spec *app_conf_spec(const char *config_dir);
/* Turns ckpt_path into a checkpoint folder (and, for auto, a run folder to go on in). */
co_err app_find_resume(app *a);
/* The checkpoint that a path means: itself, or the newest good one of a run folder. *out is the caller's. */
co_err find_checkpoint(char **out, const char *path);
bool has(const char *dir, const char *name); /* does dir/name exist? */

/* --- benches -------------------------------------------------------------------------------------------------------- */
int bench_sameness(int argc, char **argv);
int bench_kills(int argc, char **argv);
int bench_start(int argc, char **argv);
int bench_scaling(int argc, char **argv);
int bench_apply(int argc, char **argv);

/* A `cohort train` of its own with these words (NULL-terminated) in a fresh folder below `dir`. Its summary.json. */
typedef struct trial {
    int status; /* exit status */
    char *dir;  /* run folder */
    json_t *summary;
    double secs;
    uint64_t began_ns;
} trial;
co_err trial_run(trial *t, const char *program, const char *dir, const char *const *words);
void trial_free(trial *t);
co_err trial_folder(char path[64]); /* a fresh folder under TMPDIR */

#endif
