/* translate.c -- translates sentences in this process, with a checkpoint's weights: `cohort predict`,
 * `cohort test`. */
#include "base/alloc.h"
#include "train/evaluate_int.h"
#include "train/translate_int.h"

struct co_translator {
    co_plan *plan;
    decoder decoder;
    beam_search *search;
    struct offline offline;
};

static co_err open_parts(struct co_translator *t, int beam)
{
    co_plan *plan = t->plan;

    CO_TRY(decoder_init(&t->decoder, plan, beam, (int)plan->data->io.max_len));
    if (!plan->layout)
        plan->layout = co_exec_layout(t->decoder.set.e[0].exec);
    CO_TRY(search_new(&t->search, plan, &t->decoder));
    return offline_open(&t->offline, plan, &t->decoder.set);
}

co_err co_translator_open(co_translator **out, co_plan *plan, int beam)
{
    struct co_translator *t;

    if (plan->data->io.task != CO_TASK_PAIRS || !plan->spec.model->decoder)
        return co_fail(CO_EINPUT,
                       "model=%s does not translate: that needs pairs of sentences and model=transformer",
                       plan->spec.model->name);
    if (!(t = co_zalloc(sizeof *t)))
        return CO_ENOMEM;
    t->plan = plan;
    co_err err = open_parts(t, beam);
    if (err) {
        co_translator_close(t);
        return err;
    }
    *out = t;
    return CO_OK;
}

void co_translator_close(co_translator *t)
{
    if (!t)
        return;
    offline_close(&t->offline);
    search_free(t->search);
    if (t->decoder.set.n && t->plan->layout == co_exec_layout(t->decoder.set.e[0].exec))
        t->plan->layout = NULL;
    decoder_fini(&t->decoder);
    co_free(t);
}

static co_err give(const co_translator *t, int i, co_str *text, int at,
                   void (*each)(void *ctx, int i, const co_translation *best), void *ctx)
{
    co_translation best = search_best(t->search, i);

    co_str_clear(text);
    t->plan->data->decode(t->plan->data, best.token, best.n, text);
    CO_TRY(co_str_err(text));
    best.text = co_str_text(text);
    each(ctx, at + i, &best);
    return CO_OK;
}

co_err co_translate(co_translator *t, const co_source *source, int n,
                    void (*each)(void *ctx, int i, const co_translation *best), void *ctx)
{
    co_str text = {0};
    co_err err = CO_OK;

    for (int i = 0; i < n; i++)
        if (source[i].n < 1 || source[i].n > t->decoder.longest)
            return co_fail(CO_EINPUT, "a sentence of %d tokens: the model was trained with up to %d",
                           source[i].n, t->decoder.longest);
    for (int at = 0; at < n && !err; at += TRANSLATE_GROUP) {
        int some = n - at < TRANSLATE_GROUP ? n - at : TRANSLATE_GROUP;
        search_run(t->search, &t->offline.bases, source + at, some, NULL);
        for (int i = 0; i < some && !err; i++)
            err = give(t, i, &text, at, each, ctx);
    }
    co_str_fini(&text);
    return err;
}
