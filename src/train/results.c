/* results.c -- hands what the ranks published to the hooks, in order, and sums up the summary's figures. */
#include "train/super_int.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

static double real_of(const _Atomic uint64_t *word)
{
    return of_bits(atomic_load_explicit(word, memory_order_relaxed));
}

static uint64_t count_of(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

/* How long the ranks waited for data since the last step that was read, as a share of their time. */
static void count_data(const struct run *run, struct results *results, co_step_result *out, uint64_t t_ns)
{
    uint64_t wait = 0;

    for (int i = 0; i < run->plan->ranks; i++) {
        const rank_slot *slot = &run->regions->slots[i];
        wait += count_of(&slot->wait_ns);
        out->fill.read_ns += count_of(&slot->read_ns);
        out->fill.decode_ns += count_of(&slot->decode_ns);
        out->fill.augment_ns += count_of(&slot->augment_ns);
    }
    if (results->have_t && t_ns > results->last_t_ns && wait > results->data_wait_ns)
        out->data_wait =
            (double)(wait - results->data_wait_ns) / ((double)(t_ns - results->last_t_ns) * run->plan->ranks);
    if (out->data_wait > 1)
        out->data_wait = 1;
    results->data_wait_ns = wait;
}

static void time_step(struct results *results, const co_step_result *step, const result *published)
{
    if (!results->have_t || step->t_ns <= results->last_t_ns)
        return;
    double dt = (double)(step->t_ns - results->last_t_ns) * 1e-9;
    int64_t at = results->steps_timed++ % STEPS_KEPT;
    results->timed_s += dt;
    results->samples_timed += step->samples;
    results->step_ms[at] = (float)(dt * 1e3);
    results->sum_ms[at] = (float)count_of(&published->sum_apply_ns) * 1e-6f;
}

static void tell_gradients(const struct run *run, int64_t step, double counted)
{
    co_histogram h;

    for (int i = 0; run->hooks->gradients && i < run->plan->layout->n; i++)
        if (gradients_read(run->plan, run->regions->gradients, i, counted, &h))
            run->hooks->gradients(run->hooks->ctx, step, &h);
}

static void take_step(struct supervisor *super, const unit *done, const result *published)
{
    const struct run *run = &super->run;
    co_step_result out = {.step = done->step,
                          .epoch = (done->step - 1) / run->plan->units.steps_per_epoch,
                          .loss = real_of(&published->loss),
                          .metric = real_of(&published->metric),
                          .norm = real_of(&published->norm),
                          .lr = real_of(&published->lr),
                          .samples = samples_of_step(run->plan, done->step),
                          .counted = (int64_t)count_of(&published->count),
                          .skipped = count_of(&published->skipped),
                          .top5 = real_of(&published->top5),
                          .t_ns = count_of(&published->t_ns)};
    uint64_t bad = count_of(&published->bad);

    if (run->out->first_step_ns == 0)
        run->out->first_step_ns = out.t_ns;
    time_step(&super->results, &out, published);
    count_data(run, &super->results, &out, out.t_ns);
    if (bad)
        report_bad_step(run, &super->bad, done->step, bad);
    if (out.skipped && run->plan->cfg.on_nan == CO_ON_NAN_SKIP)
        report_skipped(run, done->step, (int)count_of(&published->slice) - 1, out.counted == 0);
    run->out->loss = out.loss;
    run->out->train_metric = out.metric;
    accident_recovered(&super->accidents, out.t_ns);
    if (run->hooks->step)
        run->hooks->step(run->hooks->ctx, &out);
    if (gradients_due(run->plan, out.step))
        tell_gradients(run, out.step, (double)out.counted);
    host_accident(super, out.step);
}

/* Draws the same conclusions from this evaluation as the ranks did. True: the run ends because of it. */
static bool conclude_eval(const struct run *run, watch *seen, co_eval_result *eval)
{
    const double total[LEAF_STATS] = {
        [CO_STAT_LOSS] = eval->loss, [CO_STAT_COUNT] = 1, [CO_STAT_METRIC] = eval->metric, [CO_STAT_TOP5] = eval->top5};

    watch_see(run->plan, total, eval->step, seen);
    watch_bests(run->plan, seen, eval->best);
    run->out->best = seen->best_step ? seen->best : NAN;
    run->out->best_step = seen->best_step;
    return seen->why != GO_ON && (atomic_load(&run->regions->ctl->pc) & PC_CUT);
}

static void take_eval(struct supervisor *super, const unit *done, uint32_t number, const result *published)
{
    const struct run *run = &super->run;
    co_eval_result out = {.step = done->step,
                          .state_step = done->step,
                          .epoch = (done->step - 1) / run->plan->units.steps_per_epoch,
                          .split = done->kind == UNIT_VAL ? CO_SPLIT_VAL : CO_SPLIT_TEST,
                          .loss = real_of(&published->loss),
                          .metric = real_of(&published->metric),
                          .top5 = real_of(&published->top5),
                          .count = (int64_t)count_of(&published->count),
                          .t_ns = count_of(&published->t_ns),
                          .bad = (int64_t)count_of(&published->bad),
                          .unit = (uint32_t)count_of(&published->unit)};
    bool ends = false;
    char text[200];

    if (done->kind == UNIT_VAL) {
        run->out->val_loss = out.loss;
        run->out->val_metric = out.metric;
        run->out->val_top5 = out.top5;
        ends = conclude_eval(run, &super->results.seen, &out);
    } else {
        if (run->out->tested_step)
            out.state_step = run->out->tested_step;
        run->out->tested_step = out.state_step;
        run->out->test_loss = out.loss;
        run->out->test_metric = out.metric;
        run->out->test_top5 = out.top5;
    }
    report_bad_eval(run, &super->bad, &out);
    co_translations *translations = translations_read(run, out.split, number);
    out.translations = translations;
    if (run->hooks->eval)
        run->hooks->eval(run->hooks->ctx, &out);
    translations_free(translations);
    if (ends) /* after the figures that it is about */
        run_notice(run, watch_why(run->plan, &super->results.seen, text));
}

static void recall_best(struct supervisor *super)
{
    if (super->results.seen.best_step) {
        super->run.out->best = super->results.seen.best;
        super->run.out->best_step = super->results.seen.best_step;
    }
}

void recall_results(struct supervisor *super)
{
    co_train_summary *out = super->run.out;
    const json_t *last = json_object_get(super->run.plan->start.extra, "last");

    co_json_f64(last, "train_loss", &out->loss);
    co_json_f64(last, "train_metric", &out->train_metric);
    co_json_f64(last, "val_loss", &out->val_loss);
    co_json_f64(last, "val_metric", &out->val_metric);
    co_json_f64(last, "val_top5", &out->val_top5);
    recall_best(super);
}

/* A host that joined late goes on from the others' validations. */
static void take_what_was_seen(struct supervisor *super)
{
    const control *ctl = super->run.regions->ctl;
    uint32_t joined = atomic_load(&ctl->joined);

    if (joined == super->results.joined)
        return;
    super->results.joined = joined;
    super->results.seen = watch_get(ctl->joined_watch);
    recall_best(super);
}

/* See supervisor_has_read. */
static bool ranks_wait_for_it(const co_plan *plan)
{
    return plan->spec.gradients_every || plan->spec.val_samples || plan->translations.most;
}

/* The results of all units before `end`. */
static void consume_until(struct supervisor *super, uint64_t end)
{
    control *ctl = super->run.regions->ctl;
    uint64_t at = atomic_load(&ctl->consumed);

    take_what_was_seen(super);
    for (; at + 1 < end; at++) {
        uint32_t n = (uint32_t)at + 1;
        const result *published = &ctl->ring[n % RING];
        uint64_t t_ns = count_of(&published->t_ns);
        unit done = unit_now(super->run.plan, ctl, n);
        if (done.kind == UNIT_TRAIN)
            take_step(super, &done, published);
        else
            take_eval(super, &done, n, published);
        super->results.last_t_ns = t_ns;
        super->results.have_t = true;
        atomic_store_explicit(&ctl->consumed, n, memory_order_release);
        if (ranks_wait_for_it(super->run.plan))
            co_event_ring(&ctl->event);
    }
}

/* A saver starts between two results: after those of the state that it saves, and before any later one. pc is
 * read before snap: whoever moved pc past a unit had announced that unit's snapshot, so no result after it
 * was read yet. */
void consume_results(struct supervisor *super)
{
    uint32_t open = pc_unit(atomic_load_explicit(&super->run.regions->ctl->pc, memory_order_acquire));
    uint32_t wanted = super->lost ? 0 : saver_wanted(&super->saver);

    if (wanted) {
        consume_until(super, wanted);
        saver_start(&super->saver, wanted);
    }
    consume_until(super, open);
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

static double quantile(float *x, int n, double q)
{
    if (n == 0)
        return NAN;
    qsort(x, (size_t)n, sizeof *x, by_value);
    return x[(int)(q * (n - 1) + 0.5)];
}

void results_close(struct supervisor *super)
{
    struct results *results = &super->results;
    struct accidents *accidents = &super->accidents;
    co_train_summary *out = super->run.out;
    int n = results->steps_timed < STEPS_KEPT ? (int)results->steps_timed : STEPS_KEPT;
    double step_ms = quantile(results->step_ms, n, 0.5);

    out->sum_apply_ms = quantile(results->sum_ms, n, 0.5);
    out->samples_per_s = results->timed_s > 0 ? (double)results->samples_timed / results->timed_s : 0;
    for (int i = 0; i < accidents->n_recoveries; i++)
        accidents->recovery_ms[i] -= (float)(isnan(step_ms) ? 0 : step_ms);
    out->recovery_median_ms = quantile(accidents->recovery_ms, accidents->n_recoveries, 0.5);
    out->recovery_p99_ms = quantile(accidents->recovery_ms, accidents->n_recoveries, 0.99);
}

bool co_plan_choice(const co_plan *plan, uint32_t id, int64_t *chosen, int64_t *right)
{
    const int32_t *choice = plan->regions ? plan->regions->choice : plan->choice; /* [test samples][2] */

    if (!choice || id >= plan->eval_count[CO_SPLIT_TEST])
        return false;
    *chosen = choice[2 * id];
    *right = choice[2 * id + 1];
    return *right >= 0 && *right < plan->data->io.classes;
}

bool co_plan_val_choice(const co_plan *plan, const co_eval_result *r, uint32_t id, int64_t *chosen,
                        int64_t *right)
{
    if (!plan->regions || r->split != CO_SPLIT_VAL || id >= val_kept(plan))
        return false;
    const val_choice *found = &plan->regions->val_choice[id];
    *chosen = found->chosen;
    *right = found->right;
    return found->unit == r->unit && *right >= 0 && *right < plan->data->io.classes;
}

co_err co_plan_classes(const co_plan *plan, co_class_result **out, int *n)
{
    const int32_t *choice = plan->regions ? plan->regions->choice : plan->choice; /* [test samples][2] */
    const co_dataset *data = plan->data;
    int64_t classes = data->io.classes;

    *out = NULL;
    *n = 0;
    if (!choice)
        return CO_OK;
    co_class_result *list = co_array((size_t)classes, sizeof *list);
    if (!list)
        return CO_ENOMEM;
    for (int64_t c = 0; c < classes; c++)
        list[c] = (co_class_result){.label = c, .name = data->class_name ? data->class_name(data, c) : NULL};
    for (uint32_t i = 0; i < plan->eval_count[CO_SPLIT_TEST]; i++) {
        int32_t label = choice[2 * i + 1];
        if (label < 0 || label >= classes)
            continue; /* unreadable */
        list[label].count++;
        list[label].right += choice[2 * i] == label;
    }
    *out = list;
    *n = (int)classes;
    return CO_OK;
}
