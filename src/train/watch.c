/* watch.c -- what evaluations lead to: the best so far, a lower rate on a plateau, an early end.
 *
 * Every rank computes these conclusions by itself, from the totals of all evaluations so far. The totals are
 * the same in every rank, so the conclusions are too. A checkpoint stores only the conclusions.
 */
#include "train/plan_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

/* --- monitors ------------------------------------------------------------------------------------------- */
const char *monitor_name(const co_plan *plan, monitor m)
{
    bool regress = plan->data->io.task == CO_TASK_REGRESS;

    return m.of == MONITOR_LOSS   ? "val/loss"
           : m.of == MONITOR_TOP5 ? "val/acc5"
           : m.of == MONITOR_RMSE ? "val/rmse"
           : regress              ? "val/mae"
                                  : "val/acc";
}

double monitor_value(monitor m, const double total[])
{
    if (m.of == MONITOR_RMSE)
        return co_rmse(total[CO_STAT_LOSS] / total[CO_STAT_COUNT]);
    int stat = m.of == MONITOR_LOSS ? CO_STAT_LOSS : m.of == MONITOR_TOP5 ? CO_STAT_TOP5 : CO_STAT_METRIC;

    return total[stat] / total[CO_STAT_COUNT];
}

static const struct {
    const char *name;
    monitor_kind of;
    bool up;
} known[] = {{"val/loss", MONITOR_LOSS, false},  {"val/acc", MONITOR_METRIC, true},
             {"val/acc1", MONITOR_METRIC, true}, {"val/acc_best", MONITOR_METRIC, true},
             {"val/mae", MONITOR_METRIC, false}, {"val/acc5", MONITOR_TOP5, true},
             {"val/rmse", MONITOR_RMSE, false}};

co_err check_monitor(const char *key, const char *text)
{
    for (size_t i = 0; i < CO_COUNT(known); i++)
        if (strcmp(text, known[i].name) == 0)
            return CO_OK;
    if (strcmp(text, "null") == 0)
        return CO_OK;
    return co_fail(CO_EINPUT,
                   "%s: \"%s\" is not measured here; there are val/loss, val/acc and val/acc5, and with data "
                   "to regress on val/loss and val/mae (ratings: and val/rmse)",
                   key, text);
}

/* mode: 0 auto, 1 min, 2 max */
static co_err find_monitor(const co_plan *plan, const char *key, const char *name, int mode, monitor *out)
{
    bool regress = plan->data->io.task == CO_TASK_REGRESS;

    for (size_t i = 0; i < CO_COUNT(known); i++) {
        bool fits = known[i].of == MONITOR_LOSS || known[i].up != regress;
        if (known[i].of == MONITOR_RMSE && !co_has_rmse(&plan->data->io))
            continue;
        if (strcmp(name, known[i].name) != 0 || !fits)
            continue;
        *out = (monitor){known[i].of, mode == 0 ? known[i].up : mode == 2};
        return CO_OK;
    }
    return co_fail(CO_EINPUT, "%s: \"%s\" is not measured here; there are %s", key, name,
                   co_has_rmse(&plan->data->io) ? "val/loss, val/mae and val/rmse"
                   : regress                    ? "val/loss and val/mae"
                                                : "val/loss, val/acc and val/acc5");
}

static co_err threshold(const char *key, const char *text, double *out)
{
    *out = NAN;
    if (text && !co_str_to_f64(text, out))
        return co_fail(CO_EINPUT, "%s: \"%s\" is not a number", key, text);
    return CO_OK;
}

co_err check_threshold(const char *key, const char *text)
{
    double unused;

    return strcmp(text, "null") == 0 ? CO_OK : threshold(key, text, &unused);
}

/* --- one more evaluation -------------------------------------------------------------------------------- */
static bool better(monitor m, double value, double than, double by)
{
    return m.up ? value > than + by : value < than - by;
}

static void see_early(const co_plan *plan, double value, watch *now)
{
    const co_train_cfg *cfg = &plan->cfg;
    double reach, diverge;

    threshold("", cfg->early_reach, &reach);
    threshold("", cfg->early_diverge, &diverge);
    if (!isfinite(value)) {
        now->why = STOP_NOT_FINITE;
    } else if (!isnan(reach) && (plan->monitors.early.up ? value >= reach : value <= reach)) {
        now->why = STOP_REACHED;
    } else if (!isnan(diverge) && (plan->monitors.early.up ? value <= diverge : value >= diverge)) {
        now->why = STOP_DIVERGED;
    } else if (now->early_seen == 0 || better(plan->monitors.early, value, now->early_best, cfg->early_delta)) {
        now->early_best = value;
        now->early_bad = 0;
    } else if (++now->early_bad >= cfg->early_patience) {
        now->why = STOP_PATIENCE;
    }
    now->early_seen++;
}

static void see_best(monitor m, double value, int64_t step, double *best, int64_t *best_step)
{
    if (!isfinite(value) || (*best_step != 0 && !better(m, value, *best, 0)))
        return;
    *best = value;
    *best_step = step;
}

/* The task's own metric: val/acc, or val/mae. */
static monitor metric_monitor(const co_plan *plan)
{
    return (monitor){MONITOR_METRIC, plan->data->io.task != CO_TASK_REGRESS};
}

void watch_see(const co_plan *plan, const double total[], int64_t step, watch *now)
{
    monitor metric = metric_monitor(plan);

    now->value = monitor_value(plan->monitors.best, total);
    now->value_step = step;
    see_best(plan->monitors.best, now->value, step, &now->best, &now->best_step);
    see_best(metric, monitor_value(metric, total), step, &now->metric_best, &now->metric_best_step);
    now->why = GO_ON; /* the keys may have changed since the checkpoint */
    if (plan->cfg.early_patience > 0)
        see_early(plan, monitor_value(plan->monitors.early, total), now);
    if (plan->spec.schedule && plan->spec.schedule->watches)
        co_plateau_see(plan->spec.schedule_cfg, plan->recipe.lr, monitor_value(plan->monitors.plateau, total),
                       &now->plateau);
}

const char *watch_why(const co_plan *plan, const watch *now, char text[200])
{
    const char *name = monitor_name(plan, plan->monitors.early);

    if (now->why == STOP_PATIENCE)
        snprintf(text, 200, "early stop: %s has not improved for %lld evaluation%s (best %.6g)", name,
                 (long long)now->early_bad, now->early_bad == 1 ? "" : "s", now->early_best);
    else if (now->why == STOP_REACHED)
        snprintf(text, 200, "early stop: %s has reached %s", name, plan->cfg.early_reach);
    else if (now->why == STOP_DIVERGED)
        snprintf(text, 200, "early stop: %s has gone past %s", name, plan->cfg.early_diverge);
    else
        snprintf(text, 200, "early stop: %s is not finite", name);
    return text;
}

void watch_bests(const co_plan *plan, const watch *now, co_best out[CO_BESTS])
{
    int n = 0;

    memset(out, 0, CO_BESTS * sizeof *out);
    if (now->best_step)
        out[n++] = (co_best){monitor_name(plan, plan->monitors.best), now->best};
    if (now->metric_best_step && plan->monitors.best.of != MONITOR_METRIC)
        out[n++] = (co_best){monitor_name(plan, metric_monitor(plan)), now->metric_best};
}

/* --- shared, and kept ----------------------------------------------------------------------------------- */
void watch_put(_Atomic uint64_t *words, const watch *now)
{
    uint64_t raw[WATCH_WORDS];

    memcpy(raw, now, sizeof raw);
    for (int i = 0; i < WATCH_WORDS; i++)
        atomic_store_explicit(&words[i], raw[i], memory_order_relaxed);
}

watch watch_get(const _Atomic uint64_t *words)
{
    uint64_t raw[WATCH_WORDS];
    watch now;

    for (int i = 0; i < WATCH_WORDS; i++)
        raw[i] = atomic_load_explicit(&words[i], memory_order_relaxed);
    memcpy(&now, raw, sizeof now);
    return now;
}

json_t *watch_json(const co_plan *plan, const watch *before, const watch *after, int64_t step)
{
    const watch *now = before;
    json_t *object =
        json_pack("{s:f, s:I, s:{s:f, s:f, s:I, s:I, s:I}, s:{s:f, s:I, s:I}}", "best", now->best,
                  "best_step", (json_int_t)now->best_step, "plateau", "best", now->plateau.best, "drop",
                  now->plateau.drop, "bad", (json_int_t)now->plateau.bad, "cooldown",
                  (json_int_t)now->plateau.cooldown, "seen", (json_int_t)now->plateau.seen, "early", "best",
                  now->early_best, "bad", (json_int_t)now->early_bad, "seen", (json_int_t)now->early_seen);

    if (!object)
        return NULL;
    json_object_set_new(object, "monitor", json_string(monitor_name(plan, plan->monitors.best)));
    json_object_set_new(object, "up", json_boolean(plan->monitors.best.up));
    json_object_set_new(object, "metric_best", json_real(now->metric_best));
    json_object_set_new(object, "metric_best_step", json_integer(now->metric_best_step));
    if (after->value_step == step && isfinite(after->value))
        json_object_set_new(object, "value", json_real(after->value));
    return object;
}

static void take_real(const json_t *object, const char *key, double *to)
{
    const json_t *v = json_object_get(object, key);

    if (json_is_number(v) && isfinite(json_number_value(v)))
        *to = json_number_value(v);
}

static void take_count(const json_t *object, const char *key, int64_t *to)
{
    const json_t *v = json_object_get(object, key);

    if (json_is_integer(v) && json_integer_value(v) >= 0 && json_integer_value(v) < INT64_MAX / 2)
        *to = json_integer_value(v);
}

/* Was the checkpoint's `best` measured by the monitor that is used now? It may change when a run
 * continues. */
static bool same_monitor(const co_plan *plan, const json_t *object)
{
    const json_t *name = json_object_get(object, "monitor"), *up = json_object_get(object, "up");

    return !name || (json_is_string(name) && json_is_true(up) == plan->monitors.best.up &&
                     strcmp(json_string_value(name), monitor_name(plan, plan->monitors.best)) == 0);
}

/* A checkpoint may have no such object, for example one from an older version: then everything starts
 * afresh. */
static void read_watch(co_plan *plan)
{
    const json_t *object = plan->start.extra, *plateau = json_object_get(object, "plateau"),
                 *early = json_object_get(object, "early");
    watch *now = &plan->monitors.start;

    *now = (watch){.value_step = -1, .plateau = {.drop = 1}}; /* nothing is evaluated yet, state 0 included */
    if (same_monitor(plan, object)) {
        take_real(object, "best", &now->best);
        take_count(object, "best_step", &now->best_step);
    }
    take_real(object, "metric_best", &now->metric_best);
    take_count(object, "metric_best_step", &now->metric_best_step);
    take_real(plateau, "best", &now->plateau.best);
    take_real(plateau, "drop", &now->plateau.drop);
    take_count(plateau, "bad", &now->plateau.bad);
    take_count(plateau, "cooldown", &now->plateau.cooldown);
    take_count(plateau, "seen", &now->plateau.seen);
    take_real(early, "best", &now->early_best);
    take_count(early, "bad", &now->early_bad);
    take_count(early, "seen", &now->early_seen);
}

static bool has_plateau(const co_plan *plan)
{
    return plan->spec.schedule && plan->spec.schedule->watches;
}

co_err choose_best(co_plan *plan)
{
    const co_train_cfg *cfg = &plan->cfg;
    const co_io *io = &plan->data->io;
    const char *usual = co_has_rmse(io) ? "val/rmse" : io->task == CO_TASK_REGRESS ? "val/mae" : "val/acc";

    return find_monitor(plan, "callbacks.model_checkpoint.monitor",
                        cfg->ckpt_monitor ? cfg->ckpt_monitor : usual, cfg->ckpt_mode, &plan->monitors.best);
}

co_err choose_early(co_plan *plan)
{
    const co_train_cfg *cfg = &plan->cfg;
    double unused;

    CO_TRY(find_monitor(plan, "callbacks.early_stopping.monitor",
                        cfg->early_monitor ? cfg->early_monitor : "val/loss", cfg->early_mode,
                        &plan->monitors.early));
    CO_TRY(threshold("callbacks.early_stopping.stopping_threshold", cfg->early_reach, &unused));
    return threshold("callbacks.early_stopping.divergence_threshold", cfg->early_diverge, &unused);
}

co_err choose_plateau(co_plan *plan)
{
    if (!has_plateau(plan))
        return CO_OK;
    return find_monitor(plan, "schedule.monitor", co_plateau_monitor(plan->spec.schedule_cfg), 0,
                        &plan->monitors.plateau);
}

co_err make_watch(co_plan *plan)
{
    bool plateau = has_plateau(plan);

    if ((plateau || plan->cfg.early_patience) && !plan->units.cycle)
        return co_fail(CO_EINPUT,
                       "%s needs evaluations, and there are none: trainer.eval_every=%lld, %u validation "
                       "samples",
                       plateau ? "schedule=plateau" : "callbacks.early_stopping",
                       (long long)plan->cfg.eval_every, plan->data->count[CO_SPLIT_VAL]);
    read_watch(plan);
    return CO_OK;
}

bool test_wants_best(const co_plan *plan)
{
    return plan->units.final_test && plan->units.cycle && plan->spec.ckpt_root && plan->cfg.ckpt_top != 0 &&
           plan->cfg.test_ckpt == CO_TEST_BEST;
}
