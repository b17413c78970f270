/* bad_samples.c -- names the samples that cannot be read: once each in a run, and when they end it. */
#include "train/evaluate_int.h"
#include "train/super_int.h"

#include <stdio.h>

/* Samples that were used together: of a step, or of a whole split. */
struct group {
    co_split split;
    const uint32_t *ids; /* NULL: 0 .. n - 1 */
    uint32_t n;
};

static struct group group_of(const co_plan *plan, const unit *done)
{
    co_split split = done->kind == UNIT_VAL ? CO_SPLIT_VAL : CO_SPLIT_TEST;

    if (done->kind == UNIT_TRAIN)
        return (struct group){CO_SPLIT_TRAIN, ids_of_step(plan, plan->order, done->step),
                              samples_of_step(plan, done->step)};
    return (struct group){split, NULL, plan->eval_count[split]};
}

static void report_left_out(const struct run *run)
{
    char text[1200];

    snprintf(text, sizeof text, "%s: left out (%lld so far)", co_errmsg(), (long long)run->out->bad_samples);
    run_notice(run, text);
}

/* Several hosts: `bad` samples of this group were left out. If just as many cannot be read here, it is these,
 * and they are not offered to the others again. */
static void remember_bad(const struct run *run, const struct group *group, double bad)
{
    enum { MOST = 64 };
    const co_dataset *data = run->plan->data;
    uint32_t found[MOST];
    int n = 0;

    if (!run->hosts || bad <= 0 || bad > MOST || !data->check)
        return;
    for (uint32_t i = 0; i < group->n && n < MOST; i++)
        if (data->check(data, group->split, group->ids[i]) != CO_OK)
            found[n++] = group->ids[i];
    for (int i = 0; i < n && n == (int)bad; i++)
        atomic_fetch_or(&run->regions->given_up[group->split][found[i] / 64], (uint64_t)1 << found[i] % 64);
    co_errclear();
}

static void remember_bad_items(const struct run *run, co_split split)
{
    const co_plan *plan = run->plan;
    uint32_t ids[EVAL_SLICE_MAX];

    for (uint32_t item = 0; item < plan->eval_items[split]; item++) {
        double bad = run->regions->eval_stat[split][item].bad;
        if (bad > 0)
            remember_bad(run, &(struct group){split, ids, (uint32_t)item_samples(plan, split, item, ids).n},
                         bad);
    }
}

/* Finds the `bad` samples of the group that cannot be read. all: name them again if they were named before,
 * and report none. `names` gets the messages of up to three. Each check reads and decodes a file, so it ends
 * with the last bad one. */
static int name_bad(const struct run *run, struct bad_samples *known, const struct group *group, uint64_t bad,
                    bool all, char *names, size_t room)
{
    const co_dataset *data = run->plan->data;
    uint64_t nobody = 0;
    enum { NAMED = 3 };
    int found = 0;
    size_t at = 0;
    bool lost = bad == UINT64_MAX; /* then it is the one that was there and is gone or changed */

    for (uint32_t i = 0; i < group->n && bad > 0 && data->check; i++) {
        uint32_t id = group->ids ? group->ids[i] : i;
        uint64_t *word = group->split == CO_SPLIT_TRAIN ? &known->named[id / 64] : &nobody;
        uint64_t bit = (uint64_t)1 << id % 64;
        bool named = !all && (*word & bit);
        co_err state = named ? CO_EINPUT : data->check(data, group->split, id);
        if (state == CO_OK || (lost && state == CO_EINPUT))
            continue;
        bad--;
        if (named)
            continue;
        if (found == 0)
            known->changed = state == CO_EFORMAT;
        if (found < NAMED && at < room)
            at += (size_t)snprintf(names + at, room - at, "%s%s", found ? "; " : "", co_errmsg());
        found++;
        run->out->bad_samples += !(*word & bit);
        *word |= bit;
        if (!all)
            report_left_out(run);
        co_errclear();
    }
    return found;
}

void report_bad_step(const struct run *run, struct bad_samples *known, int64_t step, uint64_t bad)
{
    struct group group = group_of(run->plan, &(unit){UNIT_TRAIN, step});
    char first[1024];

    if (bad != UINT64_MAX && !run->plan->data->stop_on_bad &&
        name_bad(run, known, &group, bad, false, first, sizeof first) > 0)
        remember_bad(run, &group, (double)bad);
}

/* They are in none of its figures. Said when their number changes, which is once for a split. */
void report_bad_eval(const struct run *run, struct bad_samples *known, const co_eval_result *eval)
{
    char text[800], names[600];

    if (eval->bad == known->eval[eval->split] || eval->bad < 0 || !run->hooks->notice)
        return;
    known->eval[eval->split] = eval->bad;
    remember_bad_items(run, eval->split);
    eval_bad_names(run->plan, run->regions->eval_stat[eval->split], eval->split, names, sizeof names);
    snprintf(text, sizeof text, "%lld sample%s to %s could not be read: left out of the figures (%s)",
             (long long)eval->bad, eval->bad == 1 ? "" : "s",
             eval->split == CO_SPLIT_VAL ? "validate on" : "test on", names);
    run_notice(run, text);
}

/* What to do about it, after "The state before it is saved". */
static const char *advice(const struct run *run, const struct bad_samples *known, const unit *failed, bool lost)
{
    if (lost && known->changed)
        return "; put the file back and continue with ckpt_path=auto, or start a new run.";
    if (lost)
        return "; is the disk or the network in trouble? Continue with ckpt_path=auto.";
    if (failed->kind != UNIT_TRAIN)
        return "; none is left to evaluate on: is data.dir right?";
    return co_option_find(run->plan->spec.data->options, "on_error")
               ? ". Repair or remove the file, or add data.on_error=skip."
               : ".";
}

/* bad = UINT64_MAX: a file was there when the run began, and is gone or changed now. */
void blame_bad_samples(const struct run *run, struct bad_samples *known, const unit *failed, uint64_t bad)
{
    struct group group = group_of(run->plan, failed);
    char first[1024] = "it can be read again now", what[64];
    bool lost = bad == UINT64_MAX;
    int n = name_bad(run, known, &group, bad, true, first, sizeof first);

    snprintf(what, sizeof what, "%d sample%s could not be read", n, n == 1 ? "" : "s");
    snprintf(run->out->blame, sizeof run->out->blame, "%s %lld: %s: %s. The state before it is saved%s",
             failed->kind == UNIT_TRAIN ? "step" : "evaluation after step", (long long)failed->step,
             !lost            ? what
             : known->changed ? "a file is not what it was when the run began"
                              : "a sample that was there when the run began could not be read",
             first, advice(run, known, failed, lost));
}
