/* recipe.c -- parameters with rules of their own: no weight decay, another learning rate, or not trained at
 * all.
 *
 * Rules are given by patterns over parameter names, which match as file names do in a shell: "layer1.*",
 * "*.bias". A pattern that matches nothing is refused, with some names that exist.
 */
#include "train/plan_int.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

/* Sets `to` for every parameter whose name matches. */
typedef void (*setter)(param_rule *to, float value);

static void set_rate(param_rule *to, float value)
{
    to->rate *= value;
}

static void set_frozen(param_rule *to, float value)
{
    (void)value;
    to->frozen = true;
}

static void set_no_decay(param_rule *to, float value)
{
    (void)value;
    to->no_decay = true;
}

static co_err nothing_matches(const co_plan *plan, const char *key, const char *pattern)
{
    co_str names = {0};
    int shown = 0;

    for (int i = 0; i < plan->layout->n && shown < 4; i++)
        if (plan->layout->entry[i].kind == CO_KIND_PARAM)
            co_str_addf(&names, "%s%s", shown++ ? ", " : "", plan->layout->entry[i].name);
    co_fail(CO_EINPUT,
            "%s: no parameter of model=%s is called \"%s\"; there are %s ... (cohort plan --parameters lists "
            "all)",
            key, plan->spec.model->name, pattern, co_str_text(&names));
    co_str_fini(&names);
    return CO_EINPUT;
}

static co_err match(co_plan *plan, const char *key, const char *pattern, setter set, float value)
{
    bool any = false;

    for (int i = 0; i < plan->layout->n; i++) {
        if (plan->layout->entry[i].kind != CO_KIND_PARAM ||
            fnmatch(pattern, plan->layout->entry[i].name, 0) != 0)
            continue;
        set(&plan->recipe.rule[i], value);
        any = true;
    }
    return any ? CO_OK : nothing_matches(plan, key, pattern);
}

/* "a*,b:0.5": patterns, with a factor each if `factors`. */
static co_err match_list(co_plan *plan, const char *key, const char *list, setter set, bool factors)
{
    char *copy = co_strdup(list), *rest = copy, *word;
    co_err err = copy ? CO_OK : CO_ENOMEM;

    while (!err && (word = strsep(&rest, ",")) != NULL) {
        double value = 1;
        char *colon = factors ? strrchr(word, ':') : NULL;
        size_t len = strlen(word);
        if (colon)
            *colon = '\0';
        if (!*word)
            err = co_fail(CO_EINPUT, "%s: \"%s\" has an empty pattern", key, list);
        else if (factors && (!colon || !co_str_to_f64(colon + 1, &value) || !(value >= 0 && value <= 1e6)))
            err = co_fail(CO_EINPUT,
                          "%s: \"%.*s\" is not pattern:factor with a factor from 0 to 1e6 (\"fc.*:10\")", key,
                          (int)len, list + (word - copy));
        else
            err = match(plan, key, word, set, (float)value);
    }
    co_free(copy);
    return err;
}

/* The block of a parameter: its name up to the first number ("layer1.0.conv1.weight" -> "layer1.0"), else its
 * module. */
static size_t block_len(const char *name)
{
    const char *dot = name;

    while ((dot = strchr(dot, '.')) != NULL) {
        size_t digits = strspn(dot + 1, "0123456789");
        if (digits && dot[1 + digits] == '.')
            return (size_t)(dot - name) + 1 + digits;
        dot++;
    }
    return strcspn(name, ".");
}

static bool same_block(const char *a, const char *b)
{
    size_t n = block_len(a);

    return n == block_len(b) && strncmp(a, b, n) == 0;
}

/* Blocks come in the order in which the model defines them. The last block has the full rate. */
static void decay_by_layer(co_plan *plan)
{
    const co_layout *layout = plan->layout;
    const char *before = NULL;
    float rate = 1;

    for (int i = layout->n - 1; i >= 0; i--) {
        if (layout->entry[i].kind != CO_KIND_PARAM)
            continue;
        if (before && !same_block(before, layout->entry[i].name))
            rate *= (float)plan->cfg.layer_decay;
        plan->recipe.rule[i].rate *= rate;
        before = layout->entry[i].name;
    }
}

static co_err without_decay(co_plan *plan)
{
    const char *which = plan->cfg.no_decay;

    if (!which || strcmp(which, "none") == 0)
        return CO_OK;
    if (strcmp(which, "norm_bias") != 0)
        return match_list(plan, "optim.no_decay", which, set_no_decay, false);
    for (int i = 0; i < plan->layout->n; i++)
        plan->recipe.rule[i].no_decay = plan->layout->entry[i].no_decay;
    return CO_OK;
}

static co_err add_average(co_plan *plan)
{
    plan->ema = -1;
    if (plan->cfg.ema <= 0)
        return CO_OK;
    CO_ASSERT(plan->moments < CO_MAX_MOMENTS, "an optimiser leaves room for the average");
    plan->ema = plan->moments;
    plan->moment_name[plan->moments++] = CO_CKPT_AVERAGE;
    return CO_OK;
}

static co_err choose_warmup(co_plan *plan)
{
    if (plan->cfg.warmup_steps && plan->cfg.warmup_epochs)
        return co_fail(
            CO_EINPUT,
            "schedule.warmup_steps and schedule.warmup_epochs are both given, here or by the experiment: "
            "set one of them to 0");
    plan->recipe.warmup = plan->cfg.warmup_epochs ? plan->cfg.warmup_epochs * plan->units.steps_per_epoch
                                                  : plan->cfg.warmup_steps;
    if (plan->recipe.warmup && plan->spec.schedule && plan->spec.schedule->momentum)
        return co_fail(CO_EINPUT,
                       "schedule=%s warms up by itself (schedule.pct_start): leave schedule.warmup_steps and "
                       "schedule.warmup_epochs at 0",
                       plan->spec.schedule->name);
    if (plan->recipe.warmup > plan->units.steps)
        return co_fail(CO_EINPUT,
                       "schedule.%s: a warm-up of %lld steps is longer than the run's %lld: take fewer, or 0",
                       plan->cfg.warmup_epochs ? "warmup_epochs" : "warmup_steps",
                       (long long)plan->recipe.warmup, (long long)plan->units.steps);
    return CO_OK;
}

/* Refuses a schedule that cycles the momentum if the optimiser has no momentum. */
static co_err check_momentum(const co_plan *plan)
{
    const co_schedule_def *def = plan->spec.schedule;
    co_pace first = {.steps = plan->units.steps, .steps_per_epoch = plan->units.steps_per_epoch, .drop = 1};

    if (!def || !def->momentum || plan->moments > 0 || !(def->momentum(plan->spec.schedule_cfg, &first) > 0))
        return CO_OK;
    return co_fail(CO_EINPUT,
                   "schedule=%s cycles the momentum, and optim=%s has none: give optim.momentum=0.9, or "
                   "schedule.cycle_momentum=false",
                   def->name, plan->spec.optim->name);
}

static bool trains_something(const co_plan *plan)
{
    for (int i = 0; i < plan->layout->n; i++)
        if (plan->layout->entry[i].kind == CO_KIND_PARAM && !plan->recipe.rule[i].frozen)
            return true;
    return false;
}

co_err check_accumulate(co_plan *plan)
{
    const co_train_cfg *cfg = &plan->cfg;

    if (cfg->accumulate > 1)
        return co_fail(
            CO_EINPUT,
            "trainer.accumulate=%lld: there is nothing to accumulate by hand here. data.batch_size is the "
            "whole batch of a step, and its slices are computed one after another in the memory of one: "
            "give data.batch_size=%lld",
            (long long)cfg->accumulate, (long long)(cfg->accumulate * cfg->batch_size));
    return CO_OK;
}

co_err make_recipe(co_plan *plan)
{
    const co_train_cfg *cfg = &plan->cfg;

    plan->recipe.rule = co_array((size_t)plan->layout->n, sizeof *plan->recipe.rule);
    if (!plan->recipe.rule)
        return CO_ENOMEM;
    for (int i = 0; i < plan->layout->n; i++)
        plan->recipe.rule[i] = (param_rule){.rate = 1};
    CO_TRY(without_decay(plan));
    if (cfg->lr_groups)
        CO_TRY(match_list(plan, "optim.lr_groups", cfg->lr_groups, set_rate, true));
    if (cfg->freeze)
        CO_TRY(match_list(plan, "optim.freeze", cfg->freeze, set_frozen, false));
    if (!trains_something(plan))
        return co_fail(CO_EINPUT, "optim.freeze: \"%s\" leaves nothing to train", cfg->freeze);
    if (cfg->layer_decay < 1)
        decay_by_layer(plan);
    plan->recipe.clip_value = cfg->clip_how == 1 && cfg->clip_norm > 0 ? cfg->clip_norm : cfg->clip_value;
    plan->recipe.clip_norm = cfg->clip_how == 1 ? 0 : cfg->clip_norm;
    CO_TRY(choose_warmup(plan));
    CO_TRY(check_momentum(plan));
    return add_average(plan);
}
