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
        return (struct group){CO_SPLIT_TRAIN, ids_of_step(plan, done->step), samples_of_step(plan, done->step)};
    return (struct group){split, NULL, plan->eval_count[split]};
}

static void report_left_out(const struct run *run)
{
    char text[1200];

    snprintf(text, sizeof text, "%s: left out (%lld so far)", co_errmsg(), (long long)run->out->bad_samples);
    run_notice(run, text);
}

/* Finds the `bad` samples of the group that cannot be read. all: name them again if they were named before,
 * and report none. `first` gets the message of the first. Each check reads and decodes a file, so it ends
 * with the last bad one. */
static int name_bad(const struct run *run, struct bad_samples *known, const struct group *group, uint64_t bad,
                    bool all, char *first, size_t room)
{
    const co_dataset *data = run->plan->data;
    uint64_t nobody = 0;
    int found = 0;

    for (uint32_t i = 0; i < group->n && bad > 0 && data->check; i++) {
        uint32_t id = group->ids ? group->ids[i] : i;
        uint64_t *word = group->split == CO_SPLIT_TRAIN ? &known->named[id / 64] : &nobody;
        uint64_t bit = (uint64_t)1 << id % 64;
        bool named = !all && (*word & bit);
        if (!named && data->check(data, group->split, id) == CO_OK)
            continue;
        bad--;
        if (named)
            continue;
        if (found++ == 0)
            snprintf(first, room, "%s", co_errmsg());
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

    if (bad != UINT64_MAX && !run->plan->data->stop_on_bad)
        name_bad(run, known, &group, bad, false, first, sizeof first);
}

/* They are in none of its figures. Said when their number changes, which is once for a split. */
void report_bad_eval(const struct run *run, struct bad_samples *known, const co_eval_result *eval)
{
    char text[800], names[600];

    if (eval->bad == known->eval[eval->split] || eval->bad < 0 || !run->hooks->notice)
        return;
    known->eval[eval->split] = eval->bad;
    eval_bad_names(run->plan, run->regions->eval_stat[eval->split], eval->split, names, sizeof names);
    snprintf(text, sizeof text, "%lld sample%s to %s could not be read: left out of the figures (%s)",
             (long long)eval->bad, eval->bad == 1 ? "" : "s",
             eval->split == CO_SPLIT_VAL ? "validate on" : "test on", names);
    run_notice(run, text);
}

/* bad = UINT64_MAX: it could be read once, and then it could not. */
void blame_bad_samples(const struct run *run, struct bad_samples *known, const unit *failed, uint64_t bad)
{
    struct group group = group_of(run->plan, failed);
    char first[1024] = "it can be read again now";
    int n = name_bad(run, known, &group, bad, true, first, sizeof first);
    const char *when = failed->kind == UNIT_TRAIN ? "step" : "evaluation after step";
    const char *then = bad == UINT64_MAX
                           ? "; is the disk or the network in trouble? Continue with ckpt_path=auto."
                       : failed->kind != UNIT_TRAIN ? "; none is left to evaluate on: is data.dir right?"
                       : co_option_find(run->plan->spec.data->options, "on_error")
                           ? "; mend or remove the file, or leave such samples out with data.on_error=skip."
                           : ".";

    if (bad == UINT64_MAX)
        snprintf(run->out->blame, sizeof run->out->blame,
                 "%s %lld: a sample that was there when the run began could not be read: %s. The state "
                 "before it is saved%s",
                 when, (long long)failed->step, first, then);
    else
        snprintf(run->out->blame, sizeof run->out->blame,
                 "%s %lld: %d sample%s could not be read: %s. The state before it is saved%s", when,
                 (long long)failed->step, n, n == 1 ? "" : "s", first, then);
}
