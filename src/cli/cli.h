/* cli.h -- the command line, for callers that add their own models and data sets: the program and the
 * library.
 *
 *     CO_TRY(co_cli_use(&parts));                  // models and data sets beside the built-in ones
 *     int status = co_cli_main(argc, argv);
 *
 * The parts apply to the whole process until the next co_cli_use. One call at a time.
 */
#ifndef CO_CLI_CLI_H
#define CO_CLI_CLI_H

#include "train/predict.h"

typedef struct co_cli_parts {
    const co_model_def *const *models;     /* NULL-terminated; NULL: none */
    const co_dataset_def *const *datasets; /* NULL-terminated; NULL: none */
    const char *program;                   /* the name in lines for the user to type; NULL: "cohort" */
} co_cli_parts;

/* `parts` is borrowed until the next call; NULL: only the built-in ones. CO_EINPUT: a name exists already, or
 * there are too many. */
co_err co_cli_use(const co_cli_parts *parts);

int co_cli_main(int argc, char **argv); /* prints; the exit status */

/* --- without printing: all messages go to `text` ------------------------------------------------------- */
typedef struct co_cli_job {
    const char *const *words;
    int n;
    void *ctx;
    bool (*step)(void *ctx, const co_step_result *r); /* true: save and stop. NULL is fine, as for all */
    bool (*eval)(void *ctx, const co_eval_result *r);
    void (*text)(void *ctx, const char *line);
} co_cli_job;

typedef struct co_cli_done {
    co_train_summary summary;
    char run_dir[1024];
} co_cli_done;

/* Does what `cohort train` does, with run folder and record. Restores the signal mask and handlers. */
co_err co_cli_train(const co_cli_job *job, co_cli_done *out);
co_err co_cli_evaluate(const co_cli_job *job, co_split split, co_eval_result *out, char weights_sha256[65]);
co_err co_cli_predict(const co_cli_job *job, co_split split, int64_t limit,
                      void (*each)(void *ctx, const co_prediction *r));

#endif
