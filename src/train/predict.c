/* predict.c -- runs a split through the model and hands the predictions to the caller, one sample at a time.
 *
 * The split is cut into the same items as for evaluation. The graphs end at the prediction, and only those
 * for shapes that occur are built.
 */
#include "train/evaluate_int.h"

#include "base/alloc.h"
#include "base/maths.h"
#include "base/str.h"

/* The index of the largest of n logits, and its probability by softmax. */
static int64_t choose(const float *logits, int64_t n, double *probability)
{
    int64_t best = 0;
    double sum = 0;

    for (int64_t i = 1; i < n; i++)
        if (logits[i] > logits[best])
            best = i;
    for (int64_t i = 0; i < n; i++)
        sum += co_exp((double)logits[i] - (double)logits[best]);
    *probability = 1 / sum;
    return best;
}

/* The row of sample i in the output: [n, wide], or [tokens, wide] at the sample's last token, which is
 * `end` - 1. */
static const float *row_of(const co_io *io, const float *output, int i, int64_t end)
{
    if (io->task != CO_TASK_LM)
        return output + i * (io->task == CO_TASK_REGRESS ? io->y_width : io->classes);
    return output + (end - 1) * io->classes;
}

static co_err tell(const co_plan *plan, const float *row, co_prediction *out, co_str *text)
{
    const co_io *io = &plan->data->io;

    out->task = io->task;
    out->values = row;
    out->n = io->task == CO_TASK_REGRESS ? io->y_width : io->classes;
    if (io->task == CO_TASK_REGRESS)
        return CO_OK;
    out->choice = choose(row, io->classes, &out->probability);
    if (io->task == CO_TASK_LM && plan->data->decode) {
        co_str_clear(text);
        plan->data->decode(plan->data, &(int32_t){(int32_t)out->choice}, 1, text);
        out->text = co_str_text(text);
    }
    return co_str_err(text);
}

/* Like run_item, but also stores the labels [EVAL_SLICE_MAX]: a graph that only predicts has no input for
 * them. */
static co_err run_labelled(const co_plan *plan, const exec_set *set, co_split split, uint32_t item,
                           co_bases *bases, int32_t *labels)
{
    uint32_t ids[EVAL_SLICE_MAX];
    co_slice_shape shape = item_samples(plan, split, item, ids);
    const shape_exec *shaped = exec_for(set, shape);
    const co_run run = {.seed = (uint64_t)plan->cfg.seed};
    co_slice_dst dst;

    slice_dst(shaped, bases->input, &dst);
    if (!dst.y && plan->data->io.task == CO_TASK_CLASSIFY)
        dst.y = labels;
    set_rows(bases, shape);
    if (co_dataset_fill(plan->data, split, ids, shape, &(co_draw){.seed = run.seed}, &dst) < 0)
        return co_dataset_lost();
    co_exec_run(shaped->exec, bases, &run, NULL);
    return CO_OK;
}

static co_err predict_items(const co_plan *plan, const exec_set *set, struct offline *offline, co_split split,
                            uint32_t n, void (*each)(void *ctx, const co_prediction *out), void *ctx)
{
    uint32_t ids[EVAL_SLICE_MAX], size = (uint32_t)plan->cfg.eval_slice;
    int32_t labels[EVAL_SLICE_MAX] = {0};
    co_str text = {0};
    co_err err = CO_OK;

    for (uint32_t item = 0; item * size < n && !err; item++) {
        co_slice_shape shape = item_samples(plan, split, item, ids);
        err = run_labelled(plan, set, split, item, &offline->bases, labels);
        int64_t end = 0;
        for (int i = 0; i < shape.n && ids[i] < n && !err; i++) {
            end += plan->data->length ? plan->data->length(plan->data, split, ids[i]) : 0;
            co_prediction out = {.id = ids[i], .label = labels[i], .unreadable = labels[i] == CO_IGNORE};
            out.file = plan->data->file ? plan->data->file(plan->data, split, ids[i]) : NULL;
            err = tell(plan, row_of(&plan->data->io, offline->bases.output, i, end), &out, &text);
            if (!err)
                each(ctx, &out);
        }
    }
    co_str_fini(&text);
    return err;
}

co_err co_predict(co_plan *plan, co_split split, int64_t limit,
                  void (*each)(void *ctx, const co_prediction *out), void *ctx)
{
    uint32_t ids[EVAL_SLICE_MAX], n = plan->data->count[split], size = (uint32_t)plan->cfg.eval_slice;
    exec_set set = {0};
    struct offline offline = {0};
    co_err err = CO_OK;

    if (n == 0)
        return no_samples(plan, split);
    if (limit >= 0 && limit < n)
        n = (uint32_t)limit;
    co_slice_shape room = {0};
    for (uint32_t item = 0; item * size < n && !err; item++) {
        co_slice_shape shape = item_samples(plan, split, item, ids);
        room.n = shape.n > room.n ? shape.n : room.n;
        room.tokens = shape.tokens > room.tokens ? shape.tokens : room.tokens;
        room.targets = shape.targets > room.targets ? shape.targets : room.targets;
        if (!co_is_text(&plan->data->io))
            err = exec_set_add(&set, plan, shape, CO_MODE_PREDICT);
    }
    if (!err && room.tokens)
        err = exec_set_add(&set, plan, room, CO_MODE_PREDICT);
    if (!err && set.n)
        err = offline_open(&offline, plan, &set);
    if (!err && set.n)
        err = predict_items(plan, &set, &offline, split, n, each, ctx);
    offline_close(&offline);
    exec_set_fini(&set);
    return err;
}

co_err co_predict_on(co_plan *plan, co_dataset *data, int64_t limit,
                     void (*each)(void *ctx, const co_prediction *r), void *ctx)
{
    co_dataset *own = plan->data;
    uint32_t count = plan->eval_count[CO_SPLIT_TEST];

    plan->data = data;
    plan->eval_count[CO_SPLIT_TEST] = data->count[CO_SPLIT_TEST];
    co_err err = co_predict(plan, CO_SPLIT_TEST, limit, each, ctx);
    plan->data = own;
    plan->eval_count[CO_SPLIT_TEST] = count;
    return err;
}
