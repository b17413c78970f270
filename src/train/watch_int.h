/* watch_int.h -- what evaluations lead to: the best state so far, a lower learning rate, an early end. Seen
 * by this room only. */
#ifndef CO_TRAIN_WATCH_INT_H
#define CO_TRAIN_WATCH_INT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "optim/optim.h"
#include "train/train.h"

typedef enum { MONITOR_LOSS, MONITOR_METRIC, MONITOR_TOP5, MONITOR_RMSE } monitor_kind;
typedef struct monitor {
    monitor_kind of;
    bool up; /* more is better */
} monitor;

typedef enum { GO_ON, STOP_PATIENCE, STOP_REACHED, STOP_DIVERGED, STOP_NOT_FINITE } stop_why;

/* All that evaluations leave behind: a function of the totals so far. Made of 64-bit words, so that ranks can
 * share it. */
typedef struct watch {
    double best;        /* of callbacks.model_checkpoint's monitor */
    int64_t best_step;  /* 0: none yet */
    double value;       /* that monitor's value at the last evaluation */
    int64_t value_step; /* the state it belongs to; -1: none yet */
    double metric_best; /* of the task's own metric (val/acc, val/mae), whatever the monitor is */
    int64_t metric_best_step;
    co_plateau plateau;
    double early_best;
    int64_t early_bad, early_seen;
    int64_t why; /* stop_why */
} watch;
enum { WATCH_WORDS = sizeof(watch) / 8 };

/* Checks of the option tables; `key` begins the message. */
co_err check_monitor(const char *key, const char *text);
co_err check_threshold(const char *key, const char *text);
/* The monitors; each says which key is wrong. */
co_err choose_best(co_plan *plan);
co_err choose_early(co_plan *plan);
co_err choose_plateau(co_plan *plan);
co_err make_watch(co_plan *plan); /* what the checkpoint remembers */
void watch_see(const co_plan *plan, const double total[], int64_t step, watch *now);
const char *watch_why(const co_plan *plan, const watch *now, char text[200]);
void watch_put(_Atomic uint64_t *words, const watch *now);
/* The best values so far, by name; entries without one have no name. */
void watch_bests(const co_plan *plan, const watch *now, co_best out[CO_BESTS]);
watch watch_get(const _Atomic uint64_t *words);
/* For the checkpoint's manifest. */
json_t *watch_json(const co_plan *plan, const watch *before, const watch *after, int64_t step);
const char *monitor_name(const co_plan *plan, monitor of); /* "val/acc" */
double monitor_value(monitor of, const double total[]);

#endif
