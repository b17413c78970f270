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
/* The words of a line: key=value words and the flags that every command has. */
typedef struct line {
    const char *config_dir;
    bool json, help;
    const char **words; /* everything else, in order */
    int n;
} line;
co_err line_parse(line *l, int argc, char **argv);
void line_free(line *l);
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* standard error, one line */
int fail_usage(void);                                                 /* prints co_errmsg(); EXIT_USAGE */
int exit_of(co_err err); /* EXIT_USAGE for bad input, EXIT_FAILED otherwise */
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
} trial;
co_err trial_run(trial *t, const char *program, const char *dir, const char *const *words);
void trial_free(trial *t);
co_err trial_folder(char path[64]); /* a fresh folder under TMPDIR */

#endif
