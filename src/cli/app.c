/* app.c -- builds the configuration from the tables of all rooms. Models, data sets and optimisers are
 * registry groups; the core keys are those of the train room. */
#include "cli/cli.h"
#include "cli/habits_int.h"
#include "cli/loggers_int.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fs.h"
#include "base/program.h"
#include "job/meet.h"

enum { MAX_ROWS = 256, MAX_TABLES = 64 };

/* Models and data sets of the program that uses cohort as a library. Their rows follow the built-in ones. */
static co_cli_parts more;

static int count_models(const co_model_def *const *rows)
{
    int n = 0;

    while (rows && rows[n])
        n++;
    return n;
}

static int count_datasets(const co_dataset_def *const *rows)
{
    int n = 0;

    while (rows && rows[n])
        n++;
    return n;
}

static const co_model_def *model_at(int i)
{
    int built_in = count_models(co_models);

    return i < built_in ? co_models[i] : more.models[i - built_in];
}

static const co_dataset_def *dataset_at(int i)
{
    int built_in = count_datasets(co_datasets);

    return i < built_in ? co_datasets[i] : more.datasets[i - built_in];
}

static co_err taken(const char *group, const char *name)
{
    return co_fail(CO_EINPUT, "%s=%s: that name is taken; give yours another", group, name);
}

co_err co_cli_use(const co_cli_parts *parts)
{
    static const co_cli_parts none;
    co_cli_parts before = more;
    co_err err = CO_OK;

    more = parts ? *parts : none;
    int models = count_models(co_models) + count_models(more.models);
    int datasets = count_datasets(co_datasets) + count_datasets(more.datasets);
    if (models > MAX_ROWS || datasets > MAX_ROWS)
        err = co_fail(CO_EINPUT, "%d models and %d data sets: there may be %d of each", models, datasets,
                      MAX_ROWS);
    for (int i = 0; i < models && !err; i++)
        for (int k = count_models(co_models); k < models && !err; k++)
            if (i < k && strcmp(model_at(i)->name, model_at(k)->name) == 0)
                err = taken("model", model_at(k)->name);
    for (int i = 0; i < datasets && !err; i++)
        for (int k = count_datasets(co_datasets); k < datasets && !err; k++)
            if (i < k && strcmp(dataset_at(i)->name, dataset_at(k)->name) == 0)
                err = taken("data", dataset_at(k)->name);
    if (err)
        more = before;
    else
        co_program_set(more.program ? more.program : "cohort");
    return err;
}

const char *app_program(void)
{
    return co_program();
}

static int model_rows(co_conf_row *rows)
{
    int n = count_models(co_models) + count_models(more.models);

    for (int i = 0; i < n; i++) {
        const co_model_def *m = model_at(i);
        rows[i] = (co_conf_row){m->name, m->help, m->options, m->cfg_size};
    }
    return n;
}

static int data_rows(co_conf_row *rows)
{
    int n = count_datasets(co_datasets) + count_datasets(more.datasets);

    for (int i = 0; i < n; i++) {
        const co_dataset_def *d = dataset_at(i);
        rows[i] = (co_conf_row){d->name, d->help, d->options, d->cfg_size};
    }
    return n;
}

static int optim_rows(co_conf_row *rows)
{
    int n = 0;

    for (; co_optims[n] && n < MAX_ROWS; n++)
        rows[n] = (co_conf_row){co_optims[n]->name, co_optims[n]->help, co_optims[n]->options,
                                co_optims[n]->cfg_size};
    return n;
}

static int schedule_rows(co_conf_row *rows)
{
    int n = 0;

    for (; co_schedules[n] && n < MAX_ROWS; n++)
        rows[n] = (co_conf_row){co_schedules[n]->name, co_schedules[n]->help, co_schedules[n]->options,
                                co_schedules[n]->cfg_size};
    return n;
}

/* If the user gives only a limit of steps, a limit of epochs from a file or from the defaults no longer
 * applies. */
static void settle_limits(co_conf *c)
{
    co_train_cfg *cfg = co_conf_core(c);

    if (cfg->max_steps >= 0 && co_conf_set_after(c, "trainer.max_steps", "trainer.max_epochs"))
        cfg->max_epochs = -1;
}

/* A run's config.yaml repeats the run, or gives its configuration to one that continues it. Where that run
 * was, on how many hosts, and what it continued from, is not part of it. */
static bool is_place_of_run(const char *path, const char *key)
{
    if (strcmp(key, "run.dir") != 0 && strcmp(key, "ckpt_path") != 0 && strcmp(key, "trainer.num_nodes") != 0)
        return false;
    const char *slash = strrchr(path, '/');
    char *header = co_sprintf("%.*sheader.json", slash ? (int)(slash + 1 - path) : 0, path);
    bool is_run = header && strcmp(slash ? slash + 1 : path, "config.yaml") == 0 && co_fs_exists(header);

    co_free(header);
    return is_run;
}

const co_conf_spec *app_conf_spec(const char *config_dir)
{
    static co_conf_row models[MAX_ROWS], datas[MAX_ROWS], optims[MAX_ROWS], schedules[MAX_ROWS];
    static co_conf_table tables[MAX_TABLES];
    static co_conf_group groups[9];
    static co_conf_spec spec;
    int n = 0;

    for (; co_train_tables[n].prefix && n < MAX_TABLES; n++)
        tables[n] = (co_conf_table){co_train_tables[n].prefix, co_train_tables[n].options};
    n += logger_tables(tables + n, MAX_TABLES - n);
    groups[0] = (co_conf_group){"model", "mlp", models, model_rows(models), "the network"};
    groups[1] = (co_conf_group){"data", "digits", datas, data_rows(datas), "the data set"};
    groups[2] = (co_conf_group){"optim", "adamw", optims, optim_rows(optims), "the optimiser"};
    groups[3] = (co_conf_group){"trainer", "ddp", NULL, 0, "ranks and strategy"};
    groups[4] = (co_conf_group){"schedule", "constant", schedules, schedule_rows(schedules),
                                "the learning rate over time"};
    groups[5] = (co_conf_group){"callbacks", "default", NULL, 0, "checkpoints and early stopping"};
    groups[6] =
        (co_conf_group){"logger", "csv", NULL, 0, "trackers: where values are written besides events.jsonl"};
    groups[7] = (co_conf_group){"experiment", "", NULL, 0, "a file of settings"};
    groups[8] = (co_conf_group){"debug", "", NULL, 0, "a quick look whether it works at all"};
    spec = (co_conf_spec){tables,     n,          logger_core_size(), groups,          9,
                          config_dir, habit_keys, habits_note,        is_place_of_run, settle_limits};
    return &spec;
}

/* The rows that are known; NULL where the choice was wrong. */
static void bind(app *a)
{
    int model = co_conf_row_of(a->conf, "model"), data = co_conf_row_of(a->conf, "data");
    int optim = co_conf_row_of(a->conf, "optim"), schedule = co_conf_row_of(a->conf, "schedule");

    a->cfg = co_conf_core(a->conf);
    a->spec = (co_train_spec){.cfg = a->cfg,
                              .model = model < 0 ? NULL : model_at(model),
                              .model_cfg = co_conf_fields(a->conf, "model"),
                              .data = data < 0 ? NULL : dataset_at(data),
                              .data_cfg = co_conf_fields(a->conf, "data"),
                              .optim = optim < 0 ? NULL : co_optims[optim],
                              .optim_cfg = co_conf_fields(a->conf, "optim"),
                              .schedule = schedule < 0 ? NULL : co_schedules[schedule],
                              .schedule_cfg = co_conf_fields(a->conf, "schedule")};
}

co_err app_open(app *a, line *l)
{
    memset(a, 0, sizeof *a);
    co_err err = co_conf_compose_all(&a->conf, &l->mistakes, app_conf_spec(l->config_dir), l->words, l->n);
    CO_TRY(co_mistake(&l->mistakes, err));
    if (!a->conf)
        return co_mistakes_tell(&l->mistakes);
    bind(a);
    CO_TRY(co_mistake(&l->mistakes, line_find_hosts(l, a->conf)));
    a->hosts = l->hosts && !l->hosts->alone ? l->hosts : NULL;
    a->spec.meets = a->hosts != NULL;
    a->spec.hosts = l->hosts ? l->hosts->terms.max_hosts : 1;
    CO_TRY(co_mistake(&l->mistakes, logger_check(a)));
    co_conf_sha256(a->conf, a->spec.config_sha256);
    return CO_OK;
}

unsigned app_sure(const app *a)
{
    static const struct {
        const char *group;
        unsigned bit;
    } parts[] = {{"trainer", CO_SURE_TRAINER}, {"callbacks", CO_SURE_CALLBACKS},
                 {"model", CO_SURE_MODEL},     {"data", CO_SURE_DATA},
                 {"optim", CO_SURE_OPTIM},     {"schedule", CO_SURE_SCHEDULE}};
    unsigned sure = 0;

    for (size_t i = 0; i < CO_COUNT(parts); i++)
        sure |= co_conf_is_sure(a->conf, parts[i].group) ? parts[i].bit : 0;
    return sure;
}

void app_close(app *a)
{
    co_conf_free(a->conf);
    co_free(a->resume);
    co_free(a->run_dir);
    memset(a, 0, sizeof *a);
}
