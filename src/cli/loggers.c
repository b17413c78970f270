/* loggers.c -- the keys logger.*: a table for each tracker, and logger.names for all of them.
 *
 * The keys of all tables fill one struct. Trackers have structs of their own sizes, so their fields
 * follow each other behind the fixed part, in the order of co_trackers:
 *
 *     co_train_cfg | logger.names | logger.NAME.enabled of each | settings of the first tracker | of the second ...
 *
 * A tracker's rows are copied here with their place in that struct; `enabled`, which
 * configs/logger/NAME.yaml sets, comes before them.
 */
#include "cli/loggers_int.h"

#include <stdio.h>
#include <string.h>

#include "proc/crew.h"

enum { MOST_KEYS = 32 }; /* of one tracker */

struct core {
    co_train_cfg train; /* first: app.cfg points to it */
    int names;
    int64_t samples, histograms, gradients;
    bool enabled[CO_TRACKERS_MOST];
};

static size_t aligned(size_t n)
{
    return (n + 15) & ~(size_t)15;
}

/* Where the settings of tracker i begin. */
static size_t place_of(int i)
{
    size_t at = aligned(sizeof(struct core));

    for (int k = 0; k < i; k++)
        at += aligned(co_trackers[k]->cfg_size);
    return at;
}

static int count(void)
{
    int n = 0;

    while (co_trackers[n])
        n++;
    CO_ASSERT(n <= CO_TRACKERS_MOST, "CO_TRACKERS_MOST is too small");
    return n;
}

size_t logger_core_size(void)
{
    return place_of(count());
}

static void fill_table(co_option rows[MOST_KEYS + 2], int i)
{
    const co_option *own = co_trackers[i]->options;
    int n = 0;

    rows[n++] = (co_option){.key = "enabled",
                            .type = CO_OPT_BOOL,
                            .offset = offsetof(struct core, enabled) + (size_t)i * sizeof(bool),
                            .fallback = "false",
                            .help = co_trackers[i]->help,
                            .may_change = true,
                            .of_host = true};
    for (; own && own->key; own++) {
        CO_ASSERT(n <= MOST_KEYS, "MOST_KEYS is too small");
        rows[n] = *own;
        rows[n].offset += place_of(i);
        rows[n].may_change = true; /* no tracker changes a weight */
        rows[n++].of_host = true;
    }
    rows[n] = (co_option){0};
}

int logger_tables(co_conf_table *tables, int most)
{
    static const co_option common[] = {
        {"names", CO_OPT_ENUM, offsetof(struct core, names), "lightning",
         "names of metrics in all trackers: train/loss_step val/acc, "
         "Loss/train acc1/val, or train_loss val_acc1",
         .choices = CO_NAMES_CHOICES, .may_change = true, .of_host = true},
        {"samples", CO_OPT_INT, offsetof(struct core, samples), "0",
         "classification of pictures: after each validation and the test so many samples become "
         "pictures with prediction and truth, and a table",
         .max = 128, .may_change = true, .of_host = true},
        {"histograms", CO_OPT_INT, offsetof(struct core, histograms), "0",
         "histograms of the weights, made from checkpoints that are at least so many "
         "steps apart; 0: none",
         .max = 1e12, .may_change = true, .of_host = true},
        {"gradients", CO_OPT_INT, offsetof(struct core, gradients), "0",
         "histograms of each parameter's gradient, every so many steps; 0: none", .max = 1e12,
         .may_change = true, .of_host = true},
        {0}};
    static co_option options[CO_TRACKERS_MOST][MOST_KEYS + 2];
    static char prefix[CO_TRACKERS_MOST][64];
    int n = count();

    CO_ASSERT(n + 1 <= most, "MAX_TABLES is too small");
    tables[0] = (co_conf_table){"logger.", common};
    for (int i = 0; i < n; i++) {
        snprintf(prefix[i], sizeof prefix[i], "logger.%s.", co_trackers[i]->name);
        fill_table(options[i], i);
        tables[i + 1] = (co_conf_table){prefix[i], options[i]};
    }
    return n + 1;
}

int app_trackers(const app *a, co_tracker_pick out[CO_TRACKERS_MOST])
{
    const struct core *core = co_conf_core(a->conf);
    int n = 0;

    for (int i = 0; co_trackers[i]; i++)
        if (core->enabled[i])
            out[n++] = (co_tracker_pick){co_trackers[i], (const char *)core + place_of(i)};
    return n;
}

co_names app_names(const app *a)
{
    return (co_names)((const struct core *)co_conf_core(a->conf))->names;
}

int64_t app_samples(const app *a)
{
    return ((const struct core *)co_conf_core(a->conf))->samples;
}

int64_t app_histograms(const app *a)
{
    return ((const struct core *)co_conf_core(a->conf))->histograms;
}

/* Ranks of all hosts, as far as the command line says. */
static int ranks_asked(const app *a)
{
    long long n = co_cpus_usable();

    if (strcmp(a->cfg->devices, "auto") != 0)
        co_str_to_i64(a->cfg->devices, &n); /* what is no number is refused when the run is planned */
    n = n < 1 ? 1 : n < 65536 ? n : 65536;
    return (int)n * (a->spec.hosts > 1 ? a->spec.hosts : 1);
}

co_err logger_check(app *a)
{
    co_tracker_pick chosen[CO_TRACKERS_MOST];

    a->spec.gradients_every = ((const struct core *)co_conf_core(a->conf))->gradients;
    a->spec.val_samples = app_samples(a);
    a->spec.helpers = app_trackers(a, chosen);
    for (int i = 0; i < a->spec.helpers; i++) {
        a->spec.helpers_bytes += chosen[i].def->memory;
        if (chosen[i].def->more_memory)
            a->spec.helpers_bytes += chosen[i].def->more_memory(chosen[i].cfg, ranks_asked(a));
        if (chosen[i].def->check)
            CO_TRY(chosen[i].def->check(chosen[i].cfg));
    }
    return CO_OK;
}
