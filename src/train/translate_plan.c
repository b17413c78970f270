/* translate_plan.c -- what a training translates after its evaluations (callbacks.translations): how many
 * sentences of each split, and the executors for them. They are as small as the longest of these sentences
 * allows. */
#include "base/alloc.h"
#include "train/plan_int.h"

static uint32_t how_many(const co_plan *plan, co_split split, int64_t wanted, bool evaluated)
{
    uint32_t all = plan->eval_count[split];

    if (!evaluated)
        return 0;
    return wanted >= 0 && wanted < all ? (uint32_t)wanted : all;
}

static int longest_source(const co_plan *plan)
{
    int longest = 1;

    for (int split = 0; split < CO_SPLIT_COUNT; split++)
        for (uint32_t i = 0; i < plan->translations.n[split]; i++) {
            int n = plan->data->length(plan->data, (co_split)split, i);
            longest = n > longest ? n : longest;
        }
    return longest;
}

co_err plan_translations(co_plan *plan)
{
    translate_plan *t = &plan->translations;
    const co_train_cfg *cfg = &plan->cfg;

    if (plan->data->io.task != CO_TASK_PAIRS || !plan->spec.model->decoder)
        return CO_OK;
    t->n[CO_SPLIT_VAL] =
        how_many(plan, CO_SPLIT_VAL, cfg->translate_val, plan->units.cycle && cfg->translate_every);
    t->n[CO_SPLIT_TEST] = how_many(plan, CO_SPLIT_TEST, cfg->translate_test, plan->units.final_test);
    for (int split = 0; split < CO_SPLIT_COUNT; split++)
        t->most = t->n[split] > t->most ? t->n[split] : t->most;
    return t->most ? decoder_init(&t->decoder, plan, 1, longest_source(plan)) : CO_OK;
}

size_t translation_stride(const co_plan *plan)
{
    return 1 + (size_t)plan->translations.decoder.most;
}
