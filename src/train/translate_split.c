/* translate_split.c -- translates the sentences of a split and scores the translations: BLEU, and the
 * shares of characters and words that are wrong (text/text.h). */
#include "base/alloc.h"
#include "train/evaluate_int.h"
#include "train/translate_int.h"

co_err scoring_add(scoring *s, uint32_t id, const char *predicted)
{
    co_str_clear(&s->source);
    co_str_clear(&s->target);
    s->data->text(s->data, s->split, id, CO_SIDE_SOURCE, &s->source);
    s->data->text(s->data, s->split, id, CO_SIDE_TARGET, &s->target);
    CO_TRY(co_str_err(&s->source));
    CO_TRY(co_str_err(&s->target));
    CO_TRY(co_bleu_add(&s->bleu, predicted, co_str_text(&s->target)));
    CO_TRY(co_cer_add(&s->cer, predicted, co_str_text(&s->target)));
    return co_wer_add(&s->wer, predicted, co_str_text(&s->target));
}

co_translation_scores scoring_result(const scoring *s)
{
    return (co_translation_scores){.bleu = co_bleu_score(&s->bleu),
                                   .cer = co_error_rate_value(&s->cer),
                                   .wer = co_error_rate_value(&s->wer),
                                   .sentences = (int64_t)s->bleu.sentences};
}

void scoring_fini(scoring *s)
{
    co_str_fini(&s->source);
    co_str_fini(&s->target);
}

void read_sources(const co_dataset *d, co_split split, uint32_t first, int n, int32_t *offsets,
                  int32_t *tokens, co_source *source)
{
    uint32_t ids[CO_TRANSLATE_AT_ONCE] = {0};

    CO_ASSERT(n <= CO_TRANSLATE_AT_ONCE, "room for the ids");
    for (int i = 0; i < n; i++)
        ids[i] = first + (uint32_t)i;
    co_dataset_fill(d, split, ids, co_slice_of(d, split, ids, n), &(co_draw){0},
                    &(co_slice_dst){.x = tokens, .offsets = offsets, .room = n});
    for (int i = 0; i < n; i++)
        source[i] = (co_source){tokens + offsets[i], offsets[i + 1] - offsets[i]};
}

/* --- in this process alone ------------------------------------------------------------------------------ */
struct scored_split {
    scoring scoring;
    uint32_t first; /* of those that are translated now */
    co_err err;
    void (*each)(void *ctx, const co_translated *t);
    void *ctx;
};

static void score(void *ctx, int i, const co_translation *best)
{
    struct scored_split *s = ctx;
    uint32_t id = s->first + (uint32_t)i;

    if (!s->err)
        s->err = scoring_add(&s->scoring, id, best->text);
    if (!s->err && s->each)
        s->each(s->ctx, &(co_translated){id, co_str_text(&s->scoring.source), co_str_text(&s->scoring.target),
                                         best->text});
}

static co_err translate_all(co_translator *t, struct scored_split *s, uint32_t n, int32_t *tokens)
{
    int32_t offsets[CO_TRANSLATE_AT_ONCE + 1];
    co_source source[CO_TRANSLATE_AT_ONCE];

    for (; s->first < n; s->first += CO_TRANSLATE_AT_ONCE) {
        uint32_t left = n - s->first;
        int some = left < CO_TRANSLATE_AT_ONCE ? (int)left : CO_TRANSLATE_AT_ONCE;
        read_sources(s->scoring.data, s->scoring.split, s->first, some, offsets, tokens, source);
        CO_TRY(co_translate(t, source, some, score, s));
        CO_TRY(s->err);
    }
    return CO_OK;
}

co_err co_translate_split(co_plan *plan, co_split split, int64_t limit, int beam, co_translation_scores *out,
                          void (*each)(void *ctx, const co_translated *t), void *ctx)
{
    const co_dataset *d = plan->data;
    uint32_t n = d->count[split];
    struct scored_split s = {.scoring = {.data = d, .split = split}, .each = each, .ctx = ctx};
    co_translator *t = NULL;

    if (n == 0)
        return no_samples(plan, split);
    n = limit >= 0 && limit < n ? (uint32_t)limit : n;
    int32_t *tokens = co_array((size_t)CO_TRANSLATE_AT_ONCE * (size_t)d->io.max_len, sizeof *tokens);
    co_err err = tokens ? co_translator_open(&t, plan, beam) : CO_ENOMEM;
    if (!err)
        err = translate_all(t, &s, n, tokens);
    if (!err)
        *out = scoring_result(&s.scoring);
    co_translator_close(t);
    scoring_fini(&s.scoring);
    co_free(tokens);
    return err;
}
