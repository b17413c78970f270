/* resume.c -- what a run may start from: refuses weights and checkpoints that do not fit the plan. */
#include "train/plan_int.h"

#include <errno.h>
#include <string.h>

#include "base/fs.h"
#include "base/str.h"

/* --- first weights: a run that continues does not need them --------------------------------------------- */
static bool is_true(const char *text)
{
    bool on;

    return strcmp(text, "1") == 0 || (co_str_to_bool(text, &on) && on);
}

co_err find_weights(co_plan *plan)
{
    const co_train_cfg *cfg = &plan->cfg;
    const char *path = cfg->weights ? cfg->weights : cfg->pretrained;
    const char *key = cfg->weights ? "weights" : "model.pretrained";

    if (cfg->weights && cfg->pretrained)
        return co_fail(
            CO_EINPUT,
            "weights=%s and model.pretrained=%s both say what to start from; give one (model.pretrained also "
            "replaces a head of another size)",
            cfg->weights, cfg->pretrained);
    if (cfg->weights_skip && !path)
        return co_fail(CO_EINPUT, "weights_skip=%s without weights=FILE", cfg->weights_skip);
    if (!path || plan->spec.resume)
        return CO_OK;
    if (!cfg->weights && is_true(path))
        return plan->spec.model ? co_pretrained_find(&plan->first.public_row, plan->spec.model->name) : CO_OK;
    if (!co_fs_exists(path))
        return co_fail(CO_EINPUT, "%s=%s: %s", key, path, strerror(ENOENT));
    plan->first.path = path;
    return CO_OK;
}

/* Patterns of tensors to leave out: both lists. NULL: out of memory. */
static char *join_skips(const char *a, const char *b)
{
    return co_sprintf("%s%s%s", a, *a && *b ? "," : "", b);
}

/* The patterns to leave out: the user's, and that of a new head. */
static co_err choose_skip(co_plan *plan)
{
    first_weights *first = &plan->first;
    const char *given = plan->cfg.weights_skip ? plan->cfg.weights_skip : "";

    if (plan->cfg.pretrained)
        CO_TRY(co_weights_head(first->path, plan->layout, &first->new_head));
    const char *head = first->new_head.skip;
    if (!*given && !*head)
        return CO_OK;
    first->skip = join_skips(given, head);
    return first->skip ? CO_OK : CO_ENOMEM;
}

/* Do these weights fit but for the number of outputs of the head? */
static bool differs_in_head_only(const co_plan *plan, const char *path, const char *skip)
{
    co_new_head head;

    if (co_weights_head(path, plan->layout, &head) != CO_OK || !head.there[0])
        return false;
    char *without = join_skips(skip ? skip : "", head.skip);
    bool fits = without && co_weights_load(path, plan->layout, without, NULL) == CO_OK;
    co_free(without);
    return fits;
}

/* `err` says that the weights do not fit. A classifier's head has an output for each class of the data: if
 * the head alone differs, adds which data these are. */
static co_err name_classes(const co_plan *plan, const char *path, const char *skip, co_err err)
{
    const co_dataset *d = plan->data;

    if (err != CO_EINPUT || d->io.task != CO_TASK_CLASSIFY)
        return err;
    char *why = co_sprintf("%s", co_errmsg()); /* a copy: comparing again replaces it */
    if (!why)
        return err;
    err = differs_in_head_only(plan, path, skip)
              ? co_fail(err, "%s; the data here (data=%s%s%s) have %lld classes", why,
                        d->def ? d->def->name : "", *d->place ? ", " : "", d->place, (long long)d->io.classes)
              : co_fail(err, "%s", why);
    co_free(why);
    return err;
}

co_err check_weights(co_plan *plan)
{
    if (!plan->first.path)
        return CO_OK;
    CO_TRY(choose_skip(plan));
    const char *path = plan->first.path, *skip = plan->first.skip;
    CO_TRY(name_classes(plan, path, skip, co_weights_load(path, plan->layout, skip, NULL)));
    return co_weights_note(plan->weights_note, sizeof plan->weights_note, path, plan->layout, skip);
}

co_err fetch_weights(co_plan *plan)
{
    first_weights *first = &plan->first;

    if (!first->public_row || first->path)
        return CO_OK;
    if (!(first->got = co_zalloc(sizeof *first->got)))
        return CO_ENOMEM;
    CO_TRY(co_pretrained_get(first->got, first->public_row, plan->spec.fetch_tell, plan->spec.fetch_ctx));
    first->path = first->got->path;
    return check_weights(plan);
}

/* --- a checkpoint of another model, optimiser, batch or seed: continuing it would be another run -------- */
co_err check_weights_fit(co_plan *plan)
{
    const char *path = plan->spec.resume;

    return path ? name_classes(plan, path, NULL, co_ckpt_fits(path, plan->layout, 0, NULL)) : CO_OK;
}

co_err check_same_model(co_plan *plan)
{
    co_err err = check_weights_fit(plan);

    return err ? co_fail(
                     err,
                     "%s; it was made with model=%s: give that model with its keys, or start anew without "
                     "ckpt_path",
                     co_errmsg(), plan->start.model)
               : CO_OK;
}

co_err check_same_batch(co_plan *plan)
{
    const co_ckpt_meta *meta = &plan->start;

    if (!plan->spec.resume || (meta->slices == plan->slices && meta->global_batch == plan->batch))
        return CO_OK;
    return co_fail(CO_EINPUT,
                   "checkpoint %s was made with data.batch_size=%lld in %lld slices, this run has %u in %d: "
                   "give the same, or start anew without ckpt_path",
                   plan->spec.resume, (long long)meta->global_batch, (long long)meta->slices, plan->batch,
                   plan->slices);
}

co_err check_same_epochs(co_plan *plan)
{
    const co_ckpt_meta *meta = &plan->start;

    if (!plan->spec.resume || (meta->samples == samples_until(plan, meta->step) &&
                               meta->epoch == meta->step / plan->units.steps_per_epoch))
        return CO_OK;
    return co_fail(CO_EINPUT,
                   "checkpoint %s was made with epochs of another length (trainer.limit_train_batches, "
                   "or the data): give the same, or start anew without ckpt_path",
                   plan->spec.resume);
}

co_err check_same_seed(co_plan *plan)
{
    if (!plan->spec.resume || plan->start.seed == (uint64_t)plan->cfg.seed)
        return CO_OK;
    return co_fail(CO_EINPUT,
                   "checkpoint %s was made with seed=%llu, this run has seed=%lld: give the same, or start "
                   "anew without ckpt_path",
                   plan->spec.resume, (unsigned long long)plan->start.seed, (long long)plan->cfg.seed);
}

co_err check_same_optim(co_plan *plan)
{
    if (!plan->spec.resume || strcmp(plan->start.optim, plan->spec.optim->name) == 0)
        return CO_OK;
    return co_fail(CO_EINPUT,
                   "checkpoint %s was made with optim=%s, this run has optim=%s: give the same, or start "
                   "anew without ckpt_path",
                   plan->spec.resume, plan->start.optim, plan->spec.optim->name);
}

co_err check_same_kernels(co_plan *plan)
{
    const char *theirs = plan->start.kernels, *ours = co_kernels_name(plan->kernels);

    if (!plan->spec.resume || strcmp(theirs, ours) == 0)
        return CO_OK;
    return co_fail(CO_EINPUT,
                   "checkpoint %s was made with kernels %s, this run has %s: give trainer.kernels=%.*s",
                   plan->spec.resume, theirs, ours, (int)strcspn(theirs, "."), theirs);
}

co_err check_same_moments(co_plan *plan)
{
    return plan->spec.resume ? co_ckpt_fits(plan->spec.resume, plan->layout, plan->moments, plan->moment_name)
                             : CO_OK;
}

co_err check_steps_left(co_plan *plan)
{
    if (!plan->spec.resume || plan->start.step <= plan->units.steps)
        return CO_OK;
    return co_fail(CO_EINPUT,
                   "the checkpoint stands at step %lld, past the %lld steps asked for: raise "
                   "trainer.max_epochs (or trainer.max_steps)",
                   (long long)plan->start.step, (long long)plan->units.steps);
}
