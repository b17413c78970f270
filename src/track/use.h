/* use.h -- what one host takes of its machine: the figures of the host, of its ranks and of its GPUs.
 *
 * One table per kind has the names. The record has each figure as a scalar:
 *
 *     system/cpu_percent              system/node2/cpu_percent             of the host
 *     system/rank.0.compute_percent   system/node2/rank.0.compute_percent  of its ranks
 *     system/gpu.0.power_w            system/node2/gpu.0.power_w           of its GPUs
 *
 * Names without a host are those of the host that writes the record. Between hosts, and for `cohort top`, all
 * figures of a host travel as one JSON object, which co_use_read checks.
 */
#ifndef CO_TRACK_USE_H
#define CO_TRACK_USE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

/* Figures that are not known are nan. Units: percent, 10^6 bytes, 10^6 bytes a second, degrees Celsius,
 * watts. */
typedef enum {
    CO_HOST_CPU,
    CO_HOST_RUN_CPU, /* 100: one CPU */
    CO_HOST_RUN_MEMORY,
    CO_HOST_MEMORY, /* percent of the machine's */
    CO_HOST_LOAD,
    CO_HOST_DISK_READ,
    CO_HOST_DISK_WRITE,
    CO_HOST_DISK_FREE,
    CO_HOST_NET_IN,
    CO_HOST_NET_OUT,
    CO_HOST_FIGURES
} co_host_figure;
typedef enum {
    CO_RANK_CPU,
    CO_RANK_MEMORY,
    CO_RANK_INPUT,
    CO_RANK_COMPUTE,
    CO_RANK_EXCHANGE,
    CO_RANK_WAIT,
    CO_RANK_FIGURES
} co_rank_figure;
typedef enum {
    CO_GPU_PERCENT,
    CO_GPU_MEMORY,
    CO_GPU_TEMPERATURE,
    CO_GPU_POWER,
    CO_GPU_FIGURES
} co_gpu_figure;

enum {
    CO_USE_RANKS = 64,
    CO_USE_GPUS = 16,
    CO_USE_HOST = 64,   /* bytes of a host's name */
    CO_USE_LABEL = 112, /* bytes of a figure's name in the record */
    CO_USE_MOST = CO_HOST_FIGURES + CO_USE_RANKS * CO_RANK_FIGURES + CO_USE_GPUS * CO_GPU_FIGURES
};

typedef struct co_use_rank {
    int pid;        /* 0: not known */
    double still_s; /* for how long it has made no progress, though it does not wait for others */
    char doing[32]; /* "computing"; "": not known */
    double figure[CO_RANK_FIGURES];
} co_use_rank;

typedef struct co_use {
    char host[CO_USE_HOST]; /* "": the host that writes the record */
    double t;               /* when it was measured, seconds since 1970 */
    double figure[CO_HOST_FIGURES];
    int ranks, gpus;
    co_use_rank rank[CO_USE_RANKS];
    double gpu[CO_USE_GPUS][CO_GPU_FIGURES];
} co_use;

void co_use_clear(co_use *u); /* nothing is known */

/* All figures, one after the other: the i-th figure's name without "system/" and host, and its value.
 * False past the last. The order depends on the numbers of ranks and GPUs only. */
bool co_use_at(const co_use *u, int i, char name[CO_USE_LABEL], double *value);
/* Sets the figure of this name ("rank.3.cpu_percent"). False: there is no such figure. */
bool co_use_put(co_use *u, const char *name, double value);

/* The name in the record: "system/NAME" or "system/HOST/NAME". */
void co_use_label(char out[CO_USE_LABEL], const char *host, const char *name);
/* Takes it apart; *name points into `label`. False: it is no figure of a machine. */
bool co_use_split(const char *label, char host[CO_USE_HOST], const char **name);
/* A host's name as it stands in labels: no slash, no blank; never empty. */
void co_use_host(char out[CO_USE_HOST], const char *name);

/* How long to wait until the next events of `figures` figures, in a run that has gone on for since_s
 * seconds: `every` seconds; longer in a long run, and if there are many figures. So a record stays small. */
double co_use_pause(double every, double since_s, int figures);

json_t *co_use_json(const co_use *u); /* NULL: no memory */
/* CO_EFORMAT: it is no such object. Figures that are no finite number are not known; names that are not
 * ours are passed over. */
co_err co_use_read(co_use *out, const json_t *v);

#endif
