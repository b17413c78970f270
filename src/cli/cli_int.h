/* cli_int.h -- what the commands share: reading a command line, composing the configuration, finding runs. */
#ifndef CO_CLI_CLI_INT_H
#define CO_CLI_CLI_INT_H

#include <stdio.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/exit.h"
#include "base/flag.h"
#include "base/json.h"
#include "base/str.h"
#include "cohort.h" /* COHORT_VERSION */
#include "config/config.h"
#include "term/say.h"
#include "track/track.h"
#include "track/tracker.h"
#include "train/train.h"

typedef struct command {
    const char *name;
    const char *words;                 /* what follows the name: "[key=value] ..." */
    const char *help;                  /* what it is for, in one line */
    int (*run)(int argc, char **argv); /* argv[0] is the command's name */
    const char *usage;                 /* lines of examples and flags, at most 80 columns wide */
    bool prints;                       /* only prints: ends when nobody reads (`cohort predict ... | head`) */
} command;
extern const command commands[]; /* ends with {0} */

const command *command_find(const char *name); /* NULL if there is none */
bool command_is_planned(const char *name);     /* if it is, prints that on standard error */
void command_unknown(const char *name);        /* prints an error with the nearest name and the list */
void list_commands(FILE *to);

int cmd_train(int argc, char **argv);
int cmd_test(int argc, char **argv);
int cmd_predict(int argc, char **argv);
int cmd_book(int argc, char **argv);
extern const char book_usage[];
int cmd_board(int argc, char **argv);
extern const char board_usage[];
int cmd_ckpt(int argc, char **argv);
int cmd_data(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_attach(int argc, char **argv);
int cmd_ps(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_launch(int argc, char **argv);
int cmd_host(int argc, char **argv);
int cmd_join(int argc, char **argv);
int cmd_logs(int argc, char **argv);
extern const char logs_usage[];
int cmd_wandb(int argc, char **argv);
extern const char wandb_usage[];
int cmd_stop(int argc, char **argv);
int cmd_token(int argc, char **argv);
int cmd_completion(int argc, char **argv);
int cmd_complete(int argc, char **argv); /* not in the table: the shells call it */
int cmd_man(int argc, char **argv); /* not in the table: `cohort help --man [COMMAND]`, the manual pages */

/* --- command lines ------------------------------------------------------------------------------------ */
/* The words of a line, and the flags that every command has. */
typedef struct line {
    const char *command;
    bool settings; /* its words are key=value, and it knows --config-dir */
    const char *config_dir;
    bool json, help;
    const char **words; /* everything that is not a flag, in order */
    int n;
    const char **held; /* the array of `words`, with room for two more in front */
    char *base;        /* the word that line_use_run put in front */
    co_pool pool;      /* words made of other programs' flags */
    /* Flags that say which hosts train and where they meet, "--nnodes=2"; NULL-terminated. The line
     * without them: */
    const char **host_flags, **rest;
    int n_host_flags, n_rest;
    char *const *typed; /* the whole line, if it may be for several hosts; NULL: for this host alone */
    struct co_hosts_line *hosts; /* of a training; NULL: this host alone, or not known yet (app_open) */
    bool hosts_given;            /* the hosts are the caller's; the environment is not read */
    char *found;                 /* a word that a search added */
    co_mistakes mistakes;        /* found so far; whoever has found them all tells them */
} line;
/* An unknown flag gives CO_EINPUT with the nearest name; the line then needs no line_free. With `settings`
 * it is noted in the line's mistakes instead, so that those of the words come with it. */
co_err line_parse(line *l, int argc, char **argv, bool settings, const co_flag *more);
void line_free(line *l);
/* base.c */
char *line_value(const line *l,
                 const char *key); /* the value of the last word with this key, the caller's; or NULL */
bool line_has(const line *l, const char *key);
char *line_run_dir(const line *l);    /* run.dir under any of its names; the caller's, or NULL */
char *line_ckpt_path(const line *l);  /* ckpt_path under any of its names; the caller's, or NULL */
bool word_is_place(const char *word); /* does the word only say where a run is, or what it continues from? */
/* The config.yaml of the run at `path`, or up to two folders above it; the caller's, NULL if there is
 * none. */
char *run_config_of(const char *path);
/* Puts the configuration of the run at `path`, or around it, before all words. No run: nothing happens. */
co_err line_use_run(line *l, const char *path);
#define print_json co_json_print

/* download_bar.c */
typedef struct download_bar {
    bool one_line, shown;
    uint64_t last_ns;
} download_bar;
download_bar bar_begin(void);
bool bar_is_due(download_bar *bar);                                     /* may a line be written now? */
void bar_tell(void *bar, const char *path, uint64_t done, uint64_t of); /* a co_fetch_tell */
void bar_end(const download_bar *bar);                                  /* clears the line */

struct co_dataset;
int64_t lowest_user(const struct co_dataset *data); /* suggest.c; of a set of ratings: the lowest id of a user */
void add_shell_word(co_str *out, const char *word); /* a blank and the word, quoted where a shell needs it */
int show_usage(const char *command_name);
int train_help(const line *l, bool markdown); /* help_train.c */
int show_habits(void);                        /* `cohort train --help habits` */

/* --- the configuration -------------------------------------------------------------------------------- */
typedef struct app {
    co_conf *conf;
    co_train_cfg *cfg;           /* the conf's */
    co_train_spec spec;          /* bound to the conf's structs */
    char *resume;                /* checkpoint to continue from, or NULL */
    char *run_dir;               /* folder to write to, or NULL for a new one */
    struct co_hosts_line *hosts; /* the line's, or NULL: this host alone */
} app;

/* hosts.c. The hosts of a training, from the line's flags, trainer.num_nodes and the environment. */
co_err line_find_hosts(line *l, const co_conf *conf);
/* The training's hosts are known already: those of `cohort host`, `cohort join`, `cohort launch`. They are
 * borrowed. */
co_err line_take_hosts(line *l, struct co_hosts_line *hosts);
/* For what runs on one host: "a sweep (-m) runs". CO_EINPUT: the line or the environment has several. */
co_err line_refuse_hosts(line *l, const char *what);
/* Composes the words. Their mistakes are added to the line's; the app then has only what is known. CO_EINPUT:
 * there is nothing to go on with; the message has all mistakes. */
co_err app_open(app *a, line *l);
unsigned app_sure(const app *a); /* CO_SURE_...: the parts without a mistake */
/* the trackers of logger=; returns how many */
int app_trackers(const app *a, co_tracker_pick out[CO_TRACKERS_MOST]);
co_names app_names(const app *a);     /* logger.names */
int64_t app_samples(const app *a);    /* logger.samples */
int64_t app_histograms(const app *a); /* logger.histograms */
void app_close(app *a);
const co_conf_spec *app_conf_spec(const char *config_dir);
/* the program's name for lines to type; with the library: that of the user's program */
const char *app_program(void);
/* resume.c. If the line continues a run and does not describe it, puts the run's configuration before the
 * words. */
co_err line_use_continued(line *l);
/* differ.c: "optim.lr=0.5 (the run has 0.001)" for each key in which the line differs from the run that it
 * continues; the caller's, NULL if there is none. */
char *app_differences(const app *a, const line *l);
/* Puts the configuration of the run in `dir` before the words, unless they choose a group. No run: nothing
 * happens. */
co_err line_use_own(line *l, const char *dir);
/* resume.c: does a word choose experiment, model, data, optim or trainer? */
bool line_names_group(const line *l);
/* Turns ckpt_path into a checkpoint folder and, for auto, the run folder to continue in. */
co_err app_find_resume(app *a, const line *l);

/* --- runs below logs/ (runs.c) ------------------------------------------------------------------------ */
bool has(const char *dir, const char *name); /* does dir/name exist? */
/* The newest unfinished run, the caller's; NULL if there is none. `task` NULL: any task. `sha` NULL: any
 * configuration, but only runs that have a checkpoint and are not running now. */
char *unfinished_run(const char *task, const char *sha);
co_err newest_checkpoint(char **out, const char *dir); /* the newest good one of a run folder */
/* The checkpoint that a path means: itself, or the newest good one of a run folder. *out is the caller's. */
co_err find_checkpoint(char **out, const char *path);

/* --- runs of this machine ----------------------------------------------------------------------------- */
/* The run a word names: its pid, its folder or its id; NULL if none. */
/* Ratings: where lists of recommendations are cut for the hit rate and NDCG, and the names of both. */
enum { HITS_AT = 10 };
#define HIT_RATE_NAME "hr@10"
#define NDCG_NAME     "ndcg@10"

/* ids.c: the text of ids.csv, and whether the data numbers users and items as the run of this checkpoint did
 * (NULL: fine). CO_EINPUT has the first line that differs. */
co_err ids_text(const co_dataset *data, co_str *out);
co_err ids_check(const char *checkpoint, const co_dataset *data);
/* run_files.c: writes the data set's files to the run folder. */
co_err run_files_write(const co_dataset *data, co_folder *folder);
/* For co_train_spec.check_data: does the data number its tokens, users and items as the run did that
 * spec->resume or weights=RUN is of? CO_EINPUT names the file and the first token or line that differs. With
 * weights_skip a difference is a warning only: the user may skip the tensors that it concerns. */
co_err check_data(const co_train_spec *spec, const co_dataset *data);

const co_live_run *live_find(const co_live_run *runs, int n, const char *word);
/* ps.c: a table, or a JSON object per line */
void live_print(const co_live_run *r, int n, bool json, FILE *to);
/* Asks a run or launch to save and end. *fd is its pidfd, the caller's; fd NULL: not wanted. CO_EINPUT: it
 * has ended by itself; CO_EFAIL: it could not be signalled. */
co_err live_stop(const co_live_run *r, int *fd);
void show_here(void); /* here.c: what `cohort` without a command shows */

#endif
