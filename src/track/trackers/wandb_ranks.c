/* wandb_ranks.c -- runs of single ranks: each has the time and memory of its rank, and what the rank
 * wrote to its log.
 *
 * All runs have the names of their figures in common (rank.compute_percent), so that wandb draws a
 * group's runs into one plot. They have no metrics: those are the whole run's, and rank 0's run has them.
 */
#include "track/wandb_ranks_int.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

/* For a run that uploads: 1030 KiB, measured, are libcurl's, mostly certificates that each connection loads;
 * the rest is for the thread and the lines that wait. */
enum { RUN_MEMORY = 1280 << 10 };

/* The configuration of the run, and which rank this is. */
static co_err begin_one(wandb_ranks *ranks, int i)
{
    json_t *config = ranks->config ? json_copy(ranks->config) : json_object();
    bool ok = config && json_object_set_new(config, "rank", co_json_string(ranks->label[i])) == 0;
    co_err err = ok ? co_wandb_begin(ranks->run[i], config, ranks->began) : CO_ENOMEM;

    json_decref(config);
    return err;
}

/* --- the start --- */
/* Characters that an id of wandb may not have become '_'. */
static void name_rank(char *out, size_t size, const char *host, long number)
{
    snprintf(out, size, "%.100s%srank%ld", host, *host ? "-" : "", number);
    for (char *at = out; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("-._", *at))
            *at = '_';
}

static co_err open_one(wandb_ranks *ranks, const char *label, const char *host, long number)
{
    char output[400];
    int i = ranks->n;

    snprintf(output, sizeof output, "ranks/%s-%ld.log", *host ? host : ranks->host, number);
    snprintf(ranks->label[i], sizeof ranks->label[i], "%s", label);
    CO_TRY(co_wandb_open(&ranks->run[i], ranks->cfg,
                         &(co_wandb_facts){.run_dir = ranks->facts->dir,
                                           .task = ranks->facts->task,
                                           .host = *host ? host : ranks->facts->host,
                                           .rank = label,
                                           .of = ranks->first,
                                           .output = output}));
    ranks->n++;
    return begin_one(ranks, i);
}

/* The run of that rank; *out is NULL if there are too many. */
static co_err find_or_open(wandb_ranks *ranks, const char *host, long number, co_wandb **out)
{
    char label[sizeof ranks->label[0]];
    int i = 0;

    *out = NULL;
    name_rank(label, sizeof label, host, number);
    while (i < ranks->n && strcmp(ranks->label[i], label) != 0)
        i++;
    if (i == WANDB_RANKS_MOST)
        return CO_OK;
    if (i == ranks->n)
        CO_TRY(open_one(ranks, label, host, number));
    *out = ranks->run[i];
    return CO_OK;
}

co_err wandb_ranks_begin(wandb_ranks *ranks, const json_t *line, double t)
{
    const char *host = co_json_str(line, "host");
    long long here = 0;
    co_wandb *unused;

    if (!ranks->config)
        ranks->began = t;
    json_decref(ranks->config);
    ranks->config = json_incref(json_object_get(line, "config"));
    snprintf(ranks->host, sizeof ranks->host, "%s", host ? host : "");
    for (int i = 0; i < ranks->n; i++)
        CO_TRY(begin_one(ranks, i));
    co_json_i64(line, "ranks", &here);
    for (long i = 1; i < here && i < WANDB_RANKS_MOST; i++)
        CO_TRY(find_or_open(ranks, "", i, &unused));
    return CO_OK;
}

/* --- the rest --- */

co_err wandb_ranks_take(wandb_ranks *ranks, const char *host, long number, const char *name, double value,
                        double t)
{
    char key[128];
    co_wandb *run;

    CO_TRY(find_or_open(ranks, host, number, &run));
    snprintf(key, sizeof key, "rank.%s", name);
    return run ? co_wandb_stat(run, key, value, t) : CO_OK;
}

co_err wandb_ranks_flush(wandb_ranks *ranks)
{
    for (int i = 0; i < ranks->n; i++)
        CO_TRY(co_wandb_flush(ranks->run[i]));
    return CO_OK;
}

bool wandb_ranks_notice(wandb_ranks *ranks, char *out, size_t size)
{
    char text[600];

    for (int i = 0; i < ranks->n; i++)
        if (co_wandb_notice(ranks->run[i], text, sizeof text)) {
            snprintf(out, size, "%s: %s", ranks->label[i], text);
            return true;
        }
    return false;
}

size_t wandb_ranks_memory(int ranks)
{
    int runs = ranks - 1 < WANDB_RANKS_MOST ? ranks - 1 : WANDB_RANKS_MOST;

    return runs > 0 ? (size_t)runs * RUN_MEMORY : 0;
}

void wandb_ranks_close(wandb_ranks *ranks)
{
    for (int i = 0; i < ranks->n; i++)
        co_wandb_close(ranks->run[i]);
    json_decref(ranks->config);
    *ranks = (wandb_ranks){0};
}
